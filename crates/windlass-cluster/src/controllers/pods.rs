//! What controllers ask of pods, and how they make them from a template.

use std::cmp::Ordering;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use windlass::Object;
use windlass_core::owner;

/// Whether a pod counts: it has not ended, and nobody has asked it to.
pub(crate) fn is_active(pod: &Pod) -> bool {
    !matches!(phase(pod), "Succeeded" | "Failed") && pod.metadata.deletion_timestamp.is_none()
}

/// Whether a pod is on its way out.
pub(crate) fn is_terminating(pod: &Pod) -> bool {
    !matches!(phase(pod), "Succeeded" | "Failed") && pod.metadata.deletion_timestamp.is_some()
}

/// The phase of a pod; empty before anybody has said something of it.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// The node that a pod is on; empty before it has one.
pub(crate) fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// A condition of a pod.
pub(crate) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_deref()?.iter().find(|condition| condition.type_ == kind)
}

/// Whether a pod is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when a pod is ready.
fn ready_since(pod: &Pod) -> Option<Timestamp> {
    condition(pod, "Ready")
        .filter(|ready| ready.status == "True")?
        .last_transition_time
        .as_ref()
        .map(|time| time.0)
}

/// Whether a pod has been ready for long enough.
pub(crate) fn is_available(pod: &Pod, min_ready: i32, now: Timestamp) -> bool {
    is_ready(pod) && (min_ready == 0 || available_at(pod, min_ready).is_some_and(|time| time <= now))
}

/// When a ready pod will have been ready for long enough.
pub(crate) fn available_at(pod: &Pod, min_ready: i32) -> Option<Timestamp> {
    let wait = Duration::from_secs(min_ready.try_into().unwrap_or_default());
    ready_since(pod)?.checked_add(wait).ok()
}

/// A pod from a template, for a parent that will be its controller. The server completes its name.
pub(crate) fn from_template<P: Object>(template: &PodTemplateSpec, parent: &P) -> Pod {
    let given = template.metadata.clone().unwrap_or_default();
    let name = parent.meta().name.as_deref().unwrap_or_default();
    let metadata = ObjectMeta {
        generate_name: Some(format!("{name}-")),
        namespace: parent.meta().namespace.clone(),
        labels: given.labels,
        annotations: given.annotations,
        finalizers: given.finalizers,
        owner_references: owner::reference_to(parent).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: template.spec.clone(), status: None }
}

/// Which pod goes first when there are too many, as kube-controller-manager ranks them: those that serve nobody yet, then
/// those whose node has more of the same (`crowd`), then the younger ones.
pub(crate) fn goes_first(a: (&Pod, usize), b: (&Pod, usize), now: Timestamp) -> Ordering {
    let ((a, crowd_a), (b, crowd_b)) = (a, b);
    let by_place = node(b).is_empty().cmp(&node(a).is_empty());
    let by_phase = || rank(phase(a)).cmp(&rank(phase(b)));
    let by_ready = || is_ready(a).cmp(&is_ready(b));
    let by_cost = || deletion_cost(a).cmp(&deletion_cost(b));
    let by_crowd = || crowd_b.cmp(&crowd_a);
    let by_age_of_readiness = || younger(ready_since(a), ready_since(b), (a, b), now);
    let by_restarts = || restarts(b).cmp(&restarts(a));
    let created = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|Time(time)| *time);
    let by_age = || younger(created(a), created(b), (a, b), now);
    by_place
        .then_with(by_phase)
        .then_with(by_ready)
        .then_with(by_cost)
        .then_with(by_crowd)
        .then_with(by_age_of_readiness)
        .then_with(by_restarts)
        .then_with(by_age)
}

fn rank(phase: &str) -> u8 {
    match phase {
        "Pending" => 0,
        "Running" => 2,
        _ => 1,
    }
}

fn deletion_cost(pod: &Pod) -> i32 {
    let cost = pod
        .metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get("controller.kubernetes.io/pod-deletion-cost"));
    cost.and_then(|cost| cost.parse().ok()).unwrap_or_default()
}

fn restarts(pod: &Pod) -> i32 {
    let statuses =
        pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    statuses.iter().map(|status| status.restart_count).max().unwrap_or_default()
}

/// The younger one goes first; of two whose ages are of the same order of magnitude, the one with the lesser uid, so that
/// it is not always the same failure domain that shrinks.
fn younger(a: Option<Timestamp>, b: Option<Timestamp>, pods: (&Pod, &Pod), now: Timestamp) -> Ordering {
    let (Some(time_a), Some(time_b)) = (a, b) else { return a.is_some().cmp(&b.is_some()) };
    if time_a == time_b {
        return Ordering::Equal;
    }
    let magnitude = |time: Timestamp| match now.duration_since(time).as_nanos() {
        age if age <= 0 => -1,
        age => i64::from(age.ilog2()),
    };
    let by_magnitude = magnitude(time_a).cmp(&magnitude(time_b));
    by_magnitude.then_with(|| pods.0.metadata.uid.cmp(&pods.1.metadata.uid))
}
