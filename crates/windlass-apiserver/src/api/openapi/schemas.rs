//! The schemas of a document: those of its kinds and all that they refer to.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::super::registry::{Flavor, Resource, split_api_version};
use crate::schema::{self, Field, ListType, Omit, Type};

/// A line of `docs.jsonl`.
#[derive(Deserialize)]
struct Doc {
    name: String,
    #[serde(default)]
    d: String,
    #[serde(default)]
    f: HashMap<String, String>,
    /// Fields for which the rule about zero defaults ([`default`]) says the opposite of the truth.
    #[serde(default)]
    z: Vec<String>,
    #[serde(default)]
    unions: Option<Value>,
    /// Fields that are merged by their own fields though their type is merged as a whole.
    #[serde(default)]
    granular: Vec<String>,
    /// The kinds under which a type of the machinery is known in all groups.
    #[serde(default)]
    everywhere: Vec<String>,
}

fn docs() -> &'static HashMap<String, Doc> {
    static DOCS: OnceLock<HashMap<String, Doc>> = OnceLock::new();
    DOCS.get_or_init(|| {
        let lines = include_str!("../../../table/docs.jsonl").lines();
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("docs.jsonl: {e}: {line}"));
        lines.map(parse).map(|doc: Doc| (doc.name.clone(), doc)).collect()
    })
}

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The name of the schema of a built-in kind.
pub(super) fn of_kind(group: &str, version: &str, kind: &str) -> Option<String> {
    let full = format!("{group}/{version}/{kind}");
    let found = schema::builtin().iter().find(|one| one.gvk.iter().any(|gvk| *gvk == full));
    found.map(|one| one.name.to_string())
}

/// The kinds under which a type of the machinery is known in all groups; none for any other type.
pub(super) fn everywhere(name: &str) -> Vec<Value> {
    docs().get(name).map(|doc| doc.everywhere.iter().map(|gvk| of_gvk(gvk)).collect()).unwrap_or_default()
}

/// `group/version/kind`, as documents say it.
fn of_gvk(gvk: &str) -> Value {
    let (api_version, kind) = gvk.rsplit_once('/').unwrap_or(("", gvk));
    let (group, version) = split_api_version(api_version);
    json!({"group": group, "kind": kind, "version": version})
}

/// Schemas by name, gathered as they are referred to.
pub(super) struct Schemas {
    /// The group and version of the document: some types of the machinery are also of every group.
    group: String,
    version: String,
    /// The document is one of custom kinds, which lists such types in all groups at once.
    custom: bool,
    done: BTreeMap<String, Value>,
    open: Vec<String>,
}

impl Schemas {
    pub fn new(group: &str, version: &str, custom: bool) -> Schemas {
        Schemas {
            group: group.into(),
            version: version.into(),
            custom,
            done: BTreeMap::new(),
            open: Vec::new(),
        }
    }

    /// The names of a built-in kind and of its list.
    pub fn builtin(&mut self, resource: &Resource) -> (String, Option<String>) {
        let Flavor::Builtin { id, .. } = resource.flavor else {
            unreachable!("asked for built-in kinds only")
        };
        let name = schema::builtin().get(id).name.to_string();
        self.need(&name);
        let package = name.rsplit_once('.').map_or("", |(package, _)| package);
        let list = format!("{package}.{}", resource.list_kind);
        let list = schema::builtin().id(&list).map(|_| list);
        if let Some(list) = &list {
            self.need(list);
        }
        (name, list)
    }

    /// Adds a schema that is not in the table.
    pub fn add(&mut self, name: &str, schema: Value) {
        self.done.insert(name.to_owned(), schema);
    }

    /// Makes sure that a schema of the table is in the document.
    pub fn need(&mut self, name: &str) {
        if !self.done.contains_key(name) && !self.open.iter().any(|open| open == name) {
            self.open.push(name.to_owned());
        }
    }

    /// Makes sure of all schemas that a tree refers to.
    pub fn need_all(&mut self, tree: &Map<String, Value>) {
        for (key, value) in tree {
            match value {
                Value::String(target) if key == "$ref" => {
                    self.need(target.trim_start_matches("#/components/schemas/"));
                }
                Value::Object(inner) => self.need_all(inner),
                _ => {}
            }
        }
    }

