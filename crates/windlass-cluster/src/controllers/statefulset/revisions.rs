//! What the template of a StatefulSet is, and what it was.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};
use windlass_core::ObjectKey;

use crate::controllers::history;
use crate::engine::{Turn, View};

/// The revision that the pods had when all was at rest, the one that they should have, and how many names were taken.
pub(super) struct Revisions {
    pub current: Arc<ControllerRevision>,
    pub update: Arc<ControllerRevision>,
    pub collisions: i32,
}

impl Revisions {
    /// Finds both among those that there are, which are sorted; one that is missing is created.
    pub fn find(
        turn: &mut Turn,
        view: &View<'_>,
        set: &StatefulSet,
        all: &[Arc<ControllerRevision>],
    ) -> Revisions {
        let status = set.status.as_ref();
        let mut collisions = status.and_then(|status| status.collision_count).unwrap_or_default();
        let update = update(turn, view, set, all, &mut collisions);
        let named = status.and_then(|status| status.current_revision.as_deref()).unwrap_or_default();
        let current = all.iter().find(|revision| name(revision) == named).unwrap_or(&update).clone();
        Revisions { current, update, collisions }
    }

    /// The templates of both.
    pub fn templates(&self) -> (PodTemplateSpec, PodTemplateSpec) {
        (template(&self.current), template(&self.update))
    }
}

/// The name of a revision.
pub(super) fn name(revision: &ControllerRevision) -> &str {
    revision.metadata.name.as_deref().unwrap_or_default()
}

fn update(
    turn: &mut Turn,
    view: &View<'_>,
    set: &StatefulSet,
    all: &[Arc<ControllerRevision>],
    collisions: &mut i32,
) -> Arc<ControllerRevision> {
    let given = set.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let data = patch(&given);
    let same =
        |revision: &&Arc<ControllerRevision>| history::data(revision) == &data || template(revision) == given;
    if let Some(last) = all.last().filter(same) {
        return last.clone();
    }
    let next = history::next(all);
    if let Some(earlier) = all.iter().rfind(same) {
        // Back to what it was: that revision is the newest again.
        let revision = ControllerRevision { revision: next, ..ControllerRevision::clone(earlier) };
        turn.replace(&revision);
        return Arc::new(revision);
    }
    loop {
        let labels = given.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
        let made = history::make(set, labels, data.clone(), next, *collisions);
        match view.get::<ControllerRevision>(&ObjectKey::of(&made.metadata)) {
            None => {
                // The garbage collector is at work on what belongs to a set that goes.
                if set.metadata.deletion_timestamp.is_none() {
                    turn.create(&made);
                }
                return Arc::new(made);
            }
            Some(there) if history::data(&there) == &data => return there,
            Some(_) => *collisions += 1,
        }
    }
}

/// What brings a set back to a template, as it is kept in a revision.
fn patch(template: &PodTemplateSpec) -> Value {
    let mut template = serde_json::to_value(template).expect("a template is JSON");
    template["$patch"] = json!("replace");
    json!({"spec": {"template": template}})
}

fn template(revision: &ControllerRevision) -> PodTemplateSpec {
    let mut template = history::data(revision)["spec"]["template"].clone();
    if let Some(template) = template.as_object_mut() {
        template.remove("$patch");
    }
    serde_json::from_value(template).unwrap_or_default()
}
