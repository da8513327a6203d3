//! A sequence: requests in order, with values taken from earlier answers put into later requests.
//!
//! Nothing here says what the answer should be: the real server does. Sequences that are written by hand, or recorded from
//! kubectl, lie in `sequences/*.yaml`; their steps are written short:
//!
//! ```yaml
//! rule: update.conflict
//! sequences:
//! - name: stale version
//!   steps:
//!   - POST: /api/v1/namespaces/{ns}/configmaps
//!     body: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
//!     capture: {rv: /metadata/resourceVersion}
//!   - PATCH: /api/v1/namespaces/{ns}/configmaps/a
//!     type: merge
//!     body: {data: {a: b}}
//!   - PUT: /api/v1/namespaces/{ns}/configmaps/a
//!     body: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: "{rv}"}}
//! ```

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_apiserver::codec::{self, Format};

/// Requests in order, all in a namespace of their own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sequence {
    /// The id of the rule that it is about, as in `rules.yaml`.
    pub rule: String,
    /// A name, unique within the rule.
    pub name: String,
    /// Whether it was made from a seed rather than by hand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub generated: bool,
    /// What is done.
    pub steps: Vec<Step>,
}

/// One thing that is done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// The method; `COLLECT` reads from the watch that [`Step::watch`] names.
    pub method: String,
    /// Path and query.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Headers, lower case.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body.
    #[serde(skip_serializing_if = "Payload::is_none")]
    pub body: Payload,
    /// Values to take from the answer: name to JSON pointer, or `header:NAME`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capture: BTreeMap<String, String>,
    /// Ask again until the answer is so; only the last answer counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Not compared: it only prepares.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub quiet: bool,
    /// The watch that a `GET` opens or a `COLLECT` reads.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub watch: String,
    /// How far a `COLLECT` reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collect: Option<Collect>,
}

/// A request body.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// None.
    #[default]
    None,
    /// A tree, sent as JSON.
    Json(Value),
    /// Text, sent as it is: YAML, broken JSON, duplicate keys.
    Text(String),
    /// Bytes in base64.
    Base64(String),
    /// A tree, sent as protobuf in the envelope of Kubernetes, by the type of this OpenAPI name.
    Proto(String, Value),
    /// This many spaces between two quotes of a string value: bodies too large to write down.
    Large(usize),
}

impl Payload {
    fn is_none(&self) -> bool {
        *self == Payload::None
    }
}

/// When an answer is good enough to stop asking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// The status code.
    pub status: u16,
    /// A JSON pointer that must lead to `is`, or `header:NAME` for a header that must be there.
    #[serde(default)]
    pub at: String,
    /// The value there; of an object the fields that count, of a list the elements, in any order.
    #[serde(default)]
    pub is: Value,
}

/// How far a watch is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Collect {
    /// Until an event with an object of this name, inclusive.
    Name(String),
    /// This many events, and then those that come at once.
    Events(usize),
    /// Until the bookmark that ends the initial events.
    Initial,
    /// Until the server ends the stream.
    End,
}

/// Reads a file of sequences.
///
/// # Errors
/// When it is not one.
pub fn read(text: &str) -> Result<Vec<Sequence>> {
    let parsed = codec::parse(text.as_bytes(), Format::Yaml).map_err(|e| anyhow::anyhow!("{e}"))?;
    let rule = text_at(&parsed.value, "rule")?;
    let mut out = Vec::new();
    for sequence in parsed.value["sequences"].as_array().context("no list `sequences`")? {
        let name = text_at(sequence, "name")?;
        let mut steps = Vec::new();
        for step in sequence["steps"].as_array().with_context(|| format!("{name}: no list `steps`"))? {
            steps.push(short(step).with_context(|| format!("{rule}/{name}: {step}"))?);
        }
        // The same steps for each value of a list, or of each combination of several:
        // `each: {resource: [pods, services]}`.
        let rule_of = sequence["rule"].as_str().unwrap_or(&rule).to_owned();
        let base = Sequence { rule: rule_of, name, generated: false, steps };
        let mut all = vec![base];
        for (variable, values) in sequence["each"].as_object().into_iter().flatten() {
            let values = values.as_array().context("`each` wants lists")?;
            let expanded = all.iter().map(|one| expand(one, variable, values)).collect::<Result<Vec<_>>>()?;
            all = expanded.concat();
        }
        out.extend(all);
    }
    Ok(out)
}

