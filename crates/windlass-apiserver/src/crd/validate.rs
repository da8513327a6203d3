//! Checking a value against a schema, with the answers of kube-openapi's validator.
//!
//! Two of its habits shape this module. All keywords of a node are checked even when the type is wrong, and a
//! junctor (`anyOf`, `oneOf`) reports the failures of the branch that came furthest, for which every check that
//! passes is counted.
//!
//! On update a failure is forgiven where the value is what it was before (ratcheting), as far as old and new can
//! be correlated: through objects and maps, and through lists that are maps.

use serde_json::{Map, Value};

use super::correlate::Old;
use super::props::{Additional, Props};
use super::{formats, number, text};
use crate::field::{Path, Reason};

/// One failed check.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub reason: Reason,
    /// Where, below the value that was checked; `None` when kube-openapi does not say.
    pub at: Option<String>,
    /// The message of the field error.
    pub message: String,
    /// What tells this failure from others: kube-openapi reports equal texts once.
    text: String,
}

/// Checks `value` against `props`. `old` is what stood there before, on update.
pub(super) fn validate(props: &Props, value: &Value, old: Option<Old<'_>>) -> Vec<Failure> {
    check(props, value, &Path::Root, old).failures
}

/// What came of checking a node: the failures, and how many checks passed.
#[derive(Default)]
pub(super) struct Outcome {
    failures: Vec<Failure>,
    matches: usize,
}

impl Outcome {
    fn add(&mut self, failure: Failure) {
        if self.failures.iter().all(|other| other.text != failure.text) {
            self.failures.push(failure);
        }
    }

    fn merge(&mut self, other: Outcome) {
        other.failures.into_iter().for_each(|failure| self.add(failure));
        self.matches += other.matches;
    }

    /// A failure whose place is known: `text` starts with the path and says what should be.
    pub(super) fn invalid(&mut self, path: &Path<'_>, value: &Value, text: &str) {
        let text = format!("{path} in body {text}");
        let message = format!("Invalid value: {}: {text}", text::value(value));
        self.add(Failure { reason: Reason::Invalid, at: Some(path.to_string()), message, text });
    }

    /// A failure that kube-openapi reports without a place.
    pub(super) fn general(&mut self, text: String) {
        let message = format!("Invalid value: \"\": {text}");
        self.add(Failure { reason: Reason::Invalid, at: None, message, text });
    }

    fn type_invalid(&mut self, path: &Path<'_>, expected: &str, found: &str) {
        let text = format!("{path} in body must be of type {expected}: {found:?}");
        let message = format!("Invalid value: {found:?}: {text}");
        self.add(Failure { reason: Reason::TypeInvalid, at: Some(path.to_string()), message, text });
    }

    fn other(&mut self, reason: Reason, path: &Path<'_>, message: String, text: &str) {
        let text = format!("{path} {text}");
        self.add(Failure { reason, at: Some(path.to_string()), message, text });
    }
}

fn check(props: &Props, value: &Value, path: &Path<'_>, old: Option<Old<'_>>) -> Outcome {
    let outcome = check_node(props, value, path, old);
    match old {
        Some(old) if !outcome.failures.is_empty() && old.equals(value) => {
            Outcome { failures: Vec::new(), matches: outcome.matches }
        }
        _ => outcome,
    }
}

fn check_node(props: &Props, value: &Value, path: &Path<'_>, old: Option<Old<'_>>) -> Outcome {
    let mut out = Outcome::default();
    check_type(props, value, path, &mut out);
    if value.is_null() {
        check_enum(props, value, path, &mut out);
        return out;
    }
    check_junctors(props, value, path, old, &mut out);
    match value {
        Value::String(text) => check_string(props, value, text, path, &mut out),
        Value::Number(number) => {
            number::check(props, number, path, &mut out);
            out.matches += 2;
        }
        Value::Array(list) => check_list(props, list, path, old, &mut out),
        _ => {}
    }
    check_enum(props, value, path, &mut out);
    if let Value::Object(map) = value {
        check_object(props, map, path, old, &mut out);
        out.matches += 1;
    }
    out.matches += 2;
    out
}

