//! The schema of a definition (`JSONSchemaProps`), read once into a form that is quick to walk.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::pattern::Pattern;

/// One node of a schema. Fields that stand for absent keywords hold their zero value, as in Go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Props {
    pub ty: String,
    pub title: String,
    pub description: String,
    pub nullable: bool,
    pub default: Option<Value>,
    pub format: String,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub multiple_of: Option<f64>,
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub pattern: Option<Pattern>,
    pub max_items: Option<i64>,
    pub min_items: Option<i64>,
    pub unique_items: bool,
    pub max_properties: Option<i64>,
    pub min_properties: Option<i64>,
    pub required: Vec<String>,
    pub enumeration: Vec<Value>,
    pub all_of: Vec<Props>,
    pub any_of: Vec<Props>,
    pub one_of: Vec<Props>,
    pub not: Option<Box<Props>>,
    pub items: Option<Box<Props>>,
    /// `items` as a list of schemas, which is never allowed.
    pub items_list: Vec<Props>,
    pub properties: BTreeMap<String, Props>,
    pub additional: Option<Additional>,
    pub definitions: BTreeMap<String, Props>,
    /// Keywords that are only ever refused, by their JSON names.
    pub refused: Vec<&'static str>,
    pub preserve_unknown: Option<bool>,
    pub embedded: bool,
    pub int_or_string: bool,
    pub list_type: Option<String>,
    pub list_map_keys: Vec<String>,
    pub map_type: Option<String>,
    pub rules: Vec<Rule>,
    /// The keywords that were present, for rules about what may stand at the root.
    pub present: Vec<String>,
}

/// `additionalProperties`: a schema, or whether anything may stand there.
#[derive(Clone, Debug)]
pub(crate) enum Additional {
    Bool(bool),
    Schema(Box<Props>),
}

/// One entry of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: Option<String>,
    pub field_path: String,
    pub optional_old_self: Option<bool>,
}

/// Keywords that no structural schema may use.
const REFUSED: [&str; 7] =
    ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"];

