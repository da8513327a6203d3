//! What is there, without what differs from run to run: names, hashes, uids, addresses and times become words that say
//! what they are.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::mirror::{Entry, View};

/// Objects by kind and name; several of one name, where names are generated, are numbered; and `Events`.
pub type Picture = BTreeMap<String, Value>;

/// A picture of what is there of a namespace.
pub fn picture(view: &View, namespace: &str) -> Picture {
    let words = Words::new(view, namespace);
    let mut siblings: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut events = Vec::new();
    for entry in view.iter().filter(|entry| !entry.gone && !is_noise(entry)) {
        if entry.kind.kind == "Event" {
            events.push(&entry.object);
            continue;
        }
        siblings.entry(words.full_name(entry)).or_default().push(object(&words, entry));
    }
    let mut picture = Picture::new();
    for (name, mut objects) in siblings {
        objects.sort_by_key(Value::to_string);
        let mut alike: Vec<(Value, usize)> = Vec::new();
        for object in objects {
            match alike.last_mut() {
                Some((last, count)) if *last == object => *count += 1,
                _ => alike.push((object, 1)),
            }
        }
        let only = alike.len() == 1;
        for (index, (object, count)) in alike.into_iter().enumerate() {
            let number = if only { String::new() } else { format!(" #{}", index + 1) };
            let times = if count == 1 { String::new() } else { format!(" ×{count}") };
            picture.insert(format!("{name}{number}{times}"), object);
        }
    }
    picture.insert("Events".to_owned(), told(&words, &events));
    picture
}

/// What every namespace gets from controllers that are no part of most comparisons, and what belongs to none. kube-apiserver's
/// own repair of addresses looks at all Services when it starts, and tells of one whose address is not noted yet.
fn is_noise(entry: &Entry) -> bool {
    let name = entry.object["metadata"]["name"].as_str().unwrap_or_default();
    let kind = entry.kind.kind;
    (kind == "Event" && entry.object["reportingComponent"] == "ipallocator-repair-controller")
        || (kind == "ServiceAccount" && name == "default")
        || (kind == "ConfigMap" && name == "kube-root-ca.crt")
            && !entry.object["metadata"]["namespace"]
                .as_str()
                .is_some_and(|ns| ns.starts_with("s-serviceaccount"))
}

/// What is to be said in other words.
struct Words {
    /// The longest first: one may be a part of another.
    said: Vec<(String, String)>,
    /// Names that were generated and refused: nobody has seen such an object, but messages name it.
    refused: Option<Regex>,
}

impl Words {
    fn new(view: &View, namespace: &str) -> Words {
        let mut said: BTreeMap<String, String> = BTreeMap::new();
        said.insert(namespace.to_owned(), "NS".to_owned());
        for (hash, word) in hashes(view) {
            said.entry(hash).or_insert(word);
        }
        for entry in view {
            let metadata = &entry.object["metadata"];
            let name = metadata["name"].as_str().unwrap_or_default();
            if let Some(prefix) = metadata["generateName"].as_str().filter(|prefix| name.starts_with(prefix))
            {
                said.insert(name.to_owned(), replaced(&sorted(&said), &format!("{prefix}*")));
            }
            if let Some(word) = of_a_cron_job(entry, name) {
                said.insert(name.to_owned(), word);
            }
        }
        // A uid is said by the name, so the names are known first. Names that contain a uid are those of volumes.
        let names = Words { said: sorted(&said), refused: None };
        for entry in view {
            if let Some(uid) = entry.object["metadata"]["uid"].as_str() {
                let gone = if entry.gone { " gone" } else { "" };
                said.insert(uid.to_owned(), format!("<uid {}{gone}>", names.full_name(entry)));
            }
        }
        Words { said: sorted(&said), refused: refused(view) }
    }

    fn full_name(&self, entry: &Entry) -> String {
        let name = entry.object["metadata"]["name"].as_str().unwrap_or_default();
        format!("{}/{}", entry.kind.kind, replaced(&self.said, name))
    }

    fn text(&self, text: &str) -> String {
        let text = replaced(&self.said, text);
        let text = match &self.refused {
            Some(names) => names.replace_all(&text, "$1*").into_owned(),
            None => text,
        };
        let text = TIME.replace_all(&text, "<time>");
        let text = UID.replace_all(&text, "<uid>");
        let text = ADDRESS.replace_all(&text, "<ip>");
        let text = CONTAINER.replace_all(&text, "windlass://<id>");
        match text.starts_with("-----BEGIN") {
            true => "<certificate>".to_owned(),
            false => text.into_owned(),
        }
    }
}

