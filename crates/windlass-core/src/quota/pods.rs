//! Pods: a pod is counted as long as it is there, and what it uses as long as it can run.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use super::devices::BY_IMPLICIT_NAME;
use super::one;
use crate::amounts::{Amounts, Side, Summed, add, amounts, is_native, speaks_as_a_whole, total};
use crate::tree::{int, list, text, text_at};

/// What a pod uses that has a request and a limit.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

pub(super) fn counts(name: &str) -> bool {
    matches!(name, "count/pods" | "pods")
        || COMPUTE.contains(&bare(name))
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
        || super::may_be_devices(name)
}

/// A name without what says whether requests or limits are meant.
fn bare(name: &str) -> &str {
    name.strip_prefix("requests.").or(name.strip_prefix("limits.")).unwrap_or(name)
}

/// Whether a pod has a deadline.
pub fn ends_by_itself(pod: &Value) -> bool {
    int(&pod["spec"], "activeDeadlineSeconds").is_some_and(|seconds| seconds >= 0)
}

pub(super) fn lacks(restricted: &[&str], pod: &Value) -> Option<String> {
    if speaks_as_a_whole(pod) {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let spec = &pod["spec"];
    for container in list(spec, "containers").iter().chain(list(spec, "initContainers")) {
        let given = compute(
            &amounts(&container["resources"], "requests"),
            &amounts(&container["resources"], "limits"),
        );
        let needed = restricted.iter().filter(|name| matches!(bare(name), "cpu" | "memory"));
        for name in needed.filter(|name| !given.contains_key(**name)) {
            missing.entry(name).or_default().insert(text(container, "name"));
        }
    }
    let told = missing.into_iter().map(|(name, containers)| {
        let containers: Vec<&str> = containers.into_iter().collect();
        format!("{name} for: {}", containers.join(","))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| format!("must specify {}", told.join("; ")))
}

pub(super) fn usage(pod: &Value, now: Timestamp) -> Amounts {
    let mut usage = Amounts::from([("count/pods".to_owned(), one())]);
    if has_ended(pod, now) {
        return usage;
    }
    let of = |side| total(pod, side, Summed::Taken);
    add(&mut usage, &compute(&of(Side::Requests), &of(Side::Limits)));
    usage
}

/// A pod that has ended, or should have.
fn has_ended(pod: &Value, now: Timestamp) -> bool {
    if matches!(text_at(pod, &["status", "phase"]), "Failed" | "Succeeded") {
        return true;
    }
    let metadata = &pod["metadata"];
    let (Ok(at), Some(grace)) = (
        text(metadata, "deletionTimestamp").parse::<Timestamp>(),
        int(metadata, "deletionGracePeriodSeconds"),
    ) else {
        return false;
    };
    now.as_second() > at.as_second().saturating_add(grace)
}

/// Under which names requests and limits are counted.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), one())]);
    for name in COMPUTE {
        if let Some(amount) = requests.get(name) {
            usage.insert(name.to_owned(), amount.clone());
            usage.insert(format!("requests.{name}"), amount.clone());
        }
        if let Some(amount) = limits.get(name) {
            usage.insert(format!("limits.{name}"), amount.clone());
        }
    }
    for (name, amount) in requests {
        let is_huge = name.starts_with("hugepages-");
        if is_huge {
            usage.insert(name.clone(), amount.clone());
        }
        // What is not of Kubernetes itself is what somebody else brings along: pods have no other names.
        let by_request = format!("requests.{name}");
        if is_huge || !is_native(name) || by_request.starts_with(BY_IMPLICIT_NAME) {
            usage.insert(by_request, amount.clone());
        }
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_counts_for_what_it_asks_for_until_it_ends() {
        let mut pod = json!({"spec": {"containers": [{"name": "a", "resources": {
            "requests": {"cpu": "100m", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"},
            "limits": {"cpu": "1", "hugepages-2Mi": "4Mi", "example.com/gpu": "2"},
        }}]}});
        let used = |pod: &Value, seconds: i64| -> Vec<String> {
            let now = Timestamp::from_second(seconds).unwrap();
            usage(pod, now).iter().map(|(name, amount)| format!("{name}={amount}")).collect()
        };
        let running = [
            "count/pods=1",
            "cpu=100m",
            "hugepages-2Mi=4Mi",
            "limits.cpu=1",
            "pods=1",
            "requests.cpu=100m",
            "requests.example.com/gpu=2",
            "requests.hugepages-2Mi=4Mi",
        ];
        assert_eq!(used(&pod, 0), running);
        pod["metadata"] =
            json!({"deletionTimestamp": "1970-01-01T00:01:00Z", "deletionGracePeriodSeconds": 30});
        assert_eq!(used(&pod, 90), running);
        assert_eq!(used(&pod, 91), ["count/pods=1"]);
        pod["status"] = json!({"phase": "Failed"});
        assert_eq!(used(&pod, 0), ["count/pods=1"]);
        assert!(used(&pod, 0).iter().all(|one| counts(one.split('=').next().unwrap())));
    }
}
