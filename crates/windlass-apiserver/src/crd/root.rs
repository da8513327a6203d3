//! What may stand at the root of a schema whose status is split off.

use serde_json::Value;

use super::props::Props;
use crate::field::{Errors, Path};
use crate::kinds;

/// The keywords that may.
const ROOT_KEYWORDS: [&str; 22] = [
    "description",
    "type",
    "format",
    "title",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "multipleOf",
    "required",
    "items",
    "properties",
    "externalDocs",
    "example",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// The versions of a definition, by index, with keywords at the root of their schemas that may not stand there and hold
/// an empty list or map: Go tells these from none, and a canonical object does not.
pub fn empty_roots(crd: &Value) -> u64 {
    let is_empty = |value: &Value| match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    let has_empty = |version: &Value| {
        let keywords = version.pointer("/schema/openAPIV3Schema").and_then(Value::as_object);
        keywords
            .into_iter()
            .flatten()
            .any(|(key, value)| COLLECTIONS.contains(&key.as_str()) && is_empty(value))
    };
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    versions
        .take(64)
        .enumerate()
        .filter(|(_, version)| has_empty(version))
        .fold(0, |all, (i, _)| all | 1 << i)
}

/// The keywords that are lists or maps, and may not.
const COLLECTIONS: [&str; 8] = [
    "enum",
    "allOf",
    "oneOf",
    "anyOf",
    "patternProperties",
    "dependencies",
    "definitions",
    "x-kubernetes-list-map-keys",
];

/// Reports what may not stand at the root. `empty` says that there are such keywords, but empty.
pub(super) fn check(schema: &Value, props: &Props, empty: bool, path: &Path<'_>, errors: &mut Errors) {
    // The keywords are looked at in an order, and only the first one is told.
    let before_type = ["id", "$schema", "$ref"].iter().any(|key| props.refused.contains(key));
    if !before_type && !props.ty.is_empty() && props.ty != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.invalid(&path.child("type"), &props.ty.as_str().into(), detail);
    } else if empty || props.present.iter().any(|key| !ROOT_KEYWORDS.contains(&key.as_str())) {
        let detail = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum \
                      MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items \
                      Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at \
                      the root of the schema if the status subresource is enabled";
        errors.invalid(path, &kinds::inner::shown(SCHEMA, schema), detail);
    }
}
