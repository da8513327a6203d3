//! What the owner of a job says of failures, and of what counts as success.

use k8s_openapi::api::batch::v1::{JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::indexes::Indexes;

/// What the rules say of a failed pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// It counts.
    Counted,
    /// It does not count.
    Ignored,
    /// Its index has failed.
    FailsIndex,
    /// The job has failed, for this reason.
    FailsJob(String),
}

/// Looks a failed pod up in the rules.
pub(super) fn judge(spec: &JobSpec, pod: &Pod) -> Judged {
    let rules = spec.pod_failure_policy.as_ref().map(|policy| policy.rules.as_slice()).unwrap_or_default();
    for (number, rule) in rules.iter().enumerate() {
        let Some(what) = matches(rule, pod) else { continue };
        return match rule.action.as_str() {
            "Ignore" => Judged::Ignored,
            "FailIndex" => Judged::FailsIndex,
            "FailJob" => Judged::FailsJob(format!("{what} matching FailJob rule at index {number}")),
            _ => Judged::Counted,
        };
    }
    Judged::Counted
}

/// What of a pod a rule is about, for people.
fn matches(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let place = || {
        let meta = &pod.metadata;
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        format!("{}/{}", part(&meta.namespace), part(&meta.name))
    };
    if let Some(codes) = &rule.on_exit_codes {
        let all = status.container_statuses.iter().chain(&status.init_container_statuses).flatten();
        let (container, code) = all.filter_map(|container| Some((container, exit_code(container)?))).find(
            |(container, code)| {
                let named = codes.container_name.as_ref().is_none_or(|name| *name == container.name);
                named && *code != 0 && is_among(codes, *code)
            },
        )?;
        return Some(format!(
            "Container {} for pod {} failed with exit code {code}",
            container.name,
            place()
        ));
    }
    let patterns = rule.on_pod_conditions.as_ref()?;
    let condition = status.conditions.iter().flatten().find(|condition| {
        patterns.iter().any(|pattern| {
            pattern.type_ == condition.type_
                && pattern.status.as_deref().unwrap_or("True") == condition.status
        })
    })?;
    Some(format!("Pod {} has condition {}", place(), condition.type_))
}

fn exit_code(container: &ContainerStatus) -> Option<i32> {
    Some(container.state.as_ref()?.terminated.as_ref()?.exit_code)
}

fn is_among(codes: &PodFailurePolicyOnExitCodesRequirement, code: i32) -> bool {
    match codes.operator.as_str() {
        "In" => codes.values.contains(&code),
        "NotIn" => !codes.values.contains(&code),
        _ => false,
    }
}

/// Which rule of the success policy is met, for people.
pub(super) fn success(spec: &JobSpec, completions: i32, succeeded: &Indexes) -> Option<String> {
    if succeeded.is_empty() {
        return None;
    }
    let rules = spec.success_policy.as_ref()?.rules.iter();
    let met = rules.enumerate().find(|(_, rule)| match (&rule.succeeded_indexes, rule.succeeded_count) {
        (Some(text), count) => {
            let wanted = Indexes::parse(text, completions);
            let there = wanted.overlap(succeeded);
            !wanted.is_empty() && (there == wanted.total() || count.is_some_and(|count| there >= count))
        }
        (None, Some(count)) => succeeded.total() >= count,
        (None, None) => false,
    });
    met.map(|(number, _)| format!("Matched rules at index {number}"))
}
