//! What is asked for, what is remembered and what is seen, and the questions that decisions ask of them.

use windlass::jiff::Timestamp;

use super::action::{Because, Why};
use super::memory::Memory;
use crate::api::{EtcdClusterSpec, Medium};
use crate::observe::{List, Listed, Member, Observed, Volume};

/// Everything that a decision depends on.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// What is asked for.
    pub spec: &'a EtcdClusterSpec,
    /// What is remembered, with what this look adds to it.
    pub memory: &'a Memory,
    /// What is seen.
    pub seen: &'a Observed,
    /// When.
    pub now: Timestamp,
}

/// How many of so many voters have to agree.
pub const fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

/// Whether the cluster has come to life: from then on no member is started as new, whatever is seen.
pub fn is_born(memory: &Memory, seen: &Observed) -> bool {
    memory.cluster_id.is_some() || seen.members.iter().any(|member| member.joined().is_some())
}

/// The list that a linearizable read gave, if it is of this cluster and there is a leader.
pub fn trusted<'a>(memory: &Memory, seen: &'a Observed) -> Option<&'a List> {
    seen.list.as_ref().filter(|list| list.leader != 0 && is_ours(memory, list))
}

/// The best list there is.
pub fn best<'a>(memory: &Memory, seen: &'a Observed) -> Option<&'a List> {
    trusted(memory, seen).or_else(|| seen.local.as_ref().filter(|list| is_ours(memory, list)))
}

fn is_ours(memory: &Memory, list: &List) -> bool {
    memory.cluster_id.is_none_or(|id| id == list.cluster_id)
}

/// Whether a member answers, follows a leader, is who the list says it is, and has sound data.
pub fn is_healthy(list: Option<&List>, member: &Member) -> bool {
    let (Some(report), Some(list)) = (&member.report, list) else { return false };
    let Some(listed) = list.of(&member.name) else { return false };
    report.leader != 0
        && report.id == listed.id
        && report.cluster_id == list.cluster_id
        && !list.corrupt.contains(&report.id)
}

impl<'a> View<'a> {
    /// The list to act on: linearizable, with a leader, of this cluster.
    pub fn list(&self) -> Option<&'a List> {
        trusted(self.memory, self.seen)
    }

    /// The best list there is: to look at, not to act on.
    pub fn best(&self) -> Option<&'a List> {
        best(self.memory, self.seen)
    }

    /// Whether the cluster has come to life.
    pub fn is_born(&self) -> bool {
        is_born(self.memory, self.seen)
    }

    /// Whether a member is healthy.
    pub fn is_healthy(&self, member: &Member) -> bool {
        is_healthy(self.best(), member)
    }

    /// The one of ours that is listed so.
    pub fn ours(&self, listed: &Listed) -> Option<&'a Member> {
        listed.member.as_deref().and_then(|name| self.seen.member(name))
    }

    /// Whether the one that is listed so is healthy. Of one that we do not know we cannot say so.
    pub fn is_listed_healthy(&self, listed: &Listed) -> bool {
        self.ours(listed).is_some_and(|member| self.is_healthy(member))
    }

    /// How many members vote, and how many of them are healthy.
    pub fn count(&self) -> (usize, usize) {
        let Some(list) = self.best() else { return (0, 0) };
        list.voters().fold((0, 0), |(voters, healthy), listed| {
            (voters + 1, healthy + usize::from(self.is_listed_healthy(listed)))
        })
    }

    /// How many members should vote.
    pub fn size(&self) -> usize {
        usize::try_from(self.spec.size).unwrap_or(0)
    }

    /// Whether volumes are on disk.
    pub fn on_disk(&self) -> bool {
        self.spec.storage.medium == Medium::Disk
    }

    /// Members that are to be added, and that etcd does not know yet, or of which we do not know that it does.
    pub fn pending(&self) -> impl Iterator<Item = &'a Member> {
        self.seen.members.iter().filter(|member| member.object.is_some() && member.joined().is_none())
    }

    /// Whether somebody asked for the end of a member, or made sure of it.
    pub fn is_leaving(&self, member: &Member) -> bool {
        let Some(object) = &member.object else { return true };
        object.deleting || member.joined().is_some() && member.volume != Volume::Present
    }

    /// Whether etcd knows a member no more, or never will.
    pub fn is_removed(&self, member: &Member) -> bool {
        let Some(list) = self.best() else { return false };
        let was_there =
            member.object.as_ref().is_none_or(|object| object.joined.is_some() || object.deleting);
        was_there && list.of(&member.name).is_none()
    }

    /// A reason, with the numbers of this look.
    pub fn because(&self, why: Why) -> Because {
        let (voters, healthy) = self.count();
        Because { why, voters, healthy }
    }

    /// How many seconds ago something was.
    pub fn seconds_since(&self, at: Timestamp) -> i64 {
        self.now.as_second() - at.as_second()
    }
}
