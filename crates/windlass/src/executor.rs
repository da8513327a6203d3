//! Carries out plans.
//!
//! ```text
//! Plan ─► finalizer ─► children, deletes ─► children that left the plan ─► one effect ─► status ─► Report
//!                      (only what differs)   (by UID, only our own)
//! ```
//!
//! # Guarantees
//! - A pass over a world that is as planned sends no write. A field that left the plan is a difference.
//! - Nothing is taken over: an object that another controller owns, or that we did not make, is a failure of its action.
//! - Nothing is deleted on the word of an old view: a delete names the UID, what is pruned also the version, and before
//!   the first of a pass the parent is read from the server.
//! - A plan that cannot be carried out prunes nothing: what an earlier spec asked for stays until there is a better one.
//! - The finalizer is there before the first child and the first effect, and goes when the cleanup is done.
//! - One action's failure leaves the others alone; an effect waits for all of them.
//! - A crash anywhere is an ordinary state: the next pass looks again. What is remembered saves writes and decides nothing.

mod child;
mod failure;
mod finalizer;
mod memory;
mod parent;
mod preview;
mod prune;
mod status;

pub use failure::Failure;
pub use parent::Parent;
pub use preview::Step;
pub use status::STALLED;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use windlass_core::plan::{Delete, NoEffect};
use windlass_core::{Action, Child, Kind, ObjectKey, Origin, Outcome, Plan, Problem};

use crate::cache::Cache;
use crate::env::Env;
use crate::write::{Deleted, Propagation, Writer};
use child::Done;
use memory::Memory;

/// Carries out the plans of one controller.
pub struct Executor {
    writer: Writer,
    cache: Cache,
    env: Env,
    controller: Arc<str>,
    owned: Vec<Owned>,
    finalizer: Option<String>,
    memory: Memory,
    conditions: status::Conditions,
}

/// A kind of which the controller makes children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// The kind.
    pub kind: Kind,
    /// Whether children that are not in the plan are deleted.
    pub prune: bool,
}

/// What came of a plan.
#[derive(Debug)]
pub struct Report {
    /// What should come next, where nothing failed.
    pub outcome: Outcome,
    /// The actions that failed. The rest was done.
    pub failures: Vec<Failure>,
    /// What was written, in order: `apply ConfigMap default/one`.
    pub writes: Vec<String>,
    /// Whether something had changed since it was looked at. That is no failure: the outcome is to look again soon, and
    /// where it goes on, less and less often.
    pub conflicted: bool,
}

/// Does the operator's own effects.
pub trait Perform<E>: Sync {
    /// Does one, now that its turn has come.
    fn perform(&self, effect: &E) -> impl Future<Output = Result<(), crate::Error>> + Send;
}

/// There are none.
impl Perform<NoEffect> for () {
    async fn perform(&self, effect: &NoEffect) -> Result<(), crate::Error> {
        match *effect {}
    }
}

impl Executor {
    /// Carries out the plans of a controller by its name. Of the kinds it owns nothing, and it has no finalizer.
    pub fn new(writer: Writer, cache: Cache, env: Env, controller: &str) -> Executor {
        Executor {
            writer,
            cache,
            env,
            controller: controller.into(),
            owned: Vec::new(),
            finalizer: None,
            memory: Memory::default(),
            conditions: status::Conditions::default(),
        }
    }

    /// The controller makes children of a kind; with `prune`, those that are not in the plan are deleted.
    #[must_use]
    pub fn owns(mut self, kind: Kind, prune: bool) -> Executor {
        self.owned.push(Owned { kind, prune });
        self
    }

    /// The controller has to clean up before an object may go.
    #[must_use]
    pub fn finalizer(self, name: &str) -> Executor {
        Executor { finalizer: Some(name.to_owned()), ..self }
    }

