//! Pod disruption budgets.

use serde_json::Value;

use super::check::{at_most_all, count_or_percent, not_negative, one_of, selector};
use super::generation::Generation;
use super::tree::{get, go_struct};
use super::{Context, Hooks, names};
use crate::field::{Errors, Path};

/// The hooks of a policy kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    (kind == "PodDisruptionBudget").then_some(&BUDGET)
}

const BUDGET: Hooks = Hooks {
    // Budgets are the one kind that checks nothing of its metadata by itself.
    name: names::path_segment,
    qualifies: false,
    rechecks: &[],
    rechecks_status: &[],
    generation: Generation::SPEC,
    validate_create: validate,
    validate_update: |new, _, context, errors| validate(new, context, errors),
    validate_status: |new, _, _, errors| {
        let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
        not_negative(&new["status"], &counts, &Path::Root.child("status"), errors);
    },
    ..Hooks::NONE
};

/// The fields of the spec by the names that Go has for them.
const SPEC: [(&str, &str); 4] = [
    ("MinAvailable", "minAvailable"),
    ("Selector", "selector"),
    ("MaxUnavailable", "maxUnavailable"),
    ("UnhealthyPodEvictionPolicy", "unhealthyPodEvictionPolicy"),
];

fn validate(budget: &Value, _: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&budget["spec"], Path::Root.child("spec"));
    if get(spec, "minAvailable").is_some() && get(spec, "maxUnavailable").is_some() {
        let shown = go_struct(spec, &SPEC);
        errors.invalid(&path, &shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for field in ["minAvailable", "maxUnavailable"] {
        count_or_percent(spec, field, &path, errors);
        at_most_all(spec, field, &path, errors);
    }
    selector(spec, "selector", &path, errors);
    one_of(spec, "unhealthyPodEvictionPolicy", &["AlwaysAllow", "IfHealthyBudget"], &path, errors);
}
