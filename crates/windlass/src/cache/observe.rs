//! Who wants to know how informers are doing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::ObjectReference;

use super::health::{State, Target};
use super::registry::Cache;
use crate::events::{Event, Recorder};
use crate::metrics::{InformerMetrics, InformerState, Metrics};
use crate::source;

/// Told of what metrics and Events are made of.
///
/// # Assumptions
/// It returns soon: an informer waits for it.
pub trait Observer: Send + Sync {
    /// An informer is in another state, in one namespace or in all.
    fn state(&self, target: &Target, state: &State) {
        let _ = (target, state);
    }

    /// A list or a watch failed. Told each time, where the log says it once.
    fn watch_failed(&self, target: &Target, error: &source::Error) {
        let _ = (target, error);
    }

    /// An object does not decode, and is skipped.
    fn undecodable(&self, target: &Target, object: &ObjectReference, error: &str) {
        let _ = (target, object, error);
    }
}

/// Nobody wants to know.
impl Observer for () {}

/// Tells the operator's metrics and Events.
#[derive(Clone, Debug)]
pub struct Reporter {
    metrics: Metrics,
    recorder: Recorder,
    informers: Arc<Mutex<Informers>>,
}

/// By kind and scope.
type Informers = BTreeMap<(String, String), InformerMetrics>;

impl Reporter {
    /// Tells these what becomes of the informers of a cache, and how many objects they hold.
    pub fn new(cache: &Cache, metrics: &Metrics, recorder: Recorder) -> Reporter {
        let informers: Arc<Mutex<Informers>> = Arc::default();
        // Neither the cache nor the metrics stay for the sake of this.
        let (cache, known) = (cache.downgrade(), informers.clone());
        metrics.on_collect(move || {
            let known = known.lock().unwrap_or_else(PoisonError::into_inner);
            for health in cache.upgrade().iter().flat_map(Cache::health) {
                if let Some(informer) = known.get(&name(&health.target)) {
                    informer.objects(health.objects);
                }
            }
        });
        Reporter { metrics: metrics.clone(), recorder, informers }
    }

    fn of(&self, target: &Target) -> InformerMetrics {
        let mut informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        let (kind, scope) = name(target);
        let new = || self.metrics.informer(&kind, &scope);
        informers.entry((kind.clone(), scope.clone())).or_insert_with(new).clone()
    }
}

fn name(target: &Target) -> (String, String) {
    (target.kind.to_string(), target.scope())
}

impl Observer for Reporter {
    fn state(&self, target: &Target, state: &State) {
        self.of(target).state(match state {
            State::Syncing => InformerState::Syncing,
            State::Live => InformerState::Live,
            State::Failing { .. } => InformerState::Failing,
            State::Absent => InformerState::Absent,
        });
    }

    fn watch_failed(&self, target: &Target, _: &source::Error) {
        self.of(target).watch_failed();
    }

    fn undecodable(&self, target: &Target, object: &ObjectReference, error: &str) {
        self.of(target).undecodable();
        let note = format!("The operator cannot read this object and leaves it alone: {error}");
        self.recorder.publish(object, Event::warning("Undecodable", "Skip", note));
    }
}