    /// Forgets what it knows of an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.memory.forget(uid);
    }

    /// Carries out a plan. Of an object that is being deleted it is the plan of its cleanup, which is done when it is
    /// empty and waits for nothing.
    pub async fn run<K, E>(&self, parent: &Parent, plan: &Plan<K, E>, effects: &impl Perform<E>) -> Report
    where
        E: fmt::Display + Sync,
    {
        let mut pass = Pass::new(self, parent, plan.outcome.clone());
        if pass.may_begin(plan).await {
            pass.children(plan).await;
            pass.effect(plan, effects).await;
            if pass.is_clean(plan) {
                pass.remove_finalizer().await;
            } else {
                let problem = pass.problem(plan);
                pass.status(plan.status.as_ref(), problem.as_ref()).await;
            }
        }
        pass.end()
    }

    /// Shows that there is no plan for an object, and will be none until somebody changes something. Its children, and
    /// the rest of its status, stay as they are.
    pub async fn stall(&self, parent: &Parent, problem: &Problem) -> Report {
        let mut pass = Pass::new(self, parent, Outcome::Terminal(problem.clone()));
        pass.status(None, Some(problem)).await;
        pass.end()
    }
}

/// One pass over one parent.
struct Pass<'a> {
    executor: &'a Executor,
    /// As it was planned for; its version moves on with our own writes.
    parent: Parent,
    origin: Origin,
    report: Report,
    /// Whether children or the outside were changed: what came of it has to be looked at.
    is_changed: bool,
    /// Whether something has to happen before the rest makes sense: a child of that name is still going.
    is_waiting: bool,
    /// Whether the server was asked if the parent is what was planned for.
    is_verified: bool,
}

/// How soon to look again after a conflict; twice as late with each that follows, up to the maximum.
const CONFLICT: Duration = Duration::from_millis(5);
const CONFLICT_MAX: Duration = Duration::from_secs(30);

/// How soon to look again at what no watch tells us of.
const UNWATCHED: Duration = Duration::from_secs(5);

impl<'a> Pass<'a> {
    fn new(executor: &'a Executor, parent: &Parent, outcome: Outcome) -> Pass<'a> {
        Pass {
            executor,
            parent: parent.clone(),
            origin: Origin { controller: executor.controller.clone(), key: parent.key.clone() },
            report: Report { outcome, failures: Vec::new(), writes: Vec::new(), conflicted: false },
            is_changed: false,
            is_waiting: false,
            is_verified: false,
        }
    }
}

impl Pass<'_> {
    /// The children and deletes of the plan, then the children that left it.
    async fn children<K, E>(&mut self, plan: &Plan<K, E>) {
        let mut planned: Vec<(Kind, ObjectKey)> = Vec::new();
        for action in &plan.actions {
            match action {
                Action::Apply(child) => match self.parent.adopt(child) {
                    // One of them would undo the other, in every pass.
                    Ok(child) if is_among(&planned, &child.kind, &child.key) => {
                        self.report.failures.push(Failure::Twice { what: child::name(&child) });
                    }
                    Ok(child) => {
                        planned.push((child.kind.clone(), child.key.clone()));
                        self.apply(&child).await;
                    }
                    Err(failure) => self.report.failures.push(failure),
                },
                Action::Delete(delete) => self.delete(delete).await,
                Action::Effect(_) => {}
            }
        }
        if plan.prunes() {
            self.prune(&planned).await;
        }
    }

    async fn apply(&mut self, child: &Child) {
        match self.executor.apply_child(&self.parent, child, &self.origin).await {
            Ok(Done::Nothing) => {}
            Ok(Done::Written) => {
                self.is_changed = true;
                self.wrote(format!("apply {} {}", child.kind, child.key));
            }
            Ok(Done::Unchanged) => self.wrote(format!("apply {} {}", child.kind, child.key)),
            Ok(Done::Wait { watched }) => {
                self.is_waiting = true;
                if !watched {
                    self.look_again_soon();
                }
            }
            Err(failure) => self.failed(failure),
        }
    }

    async fn delete(&mut self, delete: &Delete) {
        let what = format!("delete {} {}", delete.kind, delete.key);
        let missing = match (delete.uid.is_empty(), delete.because.trim().is_empty()) {
            (true, _) => Some("UID"),
            (_, true) => Some("reason"),
            _ => None,
        };
        if let Some(missing) = missing {
            self.report.failures.push(Failure::Unjustified { what, missing });
            return;
        }
        let known = self.executor.cache.metadata(&delete.kind, &delete.key).ok().flatten();
        // What we know to be going needs no second delete.
        if known.is_some_and(|known| known.uid == delete.uid && known.deletion.is_some()) {
            return;
        }
        self.remove(
            &delete.kind,
            &delete.key,
            &delete.uid,
            delete.resource_version.as_deref(),
            &delete.because,
        )
        .await;
    }

