//! Which of the nodes that will do is best.

use k8s_openapi::api::core::v1::Node;
use windlass_core::owner;

use super::fit::Wishes;
use super::memory::{Load, Memory};
use super::requests::{self, Amounts};
use crate::controllers::nodes;

/// The best of some nodes: as kube-scheduler weighs them, and of equals the one with fewer pods, then by name.
pub(super) fn best<'n>(wishes: &Wishes<'_>, feasible: &[&'n Node], memory: &Memory) -> Option<&'n Node> {
    let raw = |score: &dyn Fn(&Node) -> i64| feasible.iter().map(|node| score(node)).collect::<Vec<i64>>();
    let taints = fewer(&raw(&|node| untolerated(wishes, node)));
    let affinity = more(&raw(&|node| preferred(wishes, node)));
    let neighbours = spanned(&raw(&|node| wishes.neighbours.score(node)));
    let crowd = fewer(&raw(&|node| crowd(wishes, node, memory)));
    let scores = feasible.iter().enumerate().map(|(at, node)| {
        let load = memory.load(nodes::name(node));
        let room = least_allocated(wishes, node, load) + balanced(wishes, node, load);
        let score = 3 * taints[at] + 2 * affinity[at] + 2 * crowd[at] + 2 * neighbours[at] + room;
        let pods = load.map_or(0, |load| load.pods);
        (score, std::cmp::Reverse((pods, nodes::name(node))), *node)
    });
    scores.max_by_key(|(score, rank, _)| (*score, *rank)).map(|(_, _, node)| node)
}

/// From 0 to 100, the most is best.
fn more(raw: &[i64]) -> Vec<i64> {
    let most = raw.iter().max().copied().unwrap_or_default();
    raw.iter().map(|score| if most == 0 { 0 } else { score * 100 / most }).collect()
}

/// From 0 to 100, the least is best.
fn fewer(raw: &[i64]) -> Vec<i64> {
    more(raw).into_iter().map(|score| 100 - score).collect()
}

/// From 0 to 100, between the least and the most.
fn spanned(raw: &[i64]) -> Vec<i64> {
    let most = raw.iter().max().copied().unwrap_or_default();
    let least = raw.iter().min().copied().unwrap_or_default();
    let span = most - least;
    raw.iter().map(|score| if span == 0 { 0 } else { (score - least) * 100 / span }).collect()
}

fn untolerated(wishes: &Wishes<'_>, node: &Node) -> i64 {
    let spec = wishes.pod.spec.as_ref();
    let tolerations = spec.and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
    let disliked = nodes::taints(node).iter().filter(|taint| {
        nodes::untolerated(std::slice::from_ref(taint), tolerations, &["PreferNoSchedule"]).is_some()
    });
    i64::try_from(disliked.count()).unwrap_or(i64::MAX)
}

fn preferred(wishes: &Wishes<'_>, node: &Node) -> i64 {
    let affinity = wishes.pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref()?.node_affinity.as_ref());
    let terms = affinity.and_then(|one| one.preferred_during_scheduling_ignored_during_execution.as_ref());
    let met = terms.into_iter().flatten().filter(|term| nodes::matches_term(&term.preference, node));
    met.map(|term| i64::from(term.weight)).sum()
}

/// Pods of one controller are spread, unless they say how they want to be.
fn crowd(wishes: &Wishes<'_>, node: &Node, memory: &Memory) -> i64 {
    wishes.spread.crowd(node).unwrap_or_else(|| {
        let owner = owner::controller_of(&wishes.pod.metadata);
        let kin = memory.load(nodes::name(node)).and_then(|load| load.kin.get(&owner?.uid));
        kin.copied().unwrap_or_default()
    })
}

/// The share of processors and memory that stays free.
fn least_allocated(wishes: &Wishes<'_>, node: &Node, load: Option<&Load>) -> i64 {
    let has = requests::allocatable(node);
    let (cpu, memory) = load.map_or((0, 0), |load| load.likely);
    let (more_cpu, more_memory) = requests::likely(wishes.pod);
    let free = |name: &str, used: i64| match amount(&has, name) {
        has if has == 0 || used > has => 0,
        has => (has - used).saturating_mul(100) / has,
    };
    i64::midpoint(free("cpu", cpu + more_cpu), free("memory", memory + more_memory))
}

/// Whether the pod makes the use of processors and memory more even.
fn balanced(wishes: &Wishes<'_>, node: &Node, load: Option<&Load>) -> i64 {
    let has = requests::allocatable(node);
    let nothing = Amounts::new();
    let before = load.map_or(&nothing, |load| &load.requested);
    let mut after = before.clone();
    requests::add(&mut after, &wishes.requests);
    50 + (50 + evenness(&after, &has) - evenness(before, &has)) / 2
}

fn evenness(used: &Amounts, has: &Amounts) -> i64 {
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more precision")]
    let share = |name: &str| (amount(used, name) as f64 / amount(has, name).max(1) as f64).min(1.0);
    #[expect(clippy::cast_possible_truncation, reason = "from 0 to 100")]
    let score = ((1.0 - (share("cpu") - share("memory")).abs() / 2.0) * 100.0) as i64;
    score
}

fn amount(amounts: &Amounts, name: &str) -> i64 {
    amounts.get(name).copied().unwrap_or_default()
}
