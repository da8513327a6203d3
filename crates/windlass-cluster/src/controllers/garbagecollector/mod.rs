//! The garbage collector: what has lost its owners goes, what should go first goes first, and what should stay is let go.
//!
//! ```text
//! metadata of all kinds ─► Graph (who owns whom) ─► uid ─► ask the server about the object and each of its owners ─► decide
//! ```
//!
//! The graph only says where to look. That an owner is gone is never concluded from what is watched, which may be late, or
//! not listed, or failing: the server has to say of that very name that there is none, or one with another uid. A deletion
//! names the uid and the version of the object whose owners were looked at. Dependents that are to stay are listed on the
//! server, too, before their owner may go.

mod collect;
mod graph;
mod orphan;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use windlass::cache::{Delta, Informer, InformerHealth, State, Subscriber};
use windlass_core::{Cause, Kind, ObjectKey};

use self::graph::{Graph, Uid};
use crate::engine::{Controller, Kinds, LookUp, Metadata, Turn, View, Wiring};

/// Collects what nobody owns any more.
#[derive(Default)]
pub(super) struct GarbageCollector {
    shared: Arc<Shared>,
}

/// What the steps of different keys have in common.
#[derive(Default)]
struct Shared {
    graph: Mutex<Graph>,
    kinds: Mutex<Arc<Kinds>>,
    /// By the path of the collection.
    watched: Mutex<BTreeMap<String, Informer<Metadata>>>,
}

/// The key under which it is found out which kinds there are. Every other key is a uid.
const KINDS: &str = "kinds";

/// After how long the server is asked again which kinds there are: not every change of them is an object that is watched.
const RESYNC: Duration = Duration::from_secs(30);

/// After how long it is asked again where a definition is established and its kind is not served: discovery is a little later.
const SOON: Duration = Duration::from_secs(1);

impl Controller for GarbageCollector {
    fn name(&self) -> &'static str {
        "garbage-collector-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.maps::<CustomResourceDefinition>(|_, _| vec![ObjectKey::cluster(KINDS)]);
        wiring.waker()(ObjectKey::cluster(KINDS), Cause::Initial);
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        if key.name() == KINDS {
            return self.find_kinds(view, now);
        }
        let uid = key.name();
        let Some(node) = self.shared.graph().get(uid).cloned() else { return Turn::nothing() };
        if node.orphan {
            let kinds = self.shared.kinds();
            orphan::orphan(uid, &node, view, &kinds, now)
        } else if node.foreground {
            collect::await_dependents(uid, &node, &self.shared, view, now)
        } else if node.ends || node.owners.is_empty() {
            Turn::nothing()
        } else {
            collect::collect(uid, &node, &self.shared, view, now)
        }
    }

    fn watch(&self, kind: &Kind, wiring: &mut Wiring) {
        let path = kind.path(None, None);
        if self.shared.watched().contains_key(&path) {
            return;
        }
        let informer = wiring.metadata(kind);
        self.shared.watched().insert(path, informer.clone());
        informer.subscribe(Arc::new(Listener {
            shared: self.shared.clone(),
            kind: Arc::new(kind.clone()),
            wake: Box::new(wiring.waker()),
        }));
    }
}

impl GarbageCollector {
    fn find_kinds(&self, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let Some(found) = view.kinds() else {
            turn.look_up(LookUp::Kinds);
            return turn;
        };
        let deletable =
            found.served.iter().filter(|served| served.preferred && served.can(&["delete", "list", "watch"]));
        // Events are many, live for an hour, and own nothing.
        turn.watch = deletable
            .filter(|served| served.kind.resource.kind != "Event")
            .map(|served| served.kind.clone())
            .collect();
        *self.shared.kinds.lock().unwrap_or_else(PoisonError::into_inner) = found.clone();
        let definitions = view.list::<CustomResourceDefinition>(None);
        let all_served = definitions.iter().all(|definition| is_served(definition, found));
        turn.wake_at(now + if all_served { RESYNC } else { SOON });
        turn
    }
}

impl Shared {
    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kinds(&self) -> Arc<Kinds> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<String, Informer<Metadata>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether every kind is listed and followed now, so that what depends on something is in the graph, but for what is
    /// on its way.
    fn sees_all(&self) -> bool {
        let health = self.health();
        let follows =
            |one: &InformerHealth| one.state == State::Absent || (one.listed && one.state == State::Live);
        !health.is_empty() && health.iter().all(follows)
    }

    /// Whether first lists are under way: it is too early to ask for what was not seen.
    fn begins(&self) -> bool {
        self.health().iter().any(|one| !one.listed && one.state == State::Syncing)
    }

    fn health(&self) -> Vec<InformerHealth> {
        let watched: Vec<_> = self.watched().values().cloned().collect();
        watched.iter().flat_map(Informer::health).collect()
    }
}

/// Whether a definition that is established is among what the server says it serves.
fn is_served(definition: &CustomResourceDefinition, kinds: &Kinds) -> bool {
    let conditions = definition.status.as_ref().and_then(|status| status.conditions.as_deref());
    let established = |name: &str| {
        let mut all = conditions.unwrap_or_default().iter();
        all.any(|condition| condition.type_ == name && condition.status == "True")
    };
    let (group, kind) = (&definition.spec.group, &definition.spec.names.kind);
    let mut versions = definition.spec.versions.iter().filter(|version| version.served);
    !established("Established")
        || versions.all(|version| kinds.find(&format!("{group}/{}", version.name), kind).is_some())
}

/// Hears of one kind.
struct Listener {
    shared: Arc<Shared>,
    kind: Arc<Kind>,
    wake: Box<dyn Fn(ObjectKey, Cause) + Send + Sync>,
}

impl Subscriber<Metadata> for Listener {
    fn changed(&self, delta: &Delta<Metadata>) {
        let look = match (&delta.new, &delta.old) {
            (Some(new), _) => self.shared.graph().put(&self.kind, &new.metadata),
            (None, Some(old)) => self.shared.graph().remove(&self.kind, &old.metadata),
            (None, None) => return,
        };
        let cause = || match delta.initial {
            true => Cause::Initial,
            false => Cause::Changed {
                kind: self.kind.to_string().into(),
                object: delta.key.clone(),
                version: delta.version,
            },
        };
        for uid in look {
            (self.wake)(key_of(&uid), cause());
        }
    }
}

fn key_of(uid: &Uid) -> ObjectKey {
    ObjectKey::cluster(uid)
}