    /// Deletes an object, if the parent is still what was planned for.
    async fn remove(
        &mut self,
        kind: &Kind,
        key: &ObjectKey,
        uid: &str,
        version: Option<&str>,
        because: &str,
    ) {
        if self.report.conflicted || !self.verify_parent().await {
            return;
        }
        let writer = &self.executor.writer;
        let propagation = Propagation::Background;
        match writer.delete(kind, key, uid, version, propagation, &self.origin).await {
            Ok(Deleted::Absent) => {}
            Ok(deleted) => {
                tracing::info!(%kind, object = %key, because, "deleted");
                self.is_changed = true;
                self.is_waiting |= deleted == Deleted::Going;
                self.wrote(format!("delete {kind} {key}"));
            }
            Err(error) => self.failed(Failure::Write(error)),
        }
    }

    /// Asks the server whether the parent is what was planned for: a delete on the word of an old view is for good.
    async fn verify_parent(&mut self) -> bool {
        if self.is_verified {
            return true;
        }
        match self.executor.writer.read(&self.parent.kind, &self.parent.key).await {
            Ok(live) => {
                self.is_verified = live.is_some_and(|live| self.parent.is_planned_for(&live));
                self.report.conflicted |= !self.is_verified;
            }
            Err(error) => self.failed(Failure::Write(error)),
        }
        self.is_verified
    }

    /// The first effect, if everything before it is as it should be.
    async fn effect<K, E: fmt::Display>(&mut self, plan: &Plan<K, E>, effects: &impl Perform<E>) {
        let mut planned = plan.actions.iter().filter_map(|action| match action {
            Action::Effect(effect) => Some(effect),
            _ => None,
        });
        let Some(effect) = planned.next() else { return };
        if self.is_waiting || self.report.conflicted || !self.report.failures.is_empty() {
            return;
        }
        let what = effect.to_string();
        self.is_changed = true;
        match effects.perform(effect).await {
            Ok(()) => {
                tracing::info!(effect = %what, "performed");
                self.executor.env.crash_point("effect");
                self.wrote(what);
            }
            Err(error) => {
                let (terminal, source) = error.into_parts();
                self.report.failures.push(Failure::Effect { what, terminal, source });
            }
        }
    }

    fn wrote(&mut self, what: String) {
        self.report.writes.push(what);
    }

    fn failed(&mut self, failure: Failure) {
        match failure.is_conflict() {
            true => self.report.conflicted = true,
            false => self.report.failures.push(failure),
        }
    }

    /// Looks again before long, also where the plan would wait longer.
    fn look_again_soon(&mut self) {
        let at_the_latest = self.executor.env.now().saturating_add(UNWATCHED);
        let is_soon = match &self.report.outcome {
            Outcome::After(delay) => *delay <= UNWATCHED,
            Outcome::At(time) => at_the_latest.is_ok_and(|latest| *time <= latest),
            Outcome::Again => true,
            Outcome::AwaitChange | Outcome::Terminal(_) => false,
        };
        if !is_soon {
            self.report.outcome = Outcome::After(UNWATCHED);
        }
    }

    fn end(mut self) -> Report {
        let conflicts = self.executor.memory.conflicts(&self.parent.uid, self.report.conflicted);
        if self.report.conflicted {
            // Where a watch has failed, our view stays old, and each look at it is the same conflict again.
            let delay = CONFLICT.saturating_mul(2u32.saturating_pow(conflicts - 1)).min(CONFLICT_MAX);
            self.report.outcome = Outcome::After(self.executor.env.jittered(delay, 0.5));
        } else if self.is_changed {
            self.report.outcome = Outcome::Again;
        }
        self.report
    }
}

/// Whether a child is among some, in whatever version of its kind.
fn is_among(children: &[(Kind, ObjectKey)], kind: &Kind, key: &ObjectKey) -> bool {
    let is_same =
        |one: &Kind| one.resource.kind == kind.resource.kind && one.resource.group == kind.resource.group;
    children.iter().any(|(one, at)| at == key && is_same(one))
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("controller", &self.controller)
            .field("owned", &self.owned)
            .field("finalizer", &self.finalizer)
            .finish_non_exhaustive()
    }
}
