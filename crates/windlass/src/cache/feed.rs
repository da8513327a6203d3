//! From a source into the store of an informer.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::decode::{Cached, DecodeError, Head};
use super::delta::Signal;
use super::health::{State, Target};
use super::informer::Inner;
use super::observe::Observer;
use super::store::{Listed, Span, Store};
use crate::env::Env;
use crate::error::chain;
use crate::source::{self, Sink};

/// What a feed needs to know of the world around it.
pub(super) struct Wiring {
    pub(super) span: Span,
    pub(super) env: Env,
    pub(super) observer: Arc<dyn Observer>,
}

/// Takes what one source brings.
pub(super) struct Feed<K> {
    informer: Arc<Inner<K>>,
    target: Target,
    wiring: Wiring,
}

impl<K: Cached> Feed<K> {
    pub(super) fn new(informer: Arc<Inner<K>>, wiring: Wiring) -> Feed<K> {
        let target = informer.target(&wiring.span);
        wiring.observer.state(&target, &State::Syncing);
        Feed { informer, target, wiring }
    }

    /// Changes the store by something that was heard from the server.
    fn heard<T>(&self, change: impl FnOnce(&mut Store<K>, &Span) -> (T, Vec<Signal<K>>)) -> T {
        let (span, now) = (&self.wiring.span, self.wiring.env.moment());
        self.informer.change(|store| {
            store.heard(span, now);
            change(store, span)
        })
    }

    /// One object that does not decode does not stop the others.
    fn skip(&self, json: &RawValue, error: &DecodeError) -> Option<u64> {
        let kind = &self.informer.decoder.kind;
        let error = chain(error);
        let Some(head) = Head::read(json) else {
            tracing::warn!(%kind, error, "object without a name is skipped");
            return None;
        };
        let version = head.version();
        if let Some(version) = version {
            self.heard(|store, span| (store.skipped(span, head.key(), version), Vec::new()));
        }
        tracing::warn!(%kind, object = %head.key(), error, "object does not decode and is skipped");
        self.wiring.observer.undecodable(&self.target, &head.reference(kind), &error);
        version
    }
}

impl<K: Cached> Sink for Feed<K> {
    fn begin(&self) {
        self.informer.change(|store| (store.list_begins(&self.wiring.span), Vec::new()));
    }

    fn applied(&self, json: &RawValue) -> Option<u64> {
        match self.informer.decoder.raw(json) {
            Ok(decoded) => {
                let new = self.informer.observed(decoded);
                let version = new.version;
                self.heard(|store, span| ((), store.applied(span, new)));
                Some(version)
            }
            Err(error) => self.skip(json, &error),
        }
    }

    fn deleted(&self, json: &RawValue) -> Option<u64> {
        let head = Head::read(json)?;
        let version = head.version()?;
        self.heard(|store, span| ((), store.deleted(span, &head.key(), head.uid(), version)));
        Some(version)
    }

    fn end(&self, version: u64) -> Listed {
        let listed = self.heard(|store, span| store.list_ends(span, version));
        self.informer.progress.notify_waiters();
        listed
    }

    fn bookmark(&self, version: u64) {
        self.heard(|store, span| (store.bookmark(span, version), Vec::new()));
    }

    fn failed(&self, error: &source::Error) {
        self.wiring.observer.watch_failed(&self.target, error);
    }

    fn state(&self, state: State) {
        let span = &self.wiring.span;
        let changed = self.informer.change(|store| {
            let signals = if state == State::Absent { store.clear(span) } else { Vec::new() };
            (store.set_state(span, state.clone()), signals)
        });
        if changed {
            self.wiring.observer.state(&self.target, &state);
            self.informer.progress.notify_waiters();
        }
    }
}