static TIME: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?(Z|UTC|\+0000))*"));
static UID: LazyLock<Regex> =
    LazyLock::new(|| regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
/// Containers of our node.
static CONTAINER: LazyLock<Regex> = LazyLock::new(|| regex(r"\bwindlass://[0-9a-f]{64}\b"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| regex(r"\b10\.\d{1,3}\.\d{1,3}\.\d{1,3}\b"));

fn regex(text: &str) -> Regex {
    Regex::new(text).expect("the expression is well-formed")
}

fn sorted(said: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let mut sorted: Vec<_> = said.iter().map(|(from, to)| (from.clone(), to.clone())).collect();
    sorted.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
    sorted
}

fn replaced(said: &[(String, String)], text: &str) -> String {
    let mut text = text.to_owned();
    for (from, to) in said {
        if text.contains(from) {
            text = text.replace(from, to);
        }
    }
    text
}

/// Prefixes of generated names, followed by what the server makes up.
fn refused(view: &View) -> Option<Regex> {
    let prefixes = view.iter().filter_map(|entry| entry.object["metadata"]["generateName"].as_str());
    let mut prefixes: Vec<String> = prefixes.map(regex::escape).collect();
    prefixes.sort();
    prefixes.dedup();
    let any = prefixes.join("|");
    (!any.is_empty()).then(|| regex(&format!(r"\b({any})[bcdfghjklmnpqrstvwxz2456789]{{5}}\b")))
}

/// Hashes of pod templates, numbered for each owner in the order in which they came.
fn hashes(view: &View) -> Vec<(String, String)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut hashes = Vec::new();
    for entry in view {
        let labels = &entry.object["metadata"]["labels"];
        let hash = match entry.kind.kind {
            "ReplicaSet" => labels["pod-template-hash"].as_str(),
            "ControllerRevision" => {
                let name = entry.object["metadata"]["name"].as_str().unwrap_or_default();
                name.rsplit_once('-').map(|(_, hash)| hash)
            }
            _ => None,
        };
        let name = entry.object["metadata"]["name"].as_str().unwrap_or_default();
        let Some(hash) = hash.filter(|hash| name.ends_with(hash) && hash.len() >= 5) else { continue };
        if hashes.iter().any(|(known, _)| known == hash) {
            continue;
        }
        let owner = name.trim_end_matches(hash).trim_end_matches('-').to_owned();
        let count = counts.entry(format!("{}/{owner}", entry.kind.kind)).or_default();
        *count += 1;
        hashes.push((hash.to_owned(), format!("<{owner} template {count}>")));
    }
    hashes
}

/// Jobs of a CronJob are named by the minute.
fn of_a_cron_job(entry: &Entry, name: &str) -> Option<String> {
    let owner = &entry.object["metadata"]["ownerReferences"][0];
    let cron_job = owner["name"].as_str().filter(|_| owner["kind"] == "CronJob")?;
    let minute = name.strip_prefix(cron_job)?.strip_prefix('-')?;
    minute.bytes().all(|byte| byte.is_ascii_digit()).then(|| format!("{cron_job}-<minute>"))
}

fn object(words: &Words, entry: &Entry) -> Value {
    let mut object = entry.object.clone();
    if let Some(map) = object.as_object_mut() {
        map.shift_remove("kind");
        map.shift_remove("apiVersion");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in
            ["name", "namespace", "uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"]
        {
            metadata.shift_remove(field);
        }
    }
    value(words, "", &object)
}

fn value(words: &Words, key: &str, from: &Value) -> Value {
    match from {
        // What a Secret holds that nobody wrote by hand: tokens and certificates.
        Value::Object(map) if key == "data" && map.contains_key("token") => {
            Value::Object(map.keys().map(|name| (name.clone(), json!("<secret>"))).collect())
        }
        Value::String(_) if key == "resourceVersion" => json!("<version>"),
        Value::String(_) if key == "kubernetes.io/legacy-token-last-used" => json!("<day>"),
        Value::String(text) => Value::String(words.text(text)),
        Value::Number(_) if matches!(key, "nodePort" | "healthCheckNodePort") => json!("<port>"),
        // That of a node's own endpoint, where it has one.
        Value::Number(port) if key == "Port" && port.as_i64() != Some(0) => json!("<port>"),
        Value::Array(items) if key == "conditions" => {
            let named = items.iter().map(|item| {
                let mut item = value(words, "", item);
                let name = item["type"].as_str().unwrap_or_default().to_owned();
                if let Some(map) = item.as_object_mut() {
                    map.shift_remove("type");
                }
                (name, item)
            });
            Value::Object(in_order(named.collect()))
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| value(words, "", item)).collect();
            // Nobody promises an order of these.
            if matches!(
                key,
                "endpoints"
                    | "addresses"
                    | "notReadyAddresses"
                    | "succeeded"
                    | "failed"
                    | "active"
                    | "taints"
            ) {
                items.sort_by_key(Value::to_string);
            }
            Value::Array(items)
        }
        Value::Object(map) => Value::Object(in_order(
            map.iter().map(|(key, inner)| (words.text(key), value(words, key, inner))).collect(),
        )),
        other => other.clone(),
    }
}

