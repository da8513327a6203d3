//! The ReplicaSets of a Deployment, as the new one and the old ones.

use std::cmp::Ordering;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::PodTemplateSpec;

/// The label that tells the pods of one ReplicaSet from those of its siblings.
pub(super) const HASH: &str = "pod-template-hash";

/// The ReplicaSets of a Deployment.
pub(super) struct Sets {
    /// The one that has the Deployment's template: the oldest, should there be more.
    pub new: Option<Arc<ReplicaSet>>,
    /// The others, the oldest first.
    pub old: Vec<Arc<ReplicaSet>>,
}

impl Sets {
    pub fn new(mut all: Vec<Arc<ReplicaSet>>, deployment: &Deployment) -> Sets {
        all.sort_by(|a, b| by_age(a, b));
        let wanted = deployment.spec.as_ref().map(|spec| &spec.template);
        let has = |set: &Arc<ReplicaSet>| wanted.is_some_and(|wanted| is_same(template(set), Some(wanted)));
        let new = all.iter().position(has).map(|at| all.remove(at));
        Sets { new, old: all }
    }

    /// All of them, the new one last.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.old.iter().chain(&self.new)
    }

    /// Those that want pods.
    pub fn active(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.all().filter(|set| size(set) > 0)
    }

    /// How many pods they want together.
    pub fn size(&self) -> i32 {
        self.all().map(|set| size(set)).sum()
    }

    /// The sum of a count of their statuses.
    pub fn sum(&self, count: impl Fn(&ReplicaSetStatus) -> i32) -> i32 {
        self.all().filter_map(|set| set.status.as_ref()).map(count).sum()
    }
}

/// How many pods a set wants.
pub(super) fn size(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)
}

/// How many pods of a set are available.
pub(super) fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default()
}

/// How many pods a set has.
pub(super) fn actual(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map(|status| status.replicas).unwrap_or_default()
}

/// The template of a set.
pub(super) fn template(set: &ReplicaSet) -> Option<&PodTemplateSpec> {
    set.spec.as_ref()?.template.as_ref()
}

/// The name of a set.
pub(super) fn name(set: &ReplicaSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// An annotation of a set; empty where it has none.
pub(super) fn annotation<'a>(set: &'a ReplicaSet, key: &str) -> &'a str {
    set.metadata.annotations.as_ref().and_then(|all| all.get(key)).map(String::as_str).unwrap_or_default()
}

/// The older one first, and of two that came in the same second the one with the lesser name.
pub(super) fn by_age(a: &ReplicaSet, b: &ReplicaSet) -> Ordering {
    let age = |set: &ReplicaSet| (set.metadata.creation_timestamp.clone(), set.metadata.name.clone());
    age(a).cmp(&age(b))
}

/// Whether two templates say the same, but for the label that we add.
pub(super) fn is_same(a: Option<&PodTemplateSpec>, b: Option<&PodTemplateSpec>) -> bool {
    let plain = |template: Option<&PodTemplateSpec>| {
        let mut template = template.cloned().unwrap_or_default();
        let metadata = template.metadata.get_or_insert_default();
        if let Some(labels) = &mut metadata.labels {
            labels.remove(HASH);
        }
        metadata.labels = metadata.labels.take().filter(|labels| !labels.is_empty());
        metadata.annotations = metadata.annotations.take().filter(|all| !all.is_empty());
        template
    };
    plain(a) == plain(b)
}
