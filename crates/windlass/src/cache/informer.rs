//! One kind, in one scope: its objects, and who is told of them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use serde_json::Value;
use tokio::sync::Notify;
use windlass_core::{Kind, ObjectKey};

use super::any::AnyInformer;
use super::declare::{Declared, Filter, Scope};
use super::decode::{Cached, Decoded, Decoder};
use super::delta::{Delta, Signal, Subscriber};
use super::health::{InformerHealth, State, Synced, Target};
use super::managed::Interner;
use super::store::{Incoming, Span, Store};
use crate::env::panic_message;

/// The objects of one kind, scope and selector. Clones are the same informer.
pub struct Informer<K>(Arc<Inner<K>>);

pub(super) struct Inner<K> {
    pub(super) decoder: Decoder<K>,
    pub(super) scope: Scope,
    pub(super) filter: Filter,
    pub(super) owned: AtomicBool,
    pub(super) optional: AtomicBool,
    store: RwLock<Store<K>>,
    /// Held while the store changes *and* while subscribers are told, so that they are told in order; the store itself
    /// is free by then, and can be read.
    subscribers: Mutex<Vec<Arc<dyn Subscriber<K>>>>,
    sets: Mutex<Interner>,
    /// The state of a stream changed.
    pub(super) progress: Notify,
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Informer<K> {
        Informer(self.0.clone())
    }
}

impl<K> fmt::Debug for Informer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer").field("kind", &self.0.decoder.kind.to_string()).finish_non_exhaustive()
    }
}

impl<K: Cached> Informer<K> {
    pub(super) fn new(declared: Declared<K>, manager: Arc<str>) -> Informer<K> {
        let filter = Filter::of(&declared);
        let inner = Inner {
            decoder: Decoder { kind: declared.kind.clone(), manager, transform: declared.transform.clone() },
            scope: declared.scope.clone(),
            filter,
            owned: AtomicBool::new(false),
            optional: AtomicBool::new(declared.optional),
            store: RwLock::new(Store::new()),
            subscribers: Mutex::new(Vec::new()),
            sets: Mutex::new(Interner::default()),
            progress: Notify::new(),
        };
        inner.add(&declared);
        Informer(Arc::new(inner))
    }

    pub(super) fn from_inner(inner: Arc<Inner<K>>) -> Informer<K> {
        Informer(inner)
    }

    pub(super) fn inner(&self) -> &Arc<Inner<K>> {
        &self.0
    }

    /// The kind that it holds.
    pub fn kind(&self) -> &Kind {
        &self.0.decoder.kind
    }

    /// An object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.0.read().get(key).cloned()
    }

    /// The objects of one namespace or of all, in the order of their keys.
    pub fn list(&self, namespace: Option<&str>) -> Vec<Arc<K>> {
        self.0.read().list(&Span::of(namespace)).map(|(_, object)| object.clone()).collect()
    }

    /// The objects that an index has under a value, in the order of their keys; `None` if there is no such index.
    pub fn by_index(&self, name: &str, value: &str) -> Option<Vec<Arc<K>>> {
        let store = self.0.read();
        let keys = store.indexes().find(name, value)?;
        Some(keys.filter_map(|key| store.get(key).cloned()).collect())
    }

    /// The objects that a controller owns, in the order of their keys. Empty where the kind was not declared as
    /// [owned](Declared::owned).
    pub fn children_of(&self, owner_uid: &str) -> Vec<(ObjectKey, Arc<K>)> {
        let store = self.0.read();
        let keys = store.indexes().children(owner_uid).into_iter().flatten();
        keys.filter_map(|key| Some((key.clone(), store.get(key)?.clone()))).collect()
    }

    /// The set of fields that we applied to an object, as `fieldsV1` has it; `None` if we never did, or if the kind was
    /// not declared as [owned](Declared::owned).
    pub fn managed(&self, key: &ObjectKey) -> Option<Value> {
        self.0.managed(key)
    }

    /// Whether there is something to read everywhere: every list was complete once, or the kind is known to be absent.
    pub fn is_synced(&self) -> bool {
        self.0.is_synced(&Span::ALL)
    }

    /// Waits until the first list is complete everywhere, or has failed somewhere.
    pub async fn synced(&self) -> Synced {
        (&*self.0 as &dyn AnyInformer).synced().await
    }

    /// Waits until every namespace has come to a first answer, and at least one of them is there.
    pub async fn listed(&self) {
        loop {
            let mut progress = pin!(self.0.progress.notified());
            // What happens from here on is noticed, also between the look and the wait.
            progress.as_mut().enable();
            let health = self.health();
            let settled = |one: &InformerHealth| one.listed || one.state != State::Syncing;
            if health.iter().all(settled) && health.iter().any(|one| one.listed) {
                return;
            }
            progress.await;
        }
    }

    /// How it is doing, by namespace.
    pub fn health(&self) -> Vec<InformerHealth> {
        self.0.health()
    }

    /// Tells someone of every change from now on, and of the objects that are there as the first.
    pub fn subscribe(&self, subscriber: Arc<dyn Subscriber<K>>) {
        let mut subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let present: Vec<_> = {
            let store = self.0.read();
            let version = |key: &ObjectKey| store.version(key).unwrap_or_default();
            let objects = store.list(&Span::ALL);
            objects.map(|(key, object)| (key.clone(), object.clone(), version(key))).collect()
        };
        for (key, object, version) in present {
            let delta = Delta { key, old: None, new: Some(object), initial: true, version, origin: None };
            isolated(&*subscriber, &Signal::Changed(delta));
        }
        subscribers.push(subscriber);
    }
}