/// Keys in the order of the alphabet, so that equal objects print alike.
fn in_order(map: BTreeMap<String, Value>) -> Map<String, Value> {
    map.into_iter().collect()
}

/// So many alike are as good as any more: from here on clients put them together as they like.
const MANY: usize = 10;

/// What clients say before a message that stands for several.
const COMBINED: &str = "(combined from similar events): ";

/// Every event once, with the number of different ones that say so, up to [`MANY`].
fn told(words: &Words, events: &[&Value]) -> Value {
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    for event in events {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let about = &event["involvedObject"];
        let from = match event["source"]["component"].as_str() {
            Some(component) if !component.is_empty() => component,
            _ => text("reportingComponent"),
        };
        let line = format!(
            "{}/{} {} {} from {from}: {}",
            about["kind"].as_str().unwrap_or_default(),
            words.text(about["name"].as_str().unwrap_or_default()),
            text("type"),
            text("reason"),
            words.text(text("message").trim_start_matches(COMBINED)),
        );
        // kube-scheduler begins a new event with each version of a pod, where others go on with the series.
        let count = told.entry(line).or_default();
        *count = if from == "default-scheduler" { 1 } else { *count + 1 };
    }
    Value::Object(told.into_iter().map(|(line, count)| (line, json!(count.min(MANY)))).collect())
}

#[cfg(test)]
mod tests {
    use super::super::api::Kind;
    use super::*;

    fn entry(order: u64, kind: &str, object: Value) -> Entry {
        Entry { kind: Kind::named(kind).unwrap(), order, gone: false, object }
    }

    #[test]
    fn generated_names_uids_and_hashes_are_said_in_words() {
        let uid = "11111111-1111-1111-1111-111111111111";
        let view = vec![
            entry(
                1,
                "replicaset",
                json!({"metadata": {
                "name": "web-5d9f7c8b6", "uid": uid, "labels": {"pod-template-hash": "5d9f7c8b6"}}}),
            ),
            entry(
                2,
                "pod",
                json!({"metadata": {
                "name": "web-5d9f7c8b6-x2x4z", "generateName": "web-5d9f7c8b6-",
                "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d9f7c8b6", "uid": uid}]}}),
            ),
            entry(
                3,
                "event",
                json!({"metadata": {}, "type": "Normal", "reason": "SuccessfulCreate",
                "message": "Created pod: web-5d9f7c8b6-x2x4z", "source": {"component": "c"},
                "involvedObject": {"kind": "ReplicaSet", "name": "web-5d9f7c8b6"}}),
            ),
        ];
        let picture = picture(&view, "ns");
        let names: Vec<&str> = picture.keys().map(String::as_str).collect();
        assert_eq!(names, ["Events", "Pod/web-<web template 1>-*", "ReplicaSet/web-<web template 1>"]);
        let owner = &picture["Pod/web-<web template 1>-*"]["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], "<uid ReplicaSet/web-<web template 1>>");
        let event = "ReplicaSet/web-<web template 1> Normal SuccessfulCreate from c: Created pod: web-<web template 1>-*";
        assert_eq!(picture["Events"][event], 1);
    }

    #[test]
    fn equal_siblings_are_counted_and_unequal_ones_numbered() {
        let pod = |order, name: &str, phase: &str| {
            let metadata = json!({"name": format!("p-{name}"), "generateName": "p-"});
            entry(order, "pod", json!({"metadata": metadata, "status": {"phase": phase}}))
        };
        let view = vec![pod(1, "a1", "Running"), pod(2, "b2", "Failed"), pod(3, "c3", "Running")];
        let picture = picture(&view, "ns");
        let names: Vec<&str> = picture.keys().map(String::as_str).collect();
        assert_eq!(names, ["Events", "Pod/p-* #1", "Pod/p-* #2 ×2"]);
    }
}
