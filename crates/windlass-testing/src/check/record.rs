//! What clients saw, written down as it was sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use serde_json::Value;
use windlass_apiserver::api::Server;
use windlass_apiserver::api::registry::Resource;
use windlass_apiserver::front::{Aborted, ApiServer, Body, Service};
use windlass_apiserver::store::Unreadable;
use windlass_core::select::{FieldSelector, LabelSelector};

use super::truth::{Commit, Truth};
use super::{Event, EventKind, Report, Stream, verify};
use crate::world::tree;

/// Records the watches that are served through its [service](Recorder::service). A clone is the same recorder.
#[derive(Clone)]
pub struct Recorder {
    server: ApiServer,
    watches: Arc<Mutex<Vec<Recording>>>,
}

/// A watch that is being served.
#[derive(Clone)]
struct Recording {
    request: String,
    resource: Arc<Resource>,
    choice: Choice,
    start: (u64, u64),
    initial: bool,
    sent: Arc<Mutex<Vec<u8>>>,
}

/// What a client asked for.
#[derive(Clone)]
struct Choice {
    namespace: String,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Recorder {
    /// A recorder in front of a server.
    pub fn new(server: ApiServer) -> Recorder {
        Recorder { server, watches: Arc::default() }
    }

    /// The server's service, whose watches are recorded.
    pub fn service(&self) -> Recorded {
        Recorded { inner: self.server.service(), recorder: self.clone() }
    }

    /// Checks what was recorded so far.
    pub fn report(&self) -> Report {
        let watches = lock(&self.watches).clone();
        let server = self.server.snapshot();
        let mut report = Report::default();
        for watch in watches {
            let Ok(truth) = watch.truth(server.clone()) else {
                report.unchecked += 1;
                continue;
            };
            let stream = watch.stream();
            report.checked += 1;
            report.events += stream.events.len();
            let selects = |object: &Value| watch.choice.selects(&watch.resource, object);
            report.violations.extend(verify(&stream, &truth, &selects));
        }
        report
    }

    fn revision(&self) -> u64 {
        self.server.inspect(|server| server.store().revision())
    }

    /// The recording of a request, if it is a watch of objects.
    fn recording(&self, request: &http::request::Parts) -> Option<Recording> {
        let query: Vec<(String, String)> =
            form_urlencoded::parse(request.uri.query()?.as_bytes()).into_owned().collect();
        let text = |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let flag = |name: &str| text(name).map(|value| !matches!(value, "0" | "false"));
        let accept = request.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
        if flag("watch") != Some(true) || accept.is_some_and(|accept| accept.contains("as=Table")) {
            return None;
        }
        let segments: Vec<&str> = request.uri.path().trim_matches('/').split('/').collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, plural) = match rest {
            [plural] => ("", *plural),
            ["namespaces", namespace, plural] => (*namespace, *plural),
            _ => return None,
        };
        let resource = self.server.inspect(|server| server.registry().find(group, version, plural))?;
        let revision = text("resourceVersion").unwrap_or_default().parse().unwrap_or(0);
        let choice = Choice {
            namespace: namespace.to_owned(),
            labels: LabelSelector::parse(text("labelSelector").unwrap_or_default()).ok()?,
            fields: FieldSelector::parse(text("fieldSelector").unwrap_or_default()).ok()?,
        };
        let initial = flag("sendInitialEvents").unwrap_or(revision == 0);
        let start = if initial || revision == 0 { (self.revision(), u64::MAX) } else { (revision, revision) };
        let request = request.uri.to_string();
        Some(Recording { request, resource, choice, start, initial, sent: Arc::default() })
    }
}

impl Recording {
    fn truth(&self, mut server: Server) -> Result<Truth, Unreadable> {
        let kind = &self.resource.storage;
        let state = server.store_mut().at(kind, self.start.0)?;
        let state = state.range(None, None).map(|object| (object.key().to_owned(), tree(object))).collect();
        let commits = server.store().events(kind, self.start.0)?.map(|event| Commit {
            revision: event.revision,
            previous: event.previous.as_ref().map(|object| tree(object)),
            object: (event.kind != windlass_apiserver::store::EventType::Deleted)
                .then(|| tree(&event.object)),
        });
        Ok(Truth { state, commits: commits.collect() })
    }

    /// The whole lines that were sent so far.
    fn stream(&self) -> Stream {
        let sent = lock(&self.sent).clone();
        let whole = sent.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = sent[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let events = lines.filter_map(|line| event(serde_json::from_slice(line).ok()?)).collect();
        Stream { request: self.request.clone(), start: self.start, initial: self.initial, events }
    }
}

fn event(mut line: Value) -> Option<Event> {
    let kind = match line["type"].as_str()? {
        "ADDED" => EventKind::Added,
        "MODIFIED" => EventKind::Modified,
        "DELETED" => EventKind::Deleted,
        "BOOKMARK" => EventKind::Bookmark,
        _ => EventKind::Error,
    };
    let object = line["object"].take();
    let revision = object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
    Some(Event { kind, revision: revision.unwrap_or(0), object })
}

impl Choice {
    fn selects(&self, resource: &Resource, object: &Value) -> bool {
        let metadata = &object["metadata"];
        let mut labels: Vec<(&str, &str)> = Vec::new();
        if let Some(map) = metadata["labels"].as_object() {
            labels.extend(map.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())));
        }
        labels.sort_unstable();
        let mut fields =
            vec![("metadata.name".to_owned(), metadata["name"].as_str().unwrap_or_default().to_owned())];
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        fields.push(("metadata.namespace".to_owned(), namespace.to_owned()));
        fields.extend(resource.fields.iter().map(|field| (field.label.to_string(), field.text(object))));
        let field =
            |path: &str| fields.iter().find(|(label, _)| label == path).map(|(_, text)| text.as_str());
        (self.namespace.is_empty() || self.namespace == namespace)
            && self.labels.matches(labels.as_slice())
            && self.fields.matches(field)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A service whose watches are recorded.
#[derive(Clone)]
pub struct Recorded {
    inner: Service,
    recorder: Recorder,
}

impl<B> tower::Service<http::Request<B>> for Recorded
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
{
    type Response = http::Response<RecordedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let recording = self.recorder.recording(&parts);
        let recorder = self.recorder.clone();
        let answer = tower::Service::call(&mut self.inner, http::Request::from_parts(parts, body));
        Box::pin(async move {
            let response = answer.await?;
            let mut sent = None;
            if let Some(mut recording) = recording.filter(|_| response.status().is_success()) {
                recording.start.1 = recording.start.1.min(recorder.revision());
                sent = Some(recording.sent.clone());
                lock(&recorder.watches).push(recording);
            }
            Ok(response.map(|body| RecordedBody { body, sent }))
        })
    }
}

/// A body that is written down where it is a watch's.
pub struct RecordedBody {
    body: Body,
    sent: Option<Arc<Mutex<Vec<u8>>>>,
}

impl http_body::Body for RecordedBody {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let (Some(sent), Some(Ok(frame))) = (&self.sent, &frame)
            && let Some(data) = frame.data_ref()
        {
            lock(sent).extend_from_slice(data);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
