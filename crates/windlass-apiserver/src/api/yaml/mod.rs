//! Answers in YAML, as sigs.k8s.io/yaml writes them by way of go-yaml 2: two spaces, lists at the level of their key,
//! lines folded after 80 columns, keys in an order that counts.

mod order;
mod scalar;

use serde_json::{Map, Value};

use scalar::Place;

/// A tree as YAML.
pub fn write(value: &Value) -> Vec<u8> {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(&mut out, map, 0),
        Value::Array(list) if !list.is_empty() => sequence(&mut out, list, 0),
        leaf => scalar(&mut out, leaf, 0),
    }
    out.into_bytes()
}

/// Adds one more item to a list that stands at the beginning of its lines.
pub(super) fn write_item(out: &mut Vec<u8>, item: &Value) {
    let mut text = String::new();
    sequence(&mut text, std::slice::from_ref(item), 0);
    out.append(&mut text.into_bytes());
}

/// Longer keys, in bytes, are written with a question mark before them.
const SIMPLE_KEY_MAX: usize = 128;

/// The entries of a mapping, whose keys stand in column `indent`. The first one is where the line has come to.
fn mapping(out: &mut String, map: &Map<String, Value>, indent: usize) {
    for (index, (key, value)) in order::sorted(map).into_iter().enumerate() {
        if index > 0 {
            pad(out, indent);
        }
        if key.len() <= SIMPLE_KEY_MAX && !scalar::is_multiline(key) {
            scalar::write(out, key, indent + 2, Place::Key);
            out.push(':');
            match value {
                Value::Object(map) if !map.is_empty() => {
                    out.push('\n');
                    pad(out, indent + 2);
                    mapping(out, map, indent + 2);
                }
                Value::Array(list) if !list.is_empty() => {
                    out.push('\n');
                    pad(out, indent);
                    sequence(out, list, indent);
                }
                leaf => {
                    out.push(' ');
                    scalar(out, leaf, indent + 2);
                }
            }
        } else {
            out.push_str("? ");
            scalar::write(out, key, indent + 2, Place::Value);
            end_line(out);
            pad(out, indent);
            out.push_str(": ");
            node(out, value, indent + 2);
        }
    }
}

/// The items of a list, whose dashes stand in column `indent`. The first one is where the line has come to.
fn sequence(out: &mut String, list: &[Value], indent: usize) {
    for (index, value) in list.iter().enumerate() {
        if index > 0 {
            pad(out, indent);
        }
        out.push_str("- ");
        node(out, value, indent + 2);
    }
}

/// A value in the line of the mark before it.
fn node(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => mapping(out, map, indent),
        Value::Array(list) if !list.is_empty() => sequence(out, list, indent),
        leaf => scalar(out, leaf, indent),
    }
}

fn scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(text) => scalar::write(out, text, indent, Place::Value),
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        Value::Number(number) if number.is_f64() => {
            out.push_str(&scalar::float(number.as_f64().unwrap_or_default()));
        }
        other => out.push_str(&other.to_string()),
    }
    end_line(out);
}

/// Blocks end their last line themselves.
fn end_line(out: &mut String) {
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

fn pad(out: &mut String, columns: usize) {
    out.extend(std::iter::repeat_n(' ', columns));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    use crate::codec::{self, Format};

    fn text(tree: &Value) -> String {
        String::from_utf8(write(tree)).unwrap()
    }

    #[test]
    fn maps_lists_and_strings_as_kubernetes_prints_them() {
        let tree = json!({"b": [{"x": 1, "a": "true"}, "z", [[1], {}]], "a": {"t": "l1\nl2\n", "e": {}, "n": null, "s": "plain text"}});
        assert_eq!(
            text(&tree),
            "a:\n  e: {}\n  \"n\": null\n  s: plain text\n  t: |\n    l1\n    l2\nb:\n- a: \"true\"\n  x: 1\n- z\n- - - 1\n  - {}\n"
        );
    }

    /// Answers of a real kube-apiserver 1.36.4 for a ConfigMap with odd data.
    #[test]
    fn odd_texts_as_a_real_server_writes_them() {
        let differences: Vec<String> = include_str!("recorded.jsonl")
            .lines()
            .filter_map(|row| {
                let row: Value = serde_json::from_str(row).unwrap();
                let (ours, want) = (text(&row["tree"]), row["yaml"].as_str().unwrap());
                let line = ours.lines().zip(want.lines()).find(|(ours, want)| ours != want);
                (ours != want).then(|| format!("{line:?} of {}", row["tree"]))
            })
            .collect();
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }

    fn tree() -> impl Strategy<Value = Value> {
        let odd = "[ab1:#\\-'\"\\\\&*!|>%@`{}\\[\\],? \n\té\u{2028}\u{85}\u{feff}\u{1}~.<=_0]{0,12}";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            odd.prop_map(Value::from),
            "[a-z]{1,9}( [a-z]{1,9}){0,40}".prop_map(Value::from),
            "[0-9+\\-.:_eTxo]{1,10}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(odd, inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// What is quoted too little would read back as something else. U+2028 and its like are line ends in YAML 1.1,
        /// which go-yaml itself does not get back right, so they are left out here.
        #[test]
        fn what_is_written_reads_back(tree in tree()) {
            let plain = |text: &str| !text.contains(['\u{2028}', '\u{85}', '\u{feff}']);
            prop_assume!(plain(&tree.to_string()));
            let written = text(&json!({"x": tree}));
            let read = codec::parse(written.as_bytes(), Format::Yaml);
            let mut want = json!({"x": tree});
            want.sort_all_objects();
            prop_assert_eq!(read.map(|read| read.value).map_err(|e| e.to_string()), Ok(want), "{}", written);
        }
    }
}
