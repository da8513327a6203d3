//! Amounts of resources, and what a pod needs of them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::quantity::Quantity;
use crate::tree::{at, entries, list, text};

/// How much of each resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// An amount, in any text that is one.
pub fn amount(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text).ok(),
        value => Quantity::parse(&value.to_string()).ok(),
    }
}

/// The amounts in a field.
pub fn amounts(holder: &Value, field: &str) -> Amounts {
    entries(holder, field).filter_map(|(name, amount)| Some((name.clone(), self::amount(amount)?))).collect()
}

/// Adds amounts to others.
pub fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let so_far = sum.get(name).map_or_else(|| amount.clone(), |so_far| so_far + amount);
        sum.insert(name.clone(), so_far);
    }
}

/// Raises amounts to others where those are larger.
fn raise(most: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if most.get(name).is_none_or(|so_far| so_far < amount) {
            most.insert(name.clone(), amount.clone());
        }
    }
}

/// Whether a resource is one of Kubernetes itself.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Requests or limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What is reserved.
    Requests,
    /// What is not exceeded.
    Limits,
}

impl Side {
    fn field(self) -> &'static str {
        match self {
            Side::Requests => "requests",
            Side::Limits => "limits",
        }
    }
}

/// What of a pod is added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summed {
    /// What it asks for.
    Asked,
    /// What it asks for, with what it costs to run it.
    Needed,
    /// What it asks for or has, whichever is more, with what it costs to run it.
    Taken,
}

/// What a pod comes to: its containers together, or what it needs to begin, whichever is more.
pub fn total(pod: &Value, side: Side, summed: Summed) -> Amounts {
    let spec = &pod["spec"];
    let mut sum = Amounts::new();
    for container in list(spec, "containers") {
        add(&mut sum, &of_container(pod, container, side, summed == Summed::Taken));
    }
    // What is there when the i-th begins: those that stay and came before it, and itself.
    let (mut staying, mut beginning) = (Amounts::new(), Amounts::new());
    for container in list(spec, "initContainers") {
        let stays = text(container, "restartPolicy") == "Always";
        let mut own = of_container(pod, container, side, stays && summed == Summed::Taken);
        if stays {
            add(&mut sum, &own);
            add(&mut staying, &own);
            own.clone_from(&staying);
        } else {
            add(&mut own, &staying);
        }
        raise(&mut beginning, &own);
    }
    raise(&mut sum, &beginning);
    if let Some(whole) = at(spec, &["resources"]) {
        let whole = amounts(whole, side.field()).into_iter();
        sum.extend(whole.filter(|(name, _)| is_of_pods(name, summed)));
    }
    if summed != Summed::Asked {
        add_overhead(&mut sum, &amounts(spec, "overhead"), side);
    }
    sum
}

/// Whether a pod says as a whole what it needs.
pub fn speaks_as_a_whole(pod: &Value) -> bool {
    let fields = ["requests", "limits"].iter();
    let all = fields.filter_map(|field| at(pod, &["spec", "resources", field])?.as_object());
    all.flat_map(|all| all.keys()).any(|name| is_of_pods(name, Summed::Taken))
}

/// What can be said for a pod as a whole. Limit ranges know less of it.
pub fn is_of_pods(name: &str, summed: Summed) -> bool {
    matches!(name, "cpu" | "memory") || summed != Summed::Asked && name.starts_with("hugepages-")
}

fn of_container(pod: &Value, container: &Value, side: Side, has_status: bool) -> Amounts {
    let spec = amounts(&container["resources"], side.field());
    let statuses = ["containerStatuses", "initContainerStatuses"].into_iter();
    let mut statuses = statuses.flat_map(|field| list(&pod["status"], field)).filter(|_| has_status);
    let status = statuses.find(|status| text(status, "name") == text(container, "name"));
    let Some(status) = status.filter(|status| at(status, &["resources"]).is_some()) else { return spec };
    let mut most = amounts(&status["resources"], side.field());
    if side == Side::Requests {
        raise(&mut most, &amounts(status, "allocatedResources"));
    }
    let mut conditions = list(&pod["status"], "conditions").iter();
    let pending = conditions.find(|condition| text(condition, "type") == "PodResizePending");
    if pending.is_none_or(|pending| text(pending, "reason") != "Infeasible") {
        raise(&mut most, &spec);
    }
    most
}

fn add_overhead(sum: &mut Amounts, overhead: &Amounts, side: Side) {
    match side {
        Side::Requests => add(sum, overhead),
        // What is without a limit remains so.
        Side::Limits => {
            for (name, amount) in sum.iter_mut().filter(|(_, amount)| !amount.is_zero()) {
                if let Some(more) = overhead.get(name) {
                    *amount = &*amount + more;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn containers_add_up_and_what_begins_may_need_more() {
        let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
        let pod = json!({"spec": {
            "overhead": {"cpu": "1"},
            "initContainers": [
                {"name": "stays", "restartPolicy": "Always", "resources": cpu("100m")},
                {"name": "first", "resources": cpu("5")},
            ],
            "containers": [{"name": "a", "resources": cpu("1")}, {"name": "b", "resources": cpu("500m")}],
        }});
        let of = |summed| total(&pod, Side::Requests, summed)["cpu"].to_string();
        assert_eq!((of(Summed::Asked), of(Summed::Needed)), ("5100m".into(), "6100m".into()));
    }

    #[test]
    fn what_a_container_has_counts_until_it_is_given_back() {
        let pod = json!({
            "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "2"}}}]},
        });
        let of = |summed| total(&pod, Side::Requests, summed)["cpu"].to_string();
        assert_eq!((of(Summed::Asked), of(Summed::Taken)), ("1".into(), "2".into()));
    }
}
