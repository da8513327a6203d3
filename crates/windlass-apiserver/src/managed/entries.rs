//! `metadata.managedFields`: who owns what.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::set::Set;
use crate::json::{at, object_entry, str_at};

/// What a manager did last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Anything else.
    Update,
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

/// What tells managers apart. An applier is the same in every version of the kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub manager: String,
    pub operation: Operation,
    /// Empty for appliers.
    pub version: String,
    pub subresource: String,
}

impl Id {
    pub fn new(manager: &str, operation: Operation, version: &str, subresource: &str) -> Id {
        let version = if operation == Operation::Apply { "" } else { version };
        Id {
            manager: if manager.is_empty() { "unknown".to_owned() } else { manager.to_owned() },
            operation,
            version: version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

/// What a manager owns.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The version in which the set is written.
    pub version: String,
    pub set: Set,
    pub time: Option<Timestamp>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Managers(pub BTreeMap<Id, Entry>);

/// As many managers may have entries of operation `Update`; the oldest are merged.
const UPDATERS_MAX: usize = 10;
const ANCIENT: &str = "ancient-changes";

impl Managers {
    /// Reads a list of entries.
    pub fn decode(list: &[Value]) -> Result<Managers, String> {
        let mut managers = Managers::default();
        for (i, entry) in list.iter().enumerate() {
            let operation = match str_at(entry, &["operation"]) {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".to_owned()),
            };
            let version = str_at(entry, &["apiVersion"]);
            if version.is_empty() {
                return Err("apiVersion must not be empty".to_owned());
            }
            match str_at(entry, &["fieldsType"]) {
                "FieldsV1" => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {i}")),
                other => return Err(format!("invalid fieldsType {other:?} in managed fields entry {i}")),
            }
            let set = match at(entry, &["fieldsV1"]) {
                None | Some(Value::Null) => Set::default(),
                Some(tree) => Set::from_fields_v1(tree)
                    .map_err(|e| format!("error decoding versioned set: error decoding set: {e}"))?,
            };
            let subresource = str_at(entry, &["subresource"]);
            // Not `Id::new`: the name is taken as it stands.
            let mut id = Id::new("-", operation, version, subresource);
            id.manager = str_at(entry, &["manager"]).to_owned();
            let time = str_at(entry, &["time"]).parse().ok();
            managers.0.insert(id, Entry { version: version.to_owned(), set, time });
        }
        Ok(managers)
    }

    /// The entries in the order in which kube-apiserver keeps them.
    pub fn encode(&self, custom: bool) -> Vec<Value> {
        let mut entries: Vec<_> = self.0.iter().collect();
        let second = |entry: &Entry| entry.time.map_or(0, Timestamp::as_second);
        entries.sort_by(|(a, left), (b, right)| {
            a.operation
                .cmp(&b.operation)
                .then_with(|| second(left).cmp(&second(right)))
                .then_with(|| a.manager.cmp(&b.manager))
                .then_with(|| left.version.cmp(&right.version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        entries.into_iter().map(|(id, entry)| encode_entry(id, entry, custom)).collect()
    }

    /// Merges the oldest updaters until there are few enough.
    pub fn cap(&mut self) {
        let mut updaters: Vec<(i64, Id)> = self
            .0
            .iter()
            .filter(|(id, _)| id.operation == Operation::Update)
            .map(|(id, entry)| (entry.time.map_or(0, Timestamp::as_second), id.clone()))
            .collect();
        let mut count = updaters.len();
        if count <= UPDATERS_MAX {
            return;
        }
        updaters.sort();
        let mut first_of_version: BTreeMap<String, Id> = BTreeMap::new();
        for (_, id) in updaters {
            if count <= UPDATERS_MAX {
                return;
            }
            let version = self.0[&id].version.clone();
            let bucket = Id::new(ANCIENT, Operation::Update, &version, "");
            let Some(first) = first_of_version.get(&version) else {
                first_of_version.insert(version, id);
                continue;
            };
            if id == bucket {
                // The bucket is not the oldest of all: it takes in others, and is not taken in itself.
                continue;
            }
            if !self.0.contains_key(&bucket)
                && let Some(entry) = self.0.remove(first)
            {
                self.0.insert(bucket.clone(), entry);
            }
            if let Some(merged) = self.0.remove(&id)
                && let Some(into) = self.0.get_mut(&bucket)
            {
                into.set = std::mem::take(&mut into.set).union(merged.set);
                into.time = merged.time;
                count -= 1;
            }
        }
    }
}

fn encode_entry(id: &Id, entry: &Entry, custom: bool) -> Value {
    let mut map = Map::with_capacity(7);
    if !id.manager.is_empty() {
        map.insert("manager".to_owned(), json!(id.manager));
    }
    map.insert("operation".to_owned(), json!(id.operation.as_str()));
    map.insert("apiVersion".to_owned(), json!(entry.version));
    if let Some(time) = entry.time {
        map.insert("time".to_owned(), Value::String(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
    }
    map.insert("fieldsType".to_owned(), json!("FieldsV1"));
    map.insert("fieldsV1".to_owned(), entry.set.to_fields_v1());
    if !id.subresource.is_empty() {
        map.insert("subresource".to_owned(), json!(id.subresource));
    }
    let mut value = Value::Object(map);
    if custom {
        value.sort_all_objects();
    }
    value
}

/// The entries of an object, as they stand.
pub(super) fn of(object: &Value) -> Option<&Vec<Value>> {
    at(object, &["metadata", "managedFields"])?.as_array()
}

/// Takes the entries out of an object.
pub(super) fn take(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.shift_remove("managedFields")
}

/// Puts entries into an object: last in its metadata for built-in kinds, in sorted order for custom ones.
pub(super) fn put(object: &mut Value, entries: Vec<Value>, custom: bool) {
    take(object);
    let Some(object) = object.as_object_mut().filter(|_| !entries.is_empty()) else { return };
    let metadata = object_entry(object, "metadata");
    let end = metadata.len();
    let position = if custom {
        metadata.keys().position(|key| key.as_str() > "managedFields").unwrap_or(end)
    } else {
        end
    };
    metadata.shift_insert(position, "managedFields".to_owned(), Value::Array(entries));
}
