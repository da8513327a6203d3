//! Children that left the plan.

use windlass_core::{Kind, ObjectKey};

use super::{Executor, Parent, Pass, is_among};
use crate::cache::{ObjectMetadata, ReadError};

/// The finalizer by which a user says that the children should outlive the parent.
const ORPHAN: &str = "orphan";

/// The children of a parent that are not in the plan.
#[derive(Default)]
pub(super) struct Leftovers {
    /// Those that have to be deleted.
    pub there: Vec<(Kind, ObjectMetadata)>,
    /// How many are being deleted.
    pub going: usize,
    /// Why it cannot be told whether these are all.
    pub unknown: Option<ReadError>,
}

impl Executor {
    /// Looks for children that are not in the plan. Only in the cache, and only where its list is complete: a child that
    /// an incomplete view does not show is no reason to delete, and no reason to say that all are gone.
    pub(super) fn leftovers(&self, parent: &Parent, planned: &[(Kind, ObjectKey)]) -> Leftovers {
        let mut left = Leftovers::default();
        if parent.deleting && parent.finalizers.iter().any(|finalizer| finalizer == ORPHAN) {
            return left;
        }
        for owned in self.owned.iter().filter(|owned| owned.prune) {
            let children = match self.cache.children_of(&owned.kind, &parent.uid) {
                Ok(children) => children,
                Err(error) => {
                    left.unknown = Some(error);
                    continue;
                }
            };
            for child in children {
                let is_planned = is_among(planned, &owned.kind, &child.key);
                let is_ours = child.controller.as_ref().is_some_and(|owner| owner.uid == parent.uid);
                match is_ours && !is_planned {
                    true if child.deletion.is_some() => left.going += 1,
                    true => left.there.push((owned.kind.clone(), child)),
                    false => {}
                }
            }
        }
        left
    }
}

impl Pass<'_> {
    /// Deletes the children that are not in the plan.
    pub(super) async fn prune(&mut self, planned: &[(Kind, ObjectKey)]) {
        let left = self.executor.leftovers(&self.parent, planned);
        if let Some(error) = left.unknown {
            tracing::debug!(%error, "children that left the plan are not looked for");
        }
        for (kind, child) in left.there {
            let version = child.version.to_string();
            self.remove(&kind, &child.key, &child.uid, Some(&version), "it left the plan").await;
        }
    }
}
