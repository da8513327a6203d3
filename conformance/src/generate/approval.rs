//! Definitions in groups of the Kubernetes project, which ask for a sign of approval.

use serde_json::{Value, json};

use super::custom::{DEFINITIONS, definition};
use crate::rng::Rng;
use crate::sequence::Step;

/// Texts for the annotation that a definition is taken with.
const TAKEN: [&str; 7] = [
    "https://github.com/kubernetes/enhancements/pull/1111",
    "http://x",
    "ftp://me@example.com:80/a?b#c",
    "x://:1",
    "unapproved",
    "unapproved, \"try\" this only",
    "unapproved-https://example.com",
];

/// Texts that it is refused with.
const REFUSED: [&str; 9] = [
    "",
    "x",
    "Unapproved",
    "/example.com",
    "https:///pull",
    "https://me@/pull",
    "https://a b",
    "https://a:b/",
    "/a://b",
];

pub fn asked(rng: &mut Rng) -> Vec<Step> {
    let group =
        rng.pick(&["{id}.k8s.io", "{id}.x.k8s.io", "{id}.kubernetes.io", "{id}.k8s.io.com", "{id}k8s.io"]);
    let is_protected = [".k8s.io", ".kubernetes.io"].iter().any(|own| group.ends_with(own));
    let mut sign = || if rng.chance(50) { rng.pick(&TAKEN) } else { rng.pick(&REFUSED) };
    let (first, next) = (sign(), sign());
    let mut definition = definition(json!({"type": "object"}));
    definition["metadata"]["name"] = format!("things.{group}").into();
    definition["spec"]["group"] = group.into();
    if !first.is_empty() || rng.chance(50) {
        definition["metadata"]["annotations"] = annotations(first);
    }
    let mut steps = vec![Step::with("POST", DEFINITIONS, definition)];
    if is_protected && !TAKEN.contains(&first) {
        return steps;
    }
    let item = format!("{DEFINITIONS}/things.{group}");
    let told = |sign: &str| {
        let mut conditions = vec![json!({"type": "Established", "status": "True"})];
        if is_protected {
            let message = match sign.starts_with("unapproved") {
                true => format!("not approved: {sign:?}"),
                false => format!("approved in {sign}"),
            };
            conditions.push(json!({"type": "KubernetesAPIApprovalPolicyConformant", "message": message}));
        }
        Step::new("GET", item.clone()).until_told(200, "/status/conditions", conditions.into())
    };
    steps.push(told(first));
    steps.push(Step::patch("merge", item.clone(), json!({"metadata": {"annotations": annotations(next)}})));
    steps.push(told(if TAKEN.contains(&next) { next } else { first }));
    steps.push(Step::new("DELETE", item).quiet());
    steps
}

fn annotations(sign: &str) -> Value {
    json!({"api-approved.kubernetes.io": sign})
}
