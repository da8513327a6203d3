//! What a kubelet says of pods, without what differs from run to run.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::controllers::mirror::View;
use crate::controllers::normal::Picture;

/// The pods of a namespace, and what the kubelet told of them.
pub fn picture(view: &View, namespace: &str) -> Picture {
    let mut picture = Picture::new();
    let mut told: BTreeMap<String, Value> = BTreeMap::new();
    for entry in view.iter().filter(|entry| !entry.gone) {
        let object = &entry.object;
        match entry.kind.kind {
            "Pod" => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                picture.insert(format!("Pod/{name}"), status(object, namespace));
            }
            "Event" if is_of_kubelet(object) => {
                let about = object["involvedObject"]["name"].as_str().unwrap_or_default();
                let text = |name: &str| object[name].as_str().unwrap_or_default();
                let line = format!("Pod/{about} {} {}", text("type"), text("reason"));
                let messages = told.entry(line).or_insert_with(|| json!([]));
                let message = Value::String(words(text("message"), namespace));
                if let Some(messages) = messages.as_array_mut()
                    && !messages.contains(&message)
                {
                    messages.push(message);
                    messages.sort_by_key(Value::to_string);
                }
            }
            _ => {}
        }
    }
    picture.insert("Events".to_owned(), Value::Object(told.into_iter().collect()));
    picture
}

/// Whoever runs pods tells of them; whoever places them is not the subject.
fn is_of_kubelet(event: &Value) -> bool {
    let from = [&event["source"]["component"], &event["reportingComponent"]];
    let placed = from.iter().any(|from| **from == "default-scheduler");
    event["involvedObject"]["kind"] == "Pod" && !placed
}

fn status(pod: &Value, namespace: &str) -> Value {
    let status = &pod["status"];
    let mut out = Map::new();
    for field in ["phase", "reason", "message", "qosClass"] {
        if let Some(text) = status[field].as_str() {
            out.insert(field.to_owned(), json!(words(text, namespace)));
        }
    }
    let conditions = status["conditions"].as_array().into_iter().flatten().map(|condition| {
        let name = condition["type"].as_str().unwrap_or_default().to_owned();
        (name, of(condition, &["status", "reason", "message"], namespace))
    });
    out.insert("conditions".to_owned(), Value::Object(sorted(conditions)));
    for field in ["initContainerStatuses", "containerStatuses"] {
        let containers = status[field].as_array().into_iter().flatten().map(|container| {
            let name = container["name"].as_str().unwrap_or_default().to_owned();
            (name, container_status(container, namespace))
        });
        let containers = sorted(containers);
        if !containers.is_empty() {
            out.insert(field.to_owned(), Value::Object(containers));
        }
    }
    Value::Object(out)
}

fn container_status(container: &Value, namespace: &str) -> Value {
    let mut out = of(container, &["ready", "started", "restartCount", "image"], namespace);
    for field in ["state", "lastState"] {
        for (state, detail) in container[field].as_object().into_iter().flatten() {
            out[field][state] = of(detail, &["exitCode", "signal", "reason", "message"], namespace);
        }
    }
    out
}

/// Some fields, where they are there.
fn of(object: &Value, fields: &[&str], namespace: &str) -> Value {
    let field = |name: &&str| match &object[*name] {
        Value::Null => None,
        Value::String(text) => Some(((*name).to_owned(), json!(words(text, namespace)))),
        other => Some(((*name).to_owned(), other.clone())),
    };
    Value::Object(fields.iter().filter_map(field).collect())
}

fn sorted(items: impl Iterator<Item = (String, Value)>) -> Map<String, Value> {
    items.collect::<BTreeMap<_, _>>().into_iter().collect()
}

/// A text without namespaces, ids, addresses and durations.
fn words(text: &str, namespace: &str) -> String {
    let mut text = text.replace(namespace, "NS").replace("docker.io/library/", "");
    for (pattern, word) in WORDS.iter() {
        text = pattern.replace_all(&text, *word).into_owned();
    }
    text
}

static WORDS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let patterns = [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
        (r"[0-9a-f]{64}", "<id>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?", "<time>"),
        (r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", "<ip>"),
        (r"back-off \S+ ", "back-off <duration> "),
        (r"in [0-9.]+m?s \([0-9.]+m?s including waiting\)\. Image size: \d+ bytes", "in <duration>"),
        // Retried probes are told with the time they took.
        (r"after [0-9.]+m?s", "after <duration>"),
    ];
    let regex = |(pattern, word)| (Regex::new(pattern).expect("the expression is well-formed"), word);
    patterns.into_iter().map(regex).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_durations_are_said_in_words() {
        let text =
            "back-off 10s restarting failed container=c pod=p_s-x-z(11111111-1111-1111-1111-111111111111)";
        assert_eq!(words(text, "s-x-z"), "back-off <duration> restarting failed container=c pod=p_NS(<uid>)");
    }
}
