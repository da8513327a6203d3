//! DefaultTolerationSeconds: pods stay for a while on a node that fails.

use serde_json::{Value, json};

use super::Admission;
use crate::kinds::tree::{is_zero, list, set, sub, text};
use crate::status::Result;

/// How long a pod stays on a node that is not ready or not reachable.
const TOLERATION_SECONDS: i64 = 300;

pub(super) fn admit(pod: &mut Value, admission: &mut Admission<'_>) -> Result<()> {
    if !admission.is_of("", "pods") {
        return Ok(());
    }
    let spec = sub(pod, "spec");
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
    Ok(())
}
