//! What a call cost, once it has been made: kube-apiserver's figures, from the sizes of what was passed.

use super::estimate::{PATTERN, TEXT};
use super::range::times;
use super::value::Val;

/// What calling a function cost. The target is the first argument; `overload` is empty if the types did not tell which
/// one it would be.
pub(super) fn call(name: &str, overload: &str, args: &[Val<'_>], result: &Val<'_>) -> u64 {
    let size = |i: usize| args.get(i).map_or(1, size);
    let read = |i: usize| times(size(i), TEXT);
    if let Some(cost) = lists(overload, args, result) {
        return cost;
    }
    match name {
        "check" if overload.ends_with("check_check") => 350_000,
        "fieldSelector" | "labelSelector" => {
            // Each requirement is a structure with a list; one takes two characters at least.
            let requirements = times(size(1), 0.5);
            10 + read(1) + times(requirements, 50.0)
        }
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => args.first().map_or(0, traversal),
        "url"
        | "jsonpatch.escapeKey"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => read(0),
        "replace" | "split" | "ip.isCanonical" => times(size(0), 2.0 * TEXT),
        "join" => times(self::size(result), 2.0 * TEXT),
        "find" | "findAll" | "matches" if overload != "matches" => {
            times(size(0) + 1, TEXT).saturating_mul(times(size(1), PATTERN))
        }
        "ip" if overload == "cidr_ip" => 1,
        "ip" => read(0),
        "containsIP" | "containsCIDR" => {
            // A network is a value of no size of its own.
            let own = size(0);
            let mut cost = times(own + own, TEXT);
            if name == "containsCIDR" {
                cost += times(own, TEXT) + 1;
            }
            if matches!(args.get(1), Some(Val::Text(_))) {
                cost += read(1);
            }
            cost
        }
        "validate" => times(size(1) + 1, TEXT).saturating_mul(times(128, PATTERN)),
        _ => language(overload, size, &read),
    }
}

fn language(overload: &str, size: impl Fn(usize) -> u64, read: &dyn Fn(usize) -> u64) -> u64 {
    let is_text = overload.ends_with("_string") || overload.ends_with("_bytes");
    match overload {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => read(0),
        "in_list" => size(1),
        "equals" | "not_equals" => times(size(0).min(size(1)), TEXT),
        "add_string" | "add_bytes" => times(size(0).saturating_add(size(1)), TEXT),
        "contains_string" => read(0).saturating_mul(read(1)),
        _ if is_text && (overload.starts_with("less_") || overload.starts_with("greater_")) => {
            times(size(0).min(size(1)), TEXT)
        }
        _ => 1,
    }
}

fn lists(overload: &str, args: &[Val<'_>], result: &Val<'_>) -> Option<u64> {
    let made = |factor: f64, count: u64| Some(times(count, factor).saturating_add(11));
    let against_itself = |list: Option<&Val<'_>>| {
        let list = list?;
        let count = size(list);
        let first = list.index(&Val::Int(0)).ok().flatten();
        let factor = if matches!(first, Some(Val::Text(_) | Val::Bytes(_))) { 2.0 + TEXT } else { 2.0 };
        made(factor, count.saturating_mul(count))
    };
    match overload {
        "list_slice" | "lists_range" | "list_reverse" => made(1.0, size(result)),
        "list_flatten" | "list_flatten_int" => {
            #[expect(clippy::cast_precision_loss, reason = "no list is nested so deep")]
            let depth = if let Some(Val::Int(depth)) = args.get(1) { *depth as f64 } else { 1.0 };
            made(depth, size(&args[0]))
        }
        "list_distinct" => against_itself(args.first()),
        _ if overload.ends_with("_sort") => against_itself(args.first()),
        _ if overload.ends_with("_sortByAssociatedKeys") => against_itself(args.get(1)),
        _ if overload.starts_with("list_sets_") => {
            let factor = if overload == "list_sets_equivalent_list" { 2.0 } else { 1.0 };
            let pairs = args.iter().map(size).fold(1, u64::saturating_mul);
            Some(times(pairs, factor).saturating_add(1))
        }
        _ => None,
    }
}

/// How large a value is; one if it has no size.
fn size(value: &Val<'_>) -> u64 {
    match value {
        Val::Optional(Some(inner)) => size(inner),
        value => value.size().map_or(1, |size| size as u64),
    }
}

/// What going through a value to its ends costs.
fn traversal(value: &Val<'_>) -> u64 {
    let sum = |values: Vec<Val<'_>>| values.iter().map(traversal).fold(0, u64::saturating_add);
    match (value, value.type_name()) {
        (Val::Text(text), _) => text.len() as u64 / 10,
        (Val::Bytes(bytes), _) => bytes.len() as u64 / 10,
        (_, "list") => value.elements().map_or(1, sum),
        (_, "map") => value.keys().map_or(1, |keys| {
            let below = keys.iter().filter_map(|key| value.index(key).ok().flatten());
            sum(below.collect()).saturating_add(sum(keys.clone()))
        }),
        _ => 1,
    }
}
