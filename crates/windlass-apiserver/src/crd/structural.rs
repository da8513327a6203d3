//! What makes a schema structural: every field has a type outside of the junctors, and junctors only add checks.

use super::props::{Additional, Props};
use crate::field::{Errors, Path};

/// Where a node stands, which decides how a missing type is reported.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Reports what keeps a schema from being structural, sorted by text as kube-apiserver does.
pub(super) fn check(props: &Props, path: &Path<'_>, errors: &mut Errors) {
    let mut found = Errors::default();
    invariants(props, Level::Root, path, &mut found);
    completeness(props, Some(props), path, path, &mut found);
    found.0.sort_by_key(ToString::to_string);
    errors.0.append(&mut found.0);
}

/// The first keyword that cannot be part of any structural schema.
pub(super) fn unsupported(props: &Props) -> Option<String> {
    let mut found = None;
    props.walk(&mut |node| {
        if found.is_some() {
            return;
        }
        found = match (node.refused.first(), node.items_list.is_empty(), node.preserve_unknown) {
            (Some(key), _, _) => {
                let key = if *key == "$schema" { "schema" } else { key };
                Some(format!("OpenAPIV3Schema '{key}' is not supported"))
            }
            (None, false, _) => Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned()),
            (None, true, Some(false)) => Some(
                "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned(),
            ),
            _ => None,
        };
    });
    found
}

fn invariants(props: &Props, level: Level, path: &Path<'_>, errors: &mut Errors) {
    if props.ty == "array" && props.items.is_none() {
        errors.required(&path.child("items"), "must be specified");
    }
    if let Some(items) = &props.items {
        invariants(items, Level::Item, &path.child("items"), errors);
    }
    let properties = path.child("properties");
    for (name, schema) in &props.properties {
        invariants(schema, Level::Field, &properties.key(name), errors);
    }
    let additional = path.child("additionalProperties");
    if props.additional.is_some() && level == Level::Root {
        errors.forbidden(&additional, "must not be used at the root");
    }
    if let Some(schema) = props.additional_schema() {
        invariants(schema, Level::Field, &additional, errors);
    }
    check_extensions(props, path, errors);
    check_values(props, is_int_or_string(&props.any_of), path, errors);
    check_type(props, level, path, errors);
    check_meta(props, level, path, errors);
    if props.embedded && !props.preserves() && props.properties.is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.required(&properties, detail);
    }
}

fn check_extensions(props: &Props, path: &Path<'_>, errors: &mut Errors) {
    let detail = "must be false if x-kubernetes-int-or-string is true";
    if props.int_or_string && props.preserves() {
        errors.invalid(&path.child("x-kubernetes-preserve-unknown-fields"), &true.into(), detail);
    }
    if props.int_or_string && props.embedded {
        errors.invalid(&path.child("x-kubernetes-embedded-resource"), &true.into(), detail);
    }
}

fn check_type(props: &Props, level: Level, path: &Path<'_>, errors: &mut Errors) {
    let at = path.child("type");
    if props.embedded && props.ty != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        match props.ty.as_str() {
            "" => errors.required(&at, detail),
            ty => errors.invalid(&at, &ty.into(), detail),
        }
    } else if props.ty.is_empty() && !props.int_or_string && !props.preserves() {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.required(&at, detail);
    }
    if props.embedded && props.additional.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.forbidden(&path.child("additionalProperties"), detail);
    }
    if level == Level::Root && !props.ty.is_empty() && props.ty != "object" {
        errors.invalid(&at, &props.ty.as_str().into(), "must be object at the root");
    }
}

/// `kind`, `apiVersion` and `metadata` are given; a schema may only say what is true of them anyway.
fn check_meta(props: &Props, level: Level, path: &Path<'_>, errors: &mut Errors) {
    let is_resource = level == Level::Root || props.embedded;
    let properties = path.child("properties");
    for name in ["kind", "apiVersion"] {
        let Some(schema) = props.properties.get(name).filter(|_| is_resource) else { continue };
        if schema.ty != "string" {
            let at = properties.key(name);
            errors.invalid(&at.child("type"), &schema.ty.as_str().into(), "must be string");
        }
    }
    let Some(metadata) = props.properties.get("metadata") else { return };
    let at = properties.key("metadata");
    if is_resource && metadata.ty != "object" {
        errors.invalid(&at.child("type"), &metadata.ty.as_str().into(), "must be object");
    }
    if level == Level::Root {
        let allowed = ["name", "generateName"];
        let only_names = metadata.properties.keys().all(|name| allowed.contains(&name.as_str()));
        let bare =
            metadata.present.iter().all(|key| matches!(key.as_str(), "type" | "default" | "properties"));
        if !only_names || !bare {
            let detail = "must not specify anything other than name and generateName, but metadata is implicitly \
                          specified";
            errors.forbidden(&at, detail);
        }
    }
}

