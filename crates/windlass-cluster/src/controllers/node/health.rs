//! When a node was heard of last, by our own clock.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;

use super::condition;

/// How long a node may be silent,
const GRACE: Duration = Duration::from_secs(50);
/// and how long one that has never said anything.
const STARTUP_GRACE: Duration = Duration::from_secs(60);

/// What was heard of a node. Clocks differ: what counts is when it was seen that something changed.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub uid: String,
    renewed: Option<Timestamp>,
    beat: Option<Timestamp>,
    at: Timestamp,
}

impl Heard {
    /// Hears of a node for the first time.
    pub fn first(node: &Node, lease: Option<&Lease>, now: Timestamp) -> Heard {
        let created = node.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        let at = if condition(node, "Ready").is_some() || lease.is_some() { now } else { created };
        let uid = node.metadata.uid.clone().unwrap_or_default();
        Heard { uid, renewed: renewed(lease), beat: beat(node), at }
    }

    /// Hears of it again.
    pub fn again(&mut self, node: &Node, lease: Option<&Lease>, now: Timestamp) {
        let (renewed, beat) = (renewed(lease), beat(node));
        if renewed > self.renewed || beat != self.beat {
            self.at = now;
        }
        self.renewed = renewed.max(self.renewed);
        self.beat = beat;
    }

    /// When it has been silent for too long.
    pub fn silent_at(&self, node: &Node) -> Timestamp {
        let grace = if condition(node, "Ready").is_some() { GRACE } else { STARTUP_GRACE };
        self.at.checked_add(grace).unwrap_or(Timestamp::MAX)
    }
}

fn renewed(lease: Option<&Lease>) -> Option<Timestamp> {
    lease?.spec.as_ref()?.renew_time.as_ref().map(|time| time.0)
}

fn beat(node: &Node) -> Option<Timestamp> {
    condition(node, "Ready")?.last_heartbeat_time.as_ref().map(|time| time.0)
}
