//! The quality-of-service class of a pod.

use serde_json::Value;

use crate::amounts::{self, Amounts};
use crate::tree::{get, list};

/// `Guaranteed`, `Burstable` or `BestEffort`, from the requests and limits of cpu and memory.
///
/// Every container has to be limited for the first; what is requested and what is allowed are compared as sums.
pub fn class(pod: &Value) -> &'static str {
    let Some(spec) = get(pod, "spec") else { return "BestEffort" };
    let holders: Vec<&Value> = match get(spec, "resources") {
        Some(_) => vec![spec],
        None => list(spec, "containers").iter().chain(list(spec, "initContainers")).collect(),
    };
    let (mut requests, mut limits, mut is_limited) = (Amounts::new(), Amounts::new(), true);
    for holder in holders {
        let counted = |field| {
            let amounts = get(holder, "resources").map(|resources| amounts::amounts(resources, field));
            let mut amounts = amounts.unwrap_or_default();
            amounts.retain(|name, amount| matches!(name.as_str(), "cpu" | "memory") && amount.signum() > 0);
            amounts
        };
        let own = counted("limits");
        is_limited &= own.len() == 2;
        amounts::add(&mut limits, &own);
        amounts::add(&mut requests, &counted("requests"));
    }
    match (requests.is_empty() && limits.is_empty(), is_limited && requests == limits) {
        (true, _) => "BestEffort",
        (false, true) => "Guaranteed",
        (false, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_class_follows_requests_and_limits() {
        let pod = |resources| json!({"spec": {"containers": [{"resources": resources}]}});
        let full = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(class(&pod(json!({}))), "BestEffort");
        assert_eq!(class(&pod(json!({"requests": {"cpu": "1"}}))), "Burstable");
        assert_eq!(class(&pod(json!({"requests": full, "limits": full}))), "Guaranteed");
        assert_eq!(class(&pod(json!({"requests": {"cpu": "1"}, "limits": full}))), "Burstable");
        let bytes = json!({"cpu": "1000m", "memory": "1073741824"});
        assert_eq!(class(&pod(json!({"requests": bytes, "limits": full}))), "Guaranteed");
    }

    /// Seen on kube-apiserver 1.36: one container asks for what another one is allowed.
    #[test]
    fn sums_are_compared() {
        let container = |requested: &str, limit: &str| {
            let amounts = |cpu: &str| json!({"cpu": cpu, "memory": "64Mi"});
            json!({"resources": {"requests": amounts(requested), "limits": amounts(limit)}})
        };
        let pod = |first, second| json!({"spec": {"containers": [first], "initContainers": [second]}});
        assert_eq!(class(&pod(container("1", "100m"), container("100m", "1"))), "Guaranteed");
        assert_eq!(class(&pod(container("1", "100m"), container("100m", "100m"))), "Burstable");
    }
}
