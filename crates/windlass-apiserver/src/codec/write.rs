//! The final JSON, byte for byte as Go's encoder writes it, with the places that readers cut at.

use std::io::Write;
use std::ops::Range;

use serde_json::{Map, Number, Value};

/// A written object and where its parts are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// The JSON.
    pub bytes: Vec<u8>,
    /// The length of the opening brace, `kind` and `apiVersion` with their commas, if the object begins with those:
    /// `{` and `bytes[prefix_len..]` are the object as an item of a list. Else 1, the brace alone.
    pub prefix_len: usize,
    /// The value of `metadata`, braces included. Empty if there is none.
    pub meta_range: Range<usize>,
    /// The text of `metadata.resourceVersion`, without its quotes. Empty if there is none.
    pub rv_range: Range<usize>,
}

/// Writes an object.
pub fn write(value: &Value) -> Encoded {
    let mut encoded = Encoded { bytes: Vec::with_capacity(1024), prefix_len: 1, ..Encoded::default() };
    let Value::Object(map) = value else {
        write_value(&mut encoded.bytes, value);
        return encoded;
    };
    let typed = map.keys().take(2).map(String::as_str).eq(["kind", "apiVersion"]);
    encoded.bytes.push(b'{');
    for (index, (key, value)) in map.iter().enumerate() {
        write_key(&mut encoded.bytes, index, key);
        if key == "metadata" {
            write_meta(&mut encoded, value);
        } else {
            write_value(&mut encoded.bytes, value);
        }
        if typed && index == 1 {
            // The comma belongs to the prefix; if nothing follows there is none.
            encoded.prefix_len = encoded.bytes.len() + usize::from(map.len() > 2);
        }
    }
    encoded.bytes.push(b'}');
    encoded
}

/// Writes any JSON, without a line end.
pub fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(list) => {
            out.push(b'[');
            for (index, value) in list.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_value(out, value);
            }
            out.push(b']');
        }
        Value::Object(map) => write_object(out, map),
    }
}

/// Writes any JSON with two spaces for each level, without a line end, as it stands at some depth of another.
pub fn write_pretty(out: &mut Vec<u8>, value: &Value, depth: usize) {
    match value {
        Value::Array(list) if !list.is_empty() => {
            out.push(b'[');
            for (index, value) in list.iter().enumerate() {
                pretty_line(out, index, depth + 1);
                write_pretty(out, value, depth + 1);
            }
            pretty_line(out, 0, depth);
            out.push(b']');
        }
        Value::Object(map) if !map.is_empty() => {
            out.push(b'{');
            for (index, (key, value)) in map.iter().enumerate() {
                pretty_line(out, index, depth + 1);
                write_string(out, key);
                out.extend_from_slice(b": ");
                write_pretty(out, value, depth + 1);
            }
            pretty_line(out, 0, depth);
            out.push(b'}');
        }
        other => write_value(out, other),
    }
}

/// Begins the line of an element of a list or object: those after the first stand behind a comma.
pub fn pretty_line(out: &mut Vec<u8>, index: usize, depth: usize) {
    if index > 0 {
        out.push(b',');
    }
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', 2 * depth));
}

fn write_object(out: &mut Vec<u8>, map: &Map<String, Value>) {
    out.push(b'{');
    for (index, (key, value)) in map.iter().enumerate() {
        write_key(out, index, key);
        write_value(out, value);
    }
    out.push(b'}');
}

fn write_meta(encoded: &mut Encoded, value: &Value) {
    let start = encoded.bytes.len();
    if let Value::Object(map) = value {
        encoded.bytes.push(b'{');
        for (index, (key, value)) in map.iter().enumerate() {
            write_key(&mut encoded.bytes, index, key);
            let start = encoded.bytes.len();
            write_value(&mut encoded.bytes, value);
            if key == "resourceVersion" && value.is_string() {
                encoded.rv_range = start + 1..encoded.bytes.len() - 1;
            }
        }
        encoded.bytes.push(b'}');
    } else {
        write_value(&mut encoded.bytes, value);
    }
    encoded.meta_range = start..encoded.bytes.len();
}

fn write_key(out: &mut Vec<u8>, index: usize, key: &str) {
    if index > 0 {
        out.push(b',');
    }
    write_string(out, key);
    out.push(b':');
}

/// Go writes floats between 1e-6 and 1e21 without an exponent, whole ones without a point.
fn write_number(out: &mut Vec<u8>, number: &Number) {
    let written = if let Some(value) = number.as_i64() {
        write!(out, "{value}")
    } else if let Some(value) = number.as_u64() {
        write!(out, "{value}")
    } else {
        let value = number.as_f64().unwrap_or_default();
        if value == 0.0 || (1e-6..1e21).contains(&value.abs()) {
            write!(out, "{value}")
        } else {
            let text = format!("{value:e}");
            match text.split_once('e') {
                Some((mantissa, exponent)) if !exponent.starts_with('-') => {
                    write!(out, "{mantissa}e+{exponent}")
                }
                _ => write!(out, "{text}"),
            }
        }
    };
    written.expect("writing to memory does not fail");
}

