//! The pods of a job: what they mean, which of them go, and how new ones are made.

use std::cmp::Reverse;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod};

use super::policy::{self, Judged};
use crate::controllers::pods;

/// The finalizer of pods that are not counted yet.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// The longest prefix to which the server adds five letters.
const PREFIX_MAX: usize = 58;

/// Whether a pod waits to be counted.
pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == TRACKING)
}

/// Whether a pod is a failure. One that is deleted is, too, unless it is waited for what becomes of it.
pub(super) fn is_failed(pod: &Pod, spec: &JobSpec) -> bool {
    let deleted = pod.metadata.deletion_timestamp.is_some() && pods::phase(pod) != "Succeeded";
    pods::phase(pod) == "Failed" || (deleted && !replaces_failed_only(spec))
}

/// Whether a pod is replaced when it has ended, and not already when it is told to.
pub(super) fn replaces_failed_only(spec: &JobSpec) -> bool {
    spec.pod_replacement_policy.as_deref() == Some("Failed") || spec.pod_failure_policy.is_some()
}

/// The index of a pod.
pub(super) fn index(pod: &Pod) -> Option<i32> {
    annotation(pod, INDEX)?.parse().ok().filter(|index| *index >= 0)
}

fn annotation<'a>(pod: &'a Pod, name: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// How often its index had failed before a pod was made: of what counts, and of what is ignored.
pub(super) fn failures(pod: &Pod) -> (i32, i32) {
    let count = |name: &str| annotation(pod, name).and_then(|text| text.parse().ok()).unwrap_or_default();
    let positive = |count: i32| count.max(0);
    (positive(count(FAILURES)), positive(count(IGNORED_FAILURES)))
}

/// A pod of a job; `replaced` is the last one of its index that failed.
pub(super) fn make(job: &Job, spec: &JobSpec, index: Option<i32>, replaced: Option<&Pod>) -> Pod {
    let mut pod = pods::from_template(&spec.template, job);
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == TRACKING) {
        finalizers.push(TRACKING.to_owned());
    }
    let Some(index) = index else { return pod };
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let meta = &mut pod.metadata;
    let suffix = format!("-{index}-");
    let kept = &name[..name.len().min(PREFIX_MAX - suffix.len())];
    meta.generate_name = Some(format!("{kept}{suffix}"));
    meta.labels.get_or_insert_default().insert(INDEX.into(), index.to_string());
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(INDEX.into(), index.to_string());
    if spec.backoff_limit_per_index.is_some() {
        let (mut counted, mut ignored) = replaced.map(failures).unwrap_or_default();
        match replaced.map(|pod| policy::judge(spec, pod)) {
            Some(Judged::Ignored) => ignored += 1,
            Some(_) => counted += 1,
            None => {}
        }
        annotations.insert(FAILURES.into(), counted.to_string());
        if ignored > 0 {
            annotations.insert(IGNORED_FAILURES.into(), ignored.to_string());
        }
    }
    if let Some(spec) = &mut pod.spec {
        spec.hostname = Some(format!("{name}-{index}"));
        for container in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
            tell_index(container);
        }
    }
    pod
}

fn tell_index(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == INDEX_VARIABLE) {
        return;
    }
    let field = ObjectFieldSelector { field_path: format!("metadata.labels['{INDEX}']"), api_version: None };
    variables.push(EnvVar {
        name: INDEX_VARIABLE.into(),
        value: None,
        value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
    });
}

/// The active pods that go: those whose index is not wanted, or taken by another, and then so many that at least this many
/// go, the least advanced ones first.
pub(super) fn surplus(spec: &JobSpec, active: &[Arc<Pod>], at_least: usize) -> Vec<Arc<Pod>> {
    let mut left: Vec<Arc<Pod>> = active.to_vec();
    left.sort_by_key(|pod| stage(pod));
    let mut going = Vec::new();
    if spec.completion_mode.as_deref() == Some("Indexed") {
        let completions = spec.completions.unwrap_or_default();
        // Of several with one index the most advanced one stays.
        let mut seen = std::collections::BTreeSet::new();
        let stays =
            |pod: &Arc<Pod>| index(pod).is_some_and(|index| index < completions && seen.insert(index));
        let (staying, other): (Vec<_>, Vec<_>) = left.into_iter().rev().partition(stays);
        going = other.into_iter().rev().collect();
        left = staying.into_iter().rev().collect();
    }
    let more = at_least.saturating_sub(going.len()).min(left.len());
    going.extend(left.drain(..more));
    going
}

/// How far a pod is: the lesser goes first.
fn stage(pod: &Pod) -> impl Ord + use<> {
    let phase = match pods::phase(pod) {
        "Pending" => 0,
        "Running" => 2,
        _ => 1,
    };
    let ready_since = pods::condition(pod, "Ready")
        .filter(|ready| ready.status == "True")
        .and_then(|ready| ready.last_transition_time.as_ref().map(|time| Reverse(time.0)));
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let restarts = statuses.map(|status| status.restart_count).max().unwrap_or_default();
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (
        !pods::node(pod).is_empty(),
        phase,
        pods::is_ready(pod),
        ready_since,
        Reverse(restarts),
        Reverse(created),
    )
}
