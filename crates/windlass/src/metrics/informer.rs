//! Of informers. controller-runtime has no such metrics, and its users ask why an operator stopped to see.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::family::Family;

/// What an informer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InformerState {
    /// It reads the first list.
    Syncing,
    /// It follows the changes.
    Live,
    /// Its list or watch fails, and what it has may be old.
    Failing,
    /// The server does not have the kind.
    Absent,
}

impl InformerState {
    const ALL: [InformerState; 4] =
        [InformerState::Syncing, InformerState::Live, InformerState::Failing, InformerState::Absent];

    fn text(self) -> &'static str {
        match self {
            InformerState::Syncing => "syncing",
            InformerState::Live => "live",
            InformerState::Failing => "failing",
            InformerState::Absent => "absent",
        }
    }
}

/// The metrics of one informer. Clones are the same metrics.
#[derive(Clone, Debug)]
pub struct InformerMetrics {
    states: [Gauge; 4],
    objects: Gauge,
    watch_errors: Counter,
    undecodable: Counter,
}

impl InformerMetrics {
    /// What it is doing now.
    pub fn state(&self, now: InformerState) {
        for (state, series) in InformerState::ALL.into_iter().zip(&self.states) {
            series.set((state == now).into());
        }
    }

    /// How many objects it holds.
    pub fn objects(&self, count: usize) {
        self.objects.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A list or a watch failed.
    pub fn watch_failed(&self) {
        self.watch_errors.inc();
    }

    /// An object was left out, for it is not what its kind says.
    pub fn undecodable(&self) {
        self.undecodable.inc();
    }
}

#[derive(Debug)]
pub(super) struct InformerFamilies {
    state: Family<3, Gauge>,
    objects: Family<2, Gauge>,
    watch_errors: Family<2, Counter>,
    undecodable: Family<2, Counter>,
}

impl InformerFamilies {
    pub(super) fn register(to: &mut Registry) -> InformerFamilies {
        let of_informer = ["kind", "scope"];
        let all = InformerFamilies {
            state: Family::new(["kind", "scope", "state"], Gauge::default),
            objects: Family::new(of_informer, Gauge::default),
            watch_errors: Family::new(of_informer, Counter::default),
            undecodable: Family::new(of_informer, Counter::default),
        };
        to.register("windlass_informer_state", "1 for what the informer is doing now", all.state.clone());
        to.register("windlass_informer_objects", "Objects that the informer holds", all.objects.clone());
        to.register(
            "windlass_informer_watch_errors",
            "Lists and watches that failed",
            all.watch_errors.clone(),
        );
        to.register(
            "windlass_informer_undecodable_objects",
            "Objects that were left out because they are not what their kind says",
            all.undecodable.clone(),
        );
        all
    }

    pub(super) fn of(&self, kind: &str, scope: &str) -> InformerMetrics {
        InformerMetrics {
            states: InformerState::ALL.map(|state| self.state.of([kind, scope, state.text()])),
            objects: self.objects.of([kind, scope]),
            watch_errors: self.watch_errors.of([kind, scope]),
            undecodable: self.undecodable.of([kind, scope]),
        }
    }
}
