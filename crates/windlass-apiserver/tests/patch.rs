//! Patches recorded from kube-apiserver (`tools/record/patches.py`), applied again.

use serde_json::{Value, json};
use windlass_apiserver::patch::{
    PatchError, check_json_patch, check_merge_patch, json_patch, merge_patch, strategic,
};
use windlass_apiserver::schema;
use windlass_apiserver::status::Status;

/// What the server fills in after a patch. Everything else in its answer must come from the patch or from before.
const DEFAULTED: [&str; 8] = [
    "imagePullPolicy",
    "maxSurge",
    "maxUnavailable",
    "protocol",
    "resources",
    "rollingUpdate",
    "terminationMessagePath",
    "terminationMessagePolicy",
];

/// More of the same, but only for one kind of object each.
const DEFAULTED_PLACES: [&str; 6] = [
    "ports[0].targetPort",
    "fieldRef.apiVersion",
    "strategy.type",
    "hostPath.type",
    "volumes[2].emptyDir",
    "suspend",
];

#[test]
fn json_patches_give_what_the_server_gave() {
    replay("json.jsonl", 70);
}

#[test]
fn merge_patches_give_what_the_server_gave() {
    replay("merge.jsonl", 20);
}

#[test]
fn strategic_patches_give_what_the_server_gave() {
    replay("strategic.jsonl", 90);
}

fn replay(file: &str, at_least: usize) {
    let path = format!("{}/tests/data/patch/{file}", env!("CARGO_MANIFEST_DIR"));
    let rows = std::fs::read_to_string(path).expect("the recorded patches are there");
    let rows =
        rows.lines().map(|line| serde_json::from_str(line).expect("a recorded case")).collect::<Vec<Value>>();
    assert!(rows.len() >= at_least, "{} cases", rows.len());
    let faults = rows.iter().filter_map(|row| check(row).err()).collect::<Vec<_>>();
    assert!(faults.is_empty(), "{} of {} differ:\n{}", faults.len(), rows.len(), faults.join("\n"));
}

fn check(row: &Value) -> Result<(), String> {
    let (media, patch) = (row["media"].as_str().expect("a media type"), &row["patch"]);
    let describe = |text: String| format!("{media} {patch}: {text}");
    let mut result = row["object"].clone();
    match apply(row, media, &mut result) {
        Ok(()) if row["code"] == 200 => {
            let mut expected = row["answer"].clone();
            for tree in [&mut result, &mut expected] {
                let metadata = tree["metadata"].as_object_mut().expect("objects have metadata");
                metadata.retain(|key, _| key != "resourceVersion" && key != "generation");
            }
            // Custom objects are stored as they are.
            let is_custom = row["type"] == "";
            if is_custom && result != expected {
                return Err(describe(format!("is {result}, not {expected}")));
            }
            compare(&result, &expected, "").map_err(describe)
        }
        Ok(()) => Err(describe(format!("applied, but the server says {}", row["answer"]))),
        Err(error) => {
            let status = Status::from(error.clone()).to_value();
            if status == row["answer"] {
                Ok(())
            } else {
                Err(describe(format!("{status} is not {}", row["answer"])))
            }
        }
    }
}

fn apply(row: &Value, media: &str, target: &mut Value) -> Result<(), PatchError> {
    let patch = match row["repeat"].as_u64() {
        Some(times) => json!(vec![&row["patch"][0]; usize::try_from(times).expect("a count")]),
        None => row["patch"].clone(),
    };
    match media {
        "application/json-patch+json" => {
            check_json_patch(&patch)?;
            json_patch(target, &patch)
        }
        "application/merge-patch+json" => {
            check_merge_patch(&patch)?;
            merge_patch(target, patch);
            Ok(())
        }
        _ => {
            let types = schema::builtin();
            let id = types.id(row["type"].as_str().expect("a type")).expect("a type of the table");
            strategic(types, id, target, patch)
        }
    }
}

/// Both trees are the same, but for defaults and for what Go's types leave out: nulls, empty containers
/// and directives in lists that are not merged.
fn compare(ours: &Value, theirs: &Value, path: &str) -> Result<(), String> {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in ours {
                match theirs.get(key) {
                    Some(other) => compare(value, other, &format!("{path}.{key}"))?,
                    None if is_empty(value) || key == "$patch" => {}
                    None => return Err(format!("{path}.{key} should not be {value}")),
                }
            }
            let is_default = |key: &str| {
                let place = format!("{path}.{key}");
                DEFAULTED.contains(&key) || DEFAULTED_PLACES.iter().any(|default| place.ends_with(default))
            };
            match theirs.iter().find(|(key, _)| !ours.contains_key(*key) && !is_default(key)) {
                Some((key, value)) => Err(format!("{path}.{key} should be {value}")),
                None => Ok(()),
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let pairs = ours.iter().zip(theirs).enumerate();
            pairs
                .into_iter()
                .try_for_each(|(i, (ours, theirs))| compare(ours, theirs, &format!("{path}[{i}]")))
        }
        (Value::Null, Value::String(text)) if text.is_empty() => Ok(()),
        (ours, theirs) if ours == theirs => Ok(()),
        (ours, theirs) => Err(format!("{path} is {ours}, not {theirs}")),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}