    /// A reference, which brings along what it refers to.
    pub fn reference(&mut self, name: &str) -> Value {
        self.need(name);
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    /// All schemas, when everything is gathered.
    pub fn finish(mut self) -> Map<String, Value> {
        while let Some(name) = self.open.pop() {
            let schema = self.schema(&name);
            self.done.insert(name, schema);
        }
        self.done.into_iter().collect()
    }

    fn schema(&mut self, name: &str) -> Value {
        let mut out = Map::new();
        let doc = docs().get(name);
        if let Some(doc) = doc.filter(|doc| !doc.d.is_empty()) {
            out.insert("description".into(), json!(doc.d));
        }
        let Some(id) = schema::builtin().id(name) else {
            out.extend(leaf(name));
            return Value::Object(out);
        };
        let structure = schema::builtin().get(id);
        out.insert("type".into(), json!("object"));
        let required: Vec<&str> =
            structure.fields.iter().filter(|field| field.required).map(|field| field.name.as_ref()).collect();
        if !required.is_empty() {
            out.insert("required".into(), json!(required));
        }
        let mut properties: BTreeMap<String, Value> = BTreeMap::new();
        for field in &structure.fields {
            let description = doc.and_then(|doc| doc.f.get(field.name.as_ref())).map(String::as_str);
            let toggled = doc.is_some_and(|doc| doc.z.iter().any(|one| *one == field.name));
            let mut property = self.property(field, description.unwrap_or_default(), toggled);
            if doc.is_some_and(|doc| doc.granular.iter().any(|one| *one == field.name)) {
                property["x-kubernetes-map-type"] = json!("granular");
            }
            properties.insert(field.name.to_string(), property);
        }
        if !properties.is_empty() {
            out.insert("properties".into(), Value::Object(properties.into_iter().collect()));
        }
        let kinds = self.kinds(name, &structure.gvk, doc.map_or(&[], |doc| &doc.everywhere));
        if !kinds.is_empty() {
            out.insert("x-kubernetes-group-version-kind".into(), Value::Array(kinds));
        }
        if structure.atomic {
            out.insert("x-kubernetes-map-type".into(), json!("atomic"));
        }
        if let Some(unions) = doc.and_then(|doc| doc.unions.as_ref()) {
            out.insert("x-kubernetes-unions".into(), unions.clone());
        }
        Value::Object(out)
    }

    fn kinds(&self, name: &str, gvk: &[schema::Str], everywhere: &[String]) -> Vec<Value> {
        if self.custom && !everywhere.is_empty() {
            return everywhere.iter().map(|gvk| of_gvk(gvk)).collect();
        }
        let mut kinds: Vec<Value> = gvk.iter().map(|gvk| of_gvk(gvk)).collect();
        let everywhere = [format!("{META}.DeleteOptions"), format!("{META}.WatchEvent")];
        if everywhere.iter().any(|one| one == name) && !self.group.is_empty() {
            let (_, short) = name.rsplit_once('.').unwrap_or(("", name));
            kinds.push(json!({"group": self.group, "kind": short, "version": self.version}));
        }
        kinds
    }

    fn property(&mut self, field: &Field, description: &str, toggled: bool) -> Value {
        let mut out = Map::new();
        if !description.is_empty() {
            out.insert("description".into(), json!(description));
        }
        let mut body = self.body(&field.ty, field);
        if let Some(default) = default(field, toggled) {
            out.insert("default".into(), default);
        }
        // A reference cannot have siblings: with any it goes into an `allOf`.
        if let Some(reference) = body.shift_remove("$ref") {
            let reference = json!({"$ref": reference});
            if out.is_empty() && extensions(field).is_empty() {
                return reference;
            }
            out.insert("allOf".into(), json!([reference]));
        }
        let mut merged = Map::new();
        let place = |key: &str, from: &mut Map<String, Value>, to: &mut Map<String, Value>| {
            if let Some(value) = from.shift_remove(key) {
                to.insert(key.to_owned(), value);
            }
        };
        place("description", &mut out, &mut merged);
        place("type", &mut body, &mut merged);
        place("format", &mut body, &mut merged);
        merged.extend(out);
        merged.extend(body);
        merged.extend(extensions(field));
        Value::Object(merged)
    }

    fn body(&mut self, ty: &Type, field: &Field) -> Map<String, Value> {
        let mut out = Map::new();
        let mut put = |key: &str, value: Value| {
            out.insert(key.to_owned(), value);
        };
        match ty {
            Type::List(element) => {
                put("type", json!("array"));
                let items = self.items(element, field);
                put("items", items);
            }
            Type::Map(value) => {
                put("type", json!("object"));
                let items = self.items(value, field);
                put("additionalProperties", items);
            }
            Type::Struct(id) => {
                let name = schema::builtin().get(*id).name.to_string();
                out.extend(self.reference(&name).as_object().cloned().unwrap_or_default());
            }
            other => match leaf_name(other) {
                Some(name) => out.extend(self.reference(name).as_object().cloned().unwrap_or_default()),
                None => {
                    out.extend(scalar(other));
                    if !field.enumeration.is_empty() {
                        out.insert("enum".into(), json!(field.enumeration));
                    }
                }
            },
        }
        out
    }

    fn items(&mut self, element: &Type, field: &Field) -> Value {
        match element {
            Type::Struct(id) => {
                let name = schema::builtin().get(*id).name.to_string();
                json!({"default": {}, "allOf": [self.reference(&name)]})
            }
            Type::List(_) | Type::Map(_) => Value::Object(self.body(element, field)),
            other => match leaf_name(other) {
                Some(name) => self.reference(name),
                None => {
                    let mut out = scalar(other);
                    if let Some(zero) = zero(other) {
                        out.insert("default".into(), zero);
                    }
                    if !field.enumeration.is_empty() {
                        out.insert("enum".into(), json!(field.enumeration));
                    }
                    Value::Object(out)
                }
            },
        }
    }
}

/// The default of a field. Zero values are defaults of structures that are not pointers and of scalars that are always
/// written; where that is wrong, the field is `toggled`.
fn default(field: &Field, toggled: bool) -> Option<Value> {
    let zero = match &field.ty {
        Type::Struct(_) => json!({}),
        ty => zero(ty).unwrap_or_default(),
    };
    let implied = match &field.ty {
        Type::Struct(_) => !field.ptr,
        _ => !field.ptr && field.omit == Omit::Never && !zero.is_null(),
    };
    field.default.clone().or_else(|| (implied != toggled).then_some(zero))
}

/// How a field is merged.
fn extensions(field: &Field) -> Map<String, Value> {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| {
        out.insert(format!("x-kubernetes-{key}"), value);
    };
    match &field.list {
        Some(ListType::Map(keys)) => {
            put("list-map-keys", json!(keys));
            put("list-type", json!("map"));
        }
        Some(ListType::Set) => put("list-type", json!("set")),
        Some(ListType::Atomic) => put("list-type", json!("atomic")),
        None => {}
    }
    if field.atomic {
        put("map-type", json!("atomic"));
    }
    if !field.merge_key.is_empty() {
        put("patch-merge-key", json!(field.merge_key));
    }
    if !field.patch_strategy.is_empty() {
        put("patch-strategy", json!(field.patch_strategy));
    }
    out
}

/// Types that have definitions of their own though they are written as one value.
fn leaf_name(ty: &Type) -> Option<&'static str> {
    Some(match ty {
        Type::Time => "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
        Type::MicroTime => "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
        Type::Duration => "io.k8s.apimachinery.pkg.apis.meta.v1.Duration",
        Type::Quantity => "io.k8s.apimachinery.pkg.api.resource.Quantity",
        Type::IntOrString => "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        Type::Raw => "io.k8s.apimachinery.pkg.runtime.RawExtension",
        Type::FieldsV1 => "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
        Type::Any => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
        Type::SchemaOrBool => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool"
        }
        Type::SchemaOrArray => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray"
        }
        Type::SchemaOrStrings => {
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray"
        }
        _ => return None,
    })
}

