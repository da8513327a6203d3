//! The life of a pod on its node, as a value: reports come in, actions and a status come out.
//!
//! ```text
//!  the pod, what became of actions        ┌──────┐   actions (prepare, start, probe, hook, signal, event…)
//!  (started, exited, probed…)   ── take ─►│ Life │── turn ─► status
//!                                         └──────┘   when to look again
//! ```
//!
//! No process is started and no clock is read in here. The rules are kubelet's: who runs when, how often, how it is ended,
//! and what is said of it.

mod ending;
mod kill;
mod live;
mod record;
mod take;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, ContainerUser, Pod, PodStatus};
use windlass::events::EventType;

use super::member::{Member, RestartPolicy, Role};
use super::probe::{Finding, ProbeKind};
use super::status;
use ending::Ending;
pub(crate) use live::patience;
pub(crate) use record::{Record, Slot, terminated};

/// The node that a pod runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Its addresses, the first one first.
    pub ips: Vec<String>,
}

/// The life of one pod.
#[derive(Clone, Debug)]
pub struct Life {
    pod: Arc<Pod>,
    members: Vec<Member>,
    records: BTreeMap<String, Record>,
    place: Place,
    ips: Vec<String>,
    host: Host,
    ending: Option<Ending>,
    /// It had a place that a process before this one has taken with it.
    displaced: bool,
    /// What was said last: times of conditions and what is final go on from it.
    status: PodStatus,
}

/// Where the containers of a pod run: its volumes and its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// There is none; one is made at this time.
    Absent(Timestamp),
    Preparing,
    Ready,
    Releasing,
    /// There will be none again.
    Released,
}

/// What is to be done in the world.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make the pod's folders, volumes and network. Answered by [`Report::Prepared`] or [`Report::NotPrepared`].
    Prepare,
    /// Start a container. Answered by [`Report::Started`] or [`Report::NotStarted`].
    Start {
        /// Which one.
        container: String,
        /// How often it was started before.
        attempt: i32,
    },
    /// Run a hook of a container. Answered by [`Report::Hooked`].
    Hook {
        /// Which container.
        container: String,
        /// Which run of it.
        id: String,
        /// Which hook.
        hook: Hook,
        /// How long it may take.
        patience: Duration,
    },
    /// Probe a container. Answered by [`Report::Probed`].
    Probe {
        /// Which container.
        container: String,
        /// Which run of it.
        id: String,
        /// Which probe.
        kind: ProbeKind,
    },
    /// Send a container its stop signal, or the signal that nothing survives.
    Signal {
        /// Which container.
        container: String,
        /// Which run of it.
        id: String,
        /// Whether it may do something about it.
        force: bool,
    },
    /// Take the pod's network and volumes down. Answered by [`Report::Released`].
    Release,
    /// Tell people.
    Tell(Told),
}

/// A hook of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// After its start.
    PostStart,
    /// Before its end.
    PreStop,
}

/// Something that happened to a pod, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Whether somebody should look.
    pub kind: EventType,
    /// Why, in one word.
    pub reason: &'static str,
    /// In a sentence.
    pub note: String,
    /// The container that it is about.
    pub container: Option<String>,
}

/// What became of an action, or happened by itself.
#[derive(Clone, Debug)]
pub enum Report {
    /// The pod is this now.
    Changed(Arc<Pod>),
    /// The pod is no longer in the API.
    Gone,
    /// Its node is being shut down. Its containers end as if it was deleted; what is said of it from now on is of no use.
    Stop,
    /// Something that it waits for may be there now.
    Retry,
    /// The pod has its volumes and its network, with these addresses.
    Prepared(Vec<String>),
    /// It has not.
    NotPrepared {
        /// The reason of the event: `FailedMount`, `FailedCreatePodSandBox`.
        reason: &'static str,
        /// In a sentence.
        note: String,
    },
    /// A container runs.
    Started {
        /// Which one.
        container: String,
        /// What it is.
        run: Started,
    },
    /// A container does not run.
    NotStarted {
        /// Which one.
        container: String,
        /// Why.
        why: NotStarted,
    },
    /// A container has ended.
    Exited {
        /// Which one.
        container: String,
        /// Which run of it.
        id: String,
        /// How.
        exit: Exit,
    },
    /// A hook has ended, well or with an error.
    Hooked {
        /// Of which container.
        container: String,
        /// Of which run of it.
        id: String,
        /// Which hook.
        hook: Hook,
        /// How.
        result: Result<(), String>,
    },
    /// A probe was made.
    Probed {
        /// Of which container.
        container: String,
        /// Of which run of it.
        id: String,
        /// Which probe.
        kind: ProbeKind,
        /// What it found.
        finding: Finding,
    },
    /// The pod's network and volumes are gone.
    Released,
}

/// A container that was started.
#[derive(Clone, Debug, PartialEq)]
pub struct Started {
    /// Its id, as statuses name it: `windlass://…`.
    pub id: String,
    /// Its image, as statuses name it.
    pub image: String,
    /// The id of its image.
    pub image_id: String,
    /// How its image was had.
    pub pulled: Pulled,
    /// Whom it runs as.
    pub user: Option<ContainerUser>,
    /// When.
    pub at: Timestamp,
}

/// How an image was had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pulled {
    /// It was there.
    Present,
    /// The pod asked for it to be looked for; it has so many bytes.
    Fetched(u64),
}

