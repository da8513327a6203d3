//! Where two pictures differ.

use std::collections::BTreeSet;

use serde_json::Value;

use super::normal::Picture;

/// A line for every difference between what the real controllers left and what ours left.
pub fn differences(real: &Picture, ours: &Picture) -> Vec<String> {
    let mut lines = Vec::new();
    let names: BTreeSet<&String> = real.keys().chain(ours.keys()).collect();
    for name in names {
        match (real.get(name), ours.get(name)) {
            (Some(real), Some(ours)) => walk(name, real, ours, &mut lines),
            (Some(real), None) => lines.push(format!("- {name}: {}", short(real))),
            (None, Some(ours)) => lines.push(format!("+ {name}: {}", short(ours))),
            (None, None) => {}
        }
    }
    lines
}

fn walk(path: &str, real: &Value, ours: &Value, lines: &mut Vec<String>) {
    match (real, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let path = format!("{path} . {key}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => walk(&path, a, b, lines),
                    (Some(a), None) => lines.push(format!("- {path}: {}", short(a))),
                    (None, Some(b)) => lines.push(format!("+ {path}: {}", short(b))),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                walk(&format!("{path}[{index}]"), a, b, lines);
            }
        }
        (a, b) if a != b => lines.push(format!("~ {path}: real {}, ours {}", short(a), short(b))),
        _ => {}
    }
}

/// A value on one line, cut where it is long.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(300) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_added_and_changed_is_told() {
        let real =
            Picture::from([("A/a".to_owned(), json!({"x": 1, "y": [1]})), ("B/b".to_owned(), json!(1))]);
        let ours = Picture::from([("A/a".to_owned(), json!({"x": 2, "y": [1], "z": 0}))]);
        assert_eq!(differences(&real, &ours), ["~ A/a . x: real 1, ours 2", "+ A/a . z: 0", "- B/b: 1"]);
        assert_eq!(differences(&real, &real), [""; 0]);
    }
}
