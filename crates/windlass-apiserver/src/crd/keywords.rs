//! The rules on single keywords of a schema, apart from structure: what may be used where, and with what.

use serde_json::Value;

use super::cel::{self, Estimates};
use super::props::{Additional, Props, Rule};
use super::{paths, structural, text};
use crate::field::{Errors, Path, Reason};

/// What is known of the place of a node.
#[derive(Clone, Default)]
struct Place<'p> {
    /// Why no default may be set here.
    no_defaults: Option<String>,
    /// Within `metadata`, `kind` or `apiVersion` of a resource.
    inside_meta: bool,
    /// The nearest list above whose elements cannot be found again in an older version of the object.
    uncorrelatable: Option<String>,
    /// Whether rules are compiled: not under junctors, nor when the schema is at fault anyway.
    compile: bool,
    /// How often the node can apply in one object, if the lists and maps above it say so.
    cardinality: Option<u64>,
    /// Whether the schema is what it was before an update.
    unchanged: bool,
    /// Whether a node above has rules, and why those of this node have no type to speak of, if they have none.
    has_rules: bool,
    undeclared: Option<&'static str>,
    /// The schema that says of which type the node is for rules, if it is another: what stands in an object or a list has
    /// the type of its elements, be it of `items` or of `additionalProperties`.
    typed_by: Option<&'p Props>,
}

impl<'p> Place<'p> {
    /// The place of an element of what a schema describes. Rules need to know of which type it is.
    fn element(&self, holder: &'p Props, schema: &'p Props) -> Place<'p> {
        let holder = self.typed_by.unwrap_or(holder);
        let mut place = Place { typed_by: None, ..self.clone() };
        if !place.has_rules || place.undeclared.is_some() {
            return place;
        }
        match cel::element_of(holder) {
            Some(element) => place.typed_by = Some(element).filter(|element| !std::ptr::eq(*element, schema)),
            None => place.undeclared = Some(NO_ELEMENTS),
        }
        place
    }

    /// The place of a property of what a schema describes.
    fn property(&self, name: &str) -> Place<'p> {
        let typed_by = self.typed_by.and_then(|holder| cel::property_of(holder, name));
        Place { typed_by, ..self.clone() }
    }
}

/// Faults of the schema, and faults of rules, which are looked at only where the schema has none.
#[derive(Default)]
struct Found {
    schema: Errors,
    rules: Errors,
    estimates: Estimates,
}

/// Reports every keyword that is not allowed. `compile_rules` is off when the schema is known to be at fault;
/// `unchanged` says that an update leaves it as it was.
pub(super) fn check(
    props: &Props,
    path: &Path<'_>,
    compile_rules: bool,
    unchanged: bool,
    errors: &mut Errors,
) {
    let place = Place { compile: compile_rules, cardinality: Some(1), unchanged, ..Place::default() };
    let mut found = node(props, path, true, props.embedded, &place);
    errors.0.append(&mut found.schema.0);
    errors.0.append(&mut found.rules.0);
    found.estimates.check(path, errors);
}

fn node<'p>(props: &'p Props, path: &Path<'_>, is_root: bool, is_resource: bool, place: &Place<'p>) -> Found {
    let mut found = Found::default();
    check_supported(props, path, place, &mut found.schema);
    if props.unique_items {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.schema.forbidden(&path.child("uniqueItems"), detail);
    }
    let has_rules = place.has_rules || !props.rules.is_empty();
    let is_unknown = has_rules && !cel::is_declared(place.typed_by.unwrap_or(props));
    let here =
        Place { has_rules, undeclared: place.undeclared.or(is_unknown.then_some(NO_TYPE)), ..place.clone() };
    below(props, path, is_root, &here, &mut found);
    check_extensions(props, path, &mut found.schema);
    check_list_map(props, path, &mut found.schema);
    let rules = path.child("x-kubernetes-validations");
    for (i, rule) in props.rules.iter().enumerate() {
        check_rule(props, rule, &rules.index(i), &mut found.schema);
    }
    let runs = !props.rules.is_empty() && found.schema.is_empty() && place.compile;
    if let Some(why) = here.undeclared.filter(|_| runs) {
        found.rules.push(Reason::Internal, &rules, format!("Internal error: {why}"));
    } else if runs {
        let site = cel::Site {
            is_resource: is_root || is_resource,
            path: &rules,
            uncorrelatable: place.uncorrelatable.as_deref(),
            cardinality: place.cardinality,
            unchanged: place.unchanged,
        };
        cel::check_rules(
            &props.rules,
            place.typed_by.unwrap_or(props),
            &site,
            &mut found.estimates,
            &mut found.rules,
        );
    }
    found
}

/// What the real server says of rules below a type that is none, and of those of elements that their holder cannot have.
const NO_TYPE: &str = "internal error: failed to construct type information for x-kubernetes-validations rules: unable \
                       to convert structural schema to CEL declarations";
const NO_ELEMENTS: &str = "failed to convert to declType for CEL validation rules";

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

