//! Sequences of applies and updates, recorded from a real kube-apiserver and replayed through `managed`.
//!
//! The recordings in `data/ssa` come from `tools/record-ssa`, which also describes them. Ownership has to be exactly
//! the same, times and order included. An applied object is compared as far as it goes: what defaulting adds to it
//! is not the concern of this test.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use windlass_apiserver::managed::{
    ReplicasPath, Reset, Schema, Write, apply, from_scale, settle, to_scale, update,
};
use windlass_apiserver::schema::{self, Field, ListType, Omit, Struct, Type, TypeId, Types};
use windlass_apiserver::status::Status;

#[test]
fn recorded_sequences_replay() {
    let folder = std::env::var("WINDLASS_SSA_RECORDINGS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ssa").to_owned());
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 50, "the recordings are there");
    let mut faults = Vec::new();
    for file in files {
        let scenario: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        replay(&name, &scenario, &mut faults);
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn replay(name: &str, scenario: &Value, faults: &mut Vec<String>) {
    let custom;
    let versions = [text(scenario, "apiVersion")];
    let schema = match scenario.get("crd") {
        Some(crd) => {
            custom = custom_types(crd);
            Schema { versions: &versions, ..Schema::custom(&custom.0, custom.1) }
        }
        None => {
            let types = schema::builtin();
            let root = types.id(text(scenario, "type")).expect("a built-in type");
            Schema { versions: &versions, ..Schema::builtin(types, root) }
        }
    };
    let mut live = None;
    for (i, step) in scenario["steps"].as_array().unwrap().iter().enumerate() {
        let fault = match text(step, "verb") {
            "apply" => replay_apply(&schema, scenario, step, live),
            "scale" => replay_scale(scenario, step, live.expect("something to scale")),
            _ => replay_update(&schema, scenario, step, live),
        };
        if let Err(fault) = fault {
            faults.push(format!("{name}, step {i}: {fault}"));
        }
        live = step.get("object").or(live);
    }
}

fn replay_apply(
    schema: &Schema<'_>,
    scenario: &Value,
    step: &Value,
    live: Option<&Value>,
) -> Result<(), String> {
    with_write(scenario, step, live, |write| {
        match (apply(schema, live, &step["body"], write, step["force"] == true), step.get("error")) {
            (Ok(mut object), None) => {
                if let Some(live) = live {
                    settle_as_decoded(live, &step["object"], &mut object);
                }
                same_entries(&object, &step["object"])?;
                // What the endpoint resets is none of ours either.
                for path in step["reset"].as_array().unwrap() {
                    let path: Vec<&str> = strings(path).collect();
                    let (last, parents) = path.split_last().unwrap();
                    let parent = parents.iter().try_fold(&mut object, |object, key| object.get_mut(key));
                    if let Some(parent) = parent.and_then(Value::as_object_mut) {
                        parent.shift_remove(*last);
                    }
                }
                let reset: Vec<String> = step["reset"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|path| strings(path).map(|key| format!(".{key}")).collect())
                    .collect();
                let defaulted: BTreeSet<String> =
                    strings(&step["defaulted"]).map(str::to_owned).chain(reset).collect();
                if let Some(crd) = scenario.get("crd") {
                    fill_defaults(crd, &mut object);
                    return same_custom(&object, &step["object"], &defaulted);
                }
                same_object("", &object, &step["object"], live, &defaulted)
            }
            (Err(error), Some(expected)) => {
                let status = Status::from(error).to_value();
                // Validation comes after the apply, so that its refusals are not ours.
                let same =
                    ["code", "reason", "message"].iter().all(|key| status.get(key) == expected.get(key));
                let causes = |status: &Value| {
                    let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
                    causes.iter().map(Value::to_string).collect::<BTreeSet<_>>()
                };
                if same && causes(&status) == causes(expected) {
                    Ok(())
                } else {
                    Err(format!("refused with\n  {status}\ninstead of\n  {expected}"))
                }
            }
            (Ok(_), Some(expected)) if expected["code"] == 422 => Ok(()),
            (Ok(_), Some(expected)) => Err(format!("not refused: {expected}")),
            (Err(error), None) => Err(format!("refused: {error}")),
        }
    })
}

fn replay_update(
    schema: &Schema<'_>,
    scenario: &Value,
    step: &Value,
    live: Option<&Value>,
) -> Result<(), String> {
    let mut object = step["object"].clone();
    object["metadata"].as_object_mut().unwrap().shift_remove("managedFields");
    for pointer in strings(&step["late"]) {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.shift_remove(key);
        }
    }
    if !step["sent"].is_null() {
        object["metadata"]["managedFields"] = step["sent"].clone();
    }
    with_write(scenario, step, live, |write| update(schema, live, &mut object, write));
    same_entries(&object, &step["object"])
}

