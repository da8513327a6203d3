//! Reading JSON as kube-apiserver reads it: duplicates are noticed and named, depth is bounded.
//!
//! Trees are [`serde_json::Value`]s whose objects keep the order of their keys.

use std::fmt;
use std::hash::BuildHasher as _;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

mod repeated;

pub use repeated::Repeated;

/// A tree, and the paths of the keys that stood twice (the last one wins, as in Go's maps).
#[derive(Debug, Default, PartialEq)]
pub struct Read {
    /// The tree.
    pub value: Value,
    /// Paths such as `data.a` or `spec.containers[0].name`, each once, in the order in which they were met.
    pub duplicates: Vec<String>,
    /// What the tree does not show of objects with keys that stood twice, in the order in which they ended.
    pub repeated: Vec<Repeated>,
}

/// Reads one JSON document. The error is serde_json's, with line and column.
pub fn read(bytes: &[u8]) -> serde_json::Result<Read> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let mut twice = Twice::default();
    let value = Seed { path: None, twice: &mut twice }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(Read { value, duplicates: twice.paths, repeated: twice.repeated })
}

/// The value at a path of object keys.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.as_object()?.get(*key))
}

/// The string at a path of object keys; empty if there is none.
pub fn str_at<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The object at `key`, which is put there if something else, or nothing, is in its place.
pub fn object_entry<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let slot = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut().expect("made an object above")
}

/// How deep a tree may be to be read back when it is written: serde_json reads 127 levels.
pub const DEPTH_MAX: usize = 127;

/// Whether a tree has at most so many levels of lists and objects.
pub fn is_within(value: &Value, depth: usize) -> bool {
    let below = |value: &Value| depth > 0 && is_within(value, depth - 1);
    match value {
        Value::Array(list) => depth > 0 && list.iter().all(below),
        Value::Object(map) => depth > 0 && map.values().all(below),
        _ => true,
    }
}

/// A number of a tree: equal trees have the same, whatever the order of their keys, and others the same once in 2^64. It
/// tells whether a tree was changed in place, without a copy to compare it with.
pub fn fingerprint(value: &Value) -> u64 {
    let state = foldhash::fast::FixedState::default();
    match value {
        Value::Null => 1,
        Value::Bool(value) => 2 + u64::from(*value),
        Value::Number(number) => state.hash_one(number),
        Value::String(text) => state.hash_one(text),
        Value::Array(list) => list.iter().fold(4, |sum, value| state.hash_one((sum, fingerprint(value)))),
        Value::Object(map) => map
            .iter()
            .fold(5, |sum: u64, (key, value)| sum.wrapping_add(state.hash_one((key, fingerprint(value))))),
    }
}

/// How many duplicates are remembered: a body made of nothing else must not cost unbounded memory.
const DUPLICATES_MAX: usize = 100;

/// A path as a list that lives on the stack, so that nothing is built unless a duplicate is met.
struct Segment<'a> {
    parent: Option<&'a Segment<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl fmt::Display for Segment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.step, self.parent) {
            (Step::Key(key), None) => f.write_str(key),
            (Step::Key(key), Some(parent)) => write!(f, "{parent}.{key}"),
            (Step::Index(index), None) => write!(f, "[{index}]"),
            (Step::Index(index), Some(parent)) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// What is remembered of keys that stand twice.
#[derive(Default)]
struct Twice {
    count: usize,
    paths: Vec<String>,
    repeated: Vec<Repeated>,
}

impl Twice {
    /// Whether one more is remembered; names it, unless the same was said before.
    fn notice(&mut self, path: &Segment<'_>) -> bool {
        if self.count == DUPLICATES_MAX {
            return false;
        }
        self.count += 1;
        let path = path.to_string();
        if !self.paths.contains(&path) {
            self.paths.push(path);
        }
        true
    }
}

