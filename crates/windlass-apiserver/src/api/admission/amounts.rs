//! Amounts of resources, and what a pod needs of them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::codec::Quantity;
use crate::kinds::check::quantity;
use crate::kinds::tree::{at, entries, list, text};

/// How much of each resource.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// What can be said for a pod as a whole, and counts for limit ranges.
fn is_limited(name: &str) -> bool {
    matches!(name, "cpu" | "memory")
}

/// The amounts in a field.
pub(super) fn amounts(holder: &Value, field: &str) -> Amounts {
    entries(holder, field).filter_map(|(name, amount)| Some((name.clone(), quantity(amount)?))).collect()
}

/// Adds amounts to others.
pub(super) fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let so_far = sum.get(name).map_or_else(|| amount.clone(), |so_far| so_far + amount);
        sum.insert(name.clone(), so_far);
    }
}

/// Raises amounts to others where those are larger.
pub(super) fn raise(most: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if most.get(name).is_none_or(|so_far| so_far < amount) {
            most.insert(name.clone(), amount.clone());
        }
    }
}

/// Requests or limits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Requests,
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

/// What a pod asks for: its containers together, or what it needs to begin, whichever is more.
pub(super) fn asked(pod: &Value, side: Side) -> Amounts {
    total(pod, side, |container| amounts(&container["resources"], side.field()))
}

fn total(pod: &Value, side: Side, of: impl Fn(&Value) -> Amounts) -> Amounts {
    let spec = &pod["spec"];
    let mut sum = Amounts::new();
    for container in list(spec, "containers") {
        add(&mut sum, &of(container));
    }
    // What is there when the i-th begins: those that stay and came before it, and itself.
    let (mut staying, mut beginning) = (Amounts::new(), Amounts::new());
    for container in list(spec, "initContainers") {
        let mut own = of(container);
        if text(container, "restartPolicy") == "Always" {
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
        let whole = amounts(whole, side.field());
        sum.extend(whole.into_iter().filter(|(name, _)| is_limited(name)));
    }
    sum
}
