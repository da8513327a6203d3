//! A sequence against one server: a transcript.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use windlass_apiserver::codec::{self, Format};

use crate::answer::{Answer, Body, Transcript, headers};
use crate::client::{self, Connection, Endpoint};
use crate::proto;
use crate::sequence::{Collect, Payload, Sequence, Step, Until};
use crate::vars::Vars;

/// How long a step is asked again until its answer is as wanted.
const UNTIL: Duration = Duration::from_secs(10);
/// How long a watch may be silent before it is taken to have nothing more to say.
const SILENCE: Duration = Duration::from_secs(5);
/// How long events beyond the expected number are waited for.
const AFTERWARDS: Duration = Duration::from_millis(150);
/// The longest answer that is read.
const ANSWER_MAX: usize = 64 << 20;

/// Runs a sequence under an id that is its own on this server.
///
/// # Errors
/// When the server cannot be reached at all. A request that fails is an answer.
pub async fn run(server: &dyn Endpoint, sequence: &Sequence, id: &str) -> Result<Transcript> {
    let mut run = Run {
        server,
        connection: server.open().await?,
        vars: Vars::new(id),
        watches: BTreeMap::new(),
        raw: sequence.rule == "bytes.order",
    };
    if needs_namespace(sequence) {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": id}});
        let answer = run.ask(&Step::with("POST", "/api/v1/namespaces", body)).await?;
        if answer.status != 201 {
            bail!("the namespace of {}/{} was not created: {answer:?}", sequence.rule, sequence.name);
        }
    }
    let started = Timestamp::now().as_second();
    let mut answers = Vec::new();
    for step in &sequence.steps {
        let answer = run.step(step).await.unwrap_or_else(|error| {
            // The text of a transport error is ours, not the server's.
            Answer { error: format!("{error:#}"), ..Answer::default() }
        });
        answers.push((!step.quiet).then_some(answer));
    }
    let captured = run.vars.captured().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
    Ok(Transcript { started, answers, captured, ..Transcript::default() })
}

fn needs_namespace(sequence: &Sequence) -> bool {
    sequence.steps.iter().any(|step| step.path.contains("/namespaces/{ns}"))
}

struct Run<'a> {
    server: &'a dyn Endpoint,
    connection: Box<dyn Connection>,
    vars: Vars,
    watches: BTreeMap<String, Watch>,
    raw: bool,
}

struct Watch {
    // Held for as long as the watch is open.
    _connection: Box<dyn Connection>,
    body: client::Body,
    read: Vec<u8>,
    ended: bool,
}

impl Run<'_> {
    async fn step(&mut self, step: &Step) -> Result<Answer> {
        if let Some(how) = &step.collect {
            return self.collect(step, how).await;
        }
        if !step.watch.is_empty() {
            return self.open_watch(step).await;
        }
        let deadline = Instant::now() + UNTIL;
        loop {
            let answer = self.ask(step).await?;
            match &step.until {
                Some(until) if !reached(until, &answer) && Instant::now() < deadline => {
                    sleep(Duration::from_millis(40)).await;
                }
                _ => return Ok(answer),
            }
        }
    }

    async fn ask(&mut self, step: &Step) -> Result<Answer> {
        let request = self.request(step)?;
        let (head, body) = self.connection.send(request).await?.into_parts();
        let body =
            timeout(Duration::from_secs(30), read_all(body)).await.context("the body did not end")??;
        let mut answer =
            Answer { status: head.status.as_u16(), headers: headers(&head.headers), ..Answer::default() };
        answer.body = understand(&head.headers, &body);
        if self.raw {
            answer.raw = String::from_utf8_lossy(&body).into_owned();
        }
        for (name, place) in &step.capture {
            if let Some(value) = find(place, &head.headers, &answer.body) {
                self.vars.set(name, value);
            }
        }
        Ok(answer)
    }

    fn request(&self, step: &Step) -> Result<Request<Full<Bytes>>> {
        let path = self.vars.text(&step.path).replace(' ', "%20");
        let mut request = Request::builder().method(step.method.as_str()).uri(path);
        for (name, value) in &step.headers {
            request = request.header(name, self.vars.text(value));
        }
        if !step.headers.contains_key("user-agent") {
            request = request.header("user-agent", "conformance/1");
        }
        if !step.headers.contains_key("accept") {
            request = request.header("accept", "application/json");
        }
        let body = match &step.body {
            Payload::None => Bytes::new(),
            Payload::Json(tree) => Bytes::from(serde_json::to_vec(&self.vars.tree(tree))?),
            Payload::Text(text) => Bytes::from(self.vars.text(text)),
            Payload::Base64(text) => Bytes::from(STANDARD.decode(text)?),
            Payload::Proto(name, tree) => Bytes::from(proto::encode(name, &self.vars.tree(tree))?),
            Payload::Large(size) => large(*size),
        };
        Ok(request.body(Full::new(body))?)
    }

    async fn open_watch(&mut self, step: &Step) -> Result<Answer> {
        let mut connection = self.server.open().await?;
        let (head, body) = connection.send(self.request(step)?).await?.into_parts();
        let mut answer =
            Answer { status: head.status.as_u16(), headers: headers(&head.headers), ..Answer::default() };
        if head.status.is_success() {
            let watch = Watch { _connection: connection, body, read: Vec::new(), ended: false };
            self.watches.insert(step.watch.clone(), watch);
        } else {
            answer.body = understand(&head.headers, &read_all(body).await?);
        }
        Ok(answer)
    }

    async fn collect(&mut self, step: &Step, how: &Collect) -> Result<Answer> {
        let name = match how {
            Collect::Name(name) => self.vars.text(name),
            _ => String::new(),
        };
        let Some(watch) = self.watches.get_mut(&step.watch) else {
            return Ok(Answer { error: "the watch was not opened".into(), ..Answer::default() });
        };
        let mut events: Vec<Value> = Vec::new();
        loop {
            let patience = match how {
                Collect::Events(count) if events.len() >= *count => AFTERWARDS,
                Collect::End => Duration::from_secs(25),
                _ => SILENCE,
            };
            let Ok(event) = timeout(patience, watch.next()).await else { break };
            let Some(event) = event? else { break };
            let last = match how {
                Collect::Name(_) => event["object"]["metadata"]["name"] == *name,
                Collect::Initial => event["type"] == "BOOKMARK" || event["type"] == "ERROR",
                Collect::Events(_) | Collect::End => false,
            };
            events.push(event);
            if last {
                break;
            }
        }
        for (name, place) in &step.capture {
            let last = Body::Tree(events.last().cloned().unwrap_or_default());
            if let Some(value) = find(place, &http::HeaderMap::new(), &last) {
                self.vars.set(name, value);
            }
        }
        Ok(Answer { body: Body::Events(events, watch.ended), ..Answer::default() })
    }
}

