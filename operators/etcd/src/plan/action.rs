//! What can be done, as data. What cannot be undone says why it is done.

use std::fmt;
use std::sync::Arc;

use super::Latch;
use super::health::Failure;
use crate::observe::Name;

/// One step. It is complete: whoever does it needs no other knowledge.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Write something into the status, before anything is done on its word.
    Latch(Latch),
    /// Make an EtcdMember.
    CreateMember {
        /// Its serial, which was latched.
        serial: u64,
        /// Whether the cluster begins with it.
        seed: bool,
    },
    /// Make a member's volume.
    CreateVolume {
        /// Whose.
        member: Name,
    },
    /// Add a member to etcd, without a vote.
    AddLearner {
        /// Which one.
        member: Name,
    },
    /// Note a member's ID in its EtcdMember.
    NoteJoined {
        /// Which one.
        member: Name,
        /// Its ID.
        id: u64,
    },
    /// Make a member's pod.
    StartPod {
        /// Whose.
        member: Name,
        /// How its etcd is started.
        start: Start,
    },
    /// Give a learner its vote.
    Promote {
        /// Which one.
        member: Name,
        /// Its ID.
        id: u64,
    },
    /// Let another member lead.
    MoveLeader {
        /// Who leads.
        from: u64,
        /// Who should.
        to: u64,
    },
    /// Remove a member from etcd.
    RemoveMember {
        /// Which one, if it is one of ours by its URL.
        member: Option<Name>,
        /// Its ID.
        id: u64,
        /// Why.
        because: Because,
    },
    /// Delete a member's pod.
    DeletePod {
        /// Whose.
        member: Name,
        /// Which one of that name.
        uid: Arc<str>,
        /// Why.
        because: Because,
    },
    /// Delete a member's volume.
    DeleteVolume {
        /// Whose.
        member: Name,
        /// Why.
        because: Because,
    },
    /// Mark a member's volume as one that stays, and never touch it again.
    RetainVolume {
        /// Whose.
        member: Name,
    },
    /// Delete an EtcdMember, and let it go.
    DeleteMember {
        /// Which one.
        member: Name,
        /// Why.
        because: Because,
    },
}

/// How an etcd is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A new cluster begins with it. With data in its volume it goes on from there.
    New,
    /// It joins the cluster that it was added to.
    Existing,
    /// It goes on from the data in its volume. Without data it cannot start: it is given no other member to ask.
    Rejoin,
    /// It goes on from its data as the only member.
    Forced,
}

/// Why something is done that cannot be undone, with the numbers that were seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Because {
    /// Why.
    pub why: Why,
    /// How many members voted then.
    pub voters: usize,
    /// How many of them were healthy.
    pub healthy: usize,
}

/// Why something is done that cannot be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// etcd knows the member no more.
    Removed,
    /// The member has failed.
    Failed(Failure),
    /// The member is not healthy for long, and may be after a restart.
    Suspect,
    /// The pod's process has ended, and another pod has to take its place.
    Ended,
    /// Somebody deleted its EtcdMember or its volume.
    Leaving,
    /// There are more voters than asked for.
    Surplus,
    /// The learner did not catch up in time.
    LearnerStuck,
    /// The learner is not needed any more.
    LearnerUnwanted,
    /// It is in etcd's list under a URL of ours, and its EtcdMember is gone.
    Orphan,
    /// It was to be added, and is not needed, or is in the way of something more urgent.
    Withdrawn,
    /// Another member goes on alone.
    Fenced,
    /// It has gone on alone, and is started again without the force.
    Rescued,
    /// The cluster never came to life with it.
    StillBorn,
}

impl Start {
    /// Whether a process that ends may be started again in the same pod, with the same arguments. One that was told to begin
    /// a cluster, or whom to join, must not be: its volume may have been emptied meanwhile. It would begin the cluster a
    /// second time, under the IDs of the first, and serve clients; or join as a voter that has forgotten its votes.
    pub fn restarts_in_place(self) -> bool {
        match self {
            Start::New | Start::Existing => false,
            Start::Rejoin | Start::Forced => true,
        }
    }
}