fn replay_scale(scenario: &Value, step: &Value, live: &Value) -> Result<(), String> {
    let types = schema::builtin();
    let schema = Schema::builtin(types, types.id("io.k8s.api.autoscaling.v1.Scale").expect("Scale"));
    let path: Vec<&str> = strings(&step["path"]).collect();
    let version = text(scenario, "apiVersion");
    let paths = [ReplicasPath { api_version: version, path: Some(&path) }];
    let parent = live["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let mut before = step["body"].clone();
    before["metadata"]["uid"] = live["metadata"]["uid"].clone();
    let mut after = before.clone();
    before["spec"]["replicas"] = live["spec"]["replicas"].clone();
    before["metadata"]["managedFields"] = to_scale(&parent, &paths)?.into();
    with_write(scenario, step, Some(live), |write| {
        let write = Write { api_version: "autoscaling/v1", kind: "Scale", ..*write };
        update(&schema, Some(&before), &mut after, &write);
    });
    let scale = after["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let entries = from_scale(&parent, &scale, version, &paths)?;
    same_entries(&json!({"metadata": {"managedFields": entries}}), &step["object"])
}

/// The write of a step. Its time is the one that the recording shows and the object before did not have; if there
/// is none, one that would be seen.
fn with_write<T>(
    scenario: &Value,
    step: &Value,
    live: Option<&Value>,
    run: impl FnOnce(&Write<'_>) -> T,
) -> T {
    let times = |object: &Value| -> BTreeSet<String> {
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries.iter().filter_map(|entry| entry["time"].as_str().map(str::to_owned)).collect()
    };
    let before = live.map(times).unwrap_or_default();
    let sent = times(&json!({"metadata": {"managedFields": step["sent"]}}));
    let after = times(&step["object"]);
    let new = after.iter().find(|time| !before.contains(*time) && !sent.contains(*time));
    let now = new.map_or("2099-01-01T00:00:00Z", String::as_str).parse().unwrap();
    let empty = Vec::new();
    let reset: Vec<Vec<&str>> = match step.get("reset") {
        Some(reset) => {
            reset.as_array().unwrap_or(&empty).iter().map(|path| strings(path).collect()).collect()
        }
        None => Vec::new(),
    };
    let reset: Vec<&[&str]> = reset.iter().map(Vec::as_slice).collect();
    run(&Write {
        manager: text(step, "manager"),
        api_version: text(scenario, "apiVersion"),
        kind: text(scenario, "kind"),
        subresource: text(step, "subresource"),
        now,
        reset: Reset::Exclude(&reset),
    })
}

/// What the server does once the object is canonical: the recorded object stands for that here.
fn settle_as_decoded(live: &Value, recorded: &Value, object: &mut Value) {
    let mut decoded = recorded.clone();
    decoded["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
    decoded["metadata"]["managedFields"] = object["metadata"]["managedFields"].clone();
    settle(live, &mut decoded);
    if !decoded["metadata"]["managedFields"].is_null() {
        object["metadata"]["managedFields"] = decoded["metadata"]["managedFields"].clone();
    }
}

fn same_entries(object: &Value, expected: &Value) -> Result<(), String> {
    let lines = |object: &Value| -> Vec<String> {
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries.iter().map(Value::to_string).collect()
    };
    let (ours, theirs) = (lines(object), lines(expected));
    if ours == theirs {
        return Ok(());
    }
    Err(format!("owners are\n  {}\ninstead of\n  {}", ours.join("\n  "), theirs.join("\n  ")))
}

/// Everything that we say is there, and nothing is there that was before and that we do not say. Nulls and empty
/// values are left to the codec.
fn same_object(
    path: &str,
    ours: &Value,
    theirs: &Value,
    live: Option<&Value>,
    defaulted: &BTreeSet<String>,
) -> Result<(), String> {
    // The server's own fields.
    if [".metadata.managedFields", ".metadata.generation", ".metadata.resourceVersion"].contains(&path) {
        return Ok(());
    }
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            for key in keys {
                let path = format!("{path}.{key}");
                let before = live.and_then(|live| live.get(key));
                match (
                    ours.get(key).filter(|value| !bare(value)),
                    theirs.get(key).filter(|value| !bare(value)),
                ) {
                    (Some(ours), Some(theirs)) => same_object(&path, ours, theirs, before, defaulted)?,
                    (Some(ours), None) if path != ".stringData" => {
                        return Err(format!("{path} is still there: {ours}"));
                    }
                    (None, Some(theirs))
                        if before == Some(theirs) && !defaulted.contains(&any_item(&path)) =>
                    {
                        return Err(format!("{path} is gone: {theirs}"));
                    }
                    _ => {}
                }
            }
            Ok(())
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            ours.iter().zip(theirs).enumerate().try_for_each(|(i, (ours, theirs))| {
                let name = |value: &Value| value.get("name").cloned();
                // The item of the same name was the same item.
                let before = live.and_then(Value::as_array).and_then(|items| {
                    items.iter().find(|item| name(item).is_some() && name(item) == name(theirs))
                });
                same_object(&format!("{path}[{i}]"), ours, theirs, before, defaulted)
            })
        }
        (ours, theirs) if ours == theirs || path.contains(".resources.") => Ok(()),
        (ours, theirs) => Err(format!("{path} is {ours} instead of {theirs}")),
    }
}

/// No codec changes a custom object after the apply: all that was not reset is the same, nulls included.
fn same_custom(ours: &Value, theirs: &Value, reset: &BTreeSet<String>) -> Result<(), String> {
    let parts = ["spec", "status"].into_iter().filter(|part| !reset.contains(&format!(".{part}")));
    let labels = |object: &Value| object["metadata"].get("labels").filter(|labels| !bare(labels)).cloned();
    if labels(ours) != labels(theirs) {
        return Err(format!("labels are {:?} instead of {:?}", labels(ours), labels(theirs)));
    }
    for part in parts {
        if ours.get(part) != theirs.get(part) {
            return Err(format!("{part} is\n  {}\ninstead of\n  {}", ours[part], theirs[part]));
        }
    }
    Ok(())
}

/// What the custom kind's schema adds to an object.
fn fill_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(default) = schema.get("default") {
                    map.entry(name).or_insert_with(|| default.clone());
                }
                if let Some(value) = map.get_mut(name) {
                    fill_defaults(schema, value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_defaults(&schema["items"], item)),
        _ => {}
    }
}

/// The path with `[*]` for every position in a list.
fn any_item(path: &str) -> String {
    path.split('[')
        .map(|part| part.split_once(']').map_or(part.to_owned(), |(_, rest)| format!("*]{rest}")))
        .collect::<Vec<_>>()
        .join("[")
}

/// Whether a value says nothing, as far as Go's types go.
fn bare(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(bare),
        _ => false,
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// The types of a custom kind, from its structural schema: as much as the recordings use.
fn custom_types(schema: &Value) -> (Types, TypeId) {
    let mut types = Types::default();
    let builtin = schema::builtin();
    let meta =
        builtin.get(builtin.id("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").expect("ObjectMeta"));
    // The structures in it are written out as values of no type, but for what these recordings need.
    let mut fields = meta.fields.clone();
    for field in &mut fields {
        if let Type::List(element) = &mut field.ty
            && matches!(**element, Type::Struct(_))
        {
            **element = Type::Any;
        }
    }
    let meta = types.add(Struct::new("ObjectMeta".into(), fields));
    let Type::Struct(root) = custom_type(&mut types, "", schema) else { panic!("an object") };
    let mut root = types.get(root).clone();
    let mut fields = std::mem::take(&mut root.fields);
    fields.push(custom_field("apiVersion", Type::String));
    fields.push(custom_field("kind", Type::String));
    fields.push(custom_field("metadata", Type::Struct(meta)));
    let root = types.add(Struct::new("Root".into(), fields));
    (types, root)
}

fn custom_field(name: &str, ty: Type) -> Field {
    Field {
        name: name.to_owned().into(),
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

fn custom_type(types: &mut Types, name: &str, schema: &Value) -> Type {
    if schema["x-kubernetes-int-or-string"] == true {
        return Type::IntOrString;
    }
    match text(schema, "type") {
        "string" => Type::String,
        "integer" => Type::Int64,
        "boolean" => Type::Bool,
        "array" => Type::List(Box::new(custom_type(types, &format!("{name}[]"), &schema["items"]))),
        _ if schema["additionalProperties"].is_object() => {
            Type::Map(Box::new(custom_type(types, &format!("{name}[]"), &schema["additionalProperties"])))
        }
        _ => {
            let mut fields = Vec::new();
            for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
                let ty = custom_type(types, &format!("{name}.{key}"), schema);
                let mut field = custom_field(key, ty);
                field.default = schema.get("default").cloned();
                field.atomic = schema["x-kubernetes-map-type"] == "atomic";
                field.list = match text(schema, "x-kubernetes-list-type") {
                    "set" => Some(ListType::Set),
                    "map" => {
                        let keys = strings(&schema["x-kubernetes-list-map-keys"]);
                        Some(ListType::Map(keys.map(|key| key.to_owned().into()).collect()))
                    }
                    _ => None,
                };
                fields.push(field);
            }
            let mut out = Struct::new(name.to_owned().into(), fields);
            out.preserve_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true;
            Type::Struct(types.add(out))
        }
    }
}
