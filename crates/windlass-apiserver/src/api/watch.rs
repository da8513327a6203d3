//! Watches: a cursor in the log, for the front to poll.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::conversion::{self, Wanted};
use super::filter::Filter;
use super::list::{check_options, expired, parse_revision, too_large_revision};
use super::negotiate::{Output, Shape, not_acceptable};
use super::registry::Resource;
use super::response::{Body, Response};
use super::server::{Answer, Call, Server};
use super::shape::{self, Include, Tabulator};
use super::webhooks::{Question, Reply};
use crate::codec::Format;
use crate::status::{Result, Status};
use crate::store::{Event, EventType, Kind, Object, Snapshot, Store, Unreadable};

/// About how many bytes of events are written at a time.
const CHUNK: usize = 64 << 10;
/// How many objects are converted at a time, where a webhook has to be asked.
const BATCH: usize = 100;
/// How often a quiet watch that asked for bookmarks gets one.
const BOOKMARK: SignedDuration = SignedDuration::from_mins(1);
/// How long before its end a watch gets its last bookmark.
const LAST_BOOKMARK: SignedDuration = SignedDuration::from_secs(2);
/// The shortest time a watch lasts when the client names none; up to as long again is added.
const TIMEOUT_SECS: i64 = 1800;

/// What a watch has for its client.
pub enum WatchPoll {
    /// Events, ready to be sent.
    Data(Bytes),
    /// Nothing until somebody has converted objects: the answer goes to [`Watch::converted`].
    Convert(Wanted),
    /// Nothing until the store changes, or until this time.
    Idle(Timestamp),
    /// The watch is over.
    End,
}

/// A watch: a value that knows how far it has read.
pub struct Watch {
    resource: Arc<Resource>,
    /// The definition without which there is nothing to watch.
    definition: Option<Definition>,
    filter: Filter,
    output: Output,
    include: Include,
    /// The state that the client is told first.
    initial: Option<Initial>,
    /// All events up to this revision were sent or did not concern the client.
    seen: u64,
    bookmarks: bool,
    bookmark_due: Timestamp,
    last_bookmark_sent: bool,
    deadline: Timestamp,
    columns_sent: bool,
    ended: bool,
}

/// A definition that is served.
struct Definition {
    kind: Kind,
    name: String,
    uid: String,
}

struct Initial {
    snapshot: Snapshot,
    after: Option<String>,
    /// A bookmark tells the client when it has seen everything.
    mark_end: bool,
}

impl Server {
    pub(super) fn watch(&mut self, call: &mut Call<'_>) -> Result<Answer> {
        let resource = call.target.resource.clone();
        check_options(call)?;
        if matches!(call.output.shape, Shape::PartialList(_)) {
            return Err(not_acceptable());
        }
        let filter = Filter::parse(call)?;
        let include = Include::parse(call)?;
        let wanted = parse_revision(call.query.text("resourceVersion")).map_err(unclassified)?;
        let bookmarks = call.query.flag("allowWatchBookmarks");
        let asked = call.query.get("sendInitialEvents").map(|_| call.query.flag("sendInitialEvents"));
        // Without a revision a watch starts with what there is; so it was before clients could ask for it.
        let send_initial = asked.unwrap_or(wanted.unwrap_or(0) == 0);
        let current = self.store.revision();
        if let Some(revision) = wanted.filter(|revision| *revision > current)
            && send_initial
        {
            if !call.waited && resource.is_cached() {
                return Ok(Answer::Wait(revision));
            }
            // By then the stream has begun, and its end is an event.
            let mut event = Vec::new();
            let status = too_large_revision(&resource, revision, current).retry_after(1);
            frame(&mut event, "ERROR", &status.to_value());
            return Ok(Response::new(200, "application/json", Body::Full(event.into())).into());
        }
        let deadline = call.now + self.watch_timeout(call)?;
        let initial = send_initial.then(|| Initial {
            snapshot: self.store.list(&resource.storage),
            after: None,
            mark_end: bookmarks,
        });
        let seen = match (&initial, wanted) {
            (Some(initial), _) => initial.snapshot.revision(),
            (None, Some(revision)) if revision > 0 => revision,
            (None, _) => current,
        };
        let watch = Watch {
            definition: self.definition_of(&resource),
            filter,
            output: call.output,
            include,
            initial,
            seen,
            // Those on the way come from upstream's cache.
            bookmarks: bookmarks && resource.is_cached(),
            bookmark_due: call.now + BOOKMARK,
            // Where the time for the last one has passed already, there is none.
            last_bookmark_sent: deadline < call.now + LAST_BOOKMARK,
            deadline,
            columns_sent: false,
            ended: false,
            resource,
        };
        let content_type = match call.output.format {
            Format::Yaml => return Err(not_acceptable()),
            _ => "application/json",
        };
        Ok(Response::new(200, content_type, Body::Watch(Box::new(watch))).into())
    }

