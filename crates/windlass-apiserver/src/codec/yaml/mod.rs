//! YAML as sigs.k8s.io/yaml reads it: YAML 1.1 scalars, string keys, merge keys, the first document only.

mod resolve;

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};
use serde_json::{Map, Value};

use super::parse::{ParseError, Parsed};
use resolve::Scalar;

/// The deepest nesting that is read, the same as for JSON.
const DEPTH_MAX: usize = crate::json::DEPTH_MAX;

/// How much may be copied for anchors and by aliases, in bytes of memory: a few lines can name petabytes.
const COPIED_MAX: usize = 32 << 20;

/// How many duplicates are remembered.
const DUPLICATES_MAX: usize = 100;

/// Reads the first document.
pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, ParseError> {
    let text = std::str::from_utf8(bytes).map_err(|_| error("invalid leading UTF-8 octet"))?;
    let mut builder = Builder::default();
    let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|e| scan_error(&e))?;
        match event {
            Event::DocumentEnd | Event::StreamEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => {}
            event => builder.event(event, span)?,
        }
    }
    let mut value = builder.root.unwrap_or(Value::Null);
    // It goes through Go maps, which have no order and are written sorted.
    value.sort_all_objects();
    Ok(Parsed::yaml(value, builder.duplicates))
}

/// Whether a plain scalar is read as a text by this reader. Those that look like times are.
pub(crate) fn is_text(scalar: &str) -> bool {
    resolve::is_text(scalar)
}

/// A list or mapping that has not ended yet.
enum Frame {
    List { items: Vec<Value>, anchor: usize },
    Mapping { map: Map<String, Value>, key: Option<Key>, anchor: usize },
}

/// A key that waits for its value.
enum Key {
    /// An ordinary key: its JSON text, and its Go text for messages.
    Named(String, String),
    /// `<<`.
    Merge,
}