impl Watch {
    async fn next(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.read.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line).context("an event that is not JSON")?));
            }
            match self.body.frame().await {
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                None => {
                    self.ended = true;
                    return Ok(None);
                }
            }
        }
    }
}

async fn read_all(mut body: client::Body) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            out.extend_from_slice(&data);
        }
        if out.len() > ANSWER_MAX {
            bail!("the answer is longer than {ANSWER_MAX} bytes");
        }
    }
    Ok(out)
}

fn understand(headers: &http::HeaderMap, body: &[u8]) -> Body {
    if body.is_empty() {
        return Body::None;
    }
    let media_type = headers.get("content-type").and_then(|v| v.to_str().ok()).unwrap_or_default();
    let tree = if media_type.contains("yaml") {
        codec::parse(body, Format::Yaml).ok().map(|parsed| parsed.value)
    } else if media_type.contains("protobuf") {
        proto::decode(body).ok().map(|(_, mut tree)| {
            // In protobuf an empty list is none.
            if tree["items"].is_null() && tree["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) {
                tree["items"] = json!([]);
            }
            tree
        })
    } else {
        serde_json::from_slice(body).ok()
    };
    match tree {
        Some(tree) => Body::Tree(tree),
        None => Body::Text(String::from_utf8_lossy(body).into_owned()),
    }
}

fn find(place: &str, headers: &http::HeaderMap, body: &Body) -> Option<String> {
    if let Some(name) = place.strip_prefix("header:") {
        return headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    }
    let Body::Tree(tree) = body else { return None };
    match tree.pointer(place)? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn reached(until: &Until, answer: &Answer) -> bool {
    if let Some(header) = until.at.strip_prefix("header:") {
        return answer.status == until.status && answer.headers.iter().any(|(name, _)| name == header);
    }
    let there = match &answer.body {
        Body::Tree(tree) => tree.pointer(&until.at).unwrap_or(&Value::Null),
        _ => &Value::Null,
    };
    answer.status == until.status && (until.at.is_empty() || holds(there, &until.is))
}

/// Whether what is wanted is there; of an object the fields that are wanted, of a list each element, wherever it stands.
fn holds(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| there.get(key).is_some_and(|there| holds(there, wanted)))
        }
        (Value::Array(there), Value::Array(wanted)) => {
            wanted.iter().all(|wanted| there.iter().any(|there| holds(there, wanted)))
        }
        _ => there == wanted,
    }
}

/// A ConfigMap of about this size.
fn large(size: usize) -> Bytes {
    let mut out =
        br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large"},"data":{"a":""#.to_vec();
    out.resize(out.len() + size, b'x');
    out.extend_from_slice(br#""}}"#);
    Bytes::from(out)
}
