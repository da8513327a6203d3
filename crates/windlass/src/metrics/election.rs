//! Of leader election.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::family::Family;

/// The metrics of the election on one lease. Clones are the same metrics.
#[derive(Clone, Debug)]
pub struct ElectionMetrics {
    master: Gauge,
    slow_path: Counter,
}

impl ElectionMetrics {
    /// Whether this process leads.
    pub fn leading(&self, leads: bool) {
        self.master.set(leads.into());
    }

    /// A leader could not renew its lease by one request, and had to read it first.
    pub fn slow_path(&self) {
        self.slow_path.inc();
    }
}

#[derive(Debug)]
pub(super) struct ElectionFamilies {
    master: Family<1, Gauge>,
    slow_path: Family<1, Counter>,
}

impl ElectionFamilies {
    pub(super) fn register(to: &mut Registry) -> ElectionFamilies {
        let all = ElectionFamilies {
            master: Family::new(["name"], Gauge::default),
            slow_path: Family::new(["name"], Counter::default),
        };
        to.register(
            "leader_election_master_status",
            "Whether this process leads by the lease of this name: 1 it does, 0 it stands by",
            all.master.clone(),
        );
        to.register(
            "leader_election_slowpath",
            "Renewals of the lease that took more than one request",
            all.slow_path.clone(),
        );
        all
    }

    pub(super) fn of(&self, lease: &str) -> ElectionMetrics {
        ElectionMetrics { master: self.master.of([lease]), slow_path: self.slow_path.of([lease]) }
    }
}
