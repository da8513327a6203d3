//! What is told of a namespace that is being emptied.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition, NamespaceStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use windlass_core::Kind;

use super::by_finalizer;
use crate::engine::Refusal;

/// What was found on the way.
#[derive(Debug, Default)]
pub(super) struct Findings {
    undiscovered: Vec<String>,
    errors: BTreeSet<String>,
    /// How many objects are left, by `resource.group`.
    objects: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

/// The conditions in their order: the type, the reason and the message when all is well.
const WELL: [(&str, &str, &str); 5] = [
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

impl Findings {
    /// The server could not say which kinds these group versions have.
    pub fn undiscovered(&mut self, versions: &[String]) {
        self.undiscovered = versions.to_vec();
    }

    /// A kind could not be listed.
    pub fn failed(&mut self, error: &str) {
        self.errors.insert(error.to_owned());
    }

    /// A deletion was refused.
    pub fn refused(&mut self, refusals: &[Refusal]) {
        let deletions = refusals.iter().filter(|refusal| refusal.verb == "delete");
        self.errors.extend(deletions.map(|refusal| refusal.message.clone()));
    }

    /// These are left of a kind.
    pub fn remaining(&mut self, kind: &Kind, objects: &[&ObjectMeta]) {
        if objects.is_empty() {
            return;
        }
        let resource = format!("{}.{}", kind.resource.plural, kind.resource.group);
        self.objects.insert(resource, objects.len());
        for (finalizer, count) in by_finalizer(objects) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += count;
        }
    }

    /// Pods that nothing holds and that had the time to end should be gone.
    pub fn overdue_pods(
        &mut self,
        namespace: &Namespace,
        pods: &[&ObjectMeta],
        grace: Duration,
        now: Timestamp,
    ) {
        let since = namespace.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
        let overdue = grace.is_zero() || since.checked_add(grace).is_ok_and(|time| time <= now);
        let ends = pods.iter().all(|pod| pod.deletion_timestamp.is_some());
        if overdue && ends && by_finalizer(pods).is_empty() {
            let name = namespace.metadata.name.as_deref().unwrap_or_default();
            self.errors.insert(format!(
                "unexpected items still remain in namespace: {name} for gvr: /v1, Resource=pods"
            ));
        }
    }

    /// Whether what was not found is not there.
    pub fn is_certain(&self) -> bool {
        self.undiscovered.is_empty() && self.errors.is_empty()
    }

    /// The status that says so.
    pub fn status(&self, before: Option<&NamespaceStatus>, now: Timestamp) -> NamespaceStatus {
        let mut status = before.cloned().unwrap_or_default();
        status.phase = Some("Terminating".into());
        let conditions = status.conditions.get_or_insert_default();
        for (kind, reason, message) in WELL {
            let bad = self.bad(kind);
            let (state, reason, message) = match bad {
                Some((reason, message)) => ("True", reason, message),
                None => ("False", reason, message.to_owned()),
            };
            let new = NamespaceCondition {
                type_: kind.into(),
                status: state.into(),
                reason: Some(reason.into()),
                message: Some(message),
                last_transition_time: Some(Time(now)),
            };
            match conditions.iter_mut().find(|condition| condition.type_ == kind) {
                None => conditions.push(new),
                Some(old) if old.status == new.status => {
                    *old =
                        NamespaceCondition { last_transition_time: old.last_transition_time.take(), ..new };
                }
                Some(old) => *old = new,
            }
        }
        status
    }

    /// The reason and the message of a condition that is not well.
    fn bad(&self, kind: &str) -> Option<(&'static str, String)> {
        match kind {
            "NamespaceDeletionDiscoveryFailure" if !self.undiscovered.is_empty() => {
                let stale = |version: &String| format!("{version}: stale GroupVersion discovery: {version}");
                let all: Vec<String> = self.undiscovered.iter().map(stale).collect();
                Some((
                    "DiscoveryFailed",
                    format!(
                        "Discovery failed for some groups, {} failing: unable to retrieve the complete list of server \
                         APIs: {}",
                        all.len(),
                        all.join(", ")
                    ),
                ))
            }
            "NamespaceDeletionContentFailure" if !self.errors.is_empty() => {
                let all: Vec<&str> = self.errors.iter().map(String::as_str).collect();
                Some((
                    "ContentDeletionFailed",
                    format!(
                        "Failed to delete all resource types, {} remaining: {}",
                        all.len(),
                        all.join(", ")
                    ),
                ))
            }
            "NamespaceContentRemaining" if !self.objects.is_empty() => {
                let all = self.objects.iter();
                let all: Vec<String> =
                    all.map(|(kind, count)| format!("{kind} has {count} resource instances")).collect();
                Some(("SomeResourcesRemain", format!("Some resources are remaining: {}", all.join(", "))))
            }
            "NamespaceFinalizersRemaining" if !self.finalizers.is_empty() => {
                let all = self.finalizers.iter();
                let all: Vec<String> =
                    all.map(|(name, count)| format!("{name} in {count} resource instances")).collect();
                let message =
                    format!("Some content in the namespace has finalizers remaining: {}", all.join(", "));
                Some(("SomeFinalizersRemain", message))
            }
            _ => None,
        }
    }
}