#[derive(Default)]
struct Builder {
    stack: Vec<Frame>,
    root: Option<Value>,
    /// Finished values that have an anchor.
    anchors: HashMap<usize, Value>,
    copied: usize,
    duplicates: Vec<String>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), ParseError> {
        let line = span.start.line();
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.map(|tag| format!("{}{}", tag.handle, tag.suffix));
                let plain = style == ScalarStyle::Plain;
                if self.wants_key() {
                    if text == "<<" && plain && tag.is_none() {
                        return self.key(Key::Merge);
                    }
                    let scalar = resolve::resolve(&text, plain, tag.as_deref())?;
                    let (json, go) = scalar.key()?;
                    self.remember(anchor, &Value::String(json.clone()))?;
                    return self.key(Key::Named(json, go));
                }
                let value = resolve::resolve(&text, plain, tag.as_deref())?.value()?;
                self.remember(anchor, &value)?;
                self.put(value, line)
            }
            Event::SequenceStart(anchor, _) => self.open(Frame::List { items: Vec::new(), anchor }),
            Event::MappingStart(anchor, _) => {
                self.open(Frame::Mapping { map: Map::new(), key: None, anchor })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (value, anchor) = match self.stack.pop() {
                    Some(Frame::List { items, anchor }) => (Value::Array(items), anchor),
                    Some(Frame::Mapping { map, anchor, .. }) => (Value::Object(map), anchor),
                    None => return Err(error("did not find expected node content")),
                };
                self.remember(anchor, &value)?;
                self.put(value, line)
            }
            Event::Alias(anchor) => self.alias(anchor, line),
            _ => Ok(()),
        }
    }

    fn wants_key(&self) -> bool {
        matches!(self.stack.last(), Some(Frame::Mapping { key: None, .. }))
    }

    fn open(&mut self, frame: Frame) -> Result<(), ParseError> {
        if self.wants_key() {
            return Err(error("invalid map key: a list or mapping"));
        }
        if self.stack.len() >= DEPTH_MAX {
            return Err(error("exceeded max depth"));
        }
        self.stack.push(frame);
        Ok(())
    }

    fn remember(&mut self, anchor: usize, value: &Value) -> Result<(), ParseError> {
        // 0 means that there is no anchor.
        if anchor != 0 {
            self.charge(weight(value))?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(())
    }

    fn charge(&mut self, weight: usize) -> Result<(), ParseError> {
        self.copied += weight;
        if self.copied > COPIED_MAX {
            return Err(error("document contains excessive aliasing"));
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<(), ParseError> {
        let value = self.anchors.get(&anchor).ok_or_else(|| error("anchor value contains itself"))?;
        if self.stack.len() + depth(value) > DEPTH_MAX {
            return Err(error("exceeded max depth"));
        }
        let weight = weight(value);
        self.charge(weight)?;
        let value = self.anchors[&anchor].clone();
        if !self.wants_key() {
            return self.put(value, line);
        }
        let scalar = match value {
            Value::String(text) => Scalar::Text(text),
            Value::Bool(value) => Scalar::Bool(value),
            Value::Number(number) => match number.as_i64() {
                Some(value) => Scalar::Int(value),
                None => Scalar::Float(number.as_f64().unwrap_or_default()),
            },
            _ => return Err(error("invalid map key: a list or mapping")),
        };
        let (json, go) = scalar.key()?;
        self.key(Key::Named(json, go))
    }

    fn key(&mut self, new: Key) -> Result<(), ParseError> {
        if let Some(Frame::Mapping { key, .. }) = self.stack.last_mut() {
            *key = Some(new);
        }
        Ok(())
    }

    /// Puts a finished value where it belongs. `line` is where it stands.
    fn put(&mut self, value: Value, line: usize) -> Result<(), ParseError> {
        match self.stack.last_mut() {
            None => self.root = Some(value),
            Some(Frame::List { items, .. }) => items.push(value),
            Some(Frame::Mapping { map, key, .. }) => match key.take() {
                None => return Err(error("invalid map key: a list or mapping")),
                Some(Key::Named(key, go)) => {
                    if map.insert(key, value).is_some() {
                        note(&mut self.duplicates, line, &go);
                    }
                }
                // Go names the line of the merged value, which is not known any more; this is the line of the merge.
                Some(Key::Merge) => {
                    for (key, value) in merged(value)? {
                        let go = format!("{key:?}");
                        if map.insert(key, value).is_some() {
                            note(&mut self.duplicates, line, &go);
                        }
                    }
                }
            },
        }
        Ok(())
    }
}

fn note(duplicates: &mut Vec<String>, line: usize, key: &str) {
    if duplicates.len() < DUPLICATES_MAX {
        duplicates.push(format!("line {line}: key {key} already set in map"));
    }
}

/// What a `<<` adds at its place: what came before is overwritten, what comes after overwrites.
fn merged(value: Value) -> Result<Vec<(String, Value)>, ParseError> {
    let entries = |value| match value {
        Value::Object(map) => Ok(map),
        _ => Err(error("map merge requires map or sequence of maps as the value")),
    };
    Ok(match value {
        // Earlier ones in the list take precedence, so they come last.
        Value::Array(list) => {
            let maps: Vec<Map<String, Value>> =
                list.into_iter().rev().map(entries).collect::<Result<_, _>>()?;
            maps.into_iter().flatten().collect()
        }
        value => entries(value)?.into_iter().collect(),
    })
}

/// About how much memory a copy takes.
fn weight(value: &Value) -> usize {
    64 + match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(weight).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + weight(value)).sum(),
        _ => 0,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn error(message: &str) -> ParseError {
    ParseError::Yaml(message.to_owned())
}

fn scan_error(error: &ScanError) -> ParseError {
    let line = error.marker().line();
    ParseError::Yaml(match line {
        0 | 1 => error.info().to_owned(),
        _ => format!("line {line}: {}", error.info()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(text: &str) -> Value {
        parse(text.as_bytes()).unwrap().value
    }

    fn fails(text: &str) -> String {
        parse(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_manifest() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {on: \"yes\", 1: x, 1.5: w, true: z}\ndata:\n  text: |\n    a\n    b\n  folded: >-\n    a\n    b\n";
        assert_eq!(
            read(text),
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "a", "labels": {"true": "z", "1": "x", "1.5": "w"}},
                "data": {"text": "a\nb\n", "folded": "a b"}})
        );
    }

    #[test]
    fn only_the_first_document_counts() {
        assert_eq!(read("a: 1\n---\nb: [\n"), json!({"a": 1}));
        assert_eq!(read("--- \na: 1\n...\n"), json!({"a": 1}));
        assert_eq!(read(""), Value::Null);
        assert_eq!(read("# nothing\n"), Value::Null);
    }

    #[test]
    fn duplicates_are_named_by_line() {
        let parsed = parse(b"data:\n  a: \"1\"\n  a: \"2\"\n  1: x\n  1: v\n").unwrap();
        assert_eq!(parsed.value, json!({"data": {"a": "2", "1": "v"}}));
        assert_eq!(
            parsed.yaml_duplicates,
            ["line 3: key \"a\" already set in map", "line 5: key 1 already set in map"]
        );
    }

    #[test]
    fn anchors_and_merges() {
        let text = "base: &b {x: 1, w: 2}\none: {<<: *b, w: 3}\ntwo: {w: 3, <<: *b}\nthree: {<<: [*b, {x: 9, z: 9}]}\nname: &n hello\nsame: *n\n";
        assert_eq!(
            read(text),
            json!({"base": {"x": 1, "w": 2}, "one": {"x": 1, "w": 3}, "two": {"x": 1, "w": 2},
                "three": {"x": 1, "w": 2, "z": 9}, "name": "hello", "same": "hello"})
        );
        assert_eq!(fails("a: {<<: 1}"), "yaml: map merge requires map or sequence of maps as the value");
        assert_eq!(fails("a: &a [*a]"), "yaml: anchor value contains itself");
    }

    #[test]
    fn expansion_and_depth_are_bounded() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..12 {
            let list = vec![format!("*a{}", i - 1); 9].join(", ");
            bomb += &format!("a{i}: &a{i} [{list}]\n");
        }
        assert_eq!(fails(&bomb), "yaml: document contains excessive aliasing");
        assert!(fails(&"[".repeat(10_000)).starts_with("yaml: "));
        let block: String = (0..200).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
        assert_eq!(fails(&block), "yaml: exceeded max depth");
        let anchors: String = (0..100).map(|i| format!("&a{i} [")).collect();
        assert_eq!(
            fails(&format!("{anchors}{}{}", "x".repeat(1 << 20), "]".repeat(100))),
            "yaml: document contains excessive aliasing"
        );
        let mut nested = "a0: &a0 [x]\n".to_owned();
        for i in 1..200 {
            nested += &format!("a{i}: &a{i} [*a{}]\n", i - 1);
        }
        assert_eq!(fails(&nested), "yaml: exceeded max depth");
    }

    #[test]
    fn what_json_cannot_say_is_refused() {
        assert_eq!(fails("a: .nan"), "json: unsupported value: NaN");
        assert!(fails("{[1]: 2}").contains("invalid map key"));
        assert!(fails("~: 2").contains("unsupported map key"));
        assert_eq!(fails("a: b: c"), "yaml: mapping values are not allowed in this context");
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_read(text in "[\\PC\n]{0,80}") {
            let _ = parse(text.as_bytes());
        }

        #[test]
        fn json_is_yaml(key in "[a-z]{1,8}", text in "[ -~]{0,30}", int: i64) {
            let value = json!({key: {"t": text, "n": int, "l": [true, null]}});
            let mut sorted = value.clone();
            sorted.sort_all_objects();
            prop_assert_eq!(read(&value.to_string()), sorted);
        }
    }
}
