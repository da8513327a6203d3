//! The objects of one informer, and what is known of how far they are: a value without locks, IO or a clock.
//!
//! ```text
//! stream (list, events, bookmarks) ─┐
//!                                   ├─► Store ─► Signal… to subscribers
//! answers to our own writes ────────┘
//! ```
//!
//! # Guarantees
//! - The version of an object never goes down, except when the server itself went back (a restored backup).
//! - A write of our own is told once, with its origin. The event that follows it is not told.
//! - A change by somebody else is told without an origin, also where an answer of ours has overtaken its event.
//! - An object that we know to be deleted does not come back by an event that is older.

mod echo;
mod grave;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::Resource;
use windlass_core::{Moment, ObjectKey, Origin};

use super::delta::{Delta, Signal};
use super::health::State;
use super::index::Indexes;
use super::managed::Mark;
use echo::Echoes;
use grave::Graves;
pub(super) use stream::{Span, Stream};

/// The objects of one informer.
pub(super) struct Store<K> {
    objects: BTreeMap<ObjectKey, Entry<K>>,
    indexes: Indexes<K>,
    streams: BTreeMap<Span, Stream>,
    /// Whether somebody said which streams there are.
    placed: bool,
    echoes: Echoes<K>,
    graves: Graves,
    /// Objects whose latest version does not decode. The last one that did, if any, is still there.
    undecodable: BTreeSet<ObjectKey>,
}

struct Entry<K> {
    object: Arc<K>,
    version: u64,
    managed: Option<Arc<str>>,
    mark: Mark,
    /// This version came by the stream, and our own manager wrote it.
    ours: bool,
}

/// An object as it came from the server.
pub(super) struct Incoming<K> {
    pub(super) key: ObjectKey,
    pub(super) object: Arc<K>,
    pub(super) version: u64,
    pub(super) managed: Option<Arc<str>>,
    pub(super) mark: Mark,
    /// Nobody but our own manager ever wrote to it.
    pub(super) alone: bool,
    /// Our own manager is seen to have changed it since this version.
    pub(super) ours_since: Option<u64>,
}

/// What a complete list came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    Done,
    /// The server is at an earlier version than before: everything that was known is to be listed again.
    WentBack,
}

impl<K: Resource> Store<K> {
    pub(super) fn new() -> Store<K> {
        Store {
            objects: BTreeMap::new(),
            indexes: Indexes::new(),
            streams: BTreeMap::new(),
            placed: false,
            echoes: Echoes::default(),
            graves: Graves::default(),
            undecodable: BTreeSet::new(),
        }
    }

    // --- reading

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Arc<K>> {
        self.objects.get(key).map(|entry| &entry.object)
    }

    pub(super) fn version(&self, key: &ObjectKey) -> Option<u64> {
        self.objects.get(key).map(|entry| entry.version)
    }

    pub(super) fn managed(&self, key: &ObjectKey) -> Option<&Arc<str>> {
        self.objects.get(key)?.managed.as_ref()
    }

    /// The objects of one namespace or of all, in the order of their keys.
    pub(super) fn list(&self, span: &Span) -> impl Iterator<Item = (&ObjectKey, &Arc<K>)> {
        self.range(span).map(|(key, entry)| (key, &entry.object))
    }

    pub(super) fn len(&self, span: &Span) -> usize {
        match span.namespace() {
            None => self.objects.len(),
            Some(_) => self.range(span).count(),
        }
    }

    pub(super) fn undecodable(&self, span: &Span) -> usize {
        self.undecodable.iter().filter(|key| span.covers(key)).count()
    }

    pub(super) fn indexes(&self) -> &Indexes<K> {
        &self.indexes
    }

    /// The indexes to add to, and the objects that are there already.
    pub(super) fn indexes_mut(&mut self) -> (&mut Indexes<K>, impl Iterator<Item = (&ObjectKey, &Arc<K>)>) {
        (&mut self.indexes, self.objects.iter().map(|(key, entry)| (key, &entry.object)))
    }

    /// The streams; `None` until somebody said which there are.
    pub(super) fn streams(&self) -> Option<&BTreeMap<Span, Stream>> {
        self.placed.then_some(&self.streams)
    }

