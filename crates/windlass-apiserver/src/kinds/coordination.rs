//! Leases.

use serde_json::{Value, json};

use super::check::not_negative;
use super::tree::int;
use super::{Context, Hooks};
use crate::field::{Errors, Path};

/// The hooks of a coordination kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    (kind == "Lease").then_some(&LEASE)
}

const LEASE: Hooks = Hooks {
    qualifies: false,
    validate_create: validate,
    validate_update: |new, _, context, errors| validate(new, context, errors),
    ..Hooks::NONE
};

fn validate(lease: &Value, _: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&lease["spec"], Path::Root.child("spec"));
    if let Some(seconds) = int(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        errors.invalid(&path.child("leaseDurationSeconds"), &json!(seconds), "must be greater than 0");
    }
    not_negative(spec, &["leaseTransitions"], &path, errors);
}