    fn definition_of(&self, resource: &Resource) -> Option<Definition> {
        let name = format!("{}.{}", resource.plural, resource.group);
        let kind = resource.is_custom().then(|| self.registry.definitions_resource().storage.clone())?;
        let uid = self.store.get(&kind, "", &name)?.uid().to_owned();
        Some(Definition { kind, name, uid })
    }

    /// The client's timeout, or a random one, so that clients that started together do not come back together.
    fn watch_timeout(&self, call: &mut Call<'_>) -> Result<SignedDuration> {
        let seconds = match call.query.int("timeoutSeconds")? {
            Some(seconds) if seconds > 0 => seconds,
            _ => TIMEOUT_SECS + (call.ids.next() % TIMEOUT_SECS as u64) as i64,
        };
        Ok(SignedDuration::from_secs(seconds.min(1 << 32)))
    }
}

impl Watch {
    /// The kind whose changes concern this watch.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// What there is for the client now. `store` must be the server's, at any later time.
    pub fn poll(&mut self, store: &Store, now: Timestamp) -> WatchPoll {
        if self.ended {
            return WatchPoll::End;
        }
        let mut out = Vec::new();
        match self.unconverted(store) {
            Ok(None) => {}
            Ok(Some(wanted)) => return WatchPoll::Convert(wanted),
            Err(status) => {
                self.ended = true;
                self.write_error(&mut out, &status);
                return WatchPoll::Data(out.into());
            }
        }
        if self.initial.is_some() {
            self.write_initial(&mut out, now);
            if !out.is_empty() {
                return WatchPoll::Data(out.into());
            }
        }
        if let Err(status) = self.write_events(store, &mut out, now) {
            self.ended = true;
            self.write_error(&mut out, &status);
            return WatchPoll::Data(out.into());
        }
        self.write_bookmarks(&mut out, now);
        if !out.is_empty() {
            return WatchPoll::Data(out.into());
        }
        // Upstream's handlers for a definition go away with it, and with them the watches that they serve.
        let is_served = |one: &Definition| {
            store.get(&one.kind, "", &one.name).is_some_and(|definition| definition.uid() == one.uid)
        };
        if now >= self.deadline || !self.definition.as_ref().is_none_or(is_served) {
            self.ended = true;
            return WatchPoll::End;
        }
        WatchPoll::Idle(self.wake_at())
    }

    /// What was asked for is answered. Poll again.
    pub fn converted(&mut self, question: Question, reply: Reply) {
        self.resource = conversion::told(&self.resource, question, reply);
    }

    /// What has to be converted before the next events can be written.
    fn unconverted(&self, store: &Store) -> Result<Option<Wanted>> {
        if !conversion::by_webhook(&self.resource) {
            return Ok(None);
        }
        let objects: Vec<Arc<Object>> = match &self.initial {
            Some(initial) => {
                let all = initial.snapshot.range(self.filter.namespace.as_deref(), initial.after.as_deref());
                all.filter(|object| self.filter.matches(object)).take(BATCH).cloned().collect()
            }
            None => {
                let events = store.events(&self.resource.storage, self.seen).into_iter().flatten();
                let shown = events.filter_map(|event| self.concerns(event));
                shown.map(|(_, object)| object.into_owned()).take(BATCH).collect()
            }
        };
        conversion::wanted(&self.resource, &objects)
    }