struct Seed<'a> {
    path: Option<&'a Segment<'a>>,
    twice: &'a mut Twice,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    /// Beyond `i64` Go's reader falls back to a float, and so do we.
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(match i64::try_from(value) {
            Ok(value) => Value::Number(value.into()),
            Err(_) => Number::from_f64(value as f64).map_or(Value::Null, Value::Number),
        })
    }

    /// Serde reads `-0` as a float to keep its sign; for Go it is a whole number, which has none.
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        if value == 0.0 && value.is_sign_negative() {
            return Ok(Value::Number(0.into()));
        }
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let segment = Segment { parent: self.path, step: Step::Index(list.len()) };
            let seed = Seed { path: Some(&segment), twice: &mut *self.twice };
            match seq.next_element_seed(seed)? {
                Some(value) => list.push(value),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        let mut repeated: Option<Repeated> = None;
        while let Some(key) = entries.next_key::<String>()? {
            let segment = Segment { parent: self.path, step: Step::Key(&key) };
            // Go names the key before it looks at the value, in which there may be more of the kind.
            if map.contains_key(&key) && self.twice.notice(&segment) && repeated.is_none() {
                let object = self.path.map(Segment::to_string).unwrap_or_default();
                repeated = Some(Repeated::new(object, &map));
            }
            let seed = Seed { path: Some(&segment), twice: &mut *self.twice };
            let value = entries.next_value_seed(seed)?;
            match &mut repeated {
                Some(repeated) => repeated.insert(&mut map, key, value),
                None => drop(map.insert(key, value)),
            }
        }
        self.twice.repeated.extend(repeated);
        Ok(Value::Object(map))
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<Value, E> {
        Err(E::custom("bytes are not JSON"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn duplicates_are_named_and_the_last_one_wins() {
        let read = read(br#"{"data":{"a":1,"b":[{"c":1,"c":2}],"a":3}}"#).unwrap();
        assert_eq!(read.value, json!({"data": {"a": 3, "b": [{"c": 2}]}}));
        assert_eq!(read.duplicates, ["data.b[0].c", "data.a"]);
    }

    #[test]
    fn a_fingerprint_changes_with_what_a_tree_says_and_not_with_the_order_of_its_keys() {
        let trees = [
            json!(null),
            json!(false),
            json!(true),
            json!(0),
            json!(1.5),
            json!(""),
            json!("0"),
            json!([]),
            json!({}),
            json!([null]),
            json!([[], 1]),
            json!([1, []]),
            json!({"a": null}),
            json!({"a": {"b": 1}}),
            json!({"b": {"a": 1}}),
            json!({"a": 1, "b": 2}),
            json!({"a": 2, "b": 1}),
        ];
        for (left, a) in trees.iter().enumerate() {
            for (right, b) in trees.iter().enumerate() {
                assert_eq!(left == right, fingerprint(a) == fingerprint(b), "{a} {b}");
            }
        }
        assert_eq!(fingerprint(&json!({"a": 1, "b": [2]})), fingerprint(&json!({"b": [2], "a": 1})));
    }

    /// Found by fuzzing: what JSON read as a float, YAML read as an integer, and an integer field refused one of them.
    #[test]
    fn zero_has_no_sign() {
        assert_eq!(read(b"[-0,-0.0]").unwrap().value, json!([0, 0]));
    }

    #[test]
    fn a_key_is_named_before_those_in_its_value_and_only_once() {
        let read = read(br#"{"a":{},"a":{"b":1,"b":2,"b":3},"a":{"b":1,"b":2}}"#).unwrap();
        assert_eq!(read.duplicates, ["a", "a.b"]);
    }

    #[test]
    fn every_occurrence_can_be_had() {
        let read = read(br#"{"x":{"a":1,"b":2,"a":3,"c":4,"a":5}}"#).unwrap();
        let [repeated] = &read.repeated[..] else { panic!("{:?}", read.repeated) };
        assert_eq!(repeated.object, "x");
        let Value::Object(map) = read.value["x"].clone() else { panic!() };
        let all = repeated.entries(map);
        assert_eq!(
            all.iter().map(|(k, v)| format!("{k}{v}")).collect::<Vec<_>>(),
            ["a1", "b2", "a3", "c4", "a5"]
        );
    }

    #[test]
    fn a_body_of_nothing_but_duplicates_is_remembered_in_part() {
        let body = format!("{{{}\"a\":0}}", "\"a\":1,".repeat(10_000));
        let read = read(body.as_bytes()).unwrap();
        assert_eq!(read.duplicates, ["a"]);
        let Value::Object(map) = read.value.clone() else { panic!() };
        let entries = read.repeated[0].entries(map);
        assert!(entries.len() <= 2 * DUPLICATES_MAX, "{}", entries.len());
        assert_eq!(entries.last(), Some(&("a".to_owned(), json!(0))));
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = "[".repeat(100_000);
        assert!(read(deep.as_bytes()).is_err());
    }

    #[test]
    fn key_order_is_kept() {
        let read = read(br#"{"z":1,"a":2}"#).unwrap();
        assert_eq!(serde_json::to_string(&read.value).unwrap(), r#"{"z":1,"a":2}"#);
    }
}