/// Why a container was not started.
#[derive(Clone, Debug, PartialEq)]
pub enum NotStarted {
    /// Its image's name is none.
    ImageName(String),
    /// Its image is not there, and the pod says that it must be.
    ImageAbsent,
    /// Its image could not be had.
    Pull(String),
    /// Something that it is configured from is not there.
    Config(String, Pulled),
    /// It could not be made.
    Create(String, Pulled),
    /// Its program could not be started.
    Run(String, Started),
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code; 128 and the number of the signal that ended it.
    pub code: i32,
    /// Whether it was ended because it took more memory than it may.
    pub oom: bool,
    /// What it left to be said.
    pub message: String,
    /// When.
    pub at: Timestamp,
}

/// What comes of a look at a pod.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// What is to be done, in this order.
    pub actions: Vec<Action>,
    /// What is to be said of the pod.
    pub status: PodStatus,
    /// When to look again, if nothing happens before.
    pub wake: Option<Timestamp>,
    /// What is left to be done once the status has been said.
    pub finish: Option<Finish>,
}

/// The end of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Nothing of the pod runs any more: it can go from the API.
    Delete,
    /// It has gone from the API: nothing of it may stay.
    Forget,
}

impl Life {
    /// The life of a pod, new or known from a process before this one.
    pub fn new(pod: Arc<Pod>, host: Host, now: Timestamp) -> Life {
        let members = Member::all(&pod);
        let status = pod.status.clone().unwrap_or_default();
        let mut life = Life {
            records: BTreeMap::new(),
            place: Place::Absent(now),
            ips: status.pod_ips.iter().flatten().map(|ip| ip.ip.clone()).collect(),
            host,
            ending: None,
            displaced: false,
            status,
            members,
            pod,
        };
        life.adopt(now);
        life
    }

    /// The pod, as it was told last.
    pub fn pod(&self) -> &Arc<Pod> {
        &self.pod
    }

    /// One of its containers.
    pub fn member(&self, container: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name() == container)
    }

    /// Whether something of it runs, or is about to.
    pub fn is_active(&self) -> bool {
        self.records.values().any(Record::is_active)
    }

    /// Looks at what is, and says what is to be done.
    pub fn turn(&mut self, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        self.check_end(now, &mut turn);
        if self.ending.is_none() {
            self.live(now, &mut turn);
        }
        if self.ending.is_some() {
            self.end(now, &mut turn);
        }
        self.kill_on(now, &mut turn);
        self.probe(now, &mut turn);
        self.status = status::of(self, now);
        turn.status = self.status.clone();
        turn
    }

    /// Its containers.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// What is known of one of its containers.
    pub(crate) fn record_of(&self, container: &str) -> &Record {
        self.record(container)
    }

    /// What was said of it last.
    pub(crate) fn said(&self) -> &PodStatus {
        &self.status
    }

    /// Its addresses, also after it has lost them.
    pub(crate) fn ips(&self) -> &[String] {
        &self.ips
    }

    /// The addresses of its node.
    pub(crate) fn host_ips(&self) -> &[String] {
        &self.host.ips
    }

    /// Its restart policy.
    pub(crate) fn restart_policy(&self) -> RestartPolicy {
        self.policy()
    }

    fn policy(&self) -> RestartPolicy {
        RestartPolicy::of(&self.pod)
    }

    fn record(&self, container: &str) -> &Record {
        static NONE: LazyLock<Record> = LazyLock::new(Record::default);
        self.records.get(container).unwrap_or(&NONE)
    }

    fn record_mut(&mut self, container: &str) -> &mut Record {
        self.records.entry(container.to_owned()).or_default()
    }

    /// Those that play a part, in their order.
    fn of(&self, role: impl Fn(Role) -> bool) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |member| role(member.role))
    }

    /// What the API knows of this pod's containers: a process before this one ran them, and they run no more.
    fn adopt(&mut self, now: Timestamp) {
        let said = self.status.clone();
        let never = self.policy() == RestartPolicy::Never;
        let init = said.init_container_statuses.iter().flatten().map(|status| (status, !never));
        let main = said.container_statuses.iter().flatten().map(|status| (status, false));
        let debug = said.ephemeral_container_statuses.iter().flatten().map(|status| (status, false));
        let all: Vec<(&ContainerStatus, bool)> = init.chain(main).chain(debug).collect();
        for (status, runs_again) in &all {
            let record = Record::adopted(status, now, *runs_again);
            self.records.insert(status.name.clone(), record);
        }
        self.displaced = all.iter().any(|(status, _)| status.container_id.is_some());
        if matches!(said.phase.as_deref(), Some("Succeeded" | "Failed")) {
            self.place = Place::Released;
            self.ending = Some(Ending::finished());
        }
    }
}

impl Turn {
    fn wake_at(&mut self, time: Timestamp) {
        self.wake = Some(self.wake.map_or(time, |wake| wake.min(time)));
    }

    fn tell(
        &mut self,
        container: Option<&str>,
        kind: EventType,
        reason: &'static str,
        note: impl Into<String>,
    ) {
        let container = container.map(str::to_owned);
        self.actions.push(Action::Tell(Told { kind, reason, note: note.into(), container }));
    }
}

/// A pod, as messages name it.
fn full_name(pod: &Pod) -> String {
    let of = |text: &Option<String>| text.clone().unwrap_or_default();
    let meta = &pod.metadata;
    format!("{}_{}({})", of(&meta.name), of(&meta.namespace), of(&meta.uid))
}

fn seconds(value: i64) -> Duration {
    Duration::from_secs(u64::try_from(value).unwrap_or(0))
}
