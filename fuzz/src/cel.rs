//! One CEL rule, in a definition and on objects.

use std::sync::LazyLock;

use arbitrary::{Result, Unstructured};
use serde_json::{Value, json};

use crate::crd;

/// Parts of rules.
const PARTS: &[&str] = &[
    "self",
    "oldSelf",
    "self.size",
    "self.names",
    "self.parts",
    "self.labels",
    "self.when",
    "self.text",
    "size(",
    "has(",
    ")",
    "(",
    "[",
    "]",
    "0",
    "1",
    "'a'",
    "\"\\u00e9\"",
    "null",
    "true",
    "1.5",
    "-",
    "+",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    ">=",
    "in",
    "&&",
    "||",
    "!",
    "?",
    ":",
    ".",
    ",",
    ".all(x, ",
    ".exists(x, ",
    ".map(x, ",
    ".filter(x, ",
    ".exists_one(x, ",
    "x",
    ".matches('",
    "')",
    ".startsWith('a')",
    ".size()",
    "string(",
    "int(",
    "duration('1h')",
    "timestamp('2026-11-15T12:00:00Z')",
    ".isSorted()",
    ".sum()",
    ".indexOf(1)",
    "url('http://a')",
    "quantity('1Gi')",
    "ip('::1')",
    "cidr('10.0.0.0/8')",
    "format.",
    "optional.of(",
    ".orValue(1)",
    "{",
    "}",
    "9223372036854775807",
    "-9223372036854775808",
    "u",
    "b'a'",
    "type(",
    " ",
];

/// The whole input is the text of a rule.
pub fn run(data: &[u8]) {
    static TAKEN: LazyLock<bool> =
        LazyLock::new(|| crd::compiled(&definition(json!({"rule": "true"}))).is_some());
    assert!(*TAKEN, "the definition is refused whatever its rule: no rule would ever be run");
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(definition) = crd::compiled(&definition(json!({"rule": text}))) else { return };
    let small = json!({"spec": {"size": 1, "text": "a"}});
    let large = json!({"spec": {
        "size": i64::MAX, "text": "é".repeat(20), "names": ["a", "b", ""], "when": "2026-11-15T12:00:00Z",
        "parts": [{"name": "a", "value": 1}, {"name": "b"}], "labels": {"a": "b", "": ""}, "free": {"x": [1, 1.5, null]},
    }});
    for version in &definition.versions {
        for (object, old) in [(&small, &large), (&large, &small), (&large, &large)] {
            crd::check(version, object, old);
        }
    }
}

fn definition(rule: Value) -> Value {
    let part = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 9}, "value": {"x-kubernetes-int-or-string": true}}});
    let spec = json!({"type": "object", "x-kubernetes-validations": [rule], "properties": {
        "size": {"type": "integer"}, "ratio": {"type": "number"}, "text": {"type": "string", "maxLength": 99},
        "when": {"type": "string", "format": "date-time"},
        "names": {"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 9}},
        "parts": {"type": "array", "maxItems": 9, "items": part, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        "labels": {"type": "object", "maxProperties": 9, "additionalProperties": {"type": "string", "maxLength": 9}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

/// A rule of parts that fit now and then.
pub fn rule(u: &mut Unstructured<'_>) -> Result<Value> {
    let rule = if u.arbitrary()? {
        (*u.choose(&[
            "self > 0",
            "self.size() < 3",
            "has(self.f0) || true",
            "self == oldSelf",
            "self.f0.all(x, x != 'a')",
            "size(self) > 1",
        ])?)
        .to_owned()
    } else {
        crate::tree::several(u, 10, |u| Ok(*u.choose(PARTS)?))?.concat()
    };
    let mut validation = json!({"rule": rule});
    if u.ratio(1, 3)? {
        crate::tree::put(&mut validation, &["messageExpression"], json!("'no: ' + string(self)"));
    }
    if u.ratio(1, 4)? {
        crate::tree::put(
            &mut validation,
            &["fieldPath"],
            json!(u.choose(&[".f0", ".f0.f1", "f0", ".f0['a']", "..", ""])?),
        );
    }
    if u.ratio(1, 4)? {
        crate::tree::put(&mut validation, &["optionalOldSelf"], json!(true));
    }
    Ok(validation)
}