/// The one junctor that may hold types: `anyOf: [{type: integer}, {type: string}]`.
fn is_int_or_string(any_of: &[Props]) -> bool {
    matches!(any_of, [first, second] if first.is_bare("integer") && second.is_bare("string"))
}

fn check_values(props: &Props, skip_any_of: bool, path: &Path<'_>, errors: &mut Errors) {
    let junctor = path.child("anyOf");
    for (i, schema) in props.any_of.iter().enumerate().filter(|_| !skip_any_of) {
        nested(schema, false, &junctor.index(i), errors);
    }
    let junctor = path.child("allOf");
    for (i, schema) in props.all_of.iter().enumerate() {
        nested(schema, i == 0 && is_int_or_string(&schema.any_of), &junctor.index(i), errors);
    }
    let junctor = path.child("oneOf");
    for (i, schema) in props.one_of.iter().enumerate() {
        nested(schema, false, &junctor.index(i), errors);
    }
    if let Some(schema) = &props.not {
        nested(schema, false, &path.child("not"), errors);
    }
    if let Some((pattern, fault)) = props.pattern.as_ref().and_then(|p| Some((p, p.fault()?))) {
        let detail = format!("must be a valid regular expression, but isn't: {fault}");
        errors.invalid(&path.child("pattern"), &pattern.text.as_str().into(), &detail);
    }
}

fn nested(props: &Props, skip_any_of: bool, path: &Path<'_>, errors: &mut Errors) {
    check_values(props, skip_any_of, path, errors);
    if let Some(items) = &props.items {
        nested(items, false, &path.child("items"), errors);
    }
    let properties = path.child("properties");
    for (name, schema) in &props.properties {
        nested(schema, false, &properties.key(name), errors);
    }
    let additional = !matches!(props.additional, None | Some(Additional::Bool(false)));
    let (empty, undefined, no) = (
        "must be empty to be structural",
        "must be undefined to be structural",
        "must be false to be structural",
    );
    let forbidden = [
        (!props.ty.is_empty(), "type", empty),
        (additional, "additionalProperties", undefined),
        (props.default.is_some(), "default", undefined),
        (!props.title.is_empty(), "title", empty),
        (!props.description.is_empty(), "description", empty),
        (props.nullable, "nullable", no),
        (props.preserves(), "x-kubernetes-preserve-unknown-fields", no),
        (props.embedded, "x-kubernetes-embedded-resource", no),
        (props.int_or_string, "x-kubernetes-int-or-string", no),
        (!props.list_map_keys.is_empty(), "x-kubernetes-list-map-keys", empty),
        (props.list_type.is_some(), "x-kubernetes-list-type", undefined),
        (props.map_type.is_some(), "x-kubernetes-map-type", undefined),
        (!props.rules.is_empty(), "x-kubernetes-validations", empty),
    ];
    for (_, keyword, detail) in forbidden.into_iter().filter(|(is_set, _, _)| *is_set) {
        errors.forbidden(&path.child(keyword), detail);
    }
    if props.properties.contains_key("metadata") {
        errors.forbidden(&properties.key("metadata"), "must not be specified in a nested context");
    }
}

/// Everything that a junctor speaks of must be specified outside of it, too.
fn completeness(
    values: &Props,
    spine: Option<&Props>,
    spine_path: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if let Some(not) = &values.not {
        nested_completeness(not, spine, spine_path, &path.child("not"), errors);
    }
    for (junctor, schemas) in
        [("allOf", &values.all_of), ("anyOf", &values.any_of), ("oneOf", &values.one_of)]
    {
        let junctor = path.child(junctor);
        for (i, schema) in schemas.iter().enumerate() {
            nested_completeness(schema, spine, spine_path, &junctor.index(i), errors);
        }
    }
}

fn nested_completeness(
    values: &Props,
    spine: Option<&Props>,
    spine_path: &Path<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(spine) = spine else {
        errors.required(spine_path, &format!("because it is defined in {path}"));
        return;
    };
    completeness(values, Some(spine), spine_path, path, errors);
    if let Some(items) = &values.items {
        let (spine_path, path) = (spine_path.child("items"), path.child("items"));
        nested_completeness(items, spine.items.as_deref(), &spine_path, &path, errors);
    }
    let (spine_properties, properties) = (spine_path.child("properties"), path.child("properties"));
    for (name, schema) in &values.properties {
        let (spine_path, path) = (spine_properties.key(name), properties.key(name));
        nested_completeness(schema, spine.properties.get(name), &spine_path, &path, errors);
    }
}
