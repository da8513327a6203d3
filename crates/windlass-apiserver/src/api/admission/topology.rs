//! PodTopologyLabels: a pod, or what binds it, says in which region and zone its node is.

use serde_json::Value;

use super::Admission;
use crate::kinds::tree::{set, sub, text_at};
use crate::status::Result;

pub(super) fn admit(object: &mut Value, admission: &mut Admission<'_>) -> Result<()> {
    let node = match admission.context.subresource {
        _ if !admission.is_in("", "pods") => return Ok(()),
        "" => text_at(object, &["spec", "nodeName"]),
        "binding" if text_at(object, &["target", "kind"]) == "Node" => text_at(object, &["target", "name"]),
        _ => return Ok(()),
    };
    if node.is_empty() {
        return Ok(());
    }
    let Some(node) = admission.context.world.get("", "Node", "", node) else { return Ok(()) };
    for key in ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"] {
        if let Some(value) = node.pointer("/metadata/labels").and_then(|labels| labels.get(key)) {
            set(sub(sub(object, "metadata"), "labels"), key, value.clone());
        }
    }
    Ok(())
}