    /// The stream that an object would come by.
    pub(super) fn stream_of(&self, key: &ObjectKey) -> Option<&Stream> {
        covering(&self.streams, key)
    }

    fn range(&self, span: &Span) -> impl Iterator<Item = (&ObjectKey, &Entry<K>)> {
        self.objects.range(span.first()..).take_while(|(key, _)| span.covers(key))
    }

    // --- streams

    /// From now on these are the streams. Objects that none of them covers are gone from view; the others stay until the
    /// first list of their new stream.
    pub(super) fn set_spans(&mut self, spans: impl IntoIterator<Item = Span>) -> Vec<Signal<K>> {
        self.placed = true;
        let mut old = std::mem::take(&mut self.streams);
        for span in spans {
            let stream = old.remove(&span).unwrap_or_default();
            self.streams.insert(span, stream);
        }
        let streams = &self.streams;
        let covered = |key: &ObjectKey| covering(streams, key).is_some();
        self.echoes.retain(covered);
        self.graves.retain(covered);
        self.graves.restart();
        self.undecodable.retain(covered);
        let lost: Vec<_> = self.objects.keys().filter(|key| !covered(key)).cloned().collect();
        lost.into_iter().filter_map(|key| self.remove(&key, None, None)).collect()
    }

    /// A sign of life of a stream.
    pub(super) fn heard(&mut self, span: &Span, now: Moment) {
        if let Some(stream) = self.streams.get_mut(span) {
            stream.hear(now);
        }
    }

    /// How a stream is doing; whether that is new.
    pub(super) fn set_state(&mut self, span: &Span, state: State) -> bool {
        self.streams.get_mut(span).is_some_and(|stream| stream.set_state(state))
    }

    /// The kind is not served any more, and with it went all its objects.
    pub(super) fn clear(&mut self, span: &Span) -> Vec<Signal<K>> {
        let Some(stream) = self.streams.get_mut(span) else { return Vec::new() };
        stream.restart();
        self.echoes.retain(|key| !span.covers(key));
        self.graves.retain(|key| !span.covers(key));
        self.undecodable.retain(|key| !span.covers(key));
        let all: Vec<_> = self.range(span).map(|(key, _)| key.clone()).collect();
        all.into_iter().filter_map(|key| self.remove(&key, None, None)).collect()
    }

    /// A list begins: what it does not name by its end is gone.
    pub(super) fn list_begins(&mut self, span: &Span) {
        if let Some(stream) = self.streams.get_mut(span) {
            stream.begin();
        }
    }

    /// A list is complete, as of this version.
    pub(super) fn list_ends(&mut self, span: &Span, version: u64) -> (Listed, Vec<Signal<K>>) {
        let Some(stream) = self.streams.get_mut(span) else { return (Listed::Done, Vec::new()) };
        if version < stream.seen() {
            stream.restart();
            self.forget_versions(span);
            return (Listed::WentBack, Vec::new());
        }
        let (listed, lists) = (stream.end(version), stream.lists());
        let missing =
            |(key, entry): &(&ObjectKey, &Entry<K>)| entry.version <= version && !listed.contains(*key);
        let gone: Vec<_> = self.range(span).filter(missing).map(|(key, _)| key.clone()).collect();
        self.undecodable.retain(|key| !span.covers(key) || listed.contains(key));
        self.echoes.passed(|key| span.covers(key), version);
        self.graves.passed(|key| span.covers(key), lists);
        let signals = gone.into_iter().filter_map(|key| self.remove(&key, Some(version), None)).collect();
        (Listed::Done, signals)
    }

    /// The stream has told everything up to this version.
    pub(super) fn bookmark(&mut self, span: &Span, version: u64) {
        if let Some(stream) = self.streams.get_mut(span) {
            stream.reach(version);
        }
    }