    /// Whether so much was written that it is time to send it.
    fn is_full(&self, out: &[u8], written: usize) -> bool {
        out.len() >= CHUNK || (written >= BATCH && conversion::by_webhook(&self.resource))
    }

    fn wake_at(&self) -> Timestamp {
        if !self.bookmarks {
            return self.deadline;
        }
        let last = self.deadline - LAST_BOOKMARK;
        let last = if self.last_bookmark_sent { self.deadline } else { last };
        self.bookmark_due.min(last).min(self.deadline)
    }

    /// The objects that are there already, and the bookmark after them.
    fn write_initial(&mut self, out: &mut Vec<u8>, now: Timestamp) {
        let Some(mut initial) = self.initial.take() else { return };
        let mut last = None;
        let mut rest = false;
        let mut written = 0;
        let one = self.filter.key(&self.resource);
        let single = one.as_ref().map(|key| initial.snapshot.get(key).into_iter().collect::<Vec<_>>());
        let range = initial.snapshot.range(self.filter.namespace.as_deref(), initial.after.as_deref());
        let count = if one.is_some() { 1 } else { range.len() };
        let objects: Box<dyn Iterator<Item = &Arc<Object>>> = match single {
            Some(objects) => Box::new(objects.into_iter()),
            None => Box::new(range),
        };
        for object in objects {
            if !self.filter.matches(object) {
                continue;
            }
            make_room(out, count, object);
            Encoder::new(&self.resource, self.output, self.include, self.columns_sent)
                .event(out, "ADDED", object, now);
            self.columns_sent = true;
            written += 1;
            if self.is_full(out, written) && one.is_none() {
                last = Some(object.key().to_owned());
                rest = true;
                break;
            }
        }
        if rest {
            initial.after = last;
            self.initial = Some(initial);
        } else if initial.mark_end {
            self.write_bookmark(out, true, now);
        }
    }

    fn write_events(&mut self, store: &Store, out: &mut Vec<u8>, now: Timestamp) -> Result<()> {
        if store.revision() <= self.seen {
            return Ok(());
        }
        let events =
            store.events(&self.resource.storage, self.seen).map_err(|unreadable| match unreadable {
                Unreadable::Compacted { oldest, .. } => match self.resource.is_cached() {
                    true => expired(&format!("too old resource version: {} ({oldest})", self.seen)),
                    false => expired("The resourceVersion for the provided watch is too old."),
                },
                Unreadable::Future { .. } => Status::internal("the store went back in time"),
            })?;
        let mut seen = store.revision();
        let count = events.len();
        let mut written = 0;
        for event in events {
            if let Some((kind, object)) = self.concerns(event) {
                make_room(out, count, &object);
                let encoder = Encoder::new(&self.resource, self.output, self.include, self.columns_sent);
                encoder.event(out, kind, &object, now);
                self.columns_sent = true;
                written += 1;
            }
            if self.is_full(out, written) {
                seen = event.revision;
                break;
            }
        }
        self.seen = seen;
        Ok(())
    }

