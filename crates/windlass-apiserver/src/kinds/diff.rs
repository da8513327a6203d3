//! What differs between two values, as the real server prints it in refusals: a unified diff of indented JSON.
//!
//! Which lines count as kept follows the matcher that Python made common: the longest run of equal lines first, then
//! the same on either side of it, with lines that stand very often taken as no place to begin.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use serde::Serialize as _;
use serde_json::Value;

/// How many unchanged lines are shown around what changes.
const CONTEXT: usize = 3;

/// The changes from one value to another.
pub(crate) fn unified(old: &Value, new: &Value) -> String {
    let (old, new) = (pretty(old), pretty(new));
    let (a, b): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut out = String::new();
    for group in groups(changes(&a, &b)) {
        let (first, last) = (&group[0], &group[group.len() - 1]);
        let range = |range: Range<usize>| match range.len() {
            1 => (range.start + 1).to_string(),
            0 => format!("{},0", range.start),
            length => format!("{},{length}", range.start + 1),
        };
        let ranges = (range(first.a.start..last.a.end), range(first.b.start..last.b.end));
        let _ = writeln!(out, "@@ -{} +{} @@", ranges.0, ranges.1);
        for part in group {
            if part.kept {
                a[part.a.clone()].iter().for_each(|line| _ = writeln!(out, " {line}"));
                continue;
            }
            a[part.a.clone()].iter().for_each(|line| _ = writeln!(out, "-{line}"));
            b[part.b.clone()].iter().for_each(|line| _ = writeln!(out, "+{line}"));
        }
    }
    out
}

fn pretty(value: &Value) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8_lossy(&out).into_owned(),
        Err(_) => value.to_string(),
    }
}

/// Lines that stay, or lines in place of others.
#[derive(Clone, Debug)]
struct Part {
    kept: bool,
    a: Range<usize>,
    b: Range<usize>,
}

/// All lines of both texts, in parts.
fn changes(a: &[&str], b: &[&str]) -> Vec<Part> {
    let mut blocks = Vec::new();
    let places = places(b);
    matching(a, b, &places, 0..a.len(), 0..b.len(), &mut blocks);
    blocks.push((a.len(), b.len(), 0));
    let mut merged: Vec<(usize, usize, usize)> = Vec::new();
    for (i, j, size) in blocks {
        match merged.last_mut() {
            Some(last) if (last.0 + last.2, last.1 + last.2) == (i, j) => last.2 += size,
            _ => merged.push((i, j, size)),
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    for (at_a, at_b, size) in merged {
        if i < at_a || j < at_b {
            out.push(Part { kept: false, a: i..at_a, b: j..at_b });
        }
        if size > 0 {
            out.push(Part { kept: true, a: at_a..at_a + size, b: at_b..at_b + size });
        }
        (i, j) = (at_a + size, at_b + size);
    }
    out
}

/// Where each line stands, without those that stand everywhere in a long text.
fn places<'a>(lines: &[&'a str]) -> HashMap<&'a str, Vec<usize>> {
    let mut out: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, line) in lines.iter().enumerate() {
        out.entry(line).or_default().push(index);
    }
    if lines.len() >= 200 {
        out.retain(|_, places| places.len() <= lines.len() / 100 + 1);
    }
    out
}

fn matching(
    a: &[&str],
    b: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    in_a: Range<usize>,
    in_b: Range<usize>,
    out: &mut Vec<(usize, usize, usize)>,
) {
    let (i, j, size) = longest(a, b, places, &in_a, &in_b);
    if size == 0 {
        return;
    }
    if in_a.start < i && in_b.start < j {
        matching(a, b, places, in_a.start..i, in_b.start..j, out);
    }
    out.push((i, j, size));
    if i + size < in_a.end && j + size < in_b.end {
        matching(a, b, places, i + size..in_a.end, j + size..in_b.end, out);
    }
}

/// The longest run of equal lines, and the first of those.
fn longest(
    a: &[&str],
    b: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    in_a: &Range<usize>,
    in_b: &Range<usize>,
) -> (usize, usize, usize) {
    let (mut best_a, mut best_b, mut size) = (in_a.start, in_b.start, 0);
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for i in in_a.clone() {
        let mut next = HashMap::new();
        for &j in places.get(a[i]).into_iter().flatten().filter(|j| in_b.contains(j)) {
            let length = 1 + j.checked_sub(1).and_then(|before| lengths.get(&before)).copied().unwrap_or(0);
            next.insert(j, length);
            if length > size {
                (best_a, best_b, size) = (i + 1 - length, j + 1 - length, length);
            }
        }
        lengths = next;
    }
    while best_a > in_a.start && best_b > in_b.start && a[best_a - 1] == b[best_b - 1] {
        (best_a, best_b, size) = (best_a - 1, best_b - 1, size + 1);
    }
    while best_a + size < in_a.end && best_b + size < in_b.end && a[best_a + size] == b[best_b + size] {
        size += 1;
    }
    (best_a, best_b, size)
}

/// Changes that lie near each other, with some lines around them.
fn groups(mut parts: Vec<Part>) -> Vec<Vec<Part>> {
    if parts.iter().all(|part| part.kept) {
        return Vec::new();
    }
    if let Some(first) = parts.first_mut().filter(|part| part.kept) {
        let cut = first.a.len().saturating_sub(CONTEXT);
        (first.a.start, first.b.start) = (first.a.start + cut, first.b.start + cut);
    }
    if let Some(last) = parts.last_mut().filter(|part| part.kept) {
        let keep = last.a.len().min(CONTEXT);
        (last.a.end, last.b.end) = (last.a.start + keep, last.b.start + keep);
    }
    let (mut out, mut group) = (Vec::new(), Vec::new());
    for part in parts {
        if part.kept && part.a.len() > 2 * CONTEXT {
            let (a, b) = (part.a.start..part.a.start + CONTEXT, part.b.start..part.b.start + CONTEXT);
            group.push(Part { kept: true, a, b });
            out.push(std::mem::take(&mut group));
            let (a, b) = (part.a.end - CONTEXT..part.a.end, part.b.end - CONTEXT..part.b.end);
            group.push(Part { kept: true, a, b });
        } else {
            group.push(part);
        }
    }
    if group.iter().any(|part| !part.kept) {
        out.push(group);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        let old = json!({"a": 1, "b": [1, 2], "c": null, "d": null, "e": null, "f": 1});
        let new = json!({"a": 1, "b": [1, 3], "c": null, "d": null, "e": null, "f": 1});
        let expected = "@@ -2,7 +2,7 @@\n  \"a\": 1,\n  \"b\": [\n   1,\n-  2\n+  3\n  ],\n  \"c\": null,\n  \"d\": null,\n";
        assert_eq!(unified(&old, &new), expected);
        assert_eq!(unified(&old, &old), "");
    }

    #[test]
    fn lines_come_and_go() {
        let (old, new) = (json!({"a": 1}), json!({"a": 1, "b": 2}));
        assert_eq!(unified(&old, &new), "@@ -1,3 +1,4 @@\n {\n- \"a\": 1\n+ \"a\": 1,\n+ \"b\": 2\n }\n");
    }
}
