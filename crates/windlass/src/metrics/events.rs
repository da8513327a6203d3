//! Of events that are reported to the cluster.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use super::family::Family;

/// Why an event did not reach the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// More came than could be sent.
    Overflow,
    /// Too many of one object.
    RateLimit,
    /// The server did not take it.
    Failed,
}

/// The metrics of the operator's events. Clones are the same metrics.
#[derive(Clone, Debug)]
pub struct EventMetrics {
    sent: Counter,
    overflow: Counter,
    rate_limit: Counter,
    failed: Counter,
}

impl EventMetrics {
    /// An event reached the cluster, as one of its own or as one more of a series.
    pub fn sent(&self) {
        self.sent.inc();
    }

    /// An event did not.
    pub fn dropped(&self, why: Dropped) {
        match why {
            Dropped::Overflow => &self.overflow,
            Dropped::RateLimit => &self.rate_limit,
            Dropped::Failed => &self.failed,
        }
        .inc();
    }
}

#[derive(Debug)]
pub(super) struct EventFamilies(Family<1, Counter>);

impl EventFamilies {
    pub(super) fn register(to: &mut Registry) -> EventFamilies {
        let all = Family::new(["result"], Counter::default);
        to.register("windlass_events", "Events by what became of them", all.clone());
        EventFamilies(all)
    }

    pub(super) fn handle(&self) -> EventMetrics {
        EventMetrics {
            sent: self.0.of(["sent"]),
            overflow: self.0.of(["overflow"]),
            rate_limit: self.0.of(["rate_limit"]),
            failed: self.0.of(["failed"]),
        }
    }
}