    /// What an event is to this client: an object that comes to match its selectors is new to it, one that no
    /// longer does is gone.
    fn concerns<'a>(&self, event: &'a Event) -> Option<(&'static str, Cow<'a, Arc<Object>>)> {
        let before = event.previous.as_ref().is_some_and(|object| self.filter.matches(object));
        match event.kind {
            EventType::Added => {
                self.filter.matches(&event.object).then_some(("ADDED", Cow::Borrowed(&event.object)))
            }
            EventType::Deleted => before.then(|| ("DELETED", Cow::Owned(event.served()))),
            EventType::Modified => match (before, self.filter.matches(&event.object)) {
                (true, true) => Some(("MODIFIED", Cow::Borrowed(&event.object))),
                (false, true) => Some(("ADDED", Cow::Borrowed(&event.object))),
                (true, false) => {
                    let last = event.previous.as_ref()?.with_revision(event.revision);
                    Some(("DELETED", Cow::Owned(Arc::new(last))))
                }
                (false, false) => None,
            },
        }
    }

    fn write_bookmarks(&mut self, out: &mut Vec<u8>, now: Timestamp) {
        if !self.bookmarks || self.initial.is_some() {
            return;
        }
        let last_due =
            !self.last_bookmark_sent && now >= self.deadline - LAST_BOOKMARK && now < self.deadline;
        if now < self.bookmark_due && !last_due {
            return;
        }
        self.bookmark_due = now + BOOKMARK;
        self.last_bookmark_sent |= last_due;
        self.write_bookmark(out, false, now);
    }

    fn write_bookmark(&mut self, out: &mut Vec<u8>, initial_end: bool, now: Timestamp) {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".into(), json!(self.seen.to_string()));
        if initial_end {
            metadata.insert("annotations".into(), json!({"k8s.io/initial-events-end": "true"}));
        }
        let tree = json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata});
        let tree = super::decode::bookmark(&self.resource, tree);
        let encoder = Encoder::new(&self.resource, self.output, self.include, self.columns_sent);
        encoder.tree(out, "BOOKMARK", tree, self.seen, now);
    }

    fn write_error(&self, out: &mut Vec<u8>, status: &Status) {
        frame(out, "ERROR", &status.to_value());
    }
}

/// Writes events in the shape of a watch.
struct Encoder<'a> {
    resource: &'a Arc<Resource>,
    output: Output,
    include: Include,
    columns_sent: bool,
}

impl<'a> Encoder<'a> {
    fn new(resource: &'a Arc<Resource>, output: Output, include: Include, columns_sent: bool) -> Encoder<'a> {
        Encoder { resource, output, include, columns_sent }
    }

    fn event(&self, out: &mut Vec<u8>, kind: &str, object: &Arc<Object>, now: Timestamp) {
        if let Shape::Table(_) = self.output.shape {
            let tree = shape::object_tree(self.resource, object);
            return self.tree(out, kind, tree, object.revision(), now);
        }
        out.reserve(object.body().len() + 40);
        open(out, kind);
        match self.output.shape {
            Shape::Object | Shape::Table(_) => shape::write_object(out, self.resource, object),
            Shape::Partial(version) | Shape::PartialList(version) => {
                shape::write_partial(out, self.resource, version, object)
            }
        }
        close(out);
    }

    fn tree(&self, out: &mut Vec<u8>, kind: &str, tree: Value, revision: u64, now: Timestamp) {
        let value = match self.output.shape {
            Shape::Object => tree,
            Shape::Partial(version) | Shape::PartialList(version) => {
                shape::partial_of(self.resource, version, tree["metadata"].clone())
            }
            Shape::Table(version) => {
                let tabulator = Tabulator { resource: self.resource.clone(), version, include: self.include };
                let mut metadata = Map::new();
                metadata.insert("resourceVersion".into(), json!(revision.to_string()));
                tabulator.table(metadata, &tree, !self.columns_sent, now)
            }
        };
        frame(out, kind, &value);
    }
}

/// Makes room for so many events at once, if they are alike: a buffer that grows is copied each time.
fn make_room(out: &mut Vec<u8>, count: usize, object: &Object) {
    if out.capacity() == 0 {
        out.reserve((count * (object.body().len() + 40)).min(CHUNK + object.body().len()));
    }
}

/// Upstream's watches have no status for a revision that is no number.
fn unclassified(status: Status) -> Status {
    let message = status.message.trim_start_matches("invalid resource version: ").to_owned();
    Status::new(500, "", message)
}

fn frame(out: &mut Vec<u8>, kind: &str, object: &Value) {
    open(out, kind);
    crate::codec::write_value(out, object);
    close(out);
}

fn open(out: &mut Vec<u8>, kind: &str) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
}

fn close(out: &mut Vec<u8>) {
    out.extend_from_slice(b"}\n");
}
