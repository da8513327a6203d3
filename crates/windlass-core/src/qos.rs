//! The quality-of-service class of a pod.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::tree::{entries, get, list};

/// `Guaranteed`, `Burstable` or `BestEffort`, from the requests and limits of cpu and memory.
pub fn class(pod: &Value) -> &'static str {
    let Some(spec) = get(pod, "spec") else { return "BestEffort" };
    let holders: Vec<&Value> = match get(spec, "resources") {
        Some(_) => vec![spec],
        None => list(spec, "containers").iter().chain(list(spec, "initContainers")).collect(),
    };
    let (mut any, mut guaranteed) = (false, true);
    for holder in holders {
        let counted = |field| -> BTreeMap<&str, &Value> {
            let resources = get(holder, "resources");
            let all = resources.into_iter().flat_map(|resources| entries(resources, field));
            all.filter(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && *amount != "0")
                .map(|(name, amount)| (name.as_str(), amount))
                .collect()
        };
        let (requests, limits) = (counted("requests"), counted("limits"));
        any |= !requests.is_empty() || !limits.is_empty();
        guaranteed &= limits.len() == 2 && requests == limits;
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
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
    }
}
