//! Controllers: which objects are looked at, when, and by what.

mod planned;
mod reconcile;
mod wire;
mod wired;
mod work;
mod worker;

pub use wire::{PAUSED, RECONCILE_NOW};
pub(crate) use wired::{AnyController, Target, Wired};

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{DynamicObject, PartialObjectMeta};
use tokio::sync::mpsc;
use windlass_core::queue::Config;
use windlass_core::{Kind, ObjectKey, Outcome};

use crate::cache::{Cache, Cached, Declared, Delta};
use crate::context::Context;
use crate::planner::{Object, Planner};
use crate::{Error, Rules};

use planned::Planned;
use reconcile::{Raw, Reconcile};
use wire::{Mapper, Predicate, Secondary, to_owner};
use wired::{Channel, Settles};
use work::Work;

/// Reconciles the objects of one kind.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # use windlass::{Controller, core::Outcome};
/// // From a planner: `Controller::new(MyPlanner).owns::<ConfigMap>()`. Or from a function:
/// let controller = Controller::raw(|ctx, map: std::sync::Arc<ConfigMap>| async move {
///     tracing::info!(object = %ctx.key(), "seen");
///     Ok(Outcome::AwaitChange)
/// })
/// .reads::<Secret>()
/// .concurrency(2);
/// ```
pub struct Controller<K> {
    name: Option<String>,
    kind: Kind,
    reconciler: Arc<dyn Reconcile<K>>,
    declared: Declared<K>,
    predicates: Vec<Predicate<K>>,
    others: Vec<Other>,
    channels: Vec<Channel>,
    owned: Vec<(Kind, bool)>,
    finalizer: Option<&'static str>,
    rules: Rules,
    concurrency: usize,
    timeout: Option<Duration>,
    every: Option<Duration>,
    queue: Config,
}

/// Another kind, and how to listen to it once there is a queue.
type Other = Box<dyn FnOnce(&Cache, &Arc<Work>) -> Box<dyn Settles> + Send>;

/// How many objects are reconciled at once, unless a controller says otherwise.
const CONCURRENCY: usize = 4;

impl<K: Object> Controller<K> {
    /// A controller that runs a planner.
    pub fn new<P: Planner<Object = K>>(planner: P) -> Controller<K> {
        let kind = Kind::of::<K>();
        let mut controller = Controller::of(kind.clone(), Arc::new(Planned { planner, kind: kind.clone() }));
        // The executor writes the status of the object and its finalizers, and makes it the owner of its children.
        controller.rules.allow_kind(&kind, &["patch"]);
        controller.rules.allow_subresource(&kind, "status", &["patch"]);
        controller.rules.allow_subresource(&kind, "finalizers", &["update"]);
        controller.declared = controller.declared.owned();
        controller.finalizer = P::FINALIZER;
        controller
    }

