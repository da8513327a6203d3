//! What is said of a pod, written to the API: what changed, and only that.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use super::{AGAIN, Done, Finish, Worker};
use crate::pod::node::Node;

impl Worker {
    /// Writes the status if it is another one than what was written last, and deletes the pod once its last word is
    /// there.
    pub(super) fn write(&mut self, status: PodStatus, finish: Option<Finish>) {
        if self.writing {
            return;
        }
        let (node, pod) = (self.node.clone(), self.life.pod().clone());
        if self.written.as_ref() != Some(&status) {
            self.writing = true;
            let old = self.written.clone().unwrap_or_default();
            self.job(async move {
                let well = patch(&node, &pod, &old, &status).await;
                Done::Written(Box::new(status), well)
            });
        } else if finish == Some(Finish::Delete) && !self.deleting {
            self.deleting = true;
            self.job(async move { Done::Deleted(delete(node, pod).await) });
        }
    }
}

fn api(node: &Node, pod: &Pod) -> Api<Pod> {
    Api::namespaced(node.client.clone(), pod.metadata.namespace.as_deref().unwrap_or_default())
}

/// Whether there is nothing more to be written.
async fn patch(node: &Node, pod: &Pod, old: &PodStatus, new: &PodStatus) -> bool {
    let params = PatchParams { field_manager: Some("kubelet".to_owned()), ..PatchParams::default() };
    let body = body(pod, old, new);
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    match api(node, pod).patch_status(name, &params, &Patch::Strategic(body)).await {
        Ok(_) => true,
        // It is gone, or another one of its name is there.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => true,
        Err(error) => {
            tracing::warn!(pod = name, error = %error, "status of a pod cannot be written");
            node.env.sleep(AGAIN).await;
            false
        }
    }
}

/// What is to be patched: fields that went are named, lists of addresses are replaced, and a pod of the same name that
/// came later is left alone.
fn body(pod: &Pod, old: &PodStatus, new: &PodStatus) -> Value {
    let value = |status: &PodStatus| serde_json::to_value(status).unwrap_or_default();
    let (old, new) = (value(old), value(new));
    let mut status = serde_json::Map::new();
    for (field, value) in new.as_object().into_iter().flatten() {
        if old.get(field) == Some(value) {
            continue;
        }
        if field == "conditions" {
            let (changed, order) = conditions(old.get(field), value);
            status.insert(field.clone(), changed);
            status.insert("$setElementOrder/conditions".to_owned(), order);
            continue;
        }
        let mut value = value.clone();
        if matches!(&**field, "podIPs" | "hostIPs")
            && let Some(list) = value.as_array_mut()
        {
            list.push(json!({"$patch": "replace"}));
        }
        status.insert(field.clone(), value);
    }
    for field in old.as_object().into_iter().flat_map(|old| old.keys()) {
        if new.get(field).is_none() {
            status.insert(field.clone(), Value::Null);
        }
    }
    json!({"metadata": {"uid": pod.metadata.uid}, "status": status})
}

/// The conditions that changed, with what they no longer say, and the order of all. Those of others are theirs to write.
fn conditions(old: Option<&Value>, new: &Value) -> (Value, Value) {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let (old, new) = (list(old), list(Some(new)));
    let order = new.iter().map(|condition| json!({"type": condition["type"]})).collect();
    let changed = new.into_iter().filter(|condition| !old.contains(condition)).map(|mut condition| {
        for field in ["reason", "message"] {
            if condition.get(field).is_none() {
                condition[field] = Value::Null;
            }
        }
        condition
    });
    (changed.collect(), order)
}

/// Whether there is nothing more to be deleted.
async fn delete(node: Arc<Node>, pod: Arc<Pod>) -> bool {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions { uid: pod.metadata.uid.clone(), ..Preconditions::default() }),
        ..DeleteParams::default()
    };
    match api(&node, &pod).delete(name, &params).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => true,
        Err(error) => {
            tracing::warn!(pod = name, error = %error, "pod cannot be deleted");
            node.env.sleep(AGAIN).await;
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_changed_says_nothing_of_before() {
        let of = |value: Value| serde_json::from_value::<PodStatus>(value).unwrap();
        let theirs = json!({"type": "theirs", "status": "True"});
        let old = of(
            json!({"conditions": [theirs, {"type": "Ready", "status": "False", "reason": "x", "message": "y"}]}),
        );
        let new = of(json!({"conditions": [theirs, {"type": "Ready", "status": "True"}]}));
        let pod = serde_json::from_value(json!({"metadata": {"uid": "u1"}})).unwrap();
        let expected = json!({
            "conditions": [{"type": "Ready", "status": "True", "reason": null, "message": null}],
            "$setElementOrder/conditions": [{"type": "theirs"}, {"type": "Ready"}],
        });
        assert_eq!(body(&pod, &old, &new)["status"], expected);
    }

    #[test]
    fn only_what_changed_is_written() {
        let of = |value: Value| serde_json::from_value::<PodStatus>(value).unwrap();
        let old = of(
            json!({"phase": "Pending", "reason": "x", "hostIP": "1.2.3.4", "podIPs": [{"ip": "10.0.0.1"}]}),
        );
        let new = of(json!({"phase": "Running", "hostIP": "1.2.3.4", "podIPs": [{"ip": "10.0.0.2"}]}));
        let pod = serde_json::from_value(json!({"metadata": {"uid": "u1"}})).unwrap();
        let expected = json!({
            "metadata": {"uid": "u1"},
            "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.2"}, {"$patch": "replace"}], "reason": null},
        });
        assert_eq!(body(&pod, &old, &new), expected);
    }
}
