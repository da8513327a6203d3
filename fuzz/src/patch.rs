//! The patch engines, on trees that nearly fit their types.

use arbitrary::{Result, Unstructured};
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_apiserver::codec;
use windlass_apiserver::managed::{self, Reset, Schema, Write};
use windlass_apiserver::patch::{check_json_patch, json_patch, merge_patch, strategic};
use windlass_apiserver::schema::{self, TypeId};

use crate::tree;

/// Types with all kinds of lists and maps in them.
const TYPES: &[&str] = &[
    "io.k8s.api.apps.v1.Deployment",
    "io.k8s.api.core.v1.ConfigMap",
    "io.k8s.api.core.v1.Pod",
    "io.k8s.api.core.v1.Service",
    "io.k8s.api.core.v1.Node",
    "io.k8s.api.networking.v1.Ingress",
    "io.k8s.api.rbac.v1.ClusterRole",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
];

/// How deep trees are.
const DEPTH: usize = 8;

/// Choices: a type, an object of it, and what is done to it.
pub fn run(data: &[u8]) {
    // Too few bytes to choose from: an end like any other.
    let _ = try_run(&mut Unstructured::new(data));
}

fn try_run(u: &mut Unstructured<'_>) -> Result<()> {
    let types = schema::builtin();
    let id = types.id(u.choose(TYPES)?).expect("in the table");
    let Ok(old) = codec::canonical(types, id, tree::structure(u, types, id, DEPTH)?, &mut Vec::new()) else {
        return Ok(());
    };
    match u.int_in_range(0..=3)? {
        0 => json_law(&old, &operations(u, &old)?),
        1 => merge_law(&old, tree::any(u, 5)?),
        2 => {
            let patch = if u.arbitrary()? { tree::structure(u, types, id, DEPTH)? } else { tree::any(u, 5)? };
            let mut new = old.clone();
            if strategic(types, id, &mut new, patch).is_ok() {
                assert!(tree::depth(&new) <= 200, "grew deep");
            }
        }
        _ => apply_law(u, id, &old)?,
    }
    Ok(())
}

/// JSON patch operations, with paths that mostly exist.
pub fn operations(u: &mut Unstructured<'_>, old: &Value) -> Result<Value> {
    let list = tree::several(u, 6, |u| {
        let op = u.choose(&["add", "remove", "replace", "move", "copy", "test", "nope"])?;
        let (path, from) = (pointer(u, old)?, pointer(u, old)?);
        let mut operation = json!({"op": op, "path": path});
        if u.ratio(3, 4)? {
            tree::put(&mut operation, &["from"], json!(from));
        }
        if u.ratio(7, 8)? {
            tree::put(&mut operation, &["value"], tree::any(u, 3)?);
        }
        Ok(operation)
    })?;
    Ok(Value::Array(list))
}

fn pointer(u: &mut Unstructured<'_>, old: &Value) -> Result<String> {
    let mut path = String::new();
    let mut place = old;
    // Where there is nothing left to choose from, every choice is the first one: it would go on for ever.
    while !u.is_empty() && u.ratio(3, 4)? {
        match place {
            Value::Object(map) if !map.is_empty() && u.ratio(7, 8)? => {
                let (key, value) = map.iter().nth(u.choose_index(map.len())?).expect("chosen within");
                path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                place = value;
            }
            Value::Array(list) if !list.is_empty() && u.ratio(7, 8)? => {
                let index = u.choose_index(list.len())?;
                path = format!("{path}/{index}");
                place = &list[index];
            }
            _ => {
                path = format!(
                    "{path}/{}",
                    u.choose(&["-", "-1", "0", "1", "a", "metadata", "", "~", "99999999999999999999"])?
                );
                place = &Value::Null;
            }
        }
    }
    Ok(path)
}

/// Whatever a JSON patch makes can be written and read.
fn json_law(old: &Value, patch: &Value) {
    let mut new = old.clone();
    if check_json_patch(patch).is_ok() && json_patch(&mut new, patch).is_ok() {
        let mut again = old.clone();
        json_patch(&mut again, patch).expect("it did before");
        assert_eq!(new, again);
        assert!(tree::depth(&new) <= 128, "grew deep");
    }
}

/// A merge patch comes to rest. Not at once: nulls in a list that takes the place of an object stay, and are dropped when
/// the list takes the place of a list, as upstream.
fn merge_law(old: &Value, patch: Value) {
    let mut twice = old.clone();
    merge_patch(&mut twice, patch.clone());
    merge_patch(&mut twice, patch.clone());
    let mut again = twice.clone();
    merge_patch(&mut again, patch);
    assert_eq!(again, twice);
}

/// What was applied by force is applied: again, it changes nothing and conflicts with nothing.
fn apply_law(u: &mut Unstructured<'_>, id: TypeId, old: &Value) -> Result<()> {
    let types = schema::builtin();
    let schema = Schema::builtin(types, id);
    let now = Timestamp::UNIX_EPOCH;
    let (group_version, kind) = type_of(id);
    let write = |manager| Write {
        manager,
        api_version: &group_version,
        kind: &kind,
        subresource: "",
        now,
        reset: Reset::Exclude(&[]),
    };
    let mut live = old.clone();
    managed::update(&schema, None, &mut live, &write("creator"));
    for _ in 0..u.int_in_range(1..=3)? {
        let mut config = tree::structure(u, types, id, DEPTH)?;
        tree::put(&mut config, &["apiVersion"], json!(group_version));
        tree::put(&mut config, &["kind"], json!(kind));
        let manager = *u.choose(&["a", "b", "kubectl"])?;
        let Ok(applied) = managed::apply(&schema, Some(&live), &config, &write(manager), true) else {
            continue;
        };
        let Ok(canonical) = codec::canonical(types, id, applied, &mut Vec::new()) else { continue };
        live = canonical;
        let again = managed::apply(&schema, Some(&live), &config, &write(manager), false);
        if let Ok(again) = again
            && let Ok(again) = codec::canonical(types, id, again, &mut Vec::new())
        {
            live = again;
        }
    }
    Ok(())
}

/// `apps/v1` and `Deployment` of a type.
fn type_of(id: TypeId) -> (String, String) {
    let gvk = schema::builtin().get(id).gvk.first().expect("a top-level type").to_string();
    let (group_version, kind) = gvk.rsplit_once('/').expect("three parts");
    (group_version.trim_start_matches('/').to_owned(), kind.to_owned())
}
