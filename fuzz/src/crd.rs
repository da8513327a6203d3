//! Definitions with schemas made by their type, and objects for them.

use arbitrary::{Result, Unstructured};
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_apiserver::codec;
use windlass_apiserver::crd::{self, Definition};
use windlass_apiserver::field::Errors;
use windlass_apiserver::kinds::Noted;
use windlass_apiserver::schema;

use crate::tree;

/// How deep schemas and objects are.
const DEPTH: usize = 7;

/// Choices: a definition, and objects for it.
pub fn run(data: &[u8]) {
    // Too few bytes to choose from: an end like any other.
    let _ = try_run(&mut Unstructured::new(data));
}

fn try_run(u: &mut Unstructured<'_>) -> Result<()> {
    let crd = definition(u)?;
    let Some(definition) = compiled(&crd) else { return Ok(()) };
    let objects = tree::several(u, 3, |u| object(u, &crd))?;
    for version in &definition.versions {
        for (object, old) in objects.iter().zip(objects.iter().rev()) {
            check(version, object, old);
        }
    }
    Ok(())
}

/// A definition that went through its life up to being served, if it may.
pub fn compiled(crd: &Value) -> Option<Definition> {
    let types = schema::builtin();
    let id = types.id("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition");
    let mut crd = codec::canonical(types, id.expect("in the table"), crd.clone(), &mut Vec::new()).ok()?;
    crd::default_definition(&mut crd);
    crd::prepare_create(&mut crd);
    let mut errors = Errors::default();
    crd::validate_create(&crd, Noted::default(), &mut errors);
    crd::warnings(&crd, None);
    if !errors.is_empty() {
        return None;
    }
    crd::establish(&mut crd, &[], Timestamp::UNIX_EPOCH);
    crd::validate_update(&crd, &crd, Noted::default(), &mut errors);
    assert!(errors.is_empty(), "a definition may stay as it is: {errors:?}");
    Some(Definition::compile(&crd).expect("valid definitions compile"))
}

/// What a version makes of an object.
pub fn check(version: &crd::Version, object: &Value, old: &Value) {
    let (mut object, mut old) = (object.clone(), old.clone());
    for tree in [&mut object, &mut old] {
        let mut unknown = Vec::new();
        version.prune(tree, &mut unknown);
        let pruned = tree.clone();
        unknown.clear();
        version.prune(tree, &mut unknown);
        assert_eq!((&*tree, &unknown), (&pruned, &Vec::new()), "pruned is pruned");
        if version.malformed(tree).is_some() {
            return;
        }
        version.default(tree);
        let defaulted = tree.clone();
        version.default(tree);
        assert_eq!(*tree, defaulted, "defaulted is defaulted");
    }
    for old in [None, Some(&old)] {
        let mut errors = Errors::default();
        version.validate_form(&object, old, &mut errors);
        version.validate_rules(&object, old, &mut errors);
    }
    let mut errors = Errors::default();
    version.validate_status_form(&object, &old, &mut errors);
    version.validate_rules(&object, Some(&old), &mut errors);
    assert!(version.open_api().is_object());
}

/// A definition with a schema of many keywords.
pub fn definition(u: &mut Unstructured<'_>) -> Result<Value> {
    let properties = tree::several(u, 5, |u| Ok((format!("f{}", u.int_in_range(0..=9)?), schema(u, 4)?)))?;
    let mut spec = json!({"type": "object", "properties": Value::Object(properties.into_iter().collect())});
    keywords(u, &mut spec)?;
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": schema(u, 2)?}}},
        "subresources": {"status": {}},
    });
    if u.ratio(1, 4)? {
        let types = schema::builtin();
        let id = types
            .id("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion");
        let more = tree::structure(u, types, id.expect("in the table"), DEPTH)?;
        for (key, value) in more.as_object().into_iter().flatten() {
            tree::put(&mut version, &[key], value.clone());
        }
    }
    let mut crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
        },
    });
    if u.ratio(1, 8)? {
        let key = *u.choose(&["conversion", "names", "group", "scope", "preserveUnknownFields"])?;
        tree::put(&mut crd, &["spec", key], tree::any(u, 3)?);
    }
    Ok(crd)
}

/// A schema that is mostly structural.
fn schema(u: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let most = if depth == 0 { 5 } else { 9 };
    let mut schema = match u.int_in_range(0..=most)? {
        0 => json!({"type": "string"}),
        1 => json!({"type": "integer"}),
        2 => json!({"type": "number"}),
        3 => json!({"type": "boolean"}),
        4 => json!({"x-kubernetes-int-or-string": true}),
        5 => json!({"x-kubernetes-preserve-unknown-fields": true}),
        6 | 7 => {
            let properties =
                tree::several(u, 4, |u| Ok((format!("f{}", u.int_in_range(0..=9)?), schema(u, depth - 1)?)))?;
            json!({"type": "object", "properties": Value::Object(properties.into_iter().collect())})
        }
        8 => json!({"type": "object", "additionalProperties": schema(u, depth - 1)?}),
        _ => json!({"type": "array", "items": schema(u, depth - 1)?}),
    };
    keywords(u, &mut schema)?;
    Ok(schema)
}

