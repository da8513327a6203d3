//! Defaults in a schema must be valid themselves.

use serde_json::Value;

use super::props::{Additional, Props};
use super::{add_failures, cel, embedded, prune, validate};
use crate::field::{Errors, Path};

/// Reports defaults that hold unknown fields or do not pass their own schema.
pub(super) fn check(props: &Props, path: &Path<'_>, errors: &mut Errors) {
    // The whole is a resource, whether it says so or not.
    let root = Props { embedded: true, ..props.clone() };
    node(&root, path, true, false, errors);
}

fn node(props: &Props, path: &Path<'_>, is_resource: bool, inside_meta: bool, errors: &mut Errors) {
    let inside_meta = inside_meta && !is_resource;
    if let Some(default) = &props.default {
        check_one(props, default, &path.child("default"), inside_meta, errors);
    }
    // Entries of maps have no defaults of their own to check: the schema of a map's values takes none.
    if let Some(items) = &props.items {
        node(items, &path.child("items"), items.embedded, inside_meta, errors);
    }
    let properties = path.child("properties");
    for (name, schema) in &props.properties {
        let meta = inside_meta || (is_resource && prune::META.contains(&name.as_str()));
        node(schema, &properties.key(name), schema.embedded, meta, errors);
    }
}

fn check_one(props: &Props, default: &Value, path: &Path<'_>, inside_meta: bool, errors: &mut Errors) {
    if !inside_meta {
        let mut pruned = default.clone();
        prune::prune(props, &mut pruned, props.embedded, &mut Vec::new());
        if pruned != *default {
            errors.invalid(path, default, "must not have unknown fields");
        }
        let before = errors.0.len();
        embedded::check(props, default, props.embedded, path, errors);
        if errors.0.len() > before {
            return;
        }
    }
    let failures = validate::validate(&untyped(props.clone()), default, None);
    if !failures.is_empty() {
        add_failures(failures, Some(path), errors);
        return;
    }
    for fault in cel::compile_faults(props, props.embedded) {
        errors.invalid(path, &props.ty.as_str().into(), &format!("rule compile error: {fault}"));
    }
    // The default must pass both when it comes new and when it was there before.
    if let Ok(Some(rules)) = cel::Rules::compile(props, props.embedded) {
        let before = errors.0.len();
        rules.run(props, default, Some(default), path, false, errors);
        if errors.0.len() == before {
            rules.run(props, default, None, path, false, errors);
        }
    }
}

/// The real server checks defaults by another form of the schema, which does not say that a value is a number or a text.
fn untyped(mut props: Props) -> Props {
    props.int_or_string = false;
    props.items = props.items.map(|items| Box::new(untyped(*items)));
    props.properties = props.properties.into_iter().map(|(name, one)| (name, untyped(one))).collect();
    props.additional = props.additional.map(|additional| match additional {
        Additional::Schema(schema) => Additional::Schema(Box::new(untyped(*schema))),
        other => other,
    });
    props
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The root of a schema is a resource: an object that is made of nothing has neither version nor kind.
    #[test]
    fn a_default_of_the_whole_has_a_version_and_a_kind() {
        let props = Props::read(&json!({"type": "object", "default": {}}));
        let mut errors = Errors::default();
        check(&props, &Path::Root.child("openAPIV3Schema"), &mut errors);
        let fields: Vec<&str> = errors.0.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["openAPIV3Schema.default.apiVersion", "openAPIV3Schema.default.kind"]);
    }
}