/// The JSON type of a value as kube-openapi names it.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::String(_) => "string",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_type(props: &Props, value: &Value, path: &Path<'_>, out: &mut Outcome) {
    let format = formats::of(props);
    let types: &[&str] = match (props.int_or_string, props.ty.as_str()) {
        (true, _) => &["integer", "string"],
        (false, "") => &[],
        (false, ty) => &[ty],
    };
    if types.is_empty() && format.is_empty() {
        return;
    }
    let expected = || types.join(",");
    if value.is_null() {
        match types.is_empty() || props.nullable {
            true => out.matches += 1,
            false => out.type_invalid(path, &expected(), "null"),
        }
        return;
    }
    let found = type_name(value);
    let numeric = types.contains(&"number") || types.contains(&"integer");
    let whole = value.as_f64().is_some_and(number::is_whole);
    let fits = types.contains(&found)
        || (found == "number" && whole && types.contains(&"integer"))
        || (found == "integer" && types.contains(&"number"));
    let textual = value.is_string() || value.is_array();
    if !textual && !format.is_empty() && !fits {
        let found_format = match found {
            "integer" => "int64",
            "number" => "float64",
            _ => "",
        };
        out.type_invalid(path, format, found_format);
        return;
    }
    // With a format, kube-openapi leaves strings to the check of the format, and lets lists pass.
    if fits || (!numeric && !format.is_empty() && textual) {
        out.matches += 2;
    } else {
        out.type_invalid(path, &expected(), found);
        out.matches += 1;
    }
}

fn check_enum(props: &Props, value: &Value, path: &Path<'_>, out: &mut Outcome) {
    if props.enumeration.is_empty() || props.enumeration.iter().any(|allowed| same(allowed, value)) {
        return;
    }
    let supported: Vec<String> = props
        .enumeration
        .iter()
        .map(|allowed| match allowed {
            Value::String(text) => format!("{text:?}"),
            other => format!("{:?}", text::sorted(other).to_string()),
        })
        .collect();
    let message =
        format!("Unsupported value: {}: supported values: {}", text::value(value), supported.join(", "));
    out.other(Reason::NotSupported, path, message, "should be one of");
}

/// Whether a value is the one that an enumeration allows. A null is never.
fn same(allowed: &Value, value: &Value) -> bool {
    match (allowed, value) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        _ => allowed == value,
    }
}

fn check_string(props: &Props, value: &Value, text: &str, path: &Path<'_>, out: &mut Outcome) {
    let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(max) = props.max_length.filter(|max| length() > *max) {
        let message = format!("Too long: may not be more than {max} bytes");
        out.other(Reason::TooLong, path, message, "should be at most");
    } else if let Some(min) = props.min_length.filter(|min| length() < *min) {
        out.invalid(path, value, &format!("should be at least {min} chars long"));
    } else if let Some(pattern) = props.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
        out.invalid(path, value, &format!("should match '{}'", pattern.text));
    }
    out.matches += 1;
    let format = formats::of(props);
    if let Some(is_valid) = formats::check(format) {
        if !is_valid(text) {
            out.type_invalid(path, format, text);
        }
        out.matches += 1;
    }
}

fn too_many(size: i64, max: i64) -> String {
    let items = if max == 1 { "item" } else { "items" };
    format!("Too many: {size}: must have at most {max} {items}")
}

fn check_list(props: &Props, list: &[Value], path: &Path<'_>, old: Option<Old<'_>>, out: &mut Outcome) {
    if let Some(items) = &props.items {
        for (i, value) in list.iter().enumerate() {
            let old = old.and_then(|old| old.item(value));
            out.merge(check(items, value, &path.index(i), old));
        }
    }
    let size = i64::try_from(list.len()).unwrap_or(i64::MAX);
    if let Some(min) = props.min_items.filter(|min| size < *min) {
        out.invalid(path, &Value::from(size), &format!("should have at least {min} items"));
    }
    if let Some(max) = props.max_items.filter(|max| size > *max) {
        out.other(Reason::TooMany, path, too_many(size, max), "should have at most");
    }
    if props.unique_items && list.iter().enumerate().any(|(i, value)| list[..i].contains(value)) {
        out.invalid(path, &Value::from(""), "shouldn't contain duplicates");
    }
    out.matches += 2;
}