fn check_supported(props: &Props, path: &Path<'_>, place: &Place<'_>, errors: &mut Errors) {
    if !props.ty.is_empty() && !TYPES.contains(&props.ty.as_str()) {
        errors.not_supported(&path.child("type"), &props.ty.as_str().into(), &TYPES);
    }
    if let Some(why) = place.no_defaults.as_ref().filter(|_| props.default.is_some()) {
        errors.forbidden(&path.child("default"), &format!("must not be set {why}"));
    }
    for key in props.refused.iter().filter(|key| **key != "$schema") {
        errors.forbidden(&path.child(key), &format!("{key} is not supported"));
    }
    if props.ty == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.forbidden(&path.child("type"), detail);
    }
    if !props.items_list.is_empty() {
        errors.forbidden(&path.child("items"), "items must be a schema object and not an array");
    }
    if place.inside_meta && props.embedded {
        let detail = "must not be used inside of resource meta";
        errors.forbidden(&path.child("x-kubernetes-embedded-resource"), detail);
    }
}

fn below<'p>(props: &'p Props, path: &Path<'_>, is_root: bool, place: &Place<'p>, found: &mut Found) {
    let mut add = |mut other: Found| {
        found.schema.0.append(&mut other.schema.0);
        found.rules.0.append(&mut other.rules.0);
        found.estimates.append(other.estimates);
    };
    let most = elements_max(props);
    let place = &Place {
        cardinality: place.cardinality.zip(most).map(|(above, most)| above.saturating_mul(most)),
        ..place.clone()
    };
    let at = path.child("additionalProperties");
    if !props.properties.is_empty() && !matches!(props.additional, None | Some(Additional::Bool(true))) {
        let mut both = Found::default();
        both.schema.forbidden(&at, "additionalProperties and properties are mutual exclusive");
        add(both);
    }
    if let Some(schema) = props.additional_schema() {
        let mut place = place.element(props, schema);
        if place.inside_meta {
            place.no_defaults = Some("inside additionalProperties applying to object metadata".into());
        }
        add(node(schema, &at, false, schema.embedded, &place));
    }
    let properties = path.child("properties");
    for (name, schema) in &props.properties {
        let mut place = place.property(name);
        if (is_root || props.embedded) && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
            place.inside_meta = true;
            if is_root {
                place.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        add(node(schema, &properties.key(name), false, schema.embedded, &place));
    }
    let nested = Place { compile: false, ..place.clone() };
    if let Some(not) = &props.not {
        add(node(not, &path.child("not"), false, false, &nested));
    }
    for (junctor, schemas) in [("allOf", &props.all_of), ("oneOf", &props.one_of), ("anyOf", &props.any_of)] {
        let junctor = path.child(junctor);
        for (i, schema) in schemas.iter().enumerate() {
            add(node(schema, &junctor.index(i), false, false, &nested));
        }
    }
    let definitions = path.child("definitions");
    for (name, schema) in &props.definitions {
        add(node(schema, &definitions.key(name), false, false, &nested));
    }
    let mut place = place.clone();
    if !props.is_list("map") && place.uncorrelatable.is_none() {
        place.uncorrelatable = Some(path.to_string());
    }
    let items = path.child("items");
    if let Some(schema) = &props.items {
        add(node(schema, &items, false, schema.embedded, &place.element(props, schema)));
    }
    for (i, schema) in props.items_list.iter().enumerate() {
        add(node(schema, &items.index(i), false, false, &place));
    }
}

/// How many values stand below one value of a schema, each by its own schema; `None` if nothing bounds them.
fn elements_max(props: &Props) -> Option<u64> {
    let limit = match props.ty.as_str() {
        "object" if props.additional.is_some() => props.max_properties?,
        "array" => props.max_items?,
        _ => 1,
    };
    Some(u64::try_from(limit).unwrap_or_default())
}

fn check_extensions(props: &Props, path: &Path<'_>, errors: &mut Errors) {
    if props.preserve_unknown == Some(false) {
        let at = path.child("x-kubernetes-preserve-unknown-fields");
        errors.invalid(&at, &false.into(), "must be true or undefined");
    }
    let wrong_type = |errors: &mut Errors, wanted: &str, keyword: &str| {
        let detail = format!("must be {wanted} if {keyword} is specified");
        match props.ty.as_str() {
            "" => errors.required(&path.child("type"), &detail),
            ty => errors.invalid(&path.child("type"), &ty.into(), &detail),
        }
    };
    if let Some(map_type) = props.map_type.as_deref() {
        let keyword = "x-kubernetes-map-type";
        if props.ty != "object" {
            wrong_type(errors, "object", keyword);
        }
        if !matches!(map_type, "atomic" | "granular") {
            errors.not_supported(&path.child(keyword), &map_type.into(), &["atomic", "granular"]);
        }
    }
    let Some(list_type) = props.list_type.as_deref() else { return };
    let keyword = "x-kubernetes-list-type";
    if props.ty != "array" {
        wrong_type(errors, "array", keyword);
    } else if let Some(items) = props.items.as_deref().filter(|_| list_type == "set") {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let at = path.child("items");
        let null = |value: &Option<String>| value.as_deref().map_or(Value::Null, Value::from);
        if items.ty == "array" && items.list_type.as_deref().is_some_and(|list_type| list_type != "atomic") {
            errors.invalid(&at.child(keyword), &null(&items.list_type), detail);
        }
        if items.ty == "object" && items.map_type.as_deref() != Some("atomic") {
            errors.invalid(&at.child("x-kubernetes-map-type"), &null(&items.list_type), detail);
        }
    }
    if !matches!(list_type, "atomic" | "set" | "map") {
        errors.not_supported(&path.child(keyword), &list_type.into(), &["atomic", "set", "map"]);
    }
}

fn check_list_map(props: &Props, path: &Path<'_>, errors: &mut Errors) {
    let (at_type, at_keys) = (path.child("x-kubernetes-list-type"), path.child("x-kubernetes-list-map-keys"));
    let at_items = path.child("items");
    let list_type = props.list_type.as_deref();
    if !props.list_map_keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None => errors.required(&at_type, detail),
            Some("map") => {}
            Some(other) => errors.invalid(&at_type, &other.into(), detail),
        }
    }
    if list_type == Some("map") {
        if props.list_map_keys.is_empty() {
            errors.required(&at_keys, "must not be empty if x-kubernetes-list-type is map");
        }
        match (&props.items, props.items_list.is_empty()) {
            (None, true) => errors.required(&at_items, "must have a schema if x-kubernetes-list-type is map"),
            (None, false) => {
                let detail = "must only have a single schema if x-kubernetes-list-type is map";
                errors.invalid(&at_items, &Value::Array(Vec::new()), detail);
            }
            (Some(items), _) if items.ty != "object" => {
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                errors.invalid(&at_items.child("type"), &items.ty.as_str().into(), detail);
            }
            (Some(items), _) => check_keys(props, items, &at_items, &at_keys, errors),
        }
    }
    let Some(items) = props.items.as_deref().filter(|_| matches!(list_type, Some("set" | "map"))) else {
        return;
    };
    if items.nullable {
        let detail =
            format!("cannot be nullable when x-kubernetes-list-type is {}", list_type.unwrap_or_default());
        errors.forbidden(&at_items.child("nullable"), &detail);
    }
    let properties = at_items.child("properties");
    for key in props.list_map_keys.iter().filter(|_| list_type == Some("map")) {
        let Some(schema) = items.properties.get(key) else { continue };
        let at = properties.key(key);
        if !items.required.contains(key) && schema.default.is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                          property";
            errors.required(&at.child("default"), detail);
        }
        if schema.nullable {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.forbidden(&at.child("nullable"), detail);
        }
    }
}

