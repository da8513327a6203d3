//! A planner as something that a controller can run.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use kube::Resource as _;
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
            let parent = Parent::new(self.kind.clone(), &*object);
            let plan = match self.plan(&ctx, &object).await {
                Ok(Some(plan)) => plan,
                Ok(None) => return Ok(Outcome::AwaitChange),
                // Without a plan, only that can be shown. An empty one would remove all children.
                Err(error) => match error.problem() {
                    Some(problem) => return outcome(ctx.executor().stall(&parent, problem).await),
                    None => return Err(error),
                },
            };
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
    async fn perform(&self, effect: &P::Effect) -> Result<(), Error> {
        self.planner.perform(self.ctx, self.object, effect).await
    }
}

/// What the queue has to know of a report.
fn outcome(report: Report) -> Result<Outcome, Error> {
    let terminal = report.failures.iter().find_map(Failure::terminal);
    if let Some(problem) = terminal.filter(|_| !report.conflicted) {
        return Ok(Outcome::Terminal(problem.clone()));
    }
    let mut messages = report.failures.iter().map(|failure| failure.problem().message);
    match messages.next() {
        None => Ok(report.outcome),
        Some(first) => Err(Error::retry(messages.fold(first, |all, one| format!("{all}; {one}")))),
    }
}
