//! What kubectl asks of the real server, as sequences: `sequences/kubectl-VERSION.yaml`.
//!
//! A request repeats values of earlier answers: a version to watch from, the uid of an object. They become captures, so
//! that each server is asked with its own values.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use super::proxy::{Exchange, Proxy};
use super::{Shell, VERSIONS, scripts};
use crate::client::Endpoint;
use crate::proto;

/// The rule that the sequences are about.
const RULE: &str = "kubectl.requests";

/// Runs the scripts against the real server and writes the sequences; says how many there are.
///
/// # Errors
/// When kubectl is missing or cannot be started, or a file cannot be written.
pub async fn record(server: Arc<dyn Endpoint>, folder: &Path) -> Result<usize> {
    fs::create_dir_all(folder)?;
    let mut count = 0;
    for &(version, program) in VERSIONS {
        let kubeconfig = folder.join("kubeconfig");
        let proxy = Proxy::start(server.clone(), &kubeconfig).await?;
        let shell = Shell::new(program, &kubeconfig, &folder.join(version))?;
        let mut out = String::new();
        let client = tokio::task::block_in_place(|| shell.run("version --client"))?;
        let client = client.lines().find_map(|line| line.strip_prefix("Client Version: "));
        let client = client.context("`kubectl version` does not say which")?.to_owned();
        let mut documents = BTreeSet::new();
        for (index, script) in scripts().into_iter().enumerate() {
            if script.name.ends_with("(printed only)") {
                continue;
            }
            let namespace = format!("recorded-{}-{index}", version.replace('.', "-"));
            let mut sequence = Recorder::default();
            tokio::task::block_in_place(|| {
                shell.enter(&namespace)?;
                proxy.take();
                for command in script.commands {
                    shell.run(&command.replace("{ns}", &namespace))?;
                    sequence.command(proxy.take(), &namespace, &mut documents)?;
                }
                anyhow::Ok(())
            })
            .with_context(|| script.name.to_owned())?;
            writeln!(out, "- name: {}\n  steps:", json!(format!("{version} {}", script.name)))?;
            for step in sequence.steps {
                writeln!(out, "  - {}", Value::Object(step))?;
            }
            count += 1;
        }
        let head = format!(
            "# What kubectl {client} asks. Not written by hand: `make conformance ARGS=record-kubectl` writes it anew.\nrule: {RULE}\nsequences:\n"
        );
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("sequences/kubectl-{version}.yaml"));
        fs::write(file, head + &out)?;
    }
    Ok(count)
}

/// A sequence while it is being made.
#[derive(Default)]
struct Recorder {
    /// In the short form of hand-written steps.
    steps: Vec<Map<String, Value>>,
    /// Values of answers that may come back in requests, latest last.
    seen: Vec<Seen>,
    watches: usize,
    captures: usize,
}

/// A value of an answer.
struct Seen {
    step: usize,
    key: String,
    value: String,
    /// Where it stands, as a capture says it.
    place: String,
    /// The name it was captured by.
    name: Option<String>,
}

impl Recorder {
    /// Adds what one command asked. What its watches saw is collected at its end.
    ///
    /// Nearly every command reads discovery or the index of OpenAPI, at 10 kB and more. They are compared where they are
    /// first read, and only read after that; `documents` are those that were.
    fn command(
        &mut self,
        exchanges: Vec<Exchange>,
        namespace: &str,
        documents: &mut BTreeSet<String>,
    ) -> Result<()> {
        let mut collects = Vec::new();
        for exchange in exchanges {
            let mut step = Map::new();
            let watch = exchange.path.contains("watch=true") && exchange.status == 200;
            let path = self.known(&exchange.path).replace(namespace, "{ns}");
            step.insert(if watch { "WATCH".into() } else { exchange.method.clone() }, path.into());
            if watch {
                self.watches += 1;
                let name = format!("w{}", self.watches);
                let events = exchange.answer.iter().filter(|&&byte| byte == b'\n').count();
                step.insert("as".into(), name.clone().into());
                collects.push(json!({"COLLECT": events, "as": name}));
            }
            let mut headers = Map::new();
            for (name, value) in &exchange.headers {
                let known = self.known(value);
                // A tag of an earlier script is not known to the other server.
                if name != "if-none-match" || known != *value {
                    headers.insert(name.clone(), known.into());
                }
            }
            let document = exchange.path.split('?').next().unwrap_or_default();
            let shared = matches!(document, "/api" | "/apis") || document.starts_with("/openapi/");
            let unchanged = headers.contains_key("if-none-match");
            if shared && !documents.insert(document.to_owned()) && !unchanged {
                step.insert("quiet".into(), true.into());
            }
            step.insert("header".into(), headers.into());
            if let Some((form, body)) = self.body(&exchange.body, namespace)? {
                step.insert(form.into(), body);
            }
            self.steps.push(step);
            self.see(&exchange);
        }
        self.steps.extend(collects.into_iter().filter_map(|step| step.as_object().cloned()));
        Ok(())
    }