fn expand(base: &Sequence, variable: &str, values: &[Value]) -> Result<Vec<Sequence>> {
    values
        .iter()
        .map(|value| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let steps = serde_json::to_string(&base.steps)?;
            let escaped = serde_json::to_string(&text)?;
            let steps = steps.replace(&format!("{{{variable}}}"), &escaped[1..escaped.len() - 1]);
            let name = format!("{} {text}", base.name);
            Ok(Sequence { name, steps: serde_json::from_str(&steps)?, ..base.clone() })
        })
        .collect()
}

fn text_at(value: &Value, key: &str) -> Result<String> {
    Ok(value[key].as_str().with_context(|| format!("no text `{key}`"))?.to_owned())
}

/// The short form of a step, as it is written by hand.
fn short(step: &Value) -> Result<Step> {
    let mut out = Step::default();
    for (key, value) in step.as_object().context("a step is an object")? {
        let text = || value.as_str().map(str::to_owned).with_context(|| format!("`{key}` wants text"));
        match key.as_str() {
            "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS" => {
                out.method = key.clone();
                out.path = text()?;
            }
            "WATCH" => {
                out.method = "GET".into();
                out.path = text()?;
                if out.watch.is_empty() {
                    out.watch = "w".into();
                }
            }
            "COLLECT" => {
                out.method = key.clone();
                if out.watch.is_empty() {
                    out.watch = "w".into();
                }
                out.collect = Some(match value {
                    Value::Number(n) => Collect::Events(n.as_u64().unwrap_or(0) as usize),
                    Value::String(s) if s == "end" => Collect::End,
                    Value::String(s) if s == "initial" => Collect::Initial,
                    Value::String(s) => Collect::Name(s.clone()),
                    _ => bail!("COLLECT wants a number of events, a name, `initial` or `end`"),
                });
            }
            "as" => out.watch = text()?,
            "type" => drop(out.headers.insert("content-type".into(), content_type(&text()?))),
            "accept" => drop(out.headers.insert("accept".into(), accept(&text()?))),
            "header" => {
                for (name, value) in value.as_object().context("`header` is an object")? {
                    out.headers
                        .insert(name.to_lowercase(), value.as_str().context("a header is text")?.into());
                }
            }
            "body" => out.body = Payload::Json(value.clone()),
            "text" => out.body = Payload::Text(text()?),
            "base64" => out.body = Payload::Base64(text()?),
            "proto" => {
                let (name, tree) = value.as_object().and_then(|o| o.iter().next()).context("{type: tree}")?;
                out.body = Payload::Proto(name.clone(), tree.clone());
            }
            "large" => out.body = Payload::Large(value.as_u64().context("a size")? as usize),
            "capture" => out.capture = serde_json::from_value(value.clone())?,
            "until" => out.until = Some(serde_json::from_value(value.clone())?),
            "quiet" => out.quiet = value.as_bool().unwrap_or(false),
            other => bail!("a step knows no `{other}`"),
        }
    }
    if out.method.is_empty() {
        bail!("a step wants a method");
    }
    out.set_content_type();
    Ok(out)
}

impl Sequence {
    /// Whether it makes kinds of its own, which everybody sees in discovery until some time after it.
    pub fn defines_kinds(&self) -> bool {
        self.steps
            .iter()
            .any(|step| step.method == "POST" && step.path.contains("/customresourcedefinitions"))
    }
}

impl Step {
    /// A request without a body.
    pub fn new(method: &str, path: impl Into<String>) -> Step {
        Step { method: method.into(), path: path.into(), ..Step::default() }
    }