impl Props {
    /// Reads a schema; what is of the wrong type counts as absent, for the decoder has refused it before.
    pub(crate) fn read(value: &Value) -> Props {
        let empty = Map::new();
        let map = value.as_object().unwrap_or(&empty);
        let node = Node(map);
        let (items, items_list) = match map.get("items") {
            Some(Value::Array(list)) => (None, list.iter().map(Props::read).collect()),
            Some(object @ Value::Object(_)) => (Some(Box::new(Props::read(object))), Vec::new()),
            _ => (None, Vec::new()),
        };
        Props {
            ty: node.text("type"),
            title: node.text("title"),
            description: node.text("description"),
            nullable: node.flag("nullable"),
            default: map.get("default").filter(|default| !default.is_null()).cloned(),
            format: node.text("format"),
            maximum: node.number("maximum"),
            exclusive_maximum: node.flag("exclusiveMaximum"),
            minimum: node.number("minimum"),
            exclusive_minimum: node.flag("exclusiveMinimum"),
            multiple_of: node.number("multipleOf"),
            max_length: node.integer("maxLength"),
            min_length: node.integer("minLength"),
            pattern: map.get("pattern").and_then(Value::as_str).filter(|p| !p.is_empty()).map(Pattern::new),
            max_items: node.integer("maxItems"),
            min_items: node.integer("minItems"),
            unique_items: node.flag("uniqueItems"),
            max_properties: node.integer("maxProperties"),
            min_properties: node.integer("minProperties"),
            required: node.texts("required"),
            enumeration: map.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            all_of: node.list("allOf"),
            any_of: node.list("anyOf"),
            one_of: node.list("oneOf"),
            not: map.get("not").filter(|not| not.is_object()).map(|not| Box::new(Props::read(not))),
            items,
            items_list,
            properties: node.map("properties"),
            additional: match map.get("additionalProperties") {
                Some(Value::Bool(allowed)) => Some(Additional::Bool(*allowed)),
                Some(object @ Value::Object(_)) => Some(Additional::Schema(Box::new(Props::read(object)))),
                _ => None,
            },
            definitions: node.map("definitions"),
            refused: REFUSED.into_iter().filter(|key| node.is_set(key)).collect(),
            preserve_unknown: map.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool),
            embedded: node.flag("x-kubernetes-embedded-resource"),
            int_or_string: node.flag("x-kubernetes-int-or-string"),
            list_type: map.get("x-kubernetes-list-type").and_then(Value::as_str).map(str::to_owned),
            list_map_keys: node.texts("x-kubernetes-list-map-keys"),
            map_type: map.get("x-kubernetes-map-type").and_then(Value::as_str).map(str::to_owned),
            rules: map
                .get("x-kubernetes-validations")
                .and_then(Value::as_array)
                .map(|rules| rules.iter().map(Rule::read).collect())
                .unwrap_or_default(),
            present: map.keys().filter(|key| node.is_set(key)).cloned().collect(),
        }
    }

    /// Whether unknown fields stay.
    pub(crate) fn preserves(&self) -> bool {
        self.preserve_unknown == Some(true)
    }

    /// The schema of the entries of a map.
    pub(crate) fn additional_schema(&self) -> Option<&Props> {
        match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    /// The schema of a field, be it a property or an entry of a map.
    pub(crate) fn child(&self, name: &str) -> Option<&Props> {
        self.properties.get(name).or_else(|| self.additional_schema())
    }

    /// Whether the list is merged as this type.
    pub(crate) fn is_list(&self, list_type: &str) -> bool {
        self.list_type.as_deref() == Some(list_type)
    }

    /// Whether the node holds nothing but `type: ty`. A default that is empty is one.
    pub(crate) fn is_bare(&self, ty: &str) -> bool {
        self.ty == ty && self.present.len() == 1 && self.default.is_none()
    }

    /// Calls `visit` for this node and all below it, those under junctors included.
    pub(crate) fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Props)) {
        visit(self);
        let junctors = self.all_of.iter().chain(&self.any_of).chain(&self.one_of);
        let below = junctors.chain(self.not.as_deref()).chain(self.items.as_deref()).chain(&self.items_list);
        for schema in below.chain(self.properties.values()).chain(self.additional_schema()) {
            schema.walk(visit);
        }
    }
}

impl Rule {
    fn read(value: &Value) -> Rule {
        let empty = Map::new();
        let map = value.as_object().unwrap_or(&empty);
        let node = Node(map);
        Rule {
            rule: node.text("rule"),
            message: node.text("message"),
            message_expression: node.text("messageExpression"),
            reason: map.get("reason").and_then(Value::as_str).map(str::to_owned),
            field_path: node.text("fieldPath"),
            optional_old_self: map.get("optionalOldSelf").and_then(Value::as_bool),
        }
    }
}

struct Node<'a>(&'a Map<String, Value>);

impl Node<'_> {
    fn text(&self, key: &str) -> String {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    fn texts(&self, key: &str) -> Vec<String> {
        let list = self.0.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn flag(&self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or_default()
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key).and_then(Value::as_f64)
    }

    fn integer(&self, key: &str) -> Option<i64> {
        self.0.get(key).and_then(Value::as_i64)
    }

    fn list(&self, key: &str) -> Vec<Props> {
        self.0.get(key).and_then(Value::as_array).into_iter().flatten().map(Props::read).collect()
    }

    fn map(&self, key: &str) -> BTreeMap<String, Props> {
        let entries = self.0.get(key).and_then(Value::as_object);
        entries.into_iter().flatten().map(|(name, value)| (name.clone(), Props::read(value))).collect()
    }

    /// Whether a keyword is there with something other than its zero value.
    fn is_set(&self, key: &str) -> bool {
        match self.0.get(key) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(list)) => !list.is_empty(),
            Some(Value::Object(map)) => !map.is_empty(),
            Some(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// kube-apiserver compares the two schemas of an int or string with its own, and finds a default of `{}` in one of them.
    #[test]
    fn a_default_that_is_empty_is_one() {
        assert!(Props::read(&json!({"type": "integer"})).is_bare("integer"));
        assert!(!Props::read(&json!({"type": "integer", "default": {}})).is_bare("integer"));
    }
}
