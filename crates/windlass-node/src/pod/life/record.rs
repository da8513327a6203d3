//! What is known of one container: what it is now, what it was before, and what it waits for.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, ContainerUser};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::kill::Kill;
use crate::pod::backoff::Backoff;
use crate::pod::member::Member;
use crate::pod::probe::{ProbeKind, Prober};

/// What is known of one container.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub slot: Slot,
    /// How it ended the time before, as the API tells it.
    pub previous: Option<ContainerStateTerminated>,
    pub restart_count: i32,
    /// Whether it was ever created: the next start is then a restart.
    pub created: bool,
    /// The container that was created last, as statuses name it.
    pub identity: Identity,
    /// Why it does not run, where that is not just that its turn has not come.
    pub waiting: Option<Waiting>,
    /// When it may be started again after a start that failed.
    pub retry: Option<Timestamp>,
    pub crash: Backoff,
    pub pull: Option<PullFailure>,
}

/// The names of a container that was created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub id: String,
    pub image: String,
    pub image_id: String,
}

/// What a container is now.
#[derive(Clone, Debug, Default)]
pub(crate) enum Slot {
    /// It has not been started, as far as this life knows.
    #[default]
    Never,
    /// It is being started. What it was before is still what statuses say.
    Starting(Option<Exited>),
    Running(Box<Run>),
    Exited(Exited),
}

/// A container that runs.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub id: String,
    /// The image of the spec that it was started with: another one means that it has to be started again.
    pub image: String,
    pub started: Timestamp,
    pub user: Option<ContainerUser>,
    /// Its `postStart` hook has not ended. Until then nobody is told that it runs.
    pub post_start: bool,
    pub probes: BTreeMap<ProbeKind, Prober>,
    pub kill: Option<Kill>,
    /// How it was before this run.
    pub before: Option<Exited>,
}

/// A container that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Exited {
    pub state: ContainerStateTerminated,
    /// When it ended: what the wait before the next start is counted from. `None` if it is started without one.
    pub since: Option<Timestamp>,
    pub at: Timestamp,
    /// It was ended in order to be started again, whatever the policy says.
    pub forced: bool,
    /// Whether people were told that it is started again only after a wait.
    pub told: bool,
}

/// Why a container does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub reason: String,
    pub message: String,
}

/// An image that could not be had.
#[derive(Clone, Debug)]
pub(crate) struct PullFailure {
    pub backoff: Backoff,
    pub at: Timestamp,
    pub message: String,
}

impl Waiting {
    pub fn new(reason: &str, message: impl Into<String>) -> Waiting {
        Waiting { reason: reason.to_owned(), message: message.into() }
    }
}

impl Record {
    /// The run, if there is one.
    pub fn run(&self) -> Option<&Run> {
        match &self.slot {
            Slot::Running(run) => Some(run),
            _ => None,
        }
    }

    pub fn run_mut(&mut self) -> Option<&mut Run> {
        match &mut self.slot {
            Slot::Running(run) => Some(run),
            _ => None,
        }
    }

    /// The end of it, if it has ended and is not being started again.
    pub fn exited(&self) -> Option<&Exited> {
        match &self.slot {
            Slot::Exited(exited) => Some(exited),
            _ => None,
        }
    }

    /// How it ended last: also while it is being started again.
    pub fn last_exit(&self) -> Option<&Exited> {
        match &self.slot {
            Slot::Exited(exited) | Slot::Starting(Some(exited)) => Some(exited),
            Slot::Running(run) if run.post_start => run.before.as_ref(),
            _ => None,
        }
    }

    /// Whether there is a process, or will be one in a moment.
    pub fn is_active(&self) -> bool {
        matches!(self.slot, Slot::Starting(_) | Slot::Running(_))
    }

    /// Whether it was ever created in this life.
    pub fn exists(&self) -> bool {
        !matches!(self.slot, Slot::Never)
    }

    /// Whether it has started, as its startup probe tells.
    pub fn is_started(&self) -> bool {
        let Some(run) = self.run().filter(|run| !run.post_start) else { return false };
        run.probes.get(&ProbeKind::Startup).is_none_or(|prober| prober.verdict() == Some(true))
    }

    /// Whether it serves, as its readiness probe tells.
    pub fn is_ready(&self) -> bool {
        let Some(run) = self.run().filter(|_| self.is_started()) else { return false };
        run.probes.get(&ProbeKind::Readiness).is_none_or(|prober| prober.verdict() == Some(true))
    }

    /// What the API said of a container that a process before this one ran, and that runs no more. Init containers run
    /// again from the first, unless the pod has only one go.
    pub fn adopted(status: &ContainerStatus, now: Timestamp, runs_again: bool) -> Record {
        let mut record = Record {
            restart_count: status.restart_count,
            created: status.container_id.as_ref().is_some_and(|id| !id.is_empty()),
            previous: terminated(status.last_state.as_ref()).cloned(),
            ..Record::default()
        };
        if record.created {
            record.identity = Identity {
                id: status.container_id.clone().unwrap_or_default(),
                image: status.image.clone(),
                image_id: status.image_id.clone(),
            };
        }
        let ended = match &status.state {
            Some(ContainerState { terminated: Some(ended), .. }) => Some(ended.clone()),
            // As containerd says it of containers that a reboot took.
            Some(ContainerState { running: Some(running), .. }) => Some(ContainerStateTerminated {
                exit_code: 255,
                reason: Some("Unknown".to_owned()),
                started_at: running.started_at.clone(),
                finished_at: Some(Time(now)),
                container_id: status.container_id.clone(),
                ..ContainerStateTerminated::default()
            }),
            // It waited for another go: it has ended as it did the last time.
            _ if record.created => record.previous.clone(),
            _ => None,
        };
        match ended {
            Some(state) if runs_again => record.previous = Some(state),
            Some(state) => {
                record.slot =
                    Slot::Exited(Exited { state, since: None, at: now, forced: false, told: false });
            }
            None => {}
        }
        record
    }
}

impl Run {
    pub fn new(id: String, member: &Member, started: Timestamp, user: Option<ContainerUser>) -> Run {
        let probes = ProbeKind::ALL.into_iter().filter_map(|kind| {
            let probe = kind.of(&member.spec)?;
            Some((kind, Prober::new(probe, started)))
        });
        Run {
            id,
            image: member.image().to_owned(),
            started,
            user,
            post_start: member.spec.lifecycle.as_ref().is_some_and(|hooks| hooks.post_start.is_some()),
            probes: probes.collect(),
            kill: None,
            before: None,
        }
    }

    /// Whether a probe has failed often enough.
    pub fn has_failed(&self, kind: ProbeKind) -> bool {
        self.probes.get(&kind).is_some_and(|prober| prober.verdict() == Some(false))
    }
}

pub(crate) fn terminated(state: Option<&ContainerState>) -> Option<&ContainerStateTerminated> {
    state.and_then(|state| state.terminated.as_ref())
}
