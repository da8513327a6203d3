//! The rules of ownership, one test each.

mod applying;
mod laws;
mod updating;

use serde_json::{Value, json};

use super::{ApplyError, Reset, Schema, Write, apply, settle, update};
use crate::schema::{Field, ListType, Omit, Struct, Type, TypeId, Types};

/// A kind with one field of every sort that merging tells apart.
struct World {
    types: Types,
    root: TypeId,
}

fn field(name: &'static str, ty: Type) -> Field {
    Field {
        name: name.into(),
        ty,
        pb: 0,
        ptr: false,
        omit: Omit::Empty,
        required: false,
        list: None,
        atomic: false,
        patch_strategy: "".into(),
        merge_key: "".into(),
        default: None,
        enumeration: Vec::new(),
    }
}

fn list(name: &'static str, element: Type, kind: ListType) -> Field {
    Field { list: Some(kind), ..field(name, Type::List(Box::new(element))) }
}

impl World {
    fn new() -> World {
        let mut types = Types::default();
        let strings = || Type::Map(Box::new(Type::String));
        let meta = types.add(Struct::new(
            "ObjectMeta".into(),
            vec![
                field("name", Type::String),
                field("namespace", Type::String),
                field("uid", Type::String),
                field("resourceVersion", Type::String),
                field("generation", Type::Int64),
                field("creationTimestamp", Type::Time),
                field("labels", strings()),
                field("annotations", strings()),
                list("finalizers", Type::String, ListType::Set),
                field("managedFields", Type::List(Box::new(Type::Any))),
            ],
        ));
        let port = types.add(Struct::new(
            "Port".into(),
            vec![
                field("name", Type::String),
                field("port", Type::Int32),
                Field { default: Some(json!("TCP")), ..field("protocol", Type::String) },
                field("target", Type::IntOrString),
            ],
        ));
        let mut selector = Struct::new("Selector".into(), vec![field("match", strings())]);
        selector.atomic = true;
        let selector = types.add(selector);
        let mut open = Struct::new("Open".into(), vec![field("known", Type::String)]);
        open.preserve_unknown = true;
        let open = types.add(open);
        let keys = ListType::Map(vec!["port".into(), "protocol".into()]);
        let spec = types.add(Struct::new(
            "Spec".into(),
            vec![
                Field { omit: Omit::Never, ..field("ports", Type::List(Box::new(Type::Struct(port)))) },
                list("named", Type::Struct(port), ListType::Map(vec!["name".into()])),
                list("set", Type::String, ListType::Set),
                list("args", Type::String, ListType::Atomic),
                field("selector", Type::Struct(selector)),
                Field { atomic: true, ..field("flat", strings()) },
                field("raw", Type::Raw),
                field("any", Type::Any),
                field("open", Type::Struct(open)),
                field("replicas", Type::Int32),
                field("memory", Type::Quantity),
                field("paused", Type::Bool),
            ],
        ));
        // `ports` is a list with two keys, one of which has a default.
        let spec_struct = types.get(spec).clone();
        let mut fields = spec_struct.fields;
        fields[0].list = Some(keys);
        let spec = types.add(Struct::new("SpecWithKeys".into(), fields));
        let status = types.add(Struct::new("Status".into(), vec![field("ready", Type::Int32)]));
        let root = types.add(Struct::new(
            "Thing".into(),
            vec![
                field("kind", Type::String),
                field("apiVersion", Type::String),
                field("metadata", Type::Struct(meta)),
                field("spec", Type::Struct(spec)),
                field("data", strings()),
                field("status", Type::Struct(status)),
            ],
        ));
        World { types, root }
    }

    fn schema(&self) -> Schema<'_> {
        Schema::builtin(&self.types, self.root)
    }

    fn create(&self, manager: &str, mut object: Value) -> Value {
        update(&self.schema(), None, &mut object, &write(manager, 1));
        object["metadata"]["uid"] = json!("u");
        object
    }

    fn update(&self, manager: &str, second: i64, live: &Value, change: impl FnOnce(&mut Value)) -> Value {
        let mut object = live.clone();
        change(&mut object);
        update(&self.schema(), Some(live), &mut object, &write(manager, second));
        object
    }

    fn try_apply(
        &self,
        manager: &str,
        second: i64,
        live: &Value,
        config: Value,
    ) -> Result<Value, ApplyError> {
        apply(&self.schema(), Some(live), &config, &write(manager, second), false)
    }

    fn apply(&self, manager: &str, second: i64, live: &Value, config: Value) -> Value {
        self.try_apply(manager, second, live, config).unwrap()
    }

    fn force(&self, manager: &str, live: &Value, config: Value) -> Value {
        apply(&self.schema(), Some(live), &config, &write(manager, 9), true).unwrap()
    }

    /// Makes the object of a configuration.
    fn apply_new(&self, manager: &str, config: Value) -> Value {
        let mut object = apply(&self.schema(), None, &config, &write(manager, 1), false).unwrap();
        object["metadata"]["uid"] = json!("u");
        object
    }
}

fn write(manager: &str, second: i64) -> Write<'_> {
    Write {
        manager,
        api_version: "v1",
        kind: "Thing",
        subresource: "",
        now: jiff::Timestamp::from_second(second).unwrap(),
        reset: Reset::Exclude(&[]),
    }
}

/// An object of the kind.
fn thing(rest: Value) -> Value {
    let mut object =
        json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "n"}});
    merge(&mut object, rest);
    object
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// `manager/operation@second`, and the fields.
fn owners(object: &Value) -> Vec<(String, Value)> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let entry = |entry: &Value| {
        let text = |key: &str| entry[key].as_str().unwrap_or("-").to_owned();
        let second = entry["time"].as_str().map(|time| time.parse::<jiff::Timestamp>().unwrap().as_second());
        let second = second.map_or("-".to_owned(), |second| second.to_string());
        (format!("{}/{}@{second}", text("manager"), text("operation")), entry["fieldsV1"].clone())
    };
    entries.iter().map(entry).collect()
}

/// What one manager owns.
fn owned_by(object: &Value, manager: &str) -> Value {
    let found = owners(object).into_iter().find(|(name, _)| name.starts_with(&format!("{manager}/")));
    found.map_or(Value::Null, |(_, fields)| fields)
}
