//! From what happened to an object, to what has to be looked at.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use windlass_core::queue::{Priority, Wake};
use windlass_core::{Cause, Kind, ObjectKey, Origin, owner};

use super::work::Work;
use crate::cache::{Cache, Delta, Subscriber};
use crate::executor::Executor;

/// Set to `true` on an object, it is left alone.
pub const PAUSED: &str = "windlass.dev/paused";

/// Set to something new on an object, it is looked at now, whatever it waits for.
pub const RECONCILE_NOW: &str = "windlass.dev/reconcile-now";

pub(super) type Predicate<K> = Box<dyn Fn(&Delta<K>) -> bool + Send + Sync>;
pub(super) type Mapper<K> = Box<dyn Fn(&Delta<K>, &Cache) -> Vec<ObjectKey> + Send + Sync>;

/// Listens to the kind that the controller is for.
pub(super) struct Primary<K> {
    pub work: Arc<Work>,
    pub executor: Arc<Executor>,
    pub kind: Arc<str>,
    pub predicates: Vec<Predicate<K>>,
}

impl<K: Resource + Send + Sync> Subscriber<K> for Primary<K> {
    fn changed(&self, delta: &Delta<K>) {
        let Some(new) = &delta.new else {
            self.work.forget(&delta.key);
            if let Some(uid) = delta.old.as_ref().and_then(|old| old.meta().uid.as_deref()) {
                self.executor.forget(uid);
            }
            return;
        };
        let urgent =
            !delta.initial && annotation(&**new, RECONCILE_NOW).is_some() && changed(delta, RECONCILE_NOW);
        let passes = |predicate: &Predicate<K>| guarded(&self.work.name, true, || predicate(delta));
        if !urgent && !must_be_seen(delta) && !self.predicates.iter().all(passes) {
            return;
        }
        let mut wake = wake(&self.kind, delta);
        if urgent {
            wake.cause = Cause::Requested;
            wake.urgent = true;
        }
        wake.generation = generation(&**new);
        self.work.wake_unless_own(delta.key.clone(), delta.origin.as_ref(), wake);
    }

    fn own(&self, key: &ObjectKey, version: u64, origin: &Origin) {
        self.work.take_back(&self.kind, key, version, origin);
    }
}

/// Whether a change is of interest to the framework itself, whatever the predicates say: that a deletion begins, which
/// would never end without the controller, and that an object is paused or no longer so.
fn must_be_seen<K: Resource>(delta: &Delta<K>) -> bool {
    let is_going = |object: &Option<Arc<K>>| {
        object.as_ref().is_some_and(|object| object.meta().deletion_timestamp.is_some())
    };
    is_going(&delta.new) && !is_going(&delta.old) || delta.old.is_some() && changed(delta, PAUSED)
}

/// Whether an annotation is another than before.
fn changed<K: Resource>(delta: &Delta<K>, name: &str) -> bool {
    let [old, new] =
        [&delta.old, &delta.new].map(|one| one.as_deref().and_then(|object| annotation(object, name)));
    old != new
}

/// Listens to another kind, whose objects lead to some of the controller's.
pub(super) struct Secondary<K> {
    pub work: Arc<Work>,
    pub kind: Arc<str>,
    pub cache: Cache,
    pub mapper: Mapper<K>,
}

impl<K: Resource + Send + Sync> Subscriber<K> for Secondary<K> {
    fn changed(&self, delta: &Delta<K>) {
        let mut keys = guarded(&self.work.name, Vec::new(), || (self.mapper)(delta, &self.cache));
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            self.work.wake_unless_own(key, delta.origin.as_ref(), wake(&self.kind, delta));
        }
    }

    fn own(&self, key: &ObjectKey, version: u64, origin: &Origin) {
        self.work.take_back(&self.kind, key, version, origin);
    }
}

/// The mapper of children: to the controller that owns them now, and to the one that did before.
pub(super) fn to_owner<C: Resource>(parent: Kind) -> impl Fn(&Delta<C>, &Cache) -> Vec<ObjectKey> {
    move |delta, _| {
        let owners = [&delta.old, &delta.new].into_iter().flatten();
        owners.filter_map(|child| owner_key(&parent, child.meta())).collect()
    }
}

fn owner_key(parent: &Kind, child: &ObjectMeta) -> Option<ObjectKey> {
    let owner = owner::controller_of(child)?;
    let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    if owner.kind != parent.resource.kind || group != parent.resource.group {
        return None;
    }
    Some(ObjectKey::new(child.namespace.as_deref().filter(|_| parent.namespaced), &owner.name))
}

/// What the object's spec is known by: its generation, or, for kinds that count none, its version.
pub(super) fn generation<K: Resource>(object: &K) -> Option<i64> {
    let metadata = object.meta();
    metadata.generation.or_else(|| metadata.resource_version.as_ref()?.parse().ok())
}

fn wake<K>(kind: &Arc<str>, delta: &Delta<K>) -> Wake {
    let (kind, object, version) = (kind.clone(), delta.key.clone(), delta.version);
    let cause = match (delta.initial, &delta.new) {
        (true, _) => Cause::Initial,
        (false, Some(_)) => Cause::Changed { kind, object, version },
        (false, None) => Cause::Deleted { kind, object, version },
    };
    let wake = Wake::new(cause);
    if delta.initial { Wake { priority: Priority::INITIAL, ..wake } } else { wake }
}

pub(super) fn annotation<'a, K: Resource>(object: &'a K, name: &str) -> Option<&'a str> {
    object.meta().annotations.as_ref()?.get(name).map(String::as_str)
}

/// Runs the user's code: where it panics, `fallback` is its answer, and the informer goes on.
fn guarded<T>(controller: &str, fallback: T, code: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(code)).unwrap_or_else(|panic| {
        let panic = crate::env::panic_message(&*panic);
        tracing::error!(controller, panic, "a mapper or predicate panicked");
        fallback
    })
}
