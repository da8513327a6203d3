//! What the template of a parent was before: its ControllerRevisions.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::ObjectMeta;
use serde_json::Value;
use windlass::Object;
use windlass_core::owner;

use super::hash::safe;
use crate::engine::{Turn, as_go_writes};

/// The label that tells what a revision holds.
pub(crate) const HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// In the order in which they came.
pub(crate) fn sort(revisions: &mut [Arc<ControllerRevision>]) {
    revisions.sort_by(|a, b| order(a, b));
}

fn order(a: &ControllerRevision, b: &ControllerRevision) -> Ordering {
    let created = |of: &ControllerRevision| of.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (a.revision, created(a), &a.metadata.name).cmp(&(b.revision, created(b), &b.metadata.name))
}

/// The number of the revision that comes after these, which are sorted.
pub(crate) fn next(revisions: &[Arc<ControllerRevision>]) -> i64 {
    revisions.last().map_or(1, |last| last.revision + 1)
}

/// A revision of a parent. Its name follows from what it holds, and from how many others of the same name were met.
pub(crate) fn make<P: Object>(
    parent: &P,
    labels: Option<&BTreeMap<String, String>>,
    mut data: Value,
    revision: i64,
    collisions: i32,
) -> ControllerRevision {
    // As Go writes it, or no patch of it is taken.
    data.sort_all_objects();
    let hash = hash(&data, collisions);
    let mut labels = labels.cloned().unwrap_or_default();
    labels.insert(HASH_LABEL.into(), hash.clone());
    let metadata = ObjectMeta {
        name: Some(name(parent.meta().name.as_deref().unwrap_or_default(), &hash)),
        namespace: parent.meta().namespace.clone(),
        labels: Some(labels),
        annotations: parent.meta().annotations.clone(),
        owner_references: owner::reference_to(parent).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    ControllerRevision { metadata, data: Some(RawExtension(data)), revision }
}

/// The name of a revision; the longest that there may be is 253 bytes.
pub(crate) fn name(parent: &str, hash: &str) -> String {
    format!("{}-{hash}", parent.get(..223).unwrap_or(parent))
}

/// What a revision holds.
pub(crate) fn data(revision: &ControllerRevision) -> &Value {
    revision.data.as_ref().map_or(&Value::Null, |RawExtension(data)| data)
}

/// Deletes the oldest of the revisions that nobody needs, until there are no more than the limit. They are sorted.
pub(crate) fn truncate(
    turn: &mut Turn,
    revisions: &[Arc<ControllerRevision>],
    live: &BTreeSet<String>,
    limit: Option<i32>,
) {
    let named = |revision: &ControllerRevision| revision.metadata.name.clone().unwrap_or_default();
    let dead: Vec<_> = revisions.iter().filter(|revision| !live.contains(&named(revision))).collect();
    // Below zero there is no limit.
    let Ok(limit) = usize::try_from(limit.unwrap_or(10)) else { return };
    for revision in &dead[..dead.len().saturating_sub(limit)] {
        turn.delete(&***revision);
    }
}

/// FNV-1 of 32 bits over the JSON that Go would write, and over the decimal number of collisions.
fn hash(data: &Value, collisions: i32) -> String {
    let mut sorted = data.clone();
    sorted.sort_all_objects();
    let bytes = as_go_writes(&sorted).into_bytes().into_iter().chain(collisions.to_string().into_bytes());
    let sum = bytes.fold(0x811c_9dc5_u32, |sum, byte| sum.wrapping_mul(0x0100_0193) ^ u32::from(byte));
    safe(&sum.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn revision(name: &str, number: i64) -> Arc<ControllerRevision> {
        let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
        Arc::new(ControllerRevision { metadata, data: None, revision: number })
    }

    #[test]
    fn the_order_of_keys_is_no_difference_and_a_collision_is() {
        let (one, other) = (json!({"b": 1, "a": "<"}), json!({"a": "<", "b": 1}));
        assert_eq!(hash(&one, 0), hash(&other, 0));
        assert_ne!(hash(&one, 0), hash(&one, 1));
    }

    #[test]
    fn what_a_revision_holds_is_as_go_writes_it() {
        let parent = ControllerRevision { metadata: ObjectMeta::default(), data: None, revision: 0 };
        let made = make(&parent, None, json!({"b": "a < b && c > \u{2028}", "a": {"d": 1, "c": 2}}), 1, 0);
        let text = as_go_writes(data(&made));
        assert_eq!(text, r#"{"a":{"c":2,"d":1},"b":"a \u003c b \u0026\u0026 c \u003e \u2028"}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), *data(&made));
    }

    #[test]
    fn the_oldest_that_nobody_needs_go() {
        let mut all = vec![revision("c", 3), revision("a", 1), revision("b", 2), revision("d", 4)];
        sort(&mut all);
        assert_eq!(next(&all), 5);
        let mut turn = Turn::default();
        truncate(&mut turn, &all, &BTreeSet::from(["a".to_owned()]), Some(1));
        let gone: Vec<String> = turn
            .writes
            .iter()
            .map(|write| match write {
                crate::engine::Write::Delete(delete) => delete.key.name().to_owned(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(gone, ["b", "c"]);
        let mut turn = Turn::default();
        truncate(&mut turn, &all, &BTreeSet::new(), Some(-1));
        assert!(turn.is_empty());
    }
}
