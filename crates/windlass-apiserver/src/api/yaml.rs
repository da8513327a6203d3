//! Answers in YAML, as sigs.k8s.io/yaml writes them: keys sorted, two spaces, lists at the level of their key.

use serde_json::Value;

/// A tree as YAML.
pub fn write(value: &Value) -> Vec<u8> {
    let mut sorted = value.clone();
    sorted.sort_all_objects();
    let mut out = String::new();
    block(&mut out, &sorted, 0);
    out.into_bytes()
}

fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (index, (key, value)) in map.iter().enumerate() {
                if index > 0 || out.ends_with('\n') {
                    pad(out, indent);
                }
                out.push_str(&scalar(key, indent));
                out.push(':');
                match value {
                    Value::Object(map) if !map.is_empty() => {
                        out.push('\n');
                        block(out, value, indent + 1);
                    }
                    Value::Array(list) if !list.is_empty() => {
                        out.push('\n');
                        block(out, value, indent);
                    }
                    _ => {
                        out.push(' ');
                        leaf(out, value, indent + 1);
                    }
                }
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for value in list {
                if out.ends_with('\n') {
                    pad(out, indent);
                }
                out.push_str("- ");
                match value {
                    Value::Object(map) if !map.is_empty() => block(out, value, indent + 1),
                    Value::Array(list) if !list.is_empty() => block(out, value, indent + 1),
                    _ => leaf(out, value, indent + 1),
                }
            }
        }
        _ => leaf(out, value, indent),
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n("  ", indent));
}

fn leaf(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(text) => out.push_str(&scalar(text, indent)),
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        other => out.push_str(&other.to_string()),
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// A string: plain where it reads back as itself, a block where it has lines, else quoted.
fn scalar(text: &str, indent: usize) -> String {
    let printable = text.chars().all(|c| c == '\n' || (!c.is_control() && c != '\u{feff}' && c != '\u{85}'));
    if text.contains('\n') && printable && !text.starts_with([' ', '\n']) {
        let keep = match (text.ends_with("\n\n"), text.ends_with('\n')) {
            (true, _) => "|+",
            (_, true) => "|",
            _ => "|-",
        };
        let body = text.strip_suffix('\n').unwrap_or(text);
        let lines = body.split('\n').map(|line| {
            if line.is_empty() { String::new() } else { format!("{}{line}", "  ".repeat(indent.max(1))) }
        });
        return format!("{keep}\n{}\n", lines.collect::<Vec<_>>().join("\n"));
    }
    if !printable || text.contains('\n') {
        return serde_json::to_string(text).expect("strings are JSON");
    }
    if is_plain(text) {
        return text.to_owned();
    }
    // What another type would be read from is quoted twice over in Go's writer; the rest in single quotes.
    if resolves_to_other(text) { format!("{text:?}") } else { format!("'{}'", text.replace('\'', "''")) }
}

fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let marks =
        ['-', '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`', ' '];
    let dashed = matches!(first, '-' | '?' | ':') && text.chars().nth(1).is_some_and(|c| c != ' ');
    (!marks.contains(&first) || dashed)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !resolves_to_other(text)
}

/// Whether YAML 1.1 reads the plain text as something else than a string.
fn resolves_to_other(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let word = matches!(
        lower.as_str(),
        "" | "y"
            | "n"
            | "yes"
            | "no"
            | "on"
            | "off"
            | "true"
            | "false"
            | "null"
            | "~"
            | ".nan"
            | ".inf"
            | "-.inf"
            | "+.inf"
            | "<<"
            | "="
    );
    let number = text.parse::<f64>().is_ok()
        || lower.starts_with("0x") && i64::from_str_radix(&lower[2..], 16).is_ok()
        || lower.starts_with("0b") && i64::from_str_radix(&lower[2..], 2).is_ok()
        || lower.starts_with("0o") && i64::from_str_radix(&lower[2..], 8).is_ok()
        || (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'_'));
    let date =
        text.len() >= 10 && text.as_bytes()[4] == b'-' && text[..4].bytes().all(|b| b.is_ascii_digit());
    word || number || date
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn maps_lists_and_strings_as_kubernetes_prints_them() {
        let tree = json!({"b": [{"x": 1, "a": "true"}, "z"], "a": {"t": "l1\nl2\n", "e": {}, "n": null, "s": "plain text"}});
        let text = String::from_utf8(write(&tree)).unwrap();
        assert_eq!(
            text,
            "a:\n  e: {}\n  \"n\": null\n  s: plain text\n  t: |\n    l1\n    l2\nb:\n- a: \"true\"\n  x: 1\n- z\n"
        );
    }
}
