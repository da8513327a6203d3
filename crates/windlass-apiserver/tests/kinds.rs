//! Replays what a real kube-apiserver answered (`tools/record-kinds`) through the codec and the hooks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use windlass_apiserver::api::admission::{Admission, Judge, Operation, Plugins};
use windlass_apiserver::api::{Attributes, Ids};
use windlass_apiserver::codec;
use windlass_apiserver::kinds::{self, Context, Namespace, World, meta};
use windlass_apiserver::schema;
use windlass_apiserver::status::Status;

const UID: &str = "00000000-0000-0000-0000-000000000001";
const NOW: &str = "2026-01-01T00:00:00Z";
const NAMESPACE: &str = "record-kinds";

/// Cases in which we differ from the real server, each with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[];

#[test]
fn pods() {
    replay("pods");
}

#[test]
fn core() {
    replay("core");
}

#[test]
fn workloads() {
    replay("workloads");
}

#[test]
fn subresources() {
    replay("subresources");
}

#[test]
fn admission() {
    replay("admission");
}

#[test]
fn rest() {
    replay("rest");
}

#[test]
fn found() {
    replay("found");
}

fn replay(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/kinds/{file}.jsonl"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let head: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let mut report = String::new();
    let (mut seen, mut failed) = (0, 0);
    for line in lines {
        let mut case: Value = serde_json::from_str(line).unwrap();
        expand(&mut case);
        seen += 1;
        let name = case["case"].as_str().unwrap().to_owned();
        let difference = run(&case);
        let excepted = EXCEPTIONS.iter().any(|(known, _)| *known == name);
        match (difference, excepted) {
            (None, true) => writeln!(report, "{name}: is in the exceptions, but agrees").unwrap(),
            (Some(difference), false) => {
                failed += 1;
                writeln!(report, "== {name}\n{difference}").unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(head["cases"], seen, "the file is complete");
    assert!(report.is_empty(), "{failed} of {seen} cases differ from {}:\n{report}", head["server"]);
}

/// What differs from the recorded answer, if anything does.
fn run(case: &Value) -> Option<String> {
    let verb = case["verb"].as_str().unwrap();
    let request = case["request"].clone();
    let (group, version) = group_version(&request);
    let kind = request["kind"].as_str().unwrap().to_owned();
    let known = Recorded(case["world"].as_array().cloned().unwrap_or_default());
    let answer = &case["answer"];
    let row = row(&group, &version, &kind);
    let context = Context {
        now: NOW.parse().unwrap(),
        subresource: if matches!(verb, "create" | "update") { "" } else { verb },
        group: &group,
        version: &version,
        kind: &kind,
        resource: row["resource"].as_str().unwrap(),
        namespaced: row["namespaced"] == true,
        user: "admin",
        groups: &["system:masters".to_owned(), "system:authenticated".to_owned()],
        uid: "admin",
        extra: &BTreeMap::new(),
        types: schema::builtin(),
        root: schema::builtin().id(row["type"].as_str().unwrap()).unwrap(),
        dry_run: false,
        noted: kinds::hooks(&group, &kind).note(&kind, &request),
        old: None,
        world: &known,
    };
    let (result, warnings) = write(request, case.get("old"), &row, &context);
    let recorded = case["warnings"].as_array().cloned().unwrap_or_default();
    let warned = warnings.iter().map(|text| json!(format!("299 - {}", json!(text)))).collect::<Vec<_>>();
    if answer["kind"] != "Status" && warned != recorded {
        return Some(format!("   warnings: real {recorded:?}\n             ours {warned:?}"));
    }
    match result {
        Ok(object) => {
            if answer["kind"] == "Status" {
                return Some(format!("   accepted, but the real server says: {}", answer["message"]));
            }
            diff("", answer, &object)
        }
        Err(status) => refusal(answer, &status),
    }
}

/// The life of a write, as the server runs it.
fn write(
    request: Value,
    old: Option<&Value>,
    row: &Value,
    context: &Context<'_>,
) -> (Result<Value, Status>, Vec<String>) {
    let hooks = kinds::hooks(context.group, context.kind);
    let mut object = canonical(row, request);
    let mut warnings = Vec::new();
    (hooks.default)(&mut object);
    warnings.extend(meta::dedup_owner_references(&mut object));
    let status = context.subresource == "status";
    let mut result = match old {
        None => {
            meta::wipe_system_fields(&mut object);
            if context.namespaced {
                object["metadata"]["namespace"] = json!(NAMESPACE);
            }
            object["metadata"]["uid"] = json!(UID);
            object["metadata"]["creationTimestamp"] = json!(NOW);
            asked(old, context, |admission| plugins().admit(&mut object, admission))
                .and_then(|()| hooks.create(&mut object, context))
        }
        Some(old) => {
            for path in row["reset"][context.subresource].as_array().into_iter().flatten() {
                // The real server resets the conditions of signing requests for ownership alone, not in the object.
                if *path != json!(["status", "conditions"]) {
                    reset(&mut object, old, path.as_array().unwrap());
                }
            }
            asked(Some(old), context, |admission| plugins().admit(&mut object, admission)).and_then(|()| {
                match status {
                    true => hooks.update_status(&mut object, old, context),
                    false => hooks.update(&mut object, old, context),
                }
            })
        }
    };
    if result.is_ok() && !status {
        warnings.extend((hooks.warnings)(&object, old));
        result = asked(old, context, |admission| plugins().validate(&object, admission));
    }
    (hooks.default)(&mut object);
    (result.map(|()| canonical(row, object)), warnings)
}

/// What stands before writes. The namespace and its account are not recorded.
fn plugins() -> Plugins {
    Plugins::default().without(["NamespaceLifecycle", "PodSecurity", "ServiceAccount"]).unwrap()
}

/// Makes a write known to plugins.
fn asked<T>(old: Option<&Value>, context: &Context<'_>, work: impl FnOnce(&mut Admission<'_>) -> T) -> T {
    let operation = if old.is_none() { Operation::Create } else { Operation::Update };
    work(&mut Admission {
        context: *context,
        operation,
        name: old.map_or("", |old| old["metadata"]["name"].as_str().unwrap()),
        namespace: if context.namespaced { NAMESPACE } else { "" },
        old,
        judge: &Admin,
        ids: &mut NoIds,
        warnings: &mut Vec::new(),
    })
}

/// The administrator may everything.
struct Admin;

impl Judge for Admin {
    fn may(&self, _: &Attributes<'_>) -> Result<(), String> {
        Ok(())
    }

    fn resources(&self, _: &str, _: &str, _: &str) -> Vec<(String, bool)> {
        unreachable!("the administrator may everything")
    }
}

/// Nothing is drawn.
struct NoIds;

impl Ids for NoIds {
    fn next(&mut self) -> u64 {
        unreachable!("nothing is drawn")
    }
}

/// Takes a path over from the old object, as the server does with what a request may not write.
fn reset(object: &mut Value, old: &Value, path: &[Value]) {
    let (key, rest) = (path[0].as_str().unwrap(), &path[1..]);
    let Some(map) = object.as_object_mut() else { return };
    match (old.get(key), rest.is_empty()) {
        (Some(value), true) => {
            map.insert(key.to_owned(), value.clone());
        }
        (None, true) => {
            map.shift_remove(key);
        }
        (value, false) => {
            if let Some(inner) = map.get_mut(key) {
                reset(inner, value.unwrap_or(&Value::Null), rest);
            }
        }
    }
}

fn canonical(row: &Value, value: Value) -> Value {
    let types = schema::builtin();
    let id = types.id(row["type"].as_str().unwrap()).unwrap();
    let mut value = codec::canonical(types, id, value, &mut Vec::new()).unwrap();
    if value["metadata"]["creationTimestamp"].is_null() {
        value["metadata"].as_object_mut().unwrap().shift_remove("creationTimestamp");
    }
    value
}

fn refusal(answer: &Value, status: &Status) -> Option<String> {
    let ours = status.to_value();
    if answer["kind"] != "Status" {
        return Some(format!("   refused, but the real server accepts: {}", ours["message"]));
    }
    let causes = |status: &Value| {
        let mut all = Vec::new();
        for cause in status["details"]["causes"].as_array().into_iter().flatten() {
            let one = (
                cause["reason"].clone(),
                cause["field"].clone(),
                shorten(cause["message"].as_str().unwrap()),
            );
            all.push(one);
        }
        all
    };
    let (theirs, mine) = (causes(answer), causes(&ours));
    let same_head = answer["code"] == ours["code"] && answer["reason"] == ours["reason"];
    let same_message = !theirs.is_empty() || answer["message"] == ours["message"];
    if same_head && same_message && theirs == mine {
        return None;
    }
    Some(format!(
        "   real {}: {}\n   ours {}: {}\n   real causes {theirs:?}\n   ours causes {mine:?}",
        answer["code"], answer["message"], ours["code"], ours["message"]
    ))
}

/// kube-apiserver quotes structures as its own Go types print, and appends diffs of them; that much is not compared.
fn shorten(message: &str) -> String {
    let first = message.split("\n@@").next().unwrap_or(message);
    for head in ["Invalid value: {", "Unsupported value: {", "Duplicate value: {"] {
        if let Some(rest) = first.strip_prefix(head) {
            let end = rest.rfind("}: ").map_or("", |at| &rest[at + 3..]);
            return format!("{head}…}}: {end}");
        }
    }
    first.trim_end().to_owned()
}

fn diff(path: &str, real: &Value, ours: &Value) -> Option<String> {
    match (real, ours) {
        (Value::Object(real), Value::Object(ours)) => {
            let mut out = Vec::new();
            for (key, value) in real {
                match ours.get(key) {
                    Some(other) => out.extend(diff(&format!("{path}.{key}"), value, other)),
                    None => out.push(format!("   {path}.{key}: real {value}, ours nothing")),
                }
            }
            for (key, value) in ours {
                if !real.contains_key(key) {
                    out.push(format!("   {path}.{key}: real nothing, ours {value}"));
                }
            }
            let order = |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
            if out.is_empty() && order(real) != order(ours) {
                out.push(format!("   {path}: order {:?}, ours {:?}", order(real), order(ours)));
            }
            (!out.is_empty()).then(|| out.join("\n"))
        }
        (Value::Array(real), Value::Array(ours)) if real.len() == ours.len() => {
            let parts = real.iter().zip(ours).enumerate();
            let out = parts.filter_map(|(i, (a, b))| diff(&format!("{path}[{i}]"), a, b)).collect::<Vec<_>>();
            (!out.is_empty()).then(|| out.join("\n"))
        }
        _ => (real != ours).then(|| format!("   {path}: real {real}, ours {ours}")),
    }
}

/// The objects that stood beside the one that was written.
struct Recorded(Vec<Value>);

impl World for Recorded {
    fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let system = json!({"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000, "preemptionPolicy": "PreemptLowerPriority"});
        if (kind, name) == ("PriorityClass", "system-node-critical") {
            return Some(system);
        }
        self.list(group, kind, namespace).into_iter().find(|object| object["metadata"]["name"] == name)
    }

    fn list(&self, group: &str, kind: &str, _: &str) -> Vec<Value> {
        let wanted = |object: &&Value| object["kind"] == kind && group_version(object).0 == group;
        self.0.iter().filter(wanted).cloned().collect()
    }

    fn namespace(&self, _: &str) -> Option<Namespace<'_>> {
        None
    }
}

fn group_version(object: &Value) -> (String, String) {
    let text = object["apiVersion"].as_str().unwrap();
    let (group, version) = text.split_once('/').unwrap_or(("", text));
    (group.to_owned(), version.to_owned())
}

/// The row of a kind in the table of resources.
fn row(group: &str, version: &str, kind: &str) -> Value {
    let table =
        include_str!("../table/resources.jsonl").lines().map(|line| serde_json::from_str(line).unwrap());
    let wanted = |row: &Value| row["group"] == group && row["version"] == version && row["kind"] == kind;
    table.into_iter().find(wanted).expect("a built-in kind")
}

/// Undoes the recorder's `@repeat:character:times`.
fn expand(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(rest) = text.strip_prefix("@repeat:") {
                let (unit, times) = rest.split_once(':').unwrap();
                *text = unit.repeat(times.parse().unwrap());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(expand),
        Value::Object(map) => map.values_mut().for_each(expand),
        _ => {}
    }
}
