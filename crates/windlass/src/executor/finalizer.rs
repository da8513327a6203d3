//! The mark that keeps an object until its cleanup is done.

use windlass_core::{Outcome, Plan};

use super::{Failure, Pass};

impl Pass<'_> {
    /// Whether there is anything to do for the parent, after its finalizer was added where that is due.
    pub(super) async fn may_begin<K, E>(&mut self, plan: &Plan<K, E>) -> bool {
        let Some(finalizer) = &self.executor.finalizer else { return !self.parent.deleting };
        let is_there = self.parent.finalizers.contains(finalizer);
        if self.parent.deleting {
            // Without it the cleanup is done, or was never due, and nothing may be made that nobody would clean up.
            return is_there;
        }
        if is_there || plan.actions.is_empty() {
            return true;
        }
        let mut finalizers = self.parent.finalizers.clone();
        finalizers.push(finalizer.clone());
        self.set_finalizers(finalizers).await
    }

    /// Whether the cleanup is done.
    pub(super) fn is_clean<K, E>(&self, plan: &Plan<K, E>) -> bool {
        let is_planned =
            self.parent.deleting && plan.actions.is_empty() && plan.outcome == Outcome::AwaitChange;
        let is_quiet = !self.is_changed && !self.report.conflicted && self.report.failures.is_empty();
        if !is_planned || !is_quiet {
            return false;
        }
        let left = self.executor.leftovers(&self.parent, &[]);
        left.there.is_empty() && left.going == 0 && left.unknown.is_none()
    }

    /// Lets the parent go.
    pub(super) async fn remove_finalizer(&mut self) {
        let ours = self.executor.finalizer.as_ref();
        let finalizers = self.parent.finalizers.iter().filter(|name| Some(*name) != ours).cloned().collect();
        if self.set_finalizers(finalizers).await {
            self.executor.forget(&self.parent.uid);
        }
    }

    async fn set_finalizers(&mut self, finalizers: Vec<String>) -> bool {
        match self.executor.writer.set_finalizers(self.parent.target(), &finalizers, &self.origin).await {
            Ok(answer) => {
                self.wrote(format!("set finalizers of {} {}", self.parent.kind, self.parent.key));
                if let Some(version) =
                    answer.as_ref().and_then(|object| object["metadata"]["resourceVersion"].as_str())
                {
                    self.parent.resource_version = version.to_owned();
                }
                self.parent.finalizers = finalizers;
                true
            }
            Err(error) => {
                self.failed(Failure::Write(error));
                false
            }
        }
    }
}
