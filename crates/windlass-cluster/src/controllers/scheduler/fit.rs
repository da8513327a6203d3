//! Which nodes a pod can go to, and why not to the others.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod, Taint};

use super::affinity::{self, Neighbours};
use super::memory::{Load, Memory};
use super::requests::{self, Amounts};
use super::spread::{self, Spread};
use super::volumes::{self, Claims};
use crate::controllers::nodes;
use crate::engine::View;

/// What a pod wants of its node.
pub(super) struct Wishes<'a> {
    pub pod: &'a Pod,
    pub requests: Amounts,
    pub claims: Claims,
    pub neighbours: Neighbours,
    pub spread: Spread,
}

/// Why a node will not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reject {
    pub reasons: Vec<String>,
    /// Whether fewer pods on the node would help.
    pub resolvable: bool,
}

impl Reject {
    fn never(reason: &str) -> Reject {
        Reject { reasons: vec![reason.to_owned()], resolvable: false }
    }

    fn now(reason: &str) -> Reject {
        Reject { reasons: vec![reason.to_owned()], resolvable: true }
    }
}

impl Wishes<'_> {
    /// Whether the pod can go to a node; the first thing in its way otherwise.
    pub fn check(&self, node: &Node, memory: &Memory, view: &View<'_>) -> Result<(), Reject> {
        let spec = self.pod.spec.as_ref();
        let tolerations = spec.and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
        let closed = Taint {
            key: nodes::UNSCHEDULABLE.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        };
        if nodes::is_unschedulable(node) && !tolerations.iter().any(|one| nodes::tolerates(one, &closed)) {
            return Err(Reject::never("node(s) were unschedulable"));
        }
        if nodes::untolerated(nodes::taints(node), tolerations, &["NoSchedule", "NoExecute"]).is_some() {
            return Err(Reject::never("node(s) had untolerated taint(s)"));
        }
        if !spec.is_none_or(|spec| nodes::takes(spec, node)) {
            return Err(Reject::never("node(s) didn't match Pod's node affinity/selector"));
        }
        let load = memory.load(nodes::name(node));
        let wants = requests::ports(self.pod);
        let taken = load.into_iter().flat_map(|load| load.ports.keys());
        if taken.into_iter().any(|taken| wants.iter().any(|port| requests::collide(port, taken))) {
            return Err(Reject::now("node(s) didn't have free ports for the requested pod ports"));
        }
        self.fits(node, load)?;
        self.claims.check(node, view).map_err(|wrong| match wrong {
            volumes::Wrong::Place => Reject::never("node(s) didn't match PersistentVolume's node affinity"),
            volumes::Wrong::None => Reject::never("node(s) didn't find available persistent volumes to bind"),
            volumes::Wrong::Gone => {
                Reject::never("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)")
            }
        })?;
        self.spread.check(node).map_err(|wrong| match wrong {
            spread::Wrong::NoLabel => {
                Reject::never("node(s) didn't match pod topology spread constraints (missing required label)")
            }
            spread::Wrong::Uneven => Reject::now("node(s) didn't match pod topology spread constraints"),
        })?;
        self.neighbours.check(node).map_err(|wrong| match wrong {
            affinity::Wrong::Near => Reject::never("node(s) didn't match pod affinity rules"),
            affinity::Wrong::Far => Reject::now("node(s) didn't match pod anti-affinity rules"),
            affinity::Wrong::Unwanted => {
                Reject::now("node(s) didn't satisfy existing pods anti-affinity rules")
            }
        })
    }

    fn fits(&self, node: &Node, load: Option<&Load>) -> Result<(), Reject> {
        let has = requests::allocatable(node);
        let amount = |amounts: &Amounts, name: &str| amounts.get(name).copied().unwrap_or_default();
        let mut reject = Reject { reasons: Vec::new(), resolvable: true };
        if load.map_or(0, |load| load.pods) + 1 > amount(&has, "pods") {
            reject.reasons.push("Too many pods".to_owned());
        }
        for (name, wanted) in self.requests.iter().filter(|(_, wanted)| **wanted > 0) {
            let used = load.map_or(0, |load| amount(&load.requested, name));
            if *wanted > amount(&has, name) - used {
                reject.reasons.push(format!("Insufficient {name}"));
                reject.resolvable &= *wanted <= amount(&has, name);
            }
        }
        if reject.reasons.is_empty() { Ok(()) } else { Err(reject) }
    }
}

/// Why no node will do, in the words of kube-scheduler. Nodes that were not looked at have the reason `elsewhere`.
pub(super) fn explain(pod: &Pod, all: usize, rejects: &[Reject], elsewhere: &str) -> String {
    let rest = all - rejects.len();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in rejects.iter().flat_map(|reject| &reject.reasons) {
        *reasons.entry(reason).or_default() += 1;
    }
    if rest > 0 {
        *reasons.entry(elsewhere).or_default() += rest;
    }
    format!("0/{all} nodes are available: {}. {}", counted(&reasons), nothing_helps(pod, all, rejects))
}

/// Why a pod can go nowhere, whatever the nodes are like.
pub(super) fn explain_all(pod: &Pod, all: usize, reason: &str) -> String {
    format!("0/{all} nodes are available: {reason}. {}", nothing_helps(pod, all, &[]))
}

/// That nothing else has to give way for this pod: it is said, since people know the sentences.
fn nothing_helps(pod: &Pod, all: usize, rejects: &[Reject]) -> String {
    format!("no new claims to deallocate, {}", preemption(pod, all, rejects))
}

fn preemption(pod: &Pod, all: usize, rejects: &[Reject]) -> String {
    if pod.spec.as_ref().and_then(|spec| spec.preemption_policy.as_deref()) == Some("Never") {
        return "preemption: not eligible due to preemptionPolicy=Never.".to_owned();
    }
    let resolvable = rejects.iter().filter(|reject| reject.resolvable).count();
    let mut reasons = BTreeMap::new();
    if resolvable > 0 {
        reasons.insert("No preemption victims found for incoming pod", resolvable);
    }
    if all > resolvable {
        reasons.insert("Preemption is not helpful for scheduling", all - resolvable);
    }
    format!("preemption: 0/{all} nodes are available: {}.", counted(&reasons))
}

fn counted(reasons: &BTreeMap<&str, usize>) -> String {
    let mut all: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    all.sort();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_kube_scheduler_says() {
        let cpu = Reject::now("Insufficient cpu");
        let taint = Reject::never("node(s) had untolerated taint(s)");
        let said = explain(&Pod::default(), 3, &[cpu.clone(), taint, cpu.clone()], "");
        assert_eq!(
            said,
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. \
             no new claims to deallocate, preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, \
             2 No preemption victims found for incoming pod."
        );
        let said = explain(&Pod::default(), 2, &[cpu], "node(s) didn't satisfy plugin(s) [NodeAffinity]");
        assert!(said.starts_with(
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
        ));
    }
}
