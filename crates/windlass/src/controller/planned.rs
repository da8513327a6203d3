//! A planner as something that a controller can run.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use kube::Resource as _;
use tower::BoxError;
use windlass_core::{Kind, Outcome, Plan};

use super::reconcile::Reconcile;
use crate::executor::{Failure, Parent, Perform, Report};
use crate::planner::Planner;
use crate::{Context, Error};

/// Runs a [`Planner`].
pub(super) struct Planned<P> {
    pub planner: P,
    pub kind: Kind,
}

impl<P: Planner> Reconcile<P::Object> for Planned<P> {
    fn reconcile(&self, ctx: Context, object: Arc<P::Object>) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let Some(plan) = self.plan(&ctx, &object).await? else { return Ok(Outcome::AwaitChange) };
            let parent = Parent::new(self.kind.clone(), &*object);
            let effects = Effects { planner: &self.planner, ctx: &ctx, object: &object };
            outcome(ctx.executor().run(&parent, &plan, &effects).await)
        })
    }

    fn preview(&self, ctx: Context, object: Arc<P::Object>) -> BoxFuture<'_, Result<Vec<String>, Error>> {
        Box::pin(async move {
            let Some(plan) = self.plan(&ctx, &object).await? else { return Ok(Vec::new()) };
            let parent = Parent::new(self.kind.clone(), &*object);
            let steps = ctx.executor().preview(&parent, &plan).await?;
            Ok(steps.iter().map(ToString::to_string).collect())
        })
    }
}

impl<P: Planner> Planned<P> {
    /// What has to be done; `None` for an object that goes without our doing.
    async fn plan(
        &self,
        ctx: &Context,
        object: &P::Object,
    ) -> Result<Option<Plan<P::Object, P::Effect>>, Error> {
        let metadata = object.meta();
        let deleting = metadata.deletion_timestamp.is_some();
        let ours =
            P::FINALIZER.is_some_and(|ours| metadata.finalizers.iter().flatten().any(|name| name == ours));
        if deleting && !ours {
            return Ok(None);
        }
        let seen = self.planner.observe(ctx, object).await?;
        let now = ctx.now();
        Ok(Some(match deleting {
            true => self.planner.cleanup(object, &seen, now),
            false => self.planner.plan(object, &seen, now),
        }))
    }
}

/// The planner's effects on one object.
struct Effects<'a, P: Planner> {
    planner: &'a P,
    ctx: &'a Context,
    object: &'a P::Object,
}

impl<P: Planner> Perform<P::Effect> for Effects<'_, P> {
    async fn perform(&self, effect: &P::Effect) -> Result<(), BoxError> {
        self.planner.perform(self.ctx, self.object, effect).await.map_err(Said::boxed)
    }
}

/// What the queue has to know of a report.
fn outcome(report: Report) -> Result<Outcome, Error> {
    for failure in &report.failures {
        if let Failure::Effect { source, .. } = failure
            && let Some(Said(error)) = source.downcast_ref::<Said>()
            && let Some(problem) = error.problem()
        {
            return Err(Error::terminal(problem.reason.clone(), problem.message.clone()));
        }
    }
    let mut messages = report.failures.iter().map(|failure| failure.problem().message);
    match messages.next() {
        None => Ok(report.outcome),
        Some(first) => Err(Error::retry(messages.fold(first, |all, one| format!("{all}; {one}")))),
    }
}

/// What `perform` said, as an error like others.
#[derive(Debug)]
struct Said(Error);

impl Said {
    fn boxed(error: Error) -> BoxError {
        Box::new(Said(error))
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Said {}