    /// How a body is written in a step, and the body. Typed clients send protobuf, in which names cannot be replaced, so
    /// it is written as a tree.
    fn body(&mut self, bytes: &[u8], namespace: &str) -> Result<Option<(&'static str, Value)>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.starts_with(b"k8s\0") {
            let (name, tree) = proto::decode(bytes)?;
            let tree = self.known(&tree.to_string()).replace(namespace, "{ns}");
            return Ok(Some(("proto", json!({name: serde_json::from_str::<Value>(&tree)?}))));
        }
        let text = std::str::from_utf8(bytes).context("a body that is neither text nor protobuf")?;
        let text = self.known(text).replace(namespace, "{ns}");
        Ok(Some(match serde_json::from_str(&text) {
            Ok(tree) => ("body", tree),
            Err(_) => ("text", text.into()),
        }))
    }

    /// A text of a request, with the values of earlier answers replaced by their captures.
    fn known(&mut self, text: &str) -> String {
        let mut out = text.to_owned();
        for index in (0..self.seen.len()).rev() {
            let seen = &self.seen[index];
            // A version is a small number, which also stands where it means something else.
            let forms = match seen.key.as_str() {
                "resourceVersion" => vec![
                    (format!("resourceVersion={}&", seen.value), "resourceVersion=NAME&"),
                    (format!("\"resourceVersion\":\"{}\"", seen.value), "\"resourceVersion\":\"NAME\""),
                ],
                _ => vec![(seen.value.clone(), "NAME")],
            };
            // A parameter that is the last has no `&` behind it.
            out.push('&');
            for (form, with) in forms {
                if out.contains(&form) {
                    let name = self.capture(index);
                    out = out.replace(&form, &with.replace("NAME", &format!("{{{name}}}")));
                }
            }
            out.pop();
        }
        out
    }

    fn capture(&mut self, index: usize) -> String {
        // A list stands before its items, which may have the same version: it is the list's that counts.
        let last = &self.seen[index];
        let same = |seen: &Seen| (seen.step, &seen.key, &seen.value) == (last.step, &last.key, &last.value);
        let first = self.seen.iter().position(same).unwrap_or(index);
        let seen = &mut self.seen[first];
        if let Some(name) = &seen.name {
            return name.clone();
        }
        self.captures += 1;
        let name = format!("v{}", self.captures);
        seen.name = Some(name.clone());
        let captures = self.steps[seen.step].entry("capture").or_insert_with(|| json!({}));
        captures[&name] = seen.place.clone().into();
        name
    }

    /// Remembers the values of an answer that may come back.
    fn see(&mut self, exchange: &Exchange) {
        let step = self.steps.len() - 1;
        if let Some(etag) = exchange.answer_headers.get("etag").and_then(|etag| etag.to_str().ok()) {
            let (key, place) = ("etag".to_owned(), "header:etag".to_owned());
            self.seen.push(Seen { step, key, value: etag.to_owned(), place, name: None });
        }
        let tree = serde_json::from_slice(&exchange.answer).ok();
        let tree = tree.or_else(|| Some(proto::decode(&exchange.answer).ok()?.1));
        if let Some(tree) = tree {
            self.look(step, "", "", &tree);
        }
    }

    fn look(&mut self, step: usize, place: &str, key: &str, value: &Value) {
        const KEYS: &[&str] =
            &["resourceVersion", "uid", "continue", "creationTimestamp", "serverRelativeURL"];
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let escaped = key.replace('~', "~0").replace('/', "~1");
                    self.look(step, &format!("{place}/{escaped}"), key, value);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.look(step, &format!("{place}/{index}"), key, item);
                }
            }
            Value::String(text) if KEYS.contains(&key) && text.len() > 1 => {
                let (key, value, place) = (key.to_owned(), text.clone(), place.to_owned());
                self.seen.push(Seen { step, key, value, place, name: None });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(method: &str, path: &str, body: &str, answer: &str) -> Exchange {
        Exchange {
            method: method.into(),
            path: path.into(),
            body: body.to_owned().into(),
            status: 200,
            answer: answer.as_bytes().to_vec(),
            ..Exchange::default()
        }
    }

    #[test]
    fn values_of_answers_become_captures() {
        let mut recorder = Recorder::default();
        let list = r#"{"metadata":{"resourceVersion":"12"},"items":[{"metadata":{"uid":"abc-def","resourceVersion":"12"}}]}"#;
        let events = "{\"type\":\"ADDED\"}\n{\"type\":\"DELETED\"}\n";
        let exchanges = vec![
            exchange("GET", "/api/v1/namespaces/r-1/pods?limit=12", "", list),
            exchange("GET", "/api/v1/namespaces/r-1/pods?watch=true&resourceVersion=12", "", events),
            exchange(
                "PATCH",
                "/x",
                r#"{"metadata":{"namespace":"r-1","uid":"abc-def","resourceVersion":"12","n":"12"}}"#,
                "{}",
            ),
        ];
        recorder.command(exchanges, "r-1", &mut BTreeSet::new()).unwrap();
        let steps: Vec<Value> = recorder.steps.into_iter().map(Value::Object).collect();
        assert_eq!(steps[0]["GET"], "/api/v1/namespaces/{ns}/pods?limit=12");
        assert_eq!(
            steps[0]["capture"],
            json!({"v1": "/metadata/resourceVersion", "v2": "/items/0/metadata/uid"})
        );
        assert_eq!(steps[1]["WATCH"], "/api/v1/namespaces/{ns}/pods?watch=true&resourceVersion={v1}");
        assert_eq!(
            steps[2]["body"]["metadata"],
            json!({"namespace": "{ns}", "uid": "{v2}", "resourceVersion": "{v1}", "n": "12"})
        );
        assert_eq!(steps[3], json!({"COLLECT": 2, "as": "w1"}));
    }
}
