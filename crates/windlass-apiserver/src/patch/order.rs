//! The order of merged lists: what the patch says first, then what the server had.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// What identifies an element: the value of its merge key, or itself where there is no merge key.
pub(super) fn identity(element: &Value, merge_key: &str) -> String {
    let value = match element {
        Value::Object(map) if !merge_key.is_empty() => map.get(merge_key).unwrap_or(&Value::Null),
        other => other,
    };
    scalar_identity(value)
}

/// Equal for equal values only: `1`, `1.0` and `"1"` are three.
pub(super) fn scalar_identity(value: &Value) -> String {
    value.to_string()
}

/// Drops every scalar that stood before.
pub(super) fn deduplicate(list: Vec<Value>) -> Vec<Value> {
    let mut seen = HashSet::with_capacity(list.len());
    list.into_iter().filter(|value| seen.insert(scalar_identity(value))).collect()
}

/// Where each element stands in a list; of equal ones the first counts.
pub(super) struct Ranks(HashMap<String, usize>);

impl Ranks {
    pub(super) fn of(list: &[Value], merge_key: &str) -> Ranks {
        let mut ranks = HashMap::with_capacity(list.len());
        for (i, element) in list.iter().enumerate() {
            ranks.entry(identity(element, merge_key)).or_insert(i);
        }
        Ranks(ranks)
    }

    fn get(&self, identity: &str) -> Option<usize> {
        self.0.get(identity).copied()
    }
}

/// Puts `merged` in order: elements named in `patch_order` as they stand there, the others as the server had them,
/// and one of the others before one of the named where the server had it so.
pub(super) fn arrange(
    merged: Vec<Value>,
    patch_order: &Ranks,
    server_order: &Ranks,
    merge_key: &str,
) -> Vec<Value> {
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for element in merged {
        let identity = identity(&element, merge_key);
        let server = server_order.get(&identity);
        match patch_order.get(&identity) {
            Some(rank) => named.push((rank, server, element)),
            None => others.push((server, element)),
        }
    }
    named.sort_by_key(|(rank, _, _)| *rank);
    let others = sort_others(others);

    let mut all = Vec::with_capacity(named.len() + others.len());
    let mut named = named.into_iter().peekable();
    for (server, element) in others {
        let goes_before =
            |at: Option<usize>| matches!((server, at), (Some(mine), Some(theirs)) if mine < theirs);
        while let Some((_, _, next)) = named.next_if(|(_, at, _)| !goes_before(*at)) {
            all.push(next);
        }
        all.push(element);
    }
    all.extend(named.map(|(_, _, element)| element));
    all
}

/// Sorts by rank. Elements that nobody ordered end up where upstream's comparison, which calls every pair with such
/// an element ascending, takes them in an insertion sort; its blocks have twenty elements, and beyond that there is
/// nothing to be faithful to.
fn sort_others(others: Vec<(Option<usize>, Value)>) -> Vec<(Option<usize>, Value)> {
    const BLOCK: usize = 20;
    let mut sorted: Vec<(Option<usize>, Value)> = Vec::with_capacity(others.len());
    let all_ranked = others.iter().all(|(rank, _)| rank.is_some());
    if all_ranked || others.len() > BLOCK {
        sorted.extend(others);
        sorted.sort_by_key(|(rank, _)| rank.unwrap_or(usize::MAX));
        return sorted;
    }
    for (rank, element) in others {
        let stays_behind =
            |before: &(Option<usize>, Value)| matches!((before.0, rank), (Some(a), Some(b)) if a <= b);
        let place = sorted.iter().rposition(stays_behind).map_or(0, |at| at + 1);
        sorted.insert(place, (rank, element));
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arranged(merged: Value, patch: Value, server: Value) -> Value {
        let list = |value: &Value| value.as_array().expect("a list").clone();
        let (patch, server) = (Ranks::of(&list(&patch), ""), Ranks::of(&list(&server), ""));
        Value::Array(arrange(list(&merged), &patch, &server, ""))
    }

    #[test]
    fn the_patch_orders_what_it_names() {
        let result = arranged(json!(["a", "b", "c", "d"]), json!(["d", "a"]), json!(["a", "b", "c"]));
        assert_eq!(result, json!(["d", "a", "b", "c"]));
    }

    #[test]
    fn what_nobody_ordered_goes_where_upstream_puts_it() {
        let result = arranged(json!(["new", "newer", "a", "b"]), json!([]), json!(["a", "b"]));
        assert_eq!(result, json!(["a", "b", "newer", "new"]));
    }

    #[test]
    fn the_others_keep_their_place_before_what_followed_them() {
        let result = arranged(json!(["a", "b", "c", "n"]), json!(["c", "n"]), json!(["a", "b", "c"]));
        assert_eq!(result, json!(["a", "b", "c", "n"]));
    }
}
