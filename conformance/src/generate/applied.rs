//! Server-side apply of custom objects: what is left of maps and lists when their owners go, and who owns the rest.

use serde_json::{Map, Value, json};

use super::custom::{self, THINGS};
use crate::rng::Rng;
use crate::sequence::Step;

/// A field: its name, its schema, and what is applied to it.
type Field = (&'static str, &'static str, &'static [&'static str]);

const FIELDS: &[Field] = &[
    ("s", r#"{"type": "string"}"#, &[r#""1""#, r#""2""#, "null", "1"]),
    ("i", r#"{"type": "integer", "default": 5}"#, &["1", "2", "null"]),
    ("ix", r#"{"x-kubernetes-int-or-string": true}"#, &["1", r#""1""#, "null"]),
    ("o", OBJECT, &["{}", r#"{"x": "1"}"#, r#"{"x": "2", "y": 1}"#, r#"{"x": null}"#, "null", "[]"]),
    (
        "filled",
        r#"{"type": "object", "properties": {"x": {"type": "string"}}, "default": {"x": "d"}}"#,
        &["{}", r#"{"x": "1"}"#, "null"],
    ),
    (
        "nullable",
        r#"{"type": "object", "properties": {"x": {"type": "string"}}, "nullable": true}"#,
        &["{}", r#"{"x": "1"}"#, "null"],
    ),
    (
        "map",
        r#"{"type": "object", "additionalProperties": {"type": "string"}}"#,
        &["{}", r#"{"k": "1"}"#, r#"{"k": "2", "j": "1"}"#, "null"],
    ),
    (
        "objects",
        r#"{"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}}}"#,
        &["{}", r#"{"k": {}}"#, r#"{"k": {"x": "1"}, "j": {}}"#, r#"{"k": null}"#],
    ),
    (
        "deep",
        r#"{"type": "object", "properties": {"o": {"type": "object", "properties": {"x": {"type": "string"}}}}}"#,
        &["{}", r#"{"o": {}}"#, r#"{"o": {"x": "1"}}"#, r#"{"o": null}"#],
    ),
    (
        "atoms",
        r#"{"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}}"#,
        &["[]", "[{}]", r#"[{"x": "1"}]"#, "null", "[null]"],
    ),
    (
        "keyed",
        r#"{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object",
            "required": ["k"], "properties": {"k": {"type": "string"}, "o": {"type": "object", "properties": {"x": {"type": "string"}}}}}}"#,
        &[
            "[]",
            r#"[{"k": "a"}]"#,
            r#"[{"k": "a", "o": {"x": "1"}}, {"k": "b"}]"#,
            r#"[{"k": "b"}, {"k": "a", "o": {}}]"#,
            r#"[{"k": "a"}, {"k": "a"}]"#,
            r#"[{"o": {}}]"#,
            "null",
        ],
    ),
    (
        "ports",
        r#"{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n", "p"], "items": {"type": "object",
            "required": ["n"], "properties": {"n": {"type": "integer"}, "p": {"type": "string", "default": "TCP"}, "v": {"type": "string"}}}}"#,
        &[
            r#"[{"n": 1}]"#,
            r#"[{"n": 1, "p": "TCP", "v": "x"}]"#,
            r#"[{"n": 1, "p": "UDP"}, {"n": 2, "v": "y"}]"#,
            "[]",
        ],
    ),
    (
        "set",
        r#"{"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}"#,
        &["[]", r#"["1"]"#, r#"["2", "1"]"#, r#"["1", "1"]"#, "null"],
    ),
    (
        "atom",
        r#"{"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"x": {"type": "string"}}}"#,
        &["{}", r#"{"x": "1"}"#, r#"{"x": "2"}"#, "null"],
    ),
    (
        "kept",
        r#"{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"o": {"type": "object", "properties": {"x": {"type": "string"}}}}}"#,
        &[
            "{}",
            r#"{"u": {"v": 1}}"#,
            r#"{"u": {}}"#,
            r#"{"o": {"x": "1"}}"#,
            r#"{"o": {}}"#,
            r#"{"u": null}"#,
            "null",
        ],
    ),
];

const OBJECT: &str =
    r#"{"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "integer"}}}"#;

fn read(text: &str) -> Value {
    serde_json::from_str(text).expect("the fields of this file are JSON")
}

/// A spec with some of the fields of a sequence.
fn spec(rng: &mut Rng, fields: &[&Field]) -> Value {
    let mut spec = Map::new();
    for (name, _, values) in fields {
        if rng.chance(75) {
            spec.insert((*name).to_owned(), read(values[rng.below(values.len())]));
        }
    }
    Value::Object(spec)
}

/// Two managers apply, others write meanwhile.
pub fn custom(rng: &mut Rng) -> Vec<Step> {
    let schemas: Map<String, Value> =
        FIELDS.iter().map(|(name, schema, _)| ((*name).to_owned(), read(schema))).collect();
    let fields: Vec<&Field> = (0..1 + rng.below(3)).map(|_| &FIELDS[rng.below(FIELDS.len())]).collect();
    let mut steps = Vec::new();
    for _ in 0..3 + rng.below(4) {
        let spec = spec(rng, &fields);
        let manager = rng.pick(&["m1", "m1", "m2"]);
        let force = if rng.chance(50) { "&force=true" } else { "" };
        let dry = if rng.chance(10) { "&dryRun=All" } else { "" };
        let query = format!("fieldManager={manager}{force}{dry}");
        steps.push(match rng.below(10) {
            0 => Step::patch("merge", format!("{THINGS}/a?fieldManager=u"), json!({"spec": spec})),
            1 => Step::with("PUT", format!("{THINGS}/a?fieldManager=u"), custom::thing(spec)),
            _ => Step::patch("apply", format!("{THINGS}/a?{query}"), custom::thing(spec)),
        });
    }
    steps.push(Step::new("GET", format!("{THINGS}/a")));
    let definition = custom::definition(json!({"type": "object", "properties": schemas}));
    custom::with(definition, steps)
}
