//! All informers of an operator.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use kube::Client;
use serde_json::Value;
use tokio::sync::Notify;
use windlass_core::{Kind, ObjectKey, Origin};

use super::any::AnyInformer;
use super::declare::{Declared, Namespaces};
use super::decode::Cached;
use super::feed::Wiring;
use super::health::{InformerHealth, Synced};
use super::informer::{Informer, Inner};
use super::observe::Observer;
use super::store::Span;
use crate::env::{Env, Task};
use crate::source::{Query, Source};

/// All informers of an operator. Clones are the same cache.
#[derive(Clone)]
pub struct Cache(Arc<Shared>);

struct Shared {
    manager: Arc<str>,
    informers: RwLock<Vec<Arc<dyn AnyInformer>>>,
    namespaces: Mutex<Namespaces>,
    started: AtomicBool,
    /// What should run is not what runs.
    changed: Notify,
}

impl Cache {
    /// A cache that watches nothing. Of objects that the operator owns it keeps what this field manager applied.
    pub fn new(field_manager: &str) -> Cache {
        Cache(Arc::new(Shared {
            manager: field_manager.into(),
            informers: RwLock::default(),
            namespaces: Mutex::default(),
            started: AtomicBool::new(false),
            changed: Notify::new(),
        }))
    }

    /// Says that objects are wanted. The same kind, scope, selector and transform is one informer, however often it is
    /// declared. After the start, a new informer starts at once.
    pub fn declare<K: Cached>(&self, declared: Declared<K>) -> Informer<K> {
        let mut informers = self.0.informers.write().unwrap_or_else(PoisonError::into_inner);
        let started = self.0.started.load(Ordering::Relaxed);
        for informer in &*informers {
            if let Ok(inner) = (informer.clone() as Arc<dyn Any + Send + Sync>).downcast::<Inner<K>>()
                && inner.is_same(&declared, started)
            {
                inner.add(&declared);
                return Informer::from_inner(inner);
            }
        }
        let informer = Informer::new(declared, self.0.manager.clone());
        informers.push(informer.inner().clone());
        drop(informers);
        self.0.changed.notify_one();
        informer
    }

    /// Changes the namespaces that the operator works in. Objects of those that it leaves go from the cache, as if they
    /// were deleted.
    pub fn set_namespaces(&self, namespaces: Namespaces) {
        *self.0.namespaces.lock().unwrap_or_else(PoisonError::into_inner) = namespaces;
        self.0.changed.notify_one();
    }

    /// The namespaces that the operator works in.
    pub fn namespaces(&self) -> Namespaces {
        self.0.namespaces.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts to list and to watch. Everything ends with the task.
    pub fn start(&self, client: Client, env: &Env, observer: Arc<dyn Observer>) -> Task<()> {
        self.0.started.store(true, Ordering::Relaxed);
        let run = run(self.clone(), client, env.clone(), observer);
        env.spawn("cache", run)
    }

    /// Waits until every informer has its first list, or has failed at it.
    pub async fn synced(&self) -> Vec<(Kind, Synced)> {
        let mut synced = Vec::new();
        for informer in self.informers() {
            synced.push((informer.kind().clone(), informer.synced().await));
        }
        synced
    }

    /// How every informer is doing.
    pub fn health(&self) -> Vec<InformerHealth> {
        self.informers().iter().flat_map(|informer| informer.health()).collect()
    }

    /// The kinds that nobody has begun to list.
    pub(crate) fn waiting(&self) -> Vec<Kind> {
        self.informers().iter().filter(|one| !one.is_placed()).map(|one| one.kind().clone()).collect()
    }

    /// Takes in an object as the server answered a write of our own: the next read has it, and its event is no news.
    pub fn absorb(&self, kind: &Kind, object: &Value, origin: Option<&Origin>) {
        for informer in self.informers().iter().filter(|informer| informer.kind() == kind) {
            informer.absorb(object, origin);
        }
    }

    /// Takes out an object that we deleted and that is gone for good: the next read does not have it, and its event is
    /// no news. Of one that is only being deleted, the answer is [absorbed](Cache::absorb).
    pub fn removed(&self, kind: &Kind, key: &ObjectKey, uid: &str, origin: Option<&Origin>) {
        for informer in self.informers().iter().filter(|informer| informer.kind() == kind) {
            informer.removed(key, uid, origin);
        }
    }

    pub(super) fn downgrade(&self) -> WeakCache {
        WeakCache(Arc::downgrade(&self.0))
    }

    pub(super) fn informers(&self) -> Vec<Arc<dyn AnyInformer>> {
        self.0.informers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A cache that may be gone.
pub(super) struct WeakCache(Weak<Shared>);

impl WeakCache {
    pub(super) fn upgrade(&self) -> Option<Cache> {
        self.0.upgrade().map(Cache)
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.informers().iter().map(|informer| informer.kind().to_string()).collect();
        f.debug_struct("Cache").field("informers", &kinds).finish_non_exhaustive()
    }
}

/// Keeps one source running for each informer and namespace, as these come and go.
async fn run(cache: Cache, client: Client, env: Env, observer: Arc<dyn Observer>) {
    // By the number of the informer: they are never taken out.
    let mut running: BTreeMap<(usize, Span), Task<()>> = BTreeMap::new();
    let mut placed: Vec<Namespaces> = Vec::new();
    loop {
        let namespaces = cache.namespaces();
        for (number, informer) in cache.informers().into_iter().enumerate() {
            if placed.get(number) == Some(&namespaces) {
                continue;
            }
            // Nobody may bring objects of a namespace that has been left.
            let spans = informer.spans(&namespaces);
            let left: Vec<_> =
                running.keys().filter(|(of, span)| *of == number && !spans.contains(span)).cloned().collect();
            for one in left {
                if let Some(task) = running.remove(&one) {
                    task.abort();
                    let _ended = task.await;
                }
            }
            informer.set_spans(&spans);
            for span in spans {
                running.entry((number, span.clone())).or_insert_with(|| {
                    let query = Query {
                        kind: informer.kind().clone(),
                        namespace: span.namespace().map(str::to_owned),
                        labels: informer.filter().labels(),
                        fields: informer.filter().fields(),
                        metadata_only: informer.is_metadata_only(),
                    };
                    let wiring = Wiring { span, env: env.clone(), observer: observer.clone() };
                    let sink = informer.clone().sink(wiring);
                    env.spawn("informer", Source::new(client.clone(), env.clone(), query, sink).run())
                });
            }
            placed.truncate(number);
            placed.push(namespaces.clone());
        }
        cache.0.changed.notified().await;
    }
}