/// The definition of such a type.
fn leaf(name: &str) -> Map<String, Value> {
    let (_, short) = name.rsplit_once('.').unwrap_or(("", name));
    let tree = match short {
        "Time" | "MicroTime" => json!({"type": "string", "format": "date-time"}),
        "Duration" => json!({"type": "string"}),
        "Quantity" => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        "IntOrString" => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        "RawExtension" | "FieldsV1" | "Patch" => json!({"type": "object"}),
        _ => json!({}),
    };
    tree.as_object().cloned().unwrap_or_default()
}

fn scalar(ty: &Type) -> Map<String, Value> {
    let tree = match ty {
        Type::Bool => json!({"type": "boolean"}),
        Type::Int32 => json!({"type": "integer", "format": "int32"}),
        Type::Int64 => json!({"type": "integer", "format": "int64"}),
        Type::Float64 => json!({"type": "number", "format": "double"}),
        Type::Bytes => json!({"type": "string", "format": "byte"}),
        _ => json!({"type": "string"}),
    };
    tree.as_object().cloned().unwrap_or_default()
}

fn zero(ty: &Type) -> Option<Value> {
    match ty {
        Type::String => Some(json!("")),
        Type::Bool => Some(json!(false)),
        Type::Int32 | Type::Int64 | Type::Float64 => Some(json!(0)),
        _ => None,
    }
}
