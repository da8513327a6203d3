//! What admission adds to pods: limits of the namespace, priority, what the runtime class says, and the tolerations that keep them on a failing node for a while.

use serde_json::{Value, json};

use super::review;
use crate::kinds::Context;
use crate::kinds::tree::{fill, flag, int, is_zero, list, set, sub, text, text_at};
use crate::status::Status;

/// How long a pod stays on a node that is not ready or not reachable.
const TOLERATION_SECONDS: i64 = 300;

/// The plugins LimitRanger, Priority, DefaultTolerationSeconds, PodTopologyLabels and RuntimeClass.
pub(crate) fn admit(pod: &mut Value, old: Option<&Value>, context: &Context<'_>) -> Result<(), Status> {
    if !context.subresource.is_empty() {
        return Ok(());
    }
    match old {
        None => {
            review::default_limits(pod, context);
            priority(pod, context)?;
        }
        Some(old) => keep_priority(pod, old),
    }
    tolerations(sub(pod, "spec"));
    if old.is_none() {
        let node = text_at(pod, &["spec", "nodeName"]).to_owned();
        topology_labels(pod, &node, context);
    }
    if old.is_none() {
        review::runtime_class(pod, context)?;
    }
    Ok(())
}

/// Writes onto a pod, or onto what binds it, where its node is.
pub(crate) fn topology_labels(object: &mut Value, node: &str, context: &Context<'_>) {
    if node.is_empty() {
        return;
    }
    let Some(node) = context.world.get("", "Node", "", node) else { return };
    for key in ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"] {
        if let Some(value) = node.pointer("/metadata/labels").and_then(|labels| labels.get(key)) {
            set(sub(sub(object, "metadata"), "labels"), key, value.clone());
        }
    }
}

fn priority(pod: &mut Value, context: &Context<'_>) -> Result<(), Status> {
    let refuse = |pod: &Value, why: &str| {
        Err(Status::forbidden(context.group, context.resource, text_at(pod, &["metadata", "name"]), why))
    };
    let class_name = text_at(pod, &["spec", "priorityClassName"]).to_owned();
    let class = match class_name.as_str() {
        "" => default_class(context),
        name => match context.world.get("scheduling.k8s.io", "PriorityClass", "", name) {
            Some(class) => Some(class),
            None => return refuse(pod, &format!("no PriorityClass with name {name} was found")),
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
        return refuse(pod, &why);
    }
    let given = text(spec, "preemptionPolicy");
    if !policy.is_empty() && !given.is_empty() && given != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return refuse(pod, &why);
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
fn default_class(context: &Context<'_>) -> Option<Value> {
    let classes = context.world.list("scheduling.k8s.io", "PriorityClass", "");
    classes.into_iter().filter(|class| flag(class, "globalDefault")).min_by_key(|class| int(class, "value"))
}

fn keep_priority(pod: &mut Value, old: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        if let Some(value) = old.pointer(&format!("/spec/{field}")) {
            fill(sub(pod, "spec"), field, value.clone());
        }
    }
}

fn tolerations(spec: &mut Value) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = list(spec, "tolerations").iter().any(|toleration| {
            let of = text(toleration, "key");
            (of.is_empty() || of == key) && matches!(text(toleration, "effect"), "" | "NoExecute")
        });
        if tolerated {
            continue;
        }
        if is_zero(spec.get("tolerations")) {
            set(spec, "tolerations", json!([]));
        }
        let toleration = json!({
            "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS,
        });
        if let Some(all) = spec["tolerations"].as_array_mut() {
            all.push(toleration);
        }
    }
}
