//! What a controller watches, and what that leads to.

use std::sync::{Arc, LazyLock};

use kube::core::{DynamicObject, PartialObjectMeta};
use windlass::Object;
use windlass::cache::{Cache, Cached, Declared, Delta, Index, Informer, Subscriber, Transform};
use windlass_core::queue::Wake;
use windlass_core::select::LabelSelector;
use windlass_core::{Cause, Kind, ObjectKey, owner};

use super::{Answers, View, Work};

/// The index of objects by the uid of their controller; those that have none are under [`nobody_in`] their namespace.
pub(super) const BY_CONTROLLER: &str = "controller";

/// Where the objects without a controller are, in one namespace.
pub(super) fn nobody_in(namespace: &str) -> String {
    format!("nobody in {namespace}")
}

/// The metadata of an object of any kind.
pub type Metadata = PartialObjectMeta<DynamicObject>;

/// Connects a controller with what it watches.
pub struct Wiring {
    cache: Cache,
    work: Arc<Work>,
}

impl Wiring {
    pub(crate) fn new(cache: Cache, work: Arc<Work>) -> Wiring {
        Wiring { cache, work }
    }

    /// Each object of this kind is a key.
    pub fn keys<K: Object>(&mut self) {
        self.maps::<K>(|object, _| vec![ObjectKey::of(object.meta())]);
    }

    /// A change of an object of this kind is a look at its controller, where that is a `Parent`, and of one that has no
    /// controller a look at every `Parent` whose selector takes it. Objects are found by their controller with
    /// [`View::children`] and [`View::orphans`].
    pub fn children<K: Object, Parent: Object>(
        &mut self,
        selector: impl Fn(&Parent) -> LabelSelector + Send + Sync + 'static,
    ) {
        self.reads::<Parent>();
        self.owned::<K>();
        let parent = Kind::of::<Parent>();
        self.maps::<K>(move |object, view| {
            let meta = object.meta();
            let Some(owner) = owner::controller_of(meta) else {
                let labels = meta.labels.clone().unwrap_or_default();
                let parents = view.list::<Parent>(meta.namespace.as_deref()).into_iter();
                let taking = parents.filter(|parent| selector(parent).matches(&labels));
                return taking.map(|parent| ObjectKey::of(parent.meta())).collect();
            };
            let is_ours =
                owner.kind == parent.resource.kind && owner.api_version == parent.resource.api_version;
            is_ours.then(|| ObjectKey::new(meta.namespace.as_deref(), &owner.name)).into_iter().collect()
        });
    }

    /// Objects of this kind are found by their controller, and a change of one leads nowhere.
    pub fn owned<K: Object>(&mut self) {
        self.index::<K>(by_controller());
    }

    /// Objects of this kind lead to some keys: asked of what an object was, and of what it is.
    pub fn maps<K: Object>(&mut self, map: impl Fn(&K, &View<'_>) -> Vec<ObjectKey> + Send + Sync + 'static) {
        self.changes::<K>(move |delta, view| {
            delta.old.iter().chain(&delta.new).flat_map(|object| map(object, view)).collect()
        });
    }

    /// A change of an object of this kind leads to some keys, which may follow from what has changed.
    pub fn changes<K: Object>(
        &mut self,
        map: impl Fn(&Delta<K>, &View<'_>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) {
        let informer = self.cache.declare(Declared::<K>::typed());
        self.follow(&informer, map);
    }

    /// As [`Wiring::changes`], of objects that are declared already.
    pub fn follow<K: Cached>(
        &mut self,
        informer: &Informer<K>,
        map: impl Fn(&Delta<K>, &View<'_>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) {
        let kind = informer.kind().to_string().into();
        informer.subscribe(Arc::new(Listener {
            work: self.work.clone(),
            cache: self.cache.clone(),
            kind,
            map,
        }));
    }

    /// Objects of this kind are read, and a change of one leads nowhere.
    pub fn reads<K: Object>(&mut self) {
        self.cache.declare(Declared::<K>::typed());
    }

    /// Of objects of this kind the metadata is wanted, but for labels and annotations. The kind may be missing.
    pub fn metadata(&self, kind: &Kind) -> Informer<Metadata> {
        // Everybody's is the same one, or each would watch for itself.
        static STRIP: LazyLock<Transform<Metadata>> = LazyLock::new(|| Arc::new(strip));
        let declared = Declared::of(kind.clone()).optional();
        self.cache.declare(Declared { transform: Some(STRIP.clone()), ..declared })
    }

    /// Objects of this kind are found by an index.
    pub fn index<K: Object>(&mut self, index: Index<K>) {
        self.cache.declare(Declared::<K>::typed().index(index));
    }

    /// The cache, for kinds that have no Rust type.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// A way to ask for a look at a key from outside of the cache's events.
    pub fn waker(&self) -> impl Fn(ObjectKey, Cause) + Send + Sync + 'static {
        let work = self.work.clone();
        move |key, cause| work.wake(&key, Wake::new(cause))
    }
}

fn by_controller<K: Object>() -> Index<K> {
    Index::new(BY_CONTROLLER, |object: &K| {
        let meta = object.meta();
        let nobody = || nobody_in(meta.namespace.as_deref().unwrap_or_default());
        vec![owner::controller_of(meta).map_or_else(nobody, |owner| owner.uid.clone())]
    })
}

/// What nobody asks of metadata is not kept.
fn strip(object: &mut Metadata) {
    object.metadata.labels = None;
    object.metadata.annotations = None;
}

/// Hears of one kind for one controller.
struct Listener<F> {
    work: Arc<Work>,
    cache: Cache,
    kind: Arc<str>,
    map: F,
}

impl<K, F> Subscriber<K> for Listener<F>
where
    F: Fn(&Delta<K>, &View<'_>) -> Vec<ObjectKey> + Send + Sync,
{
    fn changed(&self, delta: &Delta<K>) {
        let answers = Answers::default();
        let view = View::partial(&self.cache, &answers);
        let (kind, object, version) = (self.kind.clone(), delta.key.clone(), delta.version);
        let cause = match (&delta.new, delta.initial) {
            (_, true) => Cause::Initial,
            (Some(_), false) => Cause::Changed { kind, object, version },
            (None, false) => Cause::Deleted { kind, object, version },
        };
        let mut keys = (self.map)(delta, &view);
        keys.sort();
        keys.dedup();
        for key in keys {
            // What happens ends the wait after a failure: one pod that is refused does not keep the others from being seen.
            self.work.wake(&key, Wake { urgent: true, ..Wake::new(cause.clone()) });
        }
    }
}
