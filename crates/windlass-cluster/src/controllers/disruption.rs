//! PodDisruptionBudgets: how many pods may be taken away now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    Condition, LabelSelector as Wanted, OwnerReference, Time,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use windlass::Object;
use windlass::events::Event;
use windlass_core::select::LabelSelector;
use windlass_core::{ObjectKey, owner};

use super::claim::selector;
use super::share::{Round, share};
use super::{labelled, pods};
use crate::engine::{Controller, LookUp, Scaled, Turn, View, Wiring};

/// Counts for PodDisruptionBudgets.
pub(super) struct Disruption;

/// How long a pod that was evicted has to be deleted.
const DELETION: Duration = Duration::from_secs(120);
/// The condition that tells whether a pod may be taken away.
const ALLOWED: &str = "DisruptionAllowed";

impl Controller for Disruption {
    fn name(&self) -> &'static str {
        "controllermanager"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<PodDisruptionBudget>();
        labelled::index_pods(wiring);
        wiring.maps::<Pod>(|pod, view| {
            let labels = pod.metadata.labels.clone().unwrap_or_default();
            let budgets = view.list::<PodDisruptionBudget>(pod.metadata.namespace.as_deref());
            let mine = budgets.iter().filter(|budget| selects(budget).matches(&labels));
            mine.map(|budget| ObjectKey::of(&budget.metadata)).collect()
        });
        wiring.reads::<Deployment>();
        wiring.reads::<ReplicaSet>();
        wiring.reads::<ReplicationController>();
        wiring.reads::<StatefulSet>();
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let Some(budget) = view.get::<PodDisruptionBudget>(key) else { return turn };
        let spec = budget.spec.clone().unwrap_or_default();
        let pods = pods_of(view, &budget, &spec);
        if pods.is_empty() {
            turn.event(&*budget, Event::normal("NoPods", "Count", "No matching pods found"));
        }
        let counted = match expected(&mut turn, view, &spec, &pods) {
            Ok(Some(counted)) => counted,
            // The server is asked first.
            Ok(None) => {
                turn.writes.clear();
                return turn;
            }
            Err(why) => {
                let note = format!("Failed to calculate the number of expected pods: {why}");
                turn.event(&*budget, Event::warning("CalculateExpectedPodCountFailed", "Count", note));
                fail(&mut turn, &budget, &why, now);
                return turn;
            }
        };
        if counted.unmanaged {
            turn.event(&*budget, Event::warning("UnmanagedPods", "Count", unmanaged(spec.selector.as_ref())));
        }
        let disrupted = disrupted(&mut turn, &budget, &pods, now);
        if let Some(next) = disrupted.values().map(|Time(time)| *time + DELETION).min() {
            turn.wake_at(next);
        }
        let healthy = pods.iter().filter(|pod| {
            pod.metadata.deletion_timestamp.is_none()
                && !disrupted.contains_key(pod.metadata.name.as_deref().unwrap_or_default())
                && pods::is_ready(pod)
        });
        let healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
        report(&mut turn, &budget, &counted, healthy, disrupted, now);
        turn
    }
}

fn selects(budget: &PodDisruptionBudget) -> LabelSelector {
    let wanted = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    wanted.map_or_else(LabelSelector::nothing, selector)
}

/// The pods of a budget, by an index where its selector allows it.
fn pods_of(view: &View<'_>, budget: &PodDisruptionBudget, spec: &PodDisruptionBudgetSpec) -> Vec<Arc<Pod>> {
    let Some(wanted) = &spec.selector else { return Vec::new() };
    let namespace = budget.metadata.namespace.as_deref();
    let mut pods = match wanted.match_labels.as_ref().filter(|labels| !labels.is_empty()) {
        Some(labels) => labelled::pods(view, namespace.unwrap_or_default(), labels),
        None => view.list::<Pod>(namespace),
    };
    let (selector, nothing) = (selector(wanted), BTreeMap::new());
    pods.retain(|pod| selector.matches(pod.metadata.labels.as_ref().unwrap_or(&nothing)));
    pods
}

/// How many pods there should be, and how many of them have to be healthy.
struct Counted {
    expected: i32,
    desired: i32,
    /// Whether some pods have no controller, and count for nothing.
    unmanaged: bool,
}