fn keywords(u: &mut Unstructured<'_>, schema: &mut Value) -> Result<()> {
    for _ in 0..u.int_in_range(0..=3)? {
        let (key, value) = match u.int_in_range(0..=19)? {
            0 => ("default", tree::any(u, 3)?),
            1 => ("enum", Value::Array(tree::several(u, 4, |u| tree::any(u, 1))?)),
            2 => ("pattern", json!(pattern(u)?)),
            3 => (
                "format",
                json!(u.choose(&[
                    "date-time",
                    "date",
                    "int32",
                    "int64",
                    "byte",
                    "uuid",
                    "ipv4",
                    "ipv6",
                    "cidr",
                    "duration",
                    "email",
                    "hostname",
                    "uri",
                    "password",
                    "mac",
                    "isbn",
                    "creditcard",
                    "rgbcolor",
                    "float",
                    "x"
                ])?),
            ),
            4 => (*u.choose(&["minimum", "maximum", "multipleOf"])?, tree::number(u)?),
            5 => (
                *u.choose(&["exclusiveMinimum", "exclusiveMaximum", "nullable", "uniqueItems"])?,
                json!(u.arbitrary::<bool>()?),
            ),
            6 => (
                *u.choose(&[
                    "minLength",
                    "maxLength",
                    "minItems",
                    "maxItems",
                    "minProperties",
                    "maxProperties",
                ])?,
                tree::number(u)?,
            ),
            7 => (
                "required",
                Value::Array(tree::several(u, 3, |u| Ok(json!(format!("f{}", u.int_in_range(0..=9)?))))?),
            ),
            8 => ("x-kubernetes-list-type", json!(u.choose(&["atomic", "set", "map"])?)),
            9 => ("x-kubernetes-list-map-keys", json!([format!("f{}", u.int_in_range(0..=9)?)])),
            10 => ("x-kubernetes-map-type", json!(u.choose(&["atomic", "granular"])?)),
            11 => ("x-kubernetes-embedded-resource", json!(true)),
            12 => ("x-kubernetes-preserve-unknown-fields", json!(true)),
            13 => {
                (*u.choose(&["allOf", "anyOf", "oneOf"])?, Value::Array(tree::several(u, 2, value_checks)?))
            }
            14 => ("not", value_checks(u)?),
            15 | 16 => ("x-kubernetes-validations", json!([crate::cel::rule(u)?])),
            17 => ("title", json!(tree::text(u)?)),
            18 => ("externalDocs", tree::any(u, 2)?),
            _ => ("$ref", json!(tree::text(u)?)),
        };
        tree::put(schema, &[key], value);
    }
    Ok(())
}

fn value_checks(u: &mut Unstructured<'_>) -> Result<Value> {
    let mut checks = json!({});
    keywords(u, &mut checks)?;
    Ok(checks)
}

fn pattern(u: &mut Unstructured<'_>) -> Result<String> {
    let parts = tree::several(u, 5, |u| {
        Ok(*u.choose(&[
            "^",
            "$",
            "a",
            "[a-z]",
            "(",
            ")",
            "*",
            "+",
            "?",
            "{2,3}",
            "{1000}",
            "|",
            "\\d",
            "\\pL",
            "(?i)",
            "(?P<n>a)",
            ".",
            "\\b",
            "[^",
            "]",
            "\\x{10FFFF}",
            "\\1",
        ])?)
    })?;
    Ok(parts.concat())
}

/// An object with the fields that schemas here speak of.
fn object(u: &mut Unstructured<'_>, crd: &Value) -> Result<Value> {
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let mut object = value(u, schema, DEPTH)?;
    tree::put(&mut object, &["apiVersion"], json!("example.com/v1"));
    tree::put(&mut object, &["kind"], json!("Foo"));
    tree::put(&mut object, &["metadata", "name"], json!("a"));
    Ok(object)
}

fn value(u: &mut Unstructured<'_>, schema: &Value, depth: usize) -> Result<Value> {
    if depth == 0 || u.ratio(1, 12)? {
        return tree::any(u, depth.min(3));
    }
    Ok(match schema["type"].as_str().unwrap_or_default() {
        "string" => json!(tree::text(u)?),
        "integer" | "number" => tree::number(u)?,
        "boolean" => json!(u.arbitrary::<bool>()?),
        "array" => Value::Array(tree::several(u, 4, |u| value(u, &schema["items"], depth - 1))?),
        "object" => {
            let mut object = json!({});
            for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
                if u.ratio(3, 4)? {
                    tree::put(&mut object, &[key], value(u, inner, depth - 1)?);
                }
            }
            if u.ratio(1, 4)? {
                tree::put(&mut object, &["f0"], value(u, &schema["additionalProperties"], depth - 1)?);
            }
            object
        }
        _ => tree::any(u, 2)?,
    })
}
