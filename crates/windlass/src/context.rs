//! What a pass has at hand.

use std::any::{Any, TypeId, type_name};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kube::{Client, Resource};
use tokio_util::sync::CancellationToken;
use windlass_core::queue::Causes;
use windlass_core::{Kind, ObjectKey, Origin};

use crate::cache::{Cache, Cached, ReadError};
use crate::env::Env;
use crate::events::{Event, Recorder, reference};
use crate::executor::Executor;
use crate::metrics::Metrics;
use crate::planner::Object;
use crate::write::Writer;

/// What a pass has at hand: the cache to read, the user's own state, a recorder of events, the client for all else.
///
/// Reads come from the cache and cost nothing; they see the operator's own writes. A clone is the same context.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
    pass: Arc<Pass>,
}

/// What all controllers of an operator share.
pub(crate) struct Shared {
    pub operator: Arc<str>,
    pub client: Client,
    pub writer: Writer,
    pub cache: Cache,
    pub env: Env,
    pub metrics: Metrics,
    pub recorder: Recorder,
    pub states: States,
    pub shutdown: CancellationToken,
}

impl Shared {
    /// What an operator of that name needs, with nobody to tell.
    pub fn new(name: &str, client: Client, cache: Cache, env: Env) -> Shared {
        Shared {
            operator: name.into(),
            writer: Writer::new(client.clone(), cache.clone(), env.clone(), name),
            client,
            cache,
            env,
            metrics: Metrics::new(),
            recorder: Recorder::off(),
            states: States::default(),
            shutdown: CancellationToken::new(),
        }
    }
}

/// What is of this pass alone.
pub(crate) struct Pass {
    pub origin: Origin,
    pub causes: Causes,
    pub attempt: u32,
    pub executor: Arc<Executor>,
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, pass: Pass) -> Context {
        Context { shared, pass: Arc::new(pass) }
    }

    /// An object, from the cache.
    ///
    /// # Errors
    /// When no controller declared the kind (the error names the line to add), or its first list is not there yet.
    pub fn get<K>(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, ReadError>
    where
        K: Cached + Resource<DynamicType = (), Scope: 'static>,
    {
        self.shared.cache.get(key)
    }

    /// All objects of a kind, of one namespace or of all that are watched, ordered by namespace and name.
    ///
    /// # Errors
    /// As [`get`](Context::get).
    pub fn list<K>(&self, namespace: Option<&str>) -> Result<Vec<Arc<K>>, ReadError>
    where
        K: Cached + Resource<DynamicType = (), Scope: 'static>,
    {
        self.shared.cache.list(namespace)
    }

    /// All objects that an index of the kind has under a value.
    ///
    /// # Errors
    /// As [`get`](Context::get), and when the kind has no such index.
    pub fn by_index<K>(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, ReadError>
    where
        K: Cached + Resource<DynamicType = (), Scope: 'static>,
    {
        self.shared.cache.by_index(index, value)
    }

    /// Everything that is known of the cluster: for kinds that have no Rust type, and without a type at all.
    pub fn cache(&self) -> &Cache {
        &self.shared.cache
    }

    /// The operator's own state, as [`Operator::state`](crate::Operator::state) got it.
    ///
    /// # Panics
    /// When there is no state of this type: the message names the line to add.
    pub fn state<T: Send + Sync + 'static>(&self) -> Arc<T> {
        self.shared.states.get()
    }

    /// The client, for what the cache and the plan do not cover. What it writes is not seen by the next pass at once:
    /// the [`writer`](Context::writer) is.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// The one that writes: server-side apply, deletes with preconditions. The cache has its writes at once.
    pub fn writer(&self) -> &Writer {
        &self.shared.writer
    }

    /// Who writes: to be given to the [`writer`](Context::writer).
    pub fn origin(&self) -> &Origin {
        &self.pass.origin
    }

    /// Tells people about an object, by an event. It never blocks and never fails.
    pub fn event<K: Object>(&self, object: &K, event: Event) {
        self.shared.recorder.publish(&reference(&Kind::of::<K>(), object.meta()), event);
    }

    /// Where events are published: for objects that have no Rust type, with [`events::reference`](crate::events::reference).
    pub fn recorder(&self) -> &Recorder {
        &self.shared.recorder
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.shared.env.now()
    }

    /// Clock, randomness and tasks.
    pub fn env(&self) -> &Env {
        &self.shared.env
    }

    /// The operator's metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// What is reconciled.
    pub fn key(&self) -> &ObjectKey {
        &self.pass.origin.key
    }

    /// Why. For logs: a decision that depends on it would not be level-based.
    pub fn causes(&self) -> &Causes {
        &self.pass.causes
    }

    /// Which attempt this is: 1, and one more for each failure in a row.
    pub fn attempt(&self) -> u32 {
        self.pass.attempt
    }

    /// Ends when the operator is told to stop: long work should, too.
    pub async fn stopping(&self) {
        self.shared.shutdown.cancelled().await;
    }

    pub(crate) fn executor(&self) -> &Executor {
        &self.pass.executor
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("key", self.key())
            .field("causes", &self.causes())
            .finish_non_exhaustive()
    }
}

/// Values by their type.
#[derive(Clone, Default)]
pub(crate) struct States(BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    pub fn insert<T: Send + Sync + 'static>(&mut self, state: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(state));
    }

    pub fn get<T: Send + Sync + 'static>(&self) -> Arc<T> {
        let state = self.0.get(&TypeId::of::<T>()).cloned().and_then(|state| state.downcast().ok());
        state.unwrap_or_else(|| {
            let name = type_name::<T>();
            panic!("the operator has no state of type {name}: add `.state::<{name}>(…)` to its definition")
        })
    }
}