/// `None` while the server is being asked.
fn expected(
    turn: &mut Turn,
    view: &View<'_>,
    spec: &PodDisruptionBudgetSpec,
    pods: &[Arc<Pod>],
) -> Result<Option<Counted>, String> {
    let all = i32::try_from(pods.len()).unwrap_or(i32::MAX);
    if spec.max_unavailable.is_none()
        && let Some(IntOrString::Int(count)) = spec.min_available
    {
        return Ok(Some(Counted { expected: all, desired: count, unmanaged: false }));
    }
    if spec.max_unavailable.is_none() && spec.min_available.is_none() {
        return Ok(Some(Counted { expected: 0, desired: 0, unmanaged: false }));
    }
    let Some((expected, unmanaged)) = scale(turn, view, pods)? else { return Ok(None) };
    let desired = match &spec.max_unavailable {
        Some(_) => (expected - share(spec.max_unavailable.as_ref(), expected, Round::Up)).max(0),
        None => share(spec.min_available.as_ref(), expected, Round::Up),
    };
    Ok(Some(Counted { expected, desired, unmanaged }))
}

/// How many pods the controllers of these want together, and whether some have none.
fn scale(turn: &mut Turn, view: &View<'_>, pods: &[Arc<Pod>]) -> Result<Option<(i32, bool)>, String> {
    let mut scales: BTreeMap<String, i32> = BTreeMap::new();
    let (mut unmanaged, mut asked) = (false, false);
    let mut seen = std::collections::BTreeSet::new();
    for pod in pods {
        let Some(by) = owner::controller_of(&pod.metadata) else {
            unmanaged = true;
            continue;
        };
        if !seen.insert(by.uid.clone()) {
            continue;
        }
        let namespace = pod.metadata.namespace.as_deref();
        let found = match builtin(view, by, namespace) {
            Some(found) => Some(found),
            None => match custom(turn, view, by, namespace)? {
                Scaled::NotYet => {
                    asked = true;
                    continue;
                }
                Scaled::Missing => None,
                Scaled::There { uid, replicas } => (uid == by.uid).then(|| (uid.to_owned(), replicas)),
            },
        };
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let (uid, replicas) = found.ok_or_else(|| format!("found no controllers for pod {name:?}"))?;
        scales.insert(uid, replicas);
    }
    Ok((!asked).then(|| (scales.values().sum(), unmanaged)))
}

/// The scale of a controller that is watched.
fn builtin(view: &View<'_>, by: &OwnerReference, namespace: Option<&str>) -> Option<(String, i32)> {
    let key = ObjectKey::new(namespace, &by.name);
    match (by.api_version.as_str(), by.kind.as_str()) {
        ("apps/v1", "ReplicaSet") => {
            let set = same(view.get::<ReplicaSet>(&key), &by.uid)?;
            let above = owner::controller_of(&set.metadata).filter(|above| above.kind == "Deployment");
            let Some(above) = above else {
                return Some((by.uid.clone(), set.spec.as_ref()?.replicas.unwrap_or(1)));
            };
            let key = ObjectKey::new(namespace, &above.name);
            let deployment = same(view.get::<Deployment>(&key), &above.uid)?;
            Some((above.uid.clone(), deployment.spec.as_ref()?.replicas.unwrap_or(1)))
        }
        ("apps/v1", "StatefulSet") => {
            let set = same(view.get::<StatefulSet>(&key), &by.uid)?;
            Some((by.uid.clone(), set.spec.as_ref()?.replicas.unwrap_or(1)))
        }
        ("v1", "ReplicationController") => {
            let controller = same(view.get::<ReplicationController>(&key), &by.uid)?;
            Some((by.uid.clone(), controller.spec.as_ref()?.replicas.unwrap_or(1)))
        }
        _ => None,
    }
}

fn same<K: Object>(object: Option<Arc<K>>, uid: &str) -> Option<Arc<K>> {
    object.filter(|object| object.meta().uid.as_deref() == Some(uid))
}

/// The scale of any other controller, as its scale subresource tells it.
fn custom<'a>(
    turn: &mut Turn,
    view: &View<'a>,
    by: &OwnerReference,
    namespace: Option<&str>,
) -> Result<Scaled<'a>, String> {
    let Some(kinds) = view.kinds() else {
        turn.look_up(LookUp::Kinds);
        return Ok(Scaled::NotYet);
    };
    let Some(kind) = kinds.find(&by.api_version, &by.kind) else {
        return Err(format!("no matches for kind {:?} in version {:?}", by.kind, by.api_version));
    };
    let key = ObjectKey::new(namespace, &by.name);
    let answer = view.scale(kind, &key)?;
    if answer == Scaled::NotYet {
        turn.look_up(LookUp::Scale { kind: kind.clone(), key });
    }
    Ok(answer)
}

