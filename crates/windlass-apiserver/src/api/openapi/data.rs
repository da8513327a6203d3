//! The tables that only OpenAPI reads: parameters of operations, and the documents of a server without custom kinds.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A line of `parameters.jsonl`, for a verb or for a subresource that is unlike others.
#[derive(Deserialize)]
struct ParametersRow {
    #[serde(rename = "for")]
    place: String,
    #[serde(default)]
    methods: Vec<String>,
    parameters: Vec<ParameterRow>,
    #[serde(default)]
    objects: Vec<String>,
}

#[derive(Deserialize)]
struct ParameterRow {
    n: String,
    #[serde(default, rename = "in")]
    place: String,
    t: String,
    d: String,
}

/// What the operations of a verb or of a subresource have in common.
pub(super) struct Parameters {
    /// The methods of a subresource that connects to something, such as `pods/exec`.
    pub methods: Vec<String>,
    /// The parameters, as documents show them.
    pub parameters: Vec<Value>,
    /// Of deletions: the resources (`group/resource`) that are said to answer with the object.
    pub objects: Vec<String>,
}

/// A document that any server has.
#[derive(Deserialize)]
pub(super) struct Document {
    /// Its place below `/openapi/v3/`.
    pub name: String,
    /// The SHA-512 of the document, as a real server of the same version says.
    pub hash: String,
    /// Its paths, unless it is that of a group and version.
    #[serde(default)]
    pub paths: Option<Map<String, Value>>,
}

/// Parameters by verb (`list`), or by place (`pods/proxy/{path}`).
pub(super) fn parameters() -> &'static BTreeMap<String, Parameters> {
    static TABLE: OnceLock<BTreeMap<String, Parameters>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let rows = include_str!("../../../table/parameters.jsonl").lines().map(|line| {
            serde_json::from_str::<ParametersRow>(line)
                .unwrap_or_else(|e| panic!("parameters.jsonl: {e}: {line}"))
        });
        rows.map(|row| {
            let parameters = row.parameters.iter().map(|p| parameter(&p.n, &p.place, &p.t, &p.d)).collect();
            (row.place, Parameters { methods: row.methods, parameters, objects: row.objects })
        })
        .collect()
    })
}

/// The parameters of a verb.
pub(super) fn of_verb(verb: &str) -> &'static [Value] {
    parameters().get(verb).map_or(&[], |row| &row.parameters)
}

/// Whether a deletion is said to answer with the object.
pub(super) fn returns_deleted(group: &str, plural: &str) -> bool {
    let name = format!("{group}/{plural}");
    parameters().get("delete").is_some_and(|row| row.objects.contains(&name))
}

/// A parameter as documents show it; `place` is empty for one of the query.
pub(super) fn parameter(name: &str, place: &str, ty: &str, description: &str) -> Value {
    let schema = json!({"type": ty, "uniqueItems": true});
    if place.is_empty() {
        json!({"name": name, "in": "query", "description": description, "schema": schema})
    } else {
        json!({"name": name, "in": place, "description": description, "required": true, "schema": schema})
    }
}

/// The documents by name.
pub(super) fn documents() -> &'static BTreeMap<String, Document> {
    static TABLE: OnceLock<BTreeMap<String, Document>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let lines = include_str!("../../../table/documents.jsonl").lines();
        let parse =
            |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("documents.jsonl: {e}: {line}"));
        lines.map(parse).map(|document: Document| (document.name.clone(), document)).collect()
    })
}
