//! Pods that a taint drives off their node, at once or when they have tolerated it for long enough.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod, Taint, Toleration};
use windlass::events::Event;
use windlass_core::ObjectKey;

use super::{BY_NODE, disruption, index_by_node, mark};
use crate::controllers::{nodes, pods};
use crate::engine::{Controller, Told, Turn, View, Wiring, Write};

/// Drives pods away from nodes whose taints they do not tolerate.
#[derive(Default)]
pub(in crate::controllers) struct TaintEviction {
    /// Since when a pod tolerates what it does not tolerate for ever.
    waiting: Arc<Mutex<BTreeMap<ObjectKey, Timestamp>>>,
}

impl Controller for TaintEviction {
    fn name(&self) -> &'static str {
        "taint-eviction-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<Pod>();
        index_by_node(wiring);
        let waiting = self.waiting.clone();
        wiring.maps::<Node>(move |node, view| {
            if drives_away(node).next().is_some() {
                let there = view.by_index::<Pod>(BY_NODE, nodes::name(node));
                return there.iter().map(|pod| ObjectKey::of(&pod.metadata)).collect();
            }
            waiting.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
        });
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let pod = view.get::<Pod>(key).filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let node = pod.as_ref().and_then(|pod| view.get::<Node>(&ObjectKey::cluster(pods::node(pod))));
        let (Some(pod), Some(node)) = (pod, node) else {
            waiting.remove(key);
            return turn;
        };
        let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
        let since = waiting.get(key).copied();
        match patience(drives_away(&node), tolerations) {
            None => {
                if waiting.remove(key).is_some() {
                    tell(&mut turn, key, "Cancelling deletion of Pod");
                }
            }
            Some(patience) => {
                let until = since.unwrap_or(now).checked_add(patience).unwrap_or(Timestamp::MAX);
                if until > now {
                    waiting.insert(key.clone(), since.unwrap_or(now));
                    turn.wake_at(until);
                    return turn;
                }
                waiting.remove(key);
                tell(&mut turn, key, "Marking for deletion Pod");
                let condition =
                    disruption("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint");
                mark(&mut turn, &pod, None, Some(condition), now);
                turn.delete(&*pod);
            }
        }
        turn
    }
}

/// The taints of a node that drive pods away.
fn drives_away(node: &Node) -> impl Iterator<Item = &Taint> {
    nodes::taints(node).iter().filter(|taint| taint.effect == "NoExecute")
}

/// How long a pod stays in spite of these taints; `None` is for ever.
fn patience<'a>(taints: impl Iterator<Item = &'a Taint>, tolerations: &[Toleration]) -> Option<Duration> {
    let mut shortest = None;
    for taint in taints {
        let Some(toleration) = tolerations.iter().find(|one| nodes::tolerates(one, taint)) else {
            return Some(Duration::ZERO);
        };
        let seconds = toleration.toleration_seconds.map(|seconds| u64::try_from(seconds).unwrap_or_default());
        let patience = seconds.map(Duration::from_secs);
        shortest = [shortest, patience].into_iter().flatten().min();
    }
    shortest
}

/// kube-controller-manager names the pod, and not which one of that name.
fn tell(turn: &mut Turn, key: &ObjectKey, what: &str) {
    let regarding = ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Pod".into()),
        name: Some(key.name().to_owned()),
        namespace: key.namespace().map(str::to_owned),
        ..ObjectReference::default()
    };
    let event = Event::normal("TaintManagerEviction", "TaintManagerEviction", format!("{what} {key}"));
    turn.writes.push(Write::Event(Box::new(Told { regarding, event })));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_shortest_patience_counts() {
        let check = |tolerations: serde_json::Value| {
            let taints: Vec<Taint> = ["a", "b"]
                .into_iter()
                .map(|key| Taint { key: key.into(), effect: "NoExecute".into(), ..Taint::default() })
                .collect();
            let tolerations: Vec<Toleration> = serde_json::from_value(tolerations).unwrap();
            patience(taints.iter(), &tolerations).map(|patience| patience.as_secs())
        };
        let tolerates = |key: &str, seconds: Option<i64>| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds});
        assert_eq!(check(json!([])), Some(0));
        assert_eq!(check(json!([tolerates("a", None)])), Some(0));
        assert_eq!(check(json!([tolerates("a", None), tolerates("b", None)])), None);
        assert_eq!(check(json!([tolerates("a", Some(30)), tolerates("b", Some(20))])), Some(20));
        assert_eq!(check(json!([tolerates("a", None), tolerates("b", Some(20))])), Some(20));
        assert_eq!(check(json!([{"operator": "Exists"}])), None);
    }
}
