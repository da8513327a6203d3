//! What has to be remembered from pass to pass. It is kept in the status, so that it survives the operator.

use windlass::jiff::Timestamp;

use super::view::{best, is_born, is_healthy, trusted};
use crate::observe::{Name, Observed};

/// What has to be remembered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The ID that etcd gave the cluster.
    pub cluster_id: Option<u64>,
    /// The highest serial that was given to a member.
    pub serial: u64,
    /// Whether that serial is reserved for a member that was not seen yet.
    pub reserved: bool,
    /// Since when each member is healthy, or is not.
    pub since: Vec<Since>,
    /// Members that were replaced within the last hour, and when.
    pub replacements: Vec<(Name, Timestamp)>,
    /// Since when there is no quorum.
    pub quorum_lost_since: Option<Timestamp>,
    /// The recovery from a lost quorum that is on its way.
    pub recovery: Option<Rescue>,
    /// The step that was due at the last look, in words, and since when it is.
    pub due: Option<(String, Timestamp)>,
}

/// Since when a member is as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Since {
    /// Which member.
    pub member: Name,
    /// Whether it is healthy.
    pub healthy: bool,
    /// Since when.
    pub at: Timestamp,
}

/// A recovery from a lost quorum.
#[derive(Clone, Debug, PartialEq)]
pub struct Rescue {
    /// The member that goes on alone.
    pub survivor: Name,
    /// When that was decided.
    pub at: Timestamp,
    /// Whether it has gone on alone.
    pub forced: bool,
}

/// Something that has to be in the status before anything is done on its word.
#[derive(Clone, Debug, PartialEq)]
pub enum Latch {
    /// The ID of the cluster that has come to life.
    Born(u64),
    /// A serial, for a member to be made.
    Serial(u64),
    /// That the member of that serial was seen.
    SerialUsed,
    /// That a member is replaced.
    Replacement(Name),
    /// That a survivor goes on alone.
    Rescue(Name),
    /// That it has.
    Rescued,
    /// That it was started again without the force.
    RescueDone,
}

/// How long a replacement counts.
pub const HOUR_SECONDS: i64 = 3600;

impl Memory {
    /// What a look adds to it: no decision, only what was seen.
    #[must_use]
    pub fn learn(&self, seen: &Observed, now: Timestamp) -> Memory {
        let mut next = self.clone();
        next.replacements.retain(|(_, at)| now.as_second() - at.as_second() < HOUR_SECONDS);
        let lost = is_born(&next, seen) && trusted(&next, seen).is_none();
        let list = best(&next, seen);
        let since: Vec<Since> = seen
            .members
            .iter()
            .map(|member| {
                let healthy = is_healthy(list, member);
                let known = self.since.iter().find(|one| one.member == member.name && one.healthy == healthy);
                let at = known.map_or(now, |one| one.at);
                Since { member: member.name.clone(), healthy, at }
            })
            .collect();
        next.quorum_lost_since = lost.then(|| self.quorum_lost_since.unwrap_or(now));
        next.since = since;
        next
    }

    /// The ID of the cluster that has just come to life: the first list in which a member that has joined is the only one is
    /// of the cluster that the seed began. It has to be noted as joined before: with the ID alone, nobody would know which
    /// member to start.
    pub fn newborn(&self, seen: &Observed) -> Option<u64> {
        let list = seen.list.as_ref().filter(|_| self.cluster_id.is_none())?;
        let [only] = &list.members[..] else { return None };
        let member = seen.member(only.member.as_deref()?)?;
        (member.joined() == Some(only.id)).then_some(list.cluster_id)
    }

    /// What a latch makes of it.
    #[must_use]
    pub fn with(&self, latch: &Latch, now: Timestamp) -> Memory {
        let mut next = self.clone();
        match latch {
            Latch::Serial(serial) => (next.serial, next.reserved) = (*serial, true),
            Latch::Born(id) => next.cluster_id = Some(*id),
            Latch::SerialUsed => next.reserved = false,
            Latch::Replacement(name) => next.replacements.push((name.clone(), now)),
            Latch::Rescue(name) => {
                next.recovery = Some(Rescue { survivor: name.clone(), at: now, forced: false });
            }
            Latch::Rescued => {
                if let Some(rescue) = &mut next.recovery {
                    rescue.forced = true;
                }
            }
            Latch::RescueDone => next.recovery = None,
        }
        next
    }

    /// Whether it was decided that a member is replaced.
    pub fn is_replaced(&self, name: &str) -> bool {
        self.replacements.iter().any(|(member, _)| &**member == name)
    }

    /// Since when a member is not healthy; `None` for one that is.
    pub fn unhealthy_since(&self, name: &str) -> Option<Timestamp> {
        self.since.iter().find(|one| &*one.member == name && !one.healthy).map(|one| one.at)
    }

    /// Since when a member is healthy; `None` for one that is not.
    pub fn healthy_since(&self, name: &str) -> Option<Timestamp> {
        self.since.iter().find(|one| &*one.member == name && one.healthy).map(|one| one.at)
    }
}