fn check_object(
    props: &Props,
    map: &Map<String, Value>,
    path: &Path<'_>,
    old: Option<Old<'_>>,
    out: &mut Outcome,
) {
    let size = i64::try_from(map.len()).unwrap_or(i64::MAX);
    if let Some(min) = props.min_properties.filter(|min| size < *min) {
        out.invalid(path, &Value::from(size), &format!("should have at least {min} properties"));
    }
    if let Some(max) = props.max_properties.filter(|max| size > *max) {
        out.other(Reason::TooMany, path, too_many(size, max), "should have at most");
    }
    for (key, value) in map {
        // At the root, `kind` and `apiVersion` of old and new are always those of one version.
        let is_type_meta = matches!(path, Path::Root) && matches!(key.as_str(), "kind" | "apiVersion");
        let child_old = || old.filter(|_| !is_type_meta).and_then(|old| old.field(key));
        if let Some(schema) = props.properties.get(key) {
            out.merge(check(schema, value, &path.child(key), child_old()));
            continue;
        }
        match &props.additional {
            Some(Additional::Schema(schema)) => {
                out.merge(check(schema, value, &path.child(key), child_old()));
            }
            Some(Additional::Bool(false)) => {
                let text = format!("{path}.{key} in body is a forbidden property");
                let message = format!("Invalid value: {key:?}: {text}");
                out.add(Failure { reason: Reason::Invalid, at: Some(path.to_string()), message, text });
            }
            _ => {}
        }
    }
    for name in props.required.iter().filter(|name| !map.contains_key(*name)) {
        out.other(Reason::Required, &path.child(name), "Required value".into(), "in body is required");
    }
}

fn check_junctors(props: &Props, value: &Value, path: &Path<'_>, old: Option<Old<'_>>, out: &mut Outcome) {
    // The branches are nodes of the same place: what is below them is correlated, they themselves are not.
    let branch = |schema: &Props| check_node(schema, value, path, old);
    if !props.any_of.is_empty() {
        check_any(&props.any_of, path, &branch, out);
    }
    if !props.one_of.is_empty() {
        check_one(&props.one_of, path, &branch, out);
    }
    let mut validated = 0;
    for schema in &props.all_of {
        let result = branch(schema);
        validated += usize::from(result.failures.is_empty());
        out.merge(result);
    }
    if validated != props.all_of.len() {
        let none = if validated == 0 { ". None validated" } else { "" };
        out.general(format!("{:?} must validate all the schemas (allOf){none}", path.to_string()));
    }
    if props.not.as_ref().is_some_and(|schema| branch(schema).failures.is_empty()) {
        out.general(format!("{:?} must not validate the schema (not)", path.to_string()));
    }
    out.matches += 1;
}

fn check_any(schemas: &[Props], path: &Path<'_>, branch: &dyn Fn(&Props) -> Outcome, out: &mut Outcome) {
    let mut best: Option<Outcome> = None;
    for schema in schemas {
        let result = branch(schema);
        if result.failures.is_empty() {
            out.merge(result);
            return;
        }
        if best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    out.general(format!("{:?} must validate at least one schema (anyOf)", path.to_string()));
    out.merge(best.unwrap_or_default());
}

fn check_one(schemas: &[Props], path: &Path<'_>, branch: &dyn Fn(&Props) -> Outcome, out: &mut Outcome) {
    let (mut best, mut first): (Option<Outcome>, Option<Outcome>) = (None, None);
    let mut validated = 0;
    for schema in schemas {
        let result = branch(schema);
        if result.failures.is_empty() {
            validated += 1;
            best = None;
            first.get_or_insert(result);
        } else if validated == 0 && best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    if validated == 1 {
        out.merge(first.unwrap_or_default());
        return;
    }
    let found = match validated {
        0 => "Found none valid".to_owned(),
        n => format!("Found {n} valid alternatives"),
    };
    out.general(format!("{:?} must validate one and only one schema (oneOf). {found}", path.to_string()));
    out.merge(best.unwrap_or_default());
}