    /// An object is there, by a list or by an event.
    pub(super) fn applied(&mut self, span: &Span, new: Incoming<K>) -> Vec<Signal<K>> {
        let Some(stream) = self.streams.get_mut(span) else { return Vec::new() };
        let initial = !stream.was_listed();
        let listing = stream.names(&new.key, new.version);
        // Where versions were left out, the last one does not say who made the others.
        let next = !(self.undecodable.remove(&new.key) | listing);
        if self.graves.hold(&new.key, new.object.meta().uid.as_deref(), new.version) {
            return self.superseded(&new.key, new.version);
        }
        match self.objects.get(&new.key) {
            Some(entry) if entry.version >= new.version => {
                let same = entry.object.meta().uid == new.object.meta().uid;
                let now = same.then(|| entry.object.clone());
                self.overtaken(new.key, now, Some(new.object), new.version, listing)
            }
            _ => {
                self.echoes.forget(&new.key);
                let ours = next && self.is_ours(&new);
                self.put(new, ours, None, initial)
            }
        }
    }

    /// An object is there and does not decode: what was known of it before stays.
    pub(super) fn skipped(&mut self, span: &Span, key: ObjectKey, version: u64) {
        if let Some(stream) = self.streams.get_mut(span) {
            stream.names(&key, version);
            self.undecodable.insert(key);
        }
    }

    /// An object is gone, or is no longer among those that are watched.
    pub(super) fn deleted(
        &mut self,
        span: &Span,
        key: &ObjectKey,
        uid: Option<&str>,
        version: u64,
    ) -> Vec<Signal<K>> {
        let Some(stream) = self.streams.get_mut(span) else { return Vec::new() };
        stream.no_longer_names(key, version);
        self.undecodable.remove(key);
        if self.graves.close(key, uid) {
            return self.superseded(key, version);
        }
        let Some(entry) = self.objects.get(key) else { return Vec::new() };
        if entry.version > version {
            let same = uid.is_none() || entry.object.meta().uid.as_deref() == uid;
            let now = same.then(|| entry.object.clone());
            return self.overtaken(key.clone(), now, None, version, false);
        }
        if let Some(uid) = uid {
            self.graves.told(uid, version);
        }
        self.echoes.forget(key);
        self.remove(key, Some(version), None).into_iter().collect()
    }

    // --- our own writes

    /// The server's answer to a write of our own.
    pub(super) fn absorbed(&mut self, new: Incoming<K>, origin: Option<&Origin>) -> Vec<Signal<K>> {
        let Some(stream) = self.stream_of(&new.key) else { return Vec::new() };
        let passed = new.version <= stream.seen();
        let meta = new.object.meta();
        if self.graves.hold(&new.key, meta.uid.as_deref(), new.version) {
            return Vec::new();
        }
        if is_final(meta) {
            let uid = meta.uid.clone().unwrap_or_default();
            return self.removed(&new.key, &uid, origin);
        }
        let old = match self.objects.get_mut(&new.key) {
            Some(entry) if entry.version >= new.version => {
                let told = entry.version == new.version && std::mem::take(&mut entry.ours);
                return own(told, new.key, new.version, origin);
            }
            // The stream is past this version: the object was deleted since, or its event did not decode.
            _ if passed => return Vec::new(),
            Some(entry) => Some(entry.object.clone()),
            None => None,
        };
        self.echoes.expect(&new.key, new.version, old);
        self.put(new, false, origin, false)
    }

    /// We deleted an object, and it is gone for good.
    pub(super) fn removed(&mut self, key: &ObjectKey, uid: &str, origin: Option<&Origin>) -> Vec<Signal<K>> {
        let Some(lists) = self.stream_of(key).map(Stream::lists) else { return Vec::new() };
        if let Some(version) = self.graves.take_told(uid) {
            return own(true, key.clone(), version, origin);
        }
        let entry = self.objects.get(key).filter(|entry| entry.object.meta().uid.as_deref() == Some(uid));
        let version = entry.map(|entry| entry.version);
        self.graves.open(key, uid, version.unwrap_or_default(), lists);
        if version.is_none() {
            return Vec::new();
        }
        self.echoes.forget(key);
        self.remove(key, None, origin).into_iter().collect()
    }

    // --- leaves