/// The pods that were evicted and are not gone yet; those that should be and are not are told.
fn disrupted(
    turn: &mut Turn,
    budget: &PodDisruptionBudget,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> BTreeMap<String, Time> {
    let before = budget.status.as_ref().and_then(|status| status.disrupted_pods.clone()).unwrap_or_default();
    let mut still = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let Some(time) = before.get(&name) else { continue };
        if time.0 + DELETION < now {
            // The namespace is told twice, and the name not at all: as it always was.
            let namespace = budget.metadata.namespace.as_deref().unwrap_or_default();
            let note = format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
            turn.event(&**pod, Event::warning("NotDeleted", "Delete", note));
        } else {
            still.insert(name, time.clone());
        }
    }
    still
}

fn report(
    turn: &mut Turn,
    budget: &PodDisruptionBudget,
    counted: &Counted,
    healthy: i32,
    disrupted: BTreeMap<String, Time>,
    now: Timestamp,
) {
    let Counted { expected, desired, .. } = *counted;
    // A budget without pods allows nothing: its first ones may come before they are counted.
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let before = budget.status.clone().unwrap_or_default();
    let (verdict, reason) =
        if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    let generation = budget.metadata.generation;
    let condition = condition(&before, verdict, reason, "", generation, now);
    let status = PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: Some(disrupted).filter(|pods| !pods.is_empty()),
        observed_generation: generation,
        conditions: Some(with(&before, condition)),
    };
    if status != before {
        turn.status(&PodDisruptionBudget { status: Some(status), ..budget.clone() });
    }
}

/// Where it is not known how many pods there should be, none may be taken away.
fn fail(turn: &mut Turn, budget: &PodDisruptionBudget, why: &str, now: Timestamp) {
    let before = budget.status.clone().unwrap_or_default();
    let condition = condition(&before, "False", "SyncFailed", why, before.observed_generation, now);
    let conditions = Some(with(&before, condition));
    let status = PodDisruptionBudgetStatus { disruptions_allowed: Some(0), conditions, ..before.clone() };
    if status != before {
        turn.status(&PodDisruptionBudget { status: Some(status), ..budget.clone() });
    }
}

fn condition(
    before: &PodDisruptionBudgetStatus,
    status: &str,
    reason: &str,
    message: &str,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let had = before.conditions.iter().flatten().find(|condition| condition.type_ == ALLOWED);
    let since = had.filter(|had| had.status == status).map(|had| had.last_transition_time.clone());
    Condition {
        type_: ALLOWED.into(),
        status: status.into(),
        reason: reason.into(),
        message: message.into(),
        observed_generation: generation.filter(|generation| *generation > 0),
        last_transition_time: since.unwrap_or(Time(now)),
    }
}

fn with(before: &PodDisruptionBudgetStatus, condition: Condition) -> Vec<Condition> {
    let mut conditions = before.conditions.clone().unwrap_or_default();
    match conditions.iter_mut().find(|had| had.type_ == condition.type_) {
        Some(had) => *had = condition,
        None => conditions.push(condition),
    }
    conditions
}

/// That some pods have no controller, with the selector as Go writes it.
fn unmanaged(selector: Option<&Wanted>) -> String {
    format!(
        "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value.",
        selector.map_or_else(|| "nil".to_owned(), in_go)
    )
}

fn in_go(selector: &Wanted) -> String {
    let labels = selector.match_labels.iter().flatten();
    let labels: String = labels.map(|(key, value)| format!("{key}: {value},")).collect();
    let expressions = selector.match_expressions.iter().flatten().map(|one| {
        let values = one.values.as_deref().unwrap_or_default().join(" ");
        format!("LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},", one.key, one.operator)
    });
    let expressions: String = expressions.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_as_go_writes_it() {
        let selector: Wanted = serde_json::from_value(serde_json::json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
        }))
        .unwrap();
        assert_eq!(
            in_go(&selector),
            "&LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:tier,Operator:In,Values:[a b],},},}"
        );
    }
}
