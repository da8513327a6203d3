//! What there is, as a plain value: what the cache has of a cluster's objects, and what etcd says of itself.

use std::sync::Arc;

use windlass::jiff::Timestamp;

/// A member's name: of its EtcdMember and its pod, and the first label of its peer URL.
pub type Name = Arc<str>;

/// What there is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Everything that has the name of a member: an EtcdMember, a pod, a volume. Ordered by name.
    pub members: Vec<Member>,
    /// The list of members that a linearizable read gave. Without a leader and a quorum there is none.
    pub list: Option<List>,
    /// The list that a member has on its own disk, which may be old. Nothing is done to members on its word.
    pub local: Option<List>,
}

/// Everything that has the name of one member.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its name.
    pub name: Name,
    /// Its EtcdMember.
    pub object: Option<Object>,
    /// Its pod.
    pub pod: Option<Pod>,
    /// Its volume. Of a member in memory, the volume is there with the pod, until that ends.
    pub volume: Volume,
    /// What its process says of itself, if it answers.
    pub report: Option<Report>,
}

/// An EtcdMember.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Which one it is.
    pub serial: u64,
    /// Whether the cluster began with it.
    pub seed: bool,
    /// Its ID, once it was seen in the list of members.
    pub joined: Option<u64>,
    /// Whether somebody asked for its end.
    pub deleting: bool,
    /// When it was made.
    pub created: Timestamp,
}

/// A member's pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// Which one of that name.
    pub uid: Arc<str>,
    /// When it was made.
    pub created: Timestamp,
    /// Whether it is on its way out.
    pub deleting: bool,
    /// Whether its process has ended, and is not started again in it.
    pub ended: bool,
    /// Whether it forces a new cluster: see [`Start::Forced`](crate::plan::Start).
    pub forced: bool,
    /// How often its container was started again.
    pub restarts: u32,
    /// Whether its container ended for lack of memory.
    pub out_of_memory: bool,
    /// The label that says whether it votes.
    pub voter: Option<bool>,
    /// Where it runs.
    pub node: Option<Arc<str>>,
    /// Where it is reached.
    pub address: Option<Arc<str>>,
}

/// A member's volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volume {
    /// There is none.
    Absent,
    /// It is there.
    Present,
    /// It is there, and somebody deleted it: it goes with the pod.
    Going,
    /// What was in it is lost.
    Lost,
}

/// What a process says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Its ID.
    pub id: u64,
    /// The cluster that it takes itself for a member of.
    pub cluster_id: u64,
    /// The leader that it follows; 0 for none.
    pub leader: u64,
    /// Whether it has no vote.
    pub learner: bool,
    /// The term that it is in.
    pub term: u64,
    /// The last write that it has.
    pub index: u64,
    /// The last write that it has applied.
    pub applied: u64,
    /// The size of its database in bytes.
    pub db_size: u64,
    /// The version that it runs.
    pub version: Arc<str>,
}

/// A list of members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// The cluster's ID.
    pub cluster_id: u64,
    /// The leader; 0 for none.
    pub leader: u64,
    /// The members.
    pub members: Vec<Listed>,
    /// Members whose data is corrupt, as they say.
    pub corrupt: Vec<u64>,
    /// Whether a database is full, so that etcd refuses writes.
    pub no_space: bool,
}

/// A member, as etcd lists it.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Its ID.
    pub id: u64,
    /// Which of ours it is, by its peer URL; `None` where the URL is none that we made.
    pub member: Option<Name>,
    /// Its peer URL.
    pub url: Arc<str>,
    /// Whether it has no vote.
    pub learner: bool,
    /// Whether it was ever started: before that, etcd has no name for it.
    pub started: bool,
}

impl Observed {
    /// The member of a name.
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| &*member.name == name)
    }
}

impl List {
    /// Those that vote.
    pub fn voters(&self) -> impl Iterator<Item = &Listed> {
        self.members.iter().filter(|listed| !listed.learner)
    }

    /// The one of ours that has this name.
    pub fn of(&self, name: &str) -> Option<&Listed> {
        self.members.iter().find(|listed| listed.member.as_deref() == Some(name))
    }
}

impl Member {
    /// Its ID, once it was seen in the list of members.
    pub fn joined(&self) -> Option<u64> {
        self.object.as_ref().and_then(|object| object.joined)
    }
}