    /// A controller that runs a function. What it writes has to be [permitted](crate::Operator::permits).
    pub fn raw<F, R>(reconcile: F) -> Controller<K>
    where
        F: Fn(Context, Arc<K>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Outcome, Error>> + Send + 'static,
    {
        Controller::of(Kind::of::<K>(), Arc::new(Raw(reconcile)))
    }
}

impl Controller<DynamicObject> {
    /// A controller that runs a function for a kind that has no Rust type.
    pub fn dynamic<F, R>(kind: Kind, reconcile: F) -> Controller<DynamicObject>
    where
        F: Fn(Context, Arc<DynamicObject>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Outcome, Error>> + Send + 'static,
    {
        Controller::of(kind, Arc::new(Raw(reconcile)))
    }
}

impl<K> Controller<K>
where
    K: Cached,
{
    fn of(kind: Kind, reconciler: Arc<dyn Reconcile<K>>) -> Controller<K> {
        let mut rules = Rules::new();
        rules.allow_kind(&kind, &Rules::READ);
        rules.allow("events.k8s.io", "events", &["create", "patch"]);
        Controller {
            name: None,
            declared: Declared::of(kind.clone()),
            kind,
            reconciler,
            predicates: Vec::new(),
            others: Vec::new(),
            channels: Vec::new(),
            owned: Vec::new(),
            finalizer: None,
            rules,
            concurrency: CONCURRENCY,
            timeout: None,
            every: None,
            queue: Config::default(),
        }
    }

    /// Its name in logs and metrics; the kind in lower case by default, as in controller-runtime.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Children of this kind: a change of one is a look at its owner, and one that left the plan is removed.
    #[must_use]
    pub fn owns<C: Object>(self) -> Self {
        self.owns_kind::<C>(true)
    }

    /// Children of this kind, which are never removed because a plan does not name them: for what holds data, where only
    /// an explicit [delete](windlass_core::Plan::delete) with its reason may remove it.
    #[must_use]
    pub fn owns_and_keeps<C: Object>(self) -> Self {
        self.owns_kind::<C>(false)
    }

    fn owns_kind<C: Object>(mut self, prune: bool) -> Self {
        let (child, parent) = (Kind::of::<C>(), self.kind.clone());
        self.rules.allow_kind(&child, &Rules::READ);
        self.rules.allow_kind(&child, &Rules::OWN);
        self.owned.push((child.clone(), prune));
        self.listen(Declared::<C>::of(child).owned(), Box::new(to_owner::<C>(parent)))
    }

    /// Objects of this kind lead to some of the controller's: the mapper sees what an object was and what it is, and says
    /// which.
    #[must_use]
    pub fn watches<C: Object>(
        mut self,
        mapper: impl Fn(&Delta<C>, &Cache) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let kind = Kind::of::<C>();
        self.rules.allow_kind(&kind, &Rules::READ);
        self.listen(Declared::<C>::of(kind), Box::new(mapper))
    }

    /// As [`watches`](Controller::watches), of which only the metadata is read and kept: a seventh of the memory.
    #[must_use]
    pub fn watches_metadata<C: Object>(
        mut self,
        mapper: impl Fn(&Delta<PartialObjectMeta<C>>, &Cache) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let kind = Kind::of::<C>();
        self.rules.allow_kind(&kind, &Rules::READ);
        self.listen(Declared::<PartialObjectMeta<C>>::of(kind), Box::new(mapper))
    }

    /// As [`watches`](Controller::watches), of a kind that is declared in full: its scope, selector, indexes, or a kind
    /// that has no Rust type.
    #[must_use]
    pub fn watches_with<C>(
        mut self,
        declared: Declared<C>,
        mapper: impl Fn(&Delta<C>, &Cache) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self
    where
        C: Cached,
    {
        self.rules.allow_kind(&declared.kind, &Rules::READ);
        self.listen(declared, Box::new(mapper))
    }

    /// Objects of this kind are read: they are in the cache, and wake nobody.
    #[must_use]
    pub fn reads<C: Object>(self) -> Self {
        self.watches::<C>(|_, _| Vec::new())
    }

    /// As [`reads`](Controller::reads), of which only the metadata is kept: it is read as a `PartialObjectMeta<C>`.
    #[must_use]
    pub fn reads_metadata<C: Object>(self) -> Self {
        self.watches_metadata::<C>(|_, _| Vec::new())
    }

    /// As [`reads`](Controller::reads), of a kind that has no Rust type: it is read as a `DynamicObject`, through
    /// [`Context::cache`].
    #[must_use]
    pub fn reads_dynamic(self, kind: Kind) -> Self {
        self.reads_with(Declared::<DynamicObject>::of(kind))
    }

    /// As [`reads`](Controller::reads), of a kind that is declared in full.
    #[must_use]
    pub fn reads_with<C>(self, declared: Declared<C>) -> Self
    where
        C: Cached,
    {
        self.watches_with(declared, |_, _| Vec::new())
    }

    /// How the objects of the controller's own kind are kept: selector, indexes, transform, optional CRD.
    #[must_use]
    pub fn declared(mut self, change: impl FnOnce(Declared<K>) -> Declared<K>) -> Self {
        self.declared = change(self.declared);
        self
    }

    /// Only changes that pass are looked at. That a deletion begins, that an object is [paused](PAUSED) or no longer so, and
    /// what is [asked for](RECONCILE_NOW) by annotation always are.
    #[must_use]
    pub fn predicate(mut self, passes: impl Fn(&Delta<K>) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push(Box::new(passes));
        self
    }

    /// Events from outside of the cluster: each key that comes is looked at. When the sender is gone, nothing more comes.
    #[must_use]
    pub fn channel(mut self, name: &str, keys: mpsc::Receiver<ObjectKey>) -> Self {
        self.channels.push(Channel { name: name.into(), keys });
        self
    }

    /// How many objects are reconciled at once; 4 by default, and at least 1.
    #[must_use]
    pub fn concurrency(mut self, workers: usize) -> Self {
        self.concurrency = workers.max(1);
        self
    }

    /// How long a pass may take before it is ended and counts as failed; without a limit by default.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Every object is looked at again after about this time, changed or not.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Self {
        self.every = Some(interval);
        self
    }

    /// Backoff, rate limit and ageing of the queue.
    #[must_use]
    pub fn queue(mut self, config: Config) -> Self {
        self.queue = config;
        self
    }

    fn listen<C>(mut self, declared: Declared<C>, mapper: Mapper<C>) -> Self
    where
        C: Cached,
    {
        self.others.push(Box::new(move |cache, work| {
            let kind: Arc<str> = declared.kind.to_string().into();
            let informer = cache.declare(declared);
            informer.subscribe(Arc::new(Secondary {
                work: work.clone(),
                kind,
                cache: cache.clone(),
                mapper,
            }));
            Box::new(informer)
        }));
        self
    }
}
