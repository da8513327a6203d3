//! Priority classes.

use serde_json::Value;

use super::check::one_of;
use super::generation::Generation;
use super::tree::{fill, flag, int, same, text, text_at};
use super::{Context, Hooks, meta};
use crate::field::{Errors, Path};

/// The hooks of a scheduling kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    (kind == "PriorityClass").then_some(&PRIORITY_CLASS)
}

const PRIORITY_CLASS: Hooks = Hooks {
    default: |object| fill(object, "preemptionPolicy", "PreemptLowerPriority"),
    generation: Generation { born: true, grows_on: &[], ..Generation::NONE },
    validate_create: validate,
    validate_update: |new, old, _, errors| {
        if !same(new.get("value"), old.get("value")) {
            errors.forbidden(&Path::Root.child("value"), "may not be changed in an update.");
        }
        meta::immutable(new, old, &Path::Root, "preemptionPolicy", errors);
    },
    ..Hooks::NONE
};

/// The highest value that users may give.
const USER_MAX: i64 = 1_000_000_000;

/// The classes that the server itself makes, with their values.
const SYSTEM: [(&str, i64); 2] =
    [("system-node-critical", 2 * USER_MAX + 1000), ("system-cluster-critical", 2 * USER_MAX)];

fn validate(class: &Value, _: &Context<'_>, errors: &mut Errors) {
    let name = text_at(class, &["metadata", "name"]);
    let value = int(class, "value").unwrap_or(0);
    let root = Path::Root;
    if name.starts_with("system-") {
        let fault = match SYSTEM.iter().find(|(known, _)| *known == name) {
            None => Some(format!("{name} is not a known system priority class")),
            Some((_, expected)) if *expected != value => {
                Some(format!("value of {name} PriorityClass must be {expected}"))
            }
            Some(_) if flag(class, "globalDefault") => {
                Some(format!("globalDefault of {name} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        if let Some(fault) = fault {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {fault}"
            );
            errors.forbidden(&root.child("metadata").child("name"), &detail);
        }
    } else if value > USER_MAX {
        let detail = format!("maximum allowed value of a user defined priority is {USER_MAX}");
        errors.forbidden(&root.child("value"), &detail);
    }
    match text(class, "preemptionPolicy") {
        "" => errors.required(&root.child("preemptionPolicy"), ""),
        _ => one_of(class, "preemptionPolicy", &["PreemptLowerPriority", "Never"], &root, errors),
    }
}