/// Go escapes what is dangerous inside HTML and JavaScript, too.
fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut written = 0;
    // Of what lies beyond ASCII only U+2028 and U+2029 are escaped, and both begin with E2.
    let special = |b: u8| b < 0x20 || matches!(b, b'"' | b'\\' | b'<' | b'>' | b'&' | 0xe2);
    for (index, _) in text.bytes().enumerate().filter(|(_, b)| special(*b)) {
        let Some(char) =
            text[index..].chars().next().filter(|c| c.is_ascii() || matches!(c, '\u{2028}' | '\u{2029}'))
        else {
            continue;
        };
        out.extend_from_slice(&text.as_bytes()[written..index]);
        written = index + char.len_utf8();
        match char {
            '"' => out.extend_from_slice(br#"\""#),
            '\\' => out.extend_from_slice(br"\\"),
            '\n' => out.extend_from_slice(br"\n"),
            '\r' => out.extend_from_slice(br"\r"),
            '\t' => out.extend_from_slice(br"\t"),
            '\u{8}' => out.extend_from_slice(br"\b"),
            '\u{c}' => out.extend_from_slice(br"\f"),
            other => write!(out, "\\u{:04x}", u32::from(other)).expect("writing to memory does not fail"),
        }
    }
    out.extend_from_slice(&text.as_bytes()[written..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn text(value: &Value) -> String {
        String::from_utf8(write(value).bytes).unwrap()
    }

    #[test]
    fn the_places_are_where_they_say() {
        let pod = json!({"kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "a", "resourceVersion": "123", "uid": "u"}, "spec": {"metadata": {"resourceVersion": "9"}}});
        let encoded = write(&pod);
        assert_eq!(encoded.bytes, serde_json::to_vec(&pod).unwrap());
        assert_eq!(&encoded.bytes[encoded.rv_range.clone()], b"123");
        let meta: Value = serde_json::from_slice(&encoded.bytes[encoded.meta_range.clone()]).unwrap();
        assert_eq!(meta, pod["metadata"]);
        let item = [b"{", &encoded.bytes[encoded.prefix_len..]].concat();
        let item: Value = serde_json::from_slice(&item).unwrap();
        assert_eq!(item, json!({"metadata": pod["metadata"], "spec": pod["spec"]}));
    }

    #[test]
    fn an_object_of_nothing_but_its_type_still_has_a_prefix() {
        let encoded = write(&json!({"kind": "Pod", "apiVersion": "v1"}));
        assert_eq!(&encoded.bytes[encoded.prefix_len..], b"}");
        assert_eq!(write(&json!({"apiVersion": "v1", "kind": "Custom"})).prefix_len, 1);
    }

    #[test]
    fn strings_are_escaped_as_go_does() {
        assert_eq!(
            text(&json!("<&>\u{2028}\u{2029}\u{2030}\u{7}\u{8}\u{c}\u{7f}é\"\\\n\r\t\u{0}")),
            "\"\\u003c\\u0026\\u003e\\u2028\\u2029\u{2030}\\u0007\\b\\f\u{7f}é\\\"\\\\\\n\\r\\t\\u0000\""
        );
    }

    /// Recorded from a real server: `?pretty=1` escapes as the dense form does, and ends without a line end.
    #[test]
    fn the_pretty_form_escapes_too() {
        let mut out = Vec::new();
        write_pretty(&mut out, &json!({"b": "<&>\u{2028}", "e": {}, "l": [], "n": [1, {"a": null}]}), 0);
        let want = r#"{
  "b": "\u003c\u0026\u003e\u2028",
  "e": {},
  "l": [],
  "n": [
    1,
    {
      "a": null
    }
  ]
}"#;
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }

    #[test]
    fn floats_are_written_as_go_does() {
        for (value, want) in [
            (1.0, "1"),
            (0.5, "0.5"),
            (-0.0, "-0"),
            (1e20, "100000000000000000000"),
            (12_345_678_901_234_567_890_f64, "12345678901234567000"),
            (1e21, "1e+21"),
            (1e-6, "0.000001"),
            (1.5e-7, "1.5e-7"),
        ] {
            assert_eq!(text(&json!(value)), want);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(string: String, float in proptest::num::f64::NORMAL, int: i64) {
            let value = json!({"s": string, "f": float, "i": int});
            let read: Value = serde_json::from_slice(&write(&value).bytes).unwrap();
            prop_assert_eq!(&read["s"], &value["s"]);
            prop_assert_eq!(&read["i"], &value["i"]);
            prop_assert_eq!(read["f"].as_f64(), Some(float));
        }
    }
}