    /// An event that is not newer than what is there: the echo of our own write, or somebody else's change that our own
    /// write has overtaken.
    fn overtaken(
        &mut self,
        key: ObjectKey,
        now: Option<Arc<K>>,
        then: Option<Arc<K>>,
        version: u64,
        listing: bool,
    ) -> Vec<Signal<K>> {
        // A list names the last version only: who made those before it cannot be told.
        if !self.echoes.is_foreign(&key, version, listing) {
            return Vec::new();
        }
        let old = self.echoes.step(&key, version, then);
        let Some(now) = now else { return Vec::new() };
        let delta = Delta { key, old, new: Some(now), initial: false, version, origin: None };
        vec![Signal::Changed(delta)]
    }

    /// There was another object of that name at this version: whatever was there before it is gone.
    fn superseded(&mut self, key: &ObjectKey, version: u64) -> Vec<Signal<K>> {
        let is_older = self.objects.get(key).is_some_and(|entry| entry.version < version);
        if !is_older {
            return Vec::new();
        }
        self.echoes.forget(key);
        self.remove(key, Some(version.saturating_sub(1)), None).into_iter().collect()
    }

    /// Whether our own manager made the step from what is there to this.
    fn is_ours(&self, new: &Incoming<K>) -> bool {
        let old = self.objects.get(&new.key);
        match old.filter(|old| old.object.meta().uid == new.object.meta().uid) {
            Some(old) => new.mark.is_after(old.mark) || new.ours_since == Some(old.version),
            None => new.alone && !new.mark.is_none(),
        }
    }

    fn put(
        &mut self,
        new: Incoming<K>,
        ours: bool,
        origin: Option<&Origin>,
        initial: bool,
    ) -> Vec<Signal<K>> {
        let Incoming { key, object, version, managed, mark, .. } = new;
        let old = self.objects.get(&key);
        let reborn = old.is_some_and(|old| old.object.meta().uid != object.meta().uid);
        self.indexes.update(&key, old.map(|old| &*old.object), Some(&object));
        let entry = Entry { object: object.clone(), version, managed, mark, ours };
        let old = self.objects.insert(key.clone(), entry).map(|old| old.object);
        let delta = |old, new, version, origin: Option<&Origin>| {
            let (key, origin) = (key.clone(), origin.cloned());
            Signal::Changed(Delta { key, old, new, initial, version, origin })
        };
        if reborn {
            // Nobody told of the deletion. It was before this version, and nobody knows whose it was.
            vec![
                delta(old, None, version.saturating_sub(1), None),
                delta(None, Some(object), version, origin),
            ]
        } else {
            vec![delta(old, Some(object), version, origin)]
        }
    }

    fn remove(
        &mut self,
        key: &ObjectKey,
        version: Option<u64>,
        origin: Option<&Origin>,
    ) -> Option<Signal<K>> {
        let entry = self.objects.remove(key)?;
        self.indexes.update(key, Some(&entry.object), None);
        Some(Signal::Changed(Delta {
            key: key.clone(),
            old: Some(entry.object),
            new: None,
            initial: false,
            version: version.unwrap_or(entry.version),
            origin: origin.cloned(),
        }))
    }

    /// The server went back in time: versions of before mean nothing now.
    fn forget_versions(&mut self, span: &Span) {
        for (_, entry) in self.objects.iter_mut().filter(|(key, _)| span.covers(key)) {
            entry.version = 0;
        }
        self.echoes.retain(|key| !span.covers(key));
        self.graves.retain(|key| !span.covers(key));
    }
}

fn covering<'a>(streams: &'a BTreeMap<Span, Stream>, key: &ObjectKey) -> Option<&'a Stream> {
    streams.get(&Span::ALL).or_else(|| streams.get(&Span::of(key.namespace())))
}

fn own<K>(told: bool, key: ObjectKey, version: u64, origin: Option<&Origin>) -> Vec<Signal<K>> {
    let origin = origin.filter(|_| told).cloned();
    origin.map(|origin| Signal::Own { key, version, origin }).into_iter().collect()
}

/// Whether this is the last state of an object: the server removes one that is being deleted together with the last of
/// its finalizers, and answers with what it was.
fn is_final(meta: &kube::core::ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
        && meta.deletion_grace_period_seconds == Some(0)
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
}
