//! The order of keys in go-yaml 2, by which `a2` comes before `a10`.

use serde_json::{Map, Value};

/// The entries in order.
///
/// The comparison is not transitive (`10` < `1a` < `2` < `10`), which the sorts of the standard library do not forgive;
/// up to twelve entries this is the insertion sort that Go uses, so that even then the outcome is the same.
pub(super) fn sorted(map: &Map<String, Value>) -> Vec<(&str, &Value)> {
    const INSERTION_MAX: usize = 12;
    let mut entries: Vec<(&str, &Value)> = map.iter().map(|(key, value)| (key.as_str(), value)).collect();
    // Maps of Go have no order of their own to begin with.
    entries.sort_by_key(|(key, _)| *key);
    for run in entries.chunks_mut(INSERTION_MAX) {
        for i in 1..run.len() {
            let mut j = i;
            while j > 0 && less(run[j].0, run[j - 1].0) {
                run.swap(j, j - 1);
                j -= 1;
            }
        }
    }
    let mut width = INSERTION_MAX;
    while width < entries.len() {
        entries = entries.chunks(2 * width).flat_map(|pair| merge(pair, width)).collect();
        width *= 2;
    }
    entries
}

/// Two sorted runs as one; the first has `width` entries.
fn merge<'a>(pair: &[(&'a str, &'a Value)], width: usize) -> Vec<(&'a str, &'a Value)> {
    let (mut left, mut right) = pair.split_at(width.min(pair.len()));
    let mut out = Vec::with_capacity(pair.len());
    while let (Some(a), Some(b)) = (left.first(), right.first()) {
        if less(b.0, a.0) {
            out.push(*b);
            right = &right[1..];
        } else {
            out.push(*a);
            left = &left[1..];
        }
    }
    out.extend_from_slice(left);
    out.extend_from_slice(right);
    out
}

/// Whether `a` comes before `b`: where they first differ, numbers count, and letters come after all else.
fn less(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(i) = a.iter().zip(&b).position(|(a, b)| a != b) else { return a.len() < b.len() };
    match (a[i].is_alphabetic(), b[i].is_alphabetic()) {
        (true, true) => return a[i] < b[i],
        (false, false) => {}
        (_, b) => return b,
    }
    // A zero inside a number is not one that leads it.
    let inside = (a[i] == '0' || b[i] == '0')
        && a[..i].iter().rev().take_while(|c| c.is_ascii_digit()).any(|c| *c != '0');
    let number = |text: &[char]| {
        let digits = text[i..].iter().take_while(|c| c.is_ascii_digit());
        let value = |value: i64, c: &char| {
            value.wrapping_mul(10).wrapping_add(i64::from(c.to_digit(10).unwrap_or_default()))
        };
        (digits.clone().fold(i64::from(inside), value), digits.count())
    };
    let (left, right) = (number(&a), number(&b));
    if left == right { a[i] < b[i] } else { left < right }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(keys: &str) -> String {
        let map: Map<String, Value> = keys.split(' ').map(|key| (key.to_owned(), Value::Null)).collect();
        sorted(&map).into_iter().map(|(key, _)| key).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn numbers_count_and_letters_come_last() {
        assert_eq!(order("a10 a2 a1 b a"), "a a1 a2 a10 b");
        assert_eq!(order("f:b f:a ."), ". f:a f:b");
        assert_eq!(order("12 012 a-b ab a.b a_b"), "12 012 a-b a.b a_b ab");
        assert_eq!(order("Z a A z é"), "A Z a z é");
        assert_eq!(order("100 10 1-"), "1- 10 100");
    }

    #[test]
    fn many_keys_are_sorted_too_even_where_there_is_no_order() {
        let keys: Vec<String> = (0..100).rev().map(|n| format!("k{n}")).collect();
        let want: Vec<String> = (0..100).map(|n| format!("k{n}")).collect();
        assert_eq!(order(&keys.join(" ")), want.join(" "));
        let odd: Vec<String> =
            (0..60).map(|n| if n % 2 == 0 { format!("{n}a") } else { format!("{n}0") }).collect();
        assert_eq!(order(&odd.join(" ")).split(' ').count(), 60);
    }
}
