//! OpenAPI v2: one document of everything, made of those of version 3 when it is asked for.
//!
//! Both versions say the same of built-in kinds in other words. Of custom kinds this one says less: what kubectl, for which it
//! is, could not read.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::{Map, Value, json};

use super::schemas;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// Types that are known as kinds of every group.
const EVERYWHERE: [&str; 2] = ["DeleteOptions", "WatchEvent"];

/// Groups that the document of custom kinds, which the table is from, does not know.
const ALSO: [(&str, &str); 7] = [
    ("admission.k8s.io", "v1"),
    ("admission.k8s.io", "v1beta1"),
    ("apiextensions.k8s.io", "v1"),
    ("apiextensions.k8s.io", "v1beta1"),
    ("apiregistration.k8s.io", "v1"),
    ("apiregistration.k8s.io", "v1beta1"),
    ("imagepolicy.k8s.io", "v1alpha1"),
];

/// A kind, in all groups.
fn everywhere(kind: &str) -> Value {
    let known = schemas::everywhere(&format!("{META}{}", EVERYWHERE[0]));
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> = known.iter().map(|one| (text(one, "group"), text(one, "version"))).collect();
    all.extend(ALSO.map(|(group, version)| (group.to_owned(), version.to_owned())));
    all.sort();
    all.into_iter()
        .map(|(group, version)| json!({"group": group, "kind": kind, "version": version}))
        .collect()
}

/// The documents of version 3 on their way to one of version 2.
#[derive(Default)]
pub(super) struct Gathered {
    paths: BTreeMap<String, Value>,
    definitions: BTreeMap<String, Value>,
    parameters: BTreeMap<String, Value>,
}

impl Gathered {
    /// Takes a document in: of custom kinds, or of built-in ones.
    pub fn add(&mut self, name: &str, mut document: Value, custom: bool) {
        let schemas = document.pointer_mut("/components/schemas").map(Value::take).unwrap_or_default();
        for (name, mut schema) in entries(schemas) {
            if self.definitions.contains_key(&name) {
                continue;
            }
            // What is of the machinery is the same in all documents, with its kinds in all groups.
            if let Some(kind) = name.strip_prefix(META).filter(|kind| EVERYWHERE.contains(kind)) {
                schema["x-kubernetes-group-version-kind"] = everywhere(kind);
            }
            if custom && !name.starts_with("io.k8s.") {
                less(&mut schema);
            }
            self.definitions.insert(name, translate(schema));
        }
        let paths = document.get_mut("paths").map(Value::take).unwrap_or_default();
        for (path, item) in entries(paths) {
            let mut out = Map::new();
            for (method, value) in entries(item) {
                let value = match method.as_str() {
                    "parameters" => list(value).into_iter().map(|one| self.share(parameter(one))).collect(),
                    _ => self.operation(name, value, custom),
                };
                out.insert(method, value);
            }
            self.paths.entry(path).or_insert(Value::Object(out));
        }
    }

    /// The document.
    pub fn finish(self, version: &str) -> Value {
        let token = json!({
            "description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header",
        });
        json!({
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": version},
            "paths": self.paths,
            "definitions": self.definitions,
            "parameters": self.parameters,
            "securityDefinitions": {"BearerToken": token},
            "security": [{"BearerToken": []}],
        })
    }

    fn operation(&mut self, document: &str, operation: Value, custom: bool) -> Value {
        let mut from = operation;
        let mut out = Map::new();
        let mut take = |key: &str| from.as_object_mut().and_then(|map| map.shift_remove(key));
        let body = take("requestBody");
        let responses = entries(take("responses").unwrap_or_default());
        let parameters = list(take("parameters").unwrap_or_default());
        let said = |content: &Value| -> Vec<String> {
            content.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect()
        };
        let mut produced: Vec<String> =
            responses.iter().flat_map(|(_, response)| said(&response["content"])).collect();
        in_order(&mut produced);
        let consumed = match &body {
            Some(body) => {
                let mut consumed = said(&body["content"]);
                in_order(&mut consumed);
                Some(consumed)
            }
            None if custom => Some(vec!["application/json".to_owned(), "application/yaml".to_owned()]),
            None if from.get("x-kubernetes-action").is_some() => Some(vec!["*/*".to_owned()]),
            // What is not of a group is not of the framework that says this.
            None if document.contains("openid") => None,
            None => Some(produced.clone()),
        };
        if let Some(consumed) = consumed {
            out.insert("consumes".into(), json!(consumed));
        }
        out.insert("produces".into(), json!(produced));
        out.insert("schemes".into(), json!(["https"]));
        let body = body.map(|mut body| {
            let mut out = json!({"name": "body", "in": "body"});
            if body["required"] == true {
                out["required"] = json!(true);
            }
            out["schema"] = first_schema(&mut body["content"]);
            out
        });
        let parameters: Vec<Value> = body.into_iter().chain(parameters.into_iter().map(parameter)).collect();
        if !parameters.is_empty() {
            out.insert("parameters".into(), parameters.into_iter().map(|one| self.share(one)).collect());
        }
        let responses = responses.into_iter().map(|(code, mut response)| {
            let mut out = json!({"description": response["description"].take()});
            if let Some(content) = response.get_mut("content") {
                out["schema"] = first_schema(content);
            }
            (code, out)
        });
        out.insert("responses".into(), responses.collect::<Map<_, _>>().into());
        // Its name, tags, description and extensions are the same.
        out.extend(entries(from));
        Value::Object(out)
    }