    /// A request with a JSON body.
    pub fn with(method: &str, path: impl Into<String>, body: Value) -> Step {
        let mut step = Step { body: Payload::Json(body), ..Step::new(method, path) };
        step.set_content_type();
        step
    }

    /// A patch of a kind: `json`, `merge`, `strategic` or `apply`.
    pub fn patch(kind: &str, path: impl Into<String>, body: Value) -> Step {
        Step::with("PATCH", path, body).header("content-type", &content_type(kind))
    }

    /// A watch under a name.
    pub fn watch(id: &str, path: impl Into<String>) -> Step {
        Step { watch: id.into(), ..Step::new("GET", path) }
    }

    /// The events of a watch.
    pub fn collect(id: &str, how: Collect) -> Step {
        Step { method: "COLLECT".into(), watch: id.into(), collect: Some(how), ..Step::default() }
    }

    /// With a header.
    pub fn header(mut self, name: &str, value: &str) -> Step {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// With a value taken from the answer.
    pub fn capture(mut self, name: &str, pointer: &str) -> Step {
        self.capture.insert(name.into(), pointer.into());
        self
    }

    /// Asked again until it answers with this status, and with this value at a place ([`Until::at`]).
    pub fn until_told(mut self, status: u16, at: &str, is: Value) -> Step {
        self.until = Some(Until { status, at: at.to_owned(), is });
        self
    }

    /// Asked again until it answers with this status.
    pub fn until(mut self, status: u16) -> Step {
        self.until = Some(Until { status, at: String::new(), is: Value::Null });
        self
    }

    /// Not compared.
    pub fn quiet(mut self) -> Step {
        self.quiet = true;
        self
    }

    fn set_content_type(&mut self) {
        let media_type = match &self.body {
            Payload::None => return,
            Payload::Proto(..) => "application/vnd.kubernetes.protobuf",
            _ => "application/json",
        };
        self.headers.entry("content-type".into()).or_insert_with(|| media_type.into());
    }
}

/// The media type of a short name.
fn content_type(short: &str) -> String {
    match short {
        "json" => "application/json-patch+json",
        "merge" => "application/merge-patch+json",
        "strategic" => "application/strategic-merge-patch+json",
        "apply" => "application/apply-patch+yaml",
        "yaml" => "application/yaml",
        "protobuf" => "application/vnd.kubernetes.protobuf",
        other => other,
    }
    .into()
}

/// The `Accept` of a short name.
pub fn accept(short: &str) -> String {
    match short {
        "json" => "application/json",
        "yaml" => "application/yaml",
        "table" => "application/json;as=Table;v=v1;g=meta.k8s.io",
        "partial" => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
        "partials" => "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "aggregated" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        other => other,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_becomes_steps() {
        let text = "rule: r\nsequences:\n- name: one\n  each: {kind: [pods, services]}\n  steps:\n  - WATCH: /api/v1/{kind}?watch=1\n  - COLLECT: end\n  - PATCH: /x\n    type: merge\n    body: {a: 1}\n    capture: {rv: /metadata/resourceVersion}\n";
        let sequences = read(text).unwrap();
        assert_eq!(sequences.len(), 2);
        assert_eq!(sequences[1].name, "one services");
        let steps = &sequences[1].steps;
        assert_eq!((steps[0].path.as_str(), steps[0].watch.as_str()), ("/api/v1/services?watch=1", "w"));
        assert_eq!(steps[1].collect, Some(Collect::End));
        assert_eq!(steps[2].headers["content-type"], "application/merge-patch+json");
        let again: Vec<Step> = serde_json::from_str(&serde_json::to_string(steps).unwrap()).unwrap();
        assert_eq!(format!("{again:?}"), format!("{steps:?}"));
    }

    #[test]
    fn a_step_with_an_unknown_word_is_refused() {
        let error =
            read("rule: r\nsequences:\n- name: one\n  steps:\n  - GET: /x\n    bodi: {}\n").unwrap_err();
        assert!(format!("{error:#}").contains("bodi"), "{error:#}");
    }
}