fn check_keys(props: &Props, items: &Props, at_items: &Path<'_>, at_keys: &Path<'_>, errors: &mut Errors) {
    let keys: Value = props.list_map_keys.iter().map(String::as_str).collect();
    let properties = at_items.child("properties");
    for (i, key) in props.list_map_keys.iter().enumerate() {
        match items.properties.get(key) {
            Some(schema) if matches!(schema.ty.as_str(), "array" | "object") => {
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let at = properties.key(key);
                errors.invalid(&at.child("type"), &items.ty.as_str().into(), detail);
            }
            Some(_) => {}
            None => errors.invalid(at_keys, &keys, "entries must all be names of item properties"),
        }
        if props.list_map_keys[..i].contains(key) {
            errors.invalid(at_keys, &keys, "must not contain duplicate entries");
        }
    }
}

fn check_rule(props: &Props, rule: &Rule, path: &Path<'_>, errors: &mut Errors) {
    const REASONS: [&str; 4] =
        ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    let has_lines = |text: &str| text.contains(['\n', '\r']);
    let (text, message) = (rule.rule.trim(), rule.message.trim());
    let at_message = path.child("message");
    let shown = Value::from(rule.message.as_str());
    if text.is_empty() {
        errors.required(&path.child("rule"), "rule is not specified");
    } else if !rule.message.is_empty() && message.is_empty() {
        errors.invalid(&at_message, &shown, "must be non-empty if specified");
    } else if has_lines(message) {
        errors.invalid(&at_message, &shown, "must not contain line breaks");
    } else if has_lines(text) && message.is_empty() {
        errors.required(&at_message, "message must be specified if rule contains line breaks");
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        let detail = "messageExpression must be non-empty if specified";
        errors.required(&path.child("messageExpression"), detail);
    }
    if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
        errors.not_supported(&path.child("reason"), &reason.into(), &REASONS);
    }
    if rule.field_path.is_empty() {
        return;
    }
    let at = path.child("fieldPath");
    let mut refuse = |detail: &str| {
        let message = format!("Invalid value: {}: {detail}", text::value(&rule.field_path.as_str().into()));
        errors.push(Reason::Invalid, &at, message);
    };
    if rule.field_path.trim().is_empty() {
        refuse("must be non-empty if specified");
    }
    if has_lines(&rule.field_path) {
        refuse("must not contain line breaks");
    }
    if structural::unsupported(props).is_none() && paths::resolve(props, &rule.field_path, true).is_err() {
        refuse("must be a valid path");
    }
}