impl<K: Cached> Inner<K> {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Store<K>> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one way to change the store: subscribers are told of what comes of it, in order.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Store<K>) -> (T, Vec<Signal<K>>)) -> T {
        let subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let (result, signals) = {
            let mut store = self.store.write().unwrap_or_else(PoisonError::into_inner);
            change(&mut store)
        };
        for signal in &signals {
            for subscriber in &*subscribers {
                isolated(&**subscriber, signal);
            }
        }
        result
    }

    pub(super) fn target(&self, span: &Span) -> Target {
        Target {
            kind: self.decoder.kind.clone(),
            namespace: span.namespace().map(str::to_owned),
            selector: self.filter.to_string(),
            metadata_only: K::metadata_api(),
        }
    }

    /// What came by the stream, as the store takes it.
    pub(super) fn observed(&self, decoded: Decoded<K>) -> Incoming<K> {
        let ours_since = self.ours_since(&decoded);
        Incoming { ours_since, ..self.incoming(decoded) }
    }

    /// What was decoded, as the store takes it.
    pub(super) fn incoming(&self, decoded: Decoded<K>) -> Incoming<K> {
        let Decoded { key, object, version, ours } = decoded;
        let applied = self.owned.load(Ordering::Relaxed).then(|| ours.applied()).flatten();
        let managed = applied.map(|set| {
            let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
            sets.intern(&set)
        });
        let object = Arc::new(object);
        Incoming { key, object, version, managed, mark: ours.mark, alone: ours.alone, ours_since: None }
    }

    /// The version that is there, if our own manager can be seen to have made the step from it. To look costs some time,
    /// so it is done only where our manager was the last to write, by the second.
    fn ours_since(&self, decoded: &Decoded<K>) -> Option<u64> {
        if !decoded.ours.latest {
            return None;
        }
        let (old, version) = {
            let store = self.read();
            (store.get(&decoded.key)?.clone(), store.version(&decoded.key)?)
        };
        if version >= decoded.version || old.meta().uid != decoded.object.meta().uid {
            return None;
        }
        let (old, new) = (serde_json::to_value(&*old).ok()?, serde_json::to_value(&decoded.object).ok()?);
        decoded.ours.changed(&old, &new).then_some(version)
    }

    /// Takes in what another declaration of the same wants on top.
    pub(super) fn add(&self, declared: &Declared<K>) {
        if !declared.optional {
            self.optional.store(false, Ordering::Relaxed);
        }
        self.change(|store| {
            let (indexes, objects) = store.indexes_mut();
            let objects: Vec<_> = objects.collect();
            if declared.owned {
                self.owned.store(true, Ordering::Relaxed);
                indexes.add_controllers(objects.iter().copied());
            }
            for index in &declared.indexes {
                indexes.add(index.clone(), objects.iter().copied());
            }
            ((), Vec::new())
        });
    }

    /// Whether this declaration is of the same objects. One that wants sets of fields cannot join late: they were thrown
    /// away.
    pub(super) fn is_same(&self, declared: &Declared<K>, started: bool) -> bool {
        let transform = match (&self.decoder.transform, &declared.transform) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        let owned = self.owned.load(Ordering::Relaxed) || !declared.owned || !started;
        self.decoder.kind == declared.kind
            && self.scope == declared.scope
            && self.filter == Filter::of(declared)
            && transform
            && owned
    }
}

/// One subscriber's panic is its own.
fn isolated<K>(subscriber: &dyn Subscriber<K>, signal: &Signal<K>) {
    let told = catch_unwind(AssertUnwindSafe(|| match signal {
        Signal::Changed(delta) => subscriber.changed(delta),
        Signal::Own { key, version, origin } => subscriber.own(key, *version, origin),
    }));
    if let Err(panic) = told {
        tracing::error!(panic = panic_message(&*panic), "subscriber panicked");
    }
}