impl Action {
    /// Its kind, in one CamelCase word.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Latch(_) => "Latch",
            Action::CreateMember { .. } => "CreateMember",
            Action::CreateVolume { .. } => "CreateVolume",
            Action::AddLearner { .. } => "AddLearner",
            Action::NoteJoined { .. } => "NoteJoined",
            Action::StartPod { .. } => "StartPod",
            Action::Promote { .. } => "Promote",
            Action::MoveLeader { .. } => "MoveLeader",
            Action::RemoveMember { .. } => "RemoveMember",
            Action::DeletePod { .. } => "DeletePod",
            Action::DeleteVolume { .. } => "DeleteVolume",
            Action::RetainVolume { .. } => "RetainVolume",
            Action::DeleteMember { .. } => "DeleteMember",
        }
    }

    /// Why it is done, where it cannot be undone.
    pub fn because(&self) -> Option<&Because> {
        match self {
            Action::RemoveMember { because, .. }
            | Action::DeletePod { because, .. }
            | Action::DeleteVolume { because, .. }
            | Action::DeleteMember { because, .. } => Some(because),
            _ => None,
        }
    }

    /// Whether it changes who is a member of etcd, or who votes.
    pub fn is_membership(&self) -> bool {
        matches!(self, Action::AddLearner { .. } | Action::Promote { .. } | Action::RemoveMember { .. })
    }

    /// The member of ours that it is about.
    pub fn member(&self) -> Option<&Name> {
        match self {
            Action::CreateVolume { member }
            | Action::AddLearner { member }
            | Action::NoteJoined { member, .. }
            | Action::StartPod { member, .. }
            | Action::Promote { member, .. }
            | Action::DeletePod { member, .. }
            | Action::DeleteVolume { member, .. }
            | Action::RetainVolume { member }
            | Action::DeleteMember { member, .. } => Some(member),
            Action::RemoveMember { member, .. } => member.as_ref(),
            Action::Latch(Latch::Replacement(member) | Latch::Rescue(member)) => Some(member),
            Action::Latch(_) | Action::CreateMember { .. } | Action::MoveLeader { .. } => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Latch(Latch::Serial(serial)) => write!(f, "reserve serial {serial}"),
            Action::Latch(Latch::Born(id)) => write!(f, "note that the cluster is {id:x}"),
            Action::Latch(Latch::SerialUsed) => f.write_str("note that the serial is used"),
            Action::Latch(Latch::Replacement(name)) => write!(f, "decide to replace {name}"),
            Action::Latch(Latch::Rescue(name)) => write!(f, "decide to go on with {name} alone"),
            Action::Latch(Latch::Rescued) => f.write_str("note that the survivor went on alone"),
            Action::Latch(Latch::RescueDone) => f.write_str("note that the recovery is done"),
            Action::CreateMember { serial, seed: true } => {
                write!(f, "make the first member, serial {serial}")
            }
            Action::CreateMember { serial, .. } => write!(f, "make a member, serial {serial}"),
            Action::CreateVolume { member } => write!(f, "make the volume of {member}"),
            Action::AddLearner { member } => write!(f, "add {member} as a learner"),
            Action::NoteJoined { member, id } => write!(f, "note that {member} is {id:x}"),
            Action::StartPod { member, start } => write!(f, "start {member} ({start})"),
            Action::Promote { member, .. } => write!(f, "promote {member}"),
            Action::MoveLeader { from, to } => write!(f, "move the lead from {from:x} to {to:x}"),
            Action::RemoveMember { member: Some(member), because, .. } => {
                write!(f, "remove {member} from etcd: {because}")
            }
            Action::RemoveMember { id, because, .. } => write!(f, "remove {id:x} from etcd: {because}"),
            Action::DeletePod { member, because, .. } => write!(f, "delete pod {member}: {because}"),
            Action::DeleteVolume { member, because } => write!(f, "delete the volume of {member}: {because}"),
            Action::RetainVolume { member } => write!(f, "keep the volume of {member} for good"),
            Action::DeleteMember { member, because } => write!(f, "let {member} go: {because}"),
        }
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Start::New => "new",
            Start::Existing => "existing",
            Start::Rejoin => "rejoin",
            Start::Forced => "forced",
        })
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} of {} voters healthy)", self.why, self.healthy, self.voters)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Removed => f.write_str("etcd knows it no more"),
            Why::Failed(failure) => write!(f, "it has failed: {failure}"),
            Why::Suspect => f.write_str("it is not healthy for long"),
            Why::Ended => f.write_str("its process has ended"),
            Why::Leaving => f.write_str("somebody deleted it or its volume"),
            Why::Surplus => f.write_str("there are more voters than asked for"),
            Why::LearnerStuck => f.write_str("it did not catch up in time"),
            Why::LearnerUnwanted => f.write_str("it is not needed any more"),
            Why::Orphan => f.write_str("its EtcdMember is gone"),
            Why::Withdrawn => f.write_str("it was not added yet and is not wanted now"),
            Why::Fenced => f.write_str("the quorum is lost for good, and another member goes on alone"),
            Why::Rescued => f.write_str("it went on alone, and has to run without the force"),
            Why::StillBorn => f.write_str("the cluster never came to life with it"),
        }
    }
}