    /// A parameter that many operations have stands in one place, under a name that has a hash of it. Those that tell of a
    /// kind do not, and those by which older kubectl finds out what a server can.
    fn share(&mut self, parameter: Value) -> Value {
        let text = |key: &str| parameter[key].as_str().unwrap_or_default();
        let own = match (text("in"), text("name")) {
            ("query" | "path", "name") | ("query", "fieldValidation" | "dryRun") => true,
            ("body", _) => {
                let body = parameter["schema"]["$ref"].as_str().unwrap_or_default();
                !body.starts_with("#/definitions/io.k8s.apimachinery")
            }
            _ => false,
        };
        if own {
            return parameter;
        }
        let name = format!("{}-{}", text("name"), hash(&parameter.to_string()));
        let reference = json!({"$ref": format!("#/parameters/{name}")});
        self.parameters.insert(name, parameter);
        reference
    }
}

/// FNV-1 of a text, the first six bytes of it.
fn hash(text: &str) -> String {
    let step = |hash: u64, byte: u8| hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(byte);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    URL_SAFE.encode(&hash.to_be_bytes()[..6])
}

fn entries(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        _ => Vec::new(),
    }
}

/// Media types in the order in which the framework has them; each once.
fn in_order(types: &mut Vec<String>) {
    const ORDER: [&str; 10] = [
        "text/plain",
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json;stream=watch",
        "application/vnd.kubernetes.protobuf;stream=watch",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ];
    types.sort_by_key(|one| (ORDER.iter().position(|known| known == one), one.clone()));
    types.dedup();
}

fn first_schema(content: &mut Value) -> Value {
    let first = content.as_object_mut().and_then(|map| map.values_mut().next());
    first.map(|media| translate(media["schema"].take())).unwrap_or_default()
}

/// A parameter, which has its type without a schema here.
fn parameter(mut parameter: Value) -> Value {
    let mut out = Map::new();
    let mut schema = parameter["schema"].take();
    for key in ["uniqueItems", "type"] {
        if let Some(value) = schema.get_mut(key) {
            out.insert(key.into(), value.take());
        }
    }
    for key in ["description", "name", "in", "required"] {
        if let Some(value) = parameter.get_mut(key) {
            out.insert(key.into(), value.take());
        }
    }
    Value::Object(out)
}

/// A schema in the words of version 2: references may have siblings, and there are no defaults.
fn translate(schema: Value) -> Value {
    let Value::Object(map) = schema else { return schema };
    let mut out = Map::new();
    let is_old = map.get("format").is_some_and(|format| format == "int-or-string");
    for (key, value) in map {
        match (key.as_str(), value) {
            ("default", _) => {}
            ("$ref", Value::String(text)) => {
                out.insert(key, json!(text.replace("#/components/schemas/", "#/definitions/")));
            }
            ("allOf", Value::Array(all)) if all.len() == 1 && all[0].get("$ref").is_some() => {
                out.extend(all.into_iter().flat_map(|one| entries(translate(one))));
            }
            // A value of two types, which version 2 cannot say.
            ("oneOf", _) => {
                out.insert("type".into(), json!("string"));
            }
            ("properties", Value::Object(properties)) => {
                let all = properties.into_iter().map(|(name, one)| (name, translate(one)));
                out.insert(key, all.collect::<Map<_, _>>().into());
            }
            ("items" | "additionalProperties" | "not", value) => {
                out.insert(key, translate(value));
            }
            ("allOf" | "anyOf", Value::Array(all)) if !is_old => {
                out.insert(key, all.into_iter().map(translate).collect());
            }
            (_, value) => {
                out.insert(key, value);
            }
        }
    }
    Value::Object(out)
}

/// What version 2 says of a custom schema: nothing that kubectl could not read.
fn less(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else { return };
    let is = |map: &Map<String, Value>, key: &str| map.get(key).is_some_and(|value| *value == true);
    let metadata = map.get("allOf").and_then(|all| all[0].get("$ref")).is_some();
    let (nullable, keeps) = (is(map, "nullable"), is(map, "x-kubernetes-preserve-unknown-fields"));
    for key in ["oneOf", "anyOf", "not", "nullable"] {
        map.shift_remove(key);
    }
    if !metadata {
        map.shift_remove("allOf");
    }
    if nullable || keeps {
        map.shift_remove("items");
        map.shift_remove("properties");
        // What an embedded resource must have was among them.
        if is(map, "x-kubernetes-embedded-resource") {
            map.shift_remove("required");
        }
    }
    let untyped = map.get("type").is_some_and(|kind| match kind.as_str() {
        Some("array") => !map.contains_key("items"),
        Some("object") => keeps,
        _ => false,
    });
    if nullable || untyped {
        map.shift_remove("type");
    }
    let optional: Vec<String> = map
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(_, property)| property["nullable"] == true)
        .map(|(name, _)| name.clone())
        .collect();
    if let Some(required) = map.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !optional.iter().any(|one| *name == **one));
        if required.is_empty() {
            map.shift_remove("required");
        }
    }
    if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(less);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = map.get_mut(key) {
            less(inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_parameter_has_the_name_that_kube_apiserver_gives_it() {
        let parameter = json!({
            "uniqueItems": true, "type": "string", "description":
            "object name and auth scope, such as for teams and projects", "name": "namespace", "in": "path",
            "required": true,
        });
        let mut gathered = Gathered::default();
        assert_eq!(gathered.share(parameter), json!({"$ref": "#/parameters/namespace-vgWSWtn3"}));
    }

    #[test]
    fn a_custom_schema_loses_what_kubectl_cannot_read() {
        let mut schema = json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "string", "nullable": true, "default": "x"},
            "b": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
            "c": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"d": {}}},
        }});
        less(&mut schema);
        let expected = json!({"type": "object", "required": ["b"], "properties": {
            "a": {}, "b": {"x-kubernetes-int-or-string": true}, "c": {"x-kubernetes-preserve-unknown-fields": true},
        }});
        assert_eq!(translate(schema), expected);
    }
}
