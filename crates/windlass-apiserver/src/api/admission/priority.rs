//! Priority: pods get the priority of their class, and only one class is the default.

use serde_json::Value;

use super::{Admission, Operation};
use crate::kinds::tree::{fill, flag, int, set, sub, text, text_at};
use crate::status::Result;

const GROUP: &str = "scheduling.k8s.io";
const KIND: &str = "PriorityClass";

pub(super) fn admit(pod: &mut Value, admission: &mut Admission<'_>) -> Result<()> {
    if !admission.is_of("", "pods") {
        return Ok(());
    }
    let Some(old) = admission.old.filter(|_| admission.operation == Operation::Update) else {
        return give(pod, admission);
    };
    // Whoever leaves them out does not take them away.
    for field in ["priority", "preemptionPolicy"] {
        if let Some(value) = old.pointer(&format!("/spec/{field}")) {
            fill(sub(pod, "spec"), field, value.clone());
        }
    }
    Ok(())
}

fn give(pod: &mut Value, admission: &Admission<'_>) -> Result<()> {
    let class_name = text_at(pod, &["spec", "priorityClassName"]).to_owned();
    let class = match class_name.as_str() {
        "" => default_class(admission),
        name => match admission.context.world.get(GROUP, KIND, "", name) {
            Some(class) => Some(class),
            None => {
                return Err(admission.refuse(pod, &format!("no PriorityClass with name {name} was found")));
            }
        },
    };
    let (value, policy) = match &class {
        Some(class) => (int(class, "value").unwrap_or(0), text(class, "preemptionPolicy")),
        None => (0, "PreemptLowerPriority"),
    };
    let spec = sub(pod, "spec");
    if let Some(given) = int(spec, "priority").filter(|given| *given != value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission \
             controller computed {value} from the given PriorityClass name"
        );
        return Err(admission.refuse(pod, &why));
    }
    let given = text(spec, "preemptionPolicy");
    if !policy.is_empty() && !given.is_empty() && given != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return Err(admission.refuse(pod, &why));
    }
    if let Some(class) = class.as_ref().filter(|_| class_name.is_empty()) {
        set(spec, "priorityClassName", text_at(class, &["metadata", "name"]));
    }
    set(spec, "priority", value);
    if !policy.is_empty() {
        set(spec, "preemptionPolicy", policy);
    }
    Ok(())
}

/// Of several global defaults the one of least value wins, as upstream settles the race between two creates.
fn default_class(admission: &Admission<'_>) -> Option<Value> {
    let classes = admission.context.world.list_with(GROUP, KIND, r#""globalDefault":true"#);
    classes.into_iter().filter(|class| flag(class, "globalDefault")).min_by_key(|class| int(class, "value"))
}

/// Only one class may be the default.
pub(super) fn validate(class: &Value, admission: &mut Admission<'_>) -> Result<()> {
    if !admission.is_of(GROUP, "priorityclasses") || !flag(class, "globalDefault") {
        return Ok(());
    }
    let Some(other) = default_class(admission) else { return Ok(()) };
    let other = text_at(&other, &["metadata", "name"]);
    if admission.operation == Operation::Update && other == text_at(class, &["metadata", "name"]) {
        return Ok(());
    }
    let why = format!("PriorityClass {other} is already marked as default. Only one default can exist");
    Err(admission.refuse(class, &why))
}
