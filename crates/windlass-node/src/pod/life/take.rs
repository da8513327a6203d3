//! What is learnt from a report.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass::events::EventType::{Normal, Warning};

use super::ending::{Cause, Ending};
use super::record::{Exited, Identity, PullFailure, Record, Run, Slot, Waiting};
use super::{Action, Exit, Hook, Life, Member, NotStarted, Place, Pulled, Report, Started, Turn};
use crate::pod::backoff::{Backoff, later};
use crate::pod::probe::{Finding, ProbeKind};

/// When something that is not there yet is looked for again.
const RETRY: Duration = Duration::from_secs(5);

impl Life {
    /// Takes in what happened. What is to be done at once comes back; the rest comes with the next [turn](Life::turn).
    pub fn take(&mut self, report: Report, now: Timestamp) -> Vec<Action> {
        let mut turn = Turn::default();
        match report {
            Report::Changed(pod) => self.changed(pod, now),
            Report::Gone => self.ending = Some(Ending { cause: Cause::Gone }),
            Report::Stop => {
                // One that ends already goes on with that.
                self.ending.get_or_insert(Ending { cause: Cause::Stopped });
            }
            Report::Retry => self.retry(now),
            Report::Prepared(ips) => {
                self.place = Place::Ready;
                self.ips = ips;
            }
            Report::NotPrepared { reason, note } => {
                self.place = Place::Absent(later(now, RETRY));
                turn.tell(None, Warning, reason, note);
            }
            Report::Released => self.place = Place::Released,
            Report::Started { container, run } => self.started(&container, run, &mut turn),
            Report::NotStarted { container, why } => self.not_started(&container, why, now, &mut turn),
            Report::Exited { container, id, exit } => self.exited(&container, &id, exit),
            Report::Hooked { container, id, hook, result } => {
                self.hooked(&container, &id, hook, result, now, &mut turn);
            }
            Report::Probed { container, id, kind, finding } => {
                self.probed(&container, &id, kind, &finding, now, &mut turn);
            }
        }
        turn.actions
    }

    fn changed(&mut self, pod: Arc<Pod>, now: Timestamp) {
        let grace = |pod: &Pod| pod.metadata.deletion_grace_period_seconds;
        let hastens = grace(&pod).is_some() && grace(&pod) != grace(&self.pod);
        self.members = Member::all(&pod);
        self.pod = pod;
        if hastens {
            self.hasten(now);
        }
    }

    /// What failed for the want of something is tried at once. An image that is not there has its own time.
    fn retry(&mut self, now: Timestamp) {
        if let Place::Absent(at) = &mut self.place {
            *at = (*at).min(now);
        }
        for record in self.records.values_mut() {
            record.retry = None;
        }
    }

    fn started(&mut self, container: &str, started: Started, turn: &mut Turn) {
        let Some(member) = self.member(container).cloned() else { return };
        tell_pulled(&member, &started.pulled, turn);
        turn.tell(Some(container), Normal, "Created", format!("Created container: {container}"));
        turn.tell(Some(container), Normal, "Started", format!("Started container {container}"));
        let mut run = Run::new(started.id.clone(), &member, started.at, started.user.clone());
        let hooked = run.post_start;
        let record = self.record_mut(container);
        run.before = record.create(&started);
        record.slot = Slot::Running(Box::new(run));
        if !hooked {
            record.waiting = None;
            return;
        }
        turn.actions.push(Action::Hook {
            container: container.to_owned(),
            id: started.id,
            hook: Hook::PostStart,
            patience: Duration::MAX,
        });
    }

    fn not_started(&mut self, container: &str, why: NotStarted, now: Timestamp, turn: &mut Turn) {
        let Some(member) = self.member(container).cloned() else { return };
        let image = member.image();
        let record = self.record_mut(container);
        let failed = |turn: &mut Turn, note: &str| {
            turn.tell(Some(container), Warning, "Failed", format!("Error: {note}"));
        };
        let mut retry = Some(later(now, RETRY));
        let waiting = match why {
            NotStarted::ImageName(message) => {
                turn.tell(Some(container), Warning, "InspectFailed", message.clone());
                failed(turn, "InvalidImageName");
                Waiting::new("InvalidImageName", message)
            }
            NotStarted::ImageAbsent => {
                let message = format!("Container image \"{image}\" is not present with pull policy of Never");
                turn.tell(Some(container), Warning, "ErrImageNeverPull", message.clone());
                failed(turn, "ErrImageNeverPull");
                Waiting::new("ErrImageNeverPull", message)
            }
            NotStarted::Pull(message) => {
                turn.tell(Some(container), Normal, "Pulling", format!("Pulling image \"{image}\""));
                let note = format!("Failed to pull image \"{image}\": {message}");
                turn.tell(Some(container), Warning, "Failed", note);
                failed(turn, "ErrImagePull");
                let mut backoff = record.pull.take().map_or_else(Backoff::default, |failure| failure.backoff);
                backoff.next(now, now);
                record.pull = Some(PullFailure { backoff, at: now, message: message.clone() });
                retry = None;
                Waiting::new("ErrImagePull", message)
            }
            NotStarted::Config(message, pulled) => {
                tell_pulled(&member, &pulled, turn);
                failed(turn, &message);
                Waiting::new("CreateContainerConfigError", message)
            }
            NotStarted::Create(message, pulled) => {
                tell_pulled(&member, &pulled, turn);
                failed(turn, &message);
                Waiting::new("CreateContainerError", message)
            }
            NotStarted::Run(message, started) => {
                tell_pulled(&member, &started.pulled, turn);
                turn.tell(Some(container), Normal, "Created", format!("Created container: {container}"));
                failed(turn, &message);
                record.create(&started);
                let state = ContainerStateTerminated {
                    container_id: Some(started.id.clone()),
                    exit_code: 128,
                    reason: Some("StartError".to_owned()),
                    message: Some(message.clone()),
                    started_at: Some(Time(Timestamp::UNIX_EPOCH)),
                    finished_at: Some(Time(now)),
                    ..ContainerStateTerminated::default()
                };
                record.slot =
                    Slot::Exited(Exited { state, since: Some(now), at: now, forced: false, told: false });
                record.waiting = Some(Waiting::new("RunContainerError", message));
                return;
            }
        };
        record.waiting = Some(waiting);
        record.retry = retry;
        record.slot = match std::mem::take(&mut record.slot) {
            Slot::Starting(Some(exited)) => Slot::Exited(exited),
            Slot::Starting(None) => Slot::Never,
            other => other,
        };
    }

    fn exited(&mut self, container: &str, id: &str, exit: Exit) {
        let record = self.record_mut(container);
        let Some(run) = record.run().filter(|run| run.id == id) else { return };
        let reason = match exit.code {
            _ if exit.oom => "OOMKilled",
            0 => "Completed",
            _ => "Error",
        };
        let state = ContainerStateTerminated {
            container_id: Some(id.to_owned()),
            exit_code: exit.code,
            reason: Some(reason.to_owned()),
            message: Some(exit.message).filter(|message| !message.is_empty()),
            started_at: Some(Time(run.started)),
            finished_at: Some(Time(exit.at)),
            ..ContainerStateTerminated::default()
        };
        let kill = run.kill.as_ref();
        // One that was ended to be started again has its wait from how it ended the time before, as kubelet has it.
        let since = match kill {
            Some(kill) if kill.restarts => run.before.as_ref().map(|before| before.at),
            _ => Some(exit.at),
        };
        let forced = kill.is_some_and(|kill| kill.forced);
        record.slot = Slot::Exited(Exited { state, since, at: exit.at, forced, told: false });
    }

    fn hooked(
        &mut self,
        container: &str,
        id: &str,
        hook: Hook,
        result: Result<(), String>,
        now: Timestamp,
        turn: &mut Turn,
    ) {
        let grace = self.patience();
        let record = self.record_mut(container);
        let Some(run) = record.run_mut().filter(|run| run.id == id) else { return };
        match (hook, result) {
            (Hook::PreStop, result) => {
                if let Some(kill) = &mut run.kill {
                    kill.hook_ended();
                }
                if result.is_err() {
                    turn.tell(Some(container), Warning, "FailedPreStopHook", "PreStopHook failed");
                }
            }
            (Hook::PostStart, Ok(())) => {
                run.post_start = false;
                record.waiting = None;
            }
            (Hook::PostStart, Err(message)) => {
                run.post_start = false;
                turn.tell(Some(container), Warning, "FailedPostStartHook", "PostStartHook failed");
                record.waiting = Some(Waiting::new("PostStartHookError", message));
                self.kill(container, "FailedPostStartHook".to_owned(), grace, now, turn);
            }
        }
    }

    fn probed(
        &mut self,
        container: &str,
        id: &str,
        kind: ProbeKind,
        finding: &Finding,
        now: Timestamp,
        turn: &mut Turn,
    ) {
        let Some(probe) = self.member(container).and_then(|member| kind.of(&member.spec)).cloned() else {
            return;
        };
        let ending = self.ending.is_some();
        let Some(run) = self.record_mut(container).run_mut().filter(|run| run.id == id) else { return };
        let Some(prober) = run.probes.get_mut(&kind) else { return };
        if ending && kind != ProbeKind::Readiness {
            return;
        }
        prober.end(kind, &probe, finding);
        let title = kind.title();
        match finding {
            Finding::Success => {}
            Finding::Warning(output) => {
                turn.tell(
                    Some(container),
                    Warning,
                    "ProbeWarning",
                    format!("{title} probe warning: {output}"),
                );
            }
            Finding::Failure(output) => {
                turn.tell(Some(container), Warning, "Unhealthy", format!("{title} probe failed: {output}"));
            }
            // It ended while it was asked.
            Finding::Errored(_) if ending => {}
            Finding::Errored(error) => {
                let note = format!("{title} probe errored and resulted in unknown state: {error}");
                turn.tell(Some(container), Warning, "Unhealthy", note);
            }
        }
        // The others have waited for it.
        if kind == ProbeKind::Startup
            && prober.verdict() == Some(true)
            && let Some(readiness) = run.probes.get_mut(&ProbeKind::Readiness)
        {
            readiness.hasten(now);
        }
    }
}

impl Record {
    /// A container has been created. Gives back how the one before it ended.
    fn create(&mut self, started: &Started) -> Option<Exited> {
        let before = match std::mem::take(&mut self.slot) {
            Slot::Starting(before) => before,
            _ => None,
        };
        if let Some(before) = &before {
            self.previous = Some(before.state.clone());
        }
        if self.created {
            self.restart_count = self.restart_count.saturating_add(1);
        }
        self.created = true;
        self.pull = None;
        self.identity = Identity {
            id: started.id.clone(),
            image: started.image.clone(),
            image_id: started.image_id.clone(),
        };
        before
    }
}

fn tell_pulled(member: &Member, pulled: &Pulled, turn: &mut Turn) {
    let (name, image) = (Some(member.name()), member.image());
    match pulled {
        Pulled::Present => {
            let note = format!("Container image \"{image}\" already present on machine");
            turn.tell(name, Normal, "Pulled", note);
        }
        Pulled::Fetched(size) => {
            turn.tell(name, Normal, "Pulling", format!("Pulling image \"{image}\""));
            let note = format!(
                "Successfully pulled image \"{image}\" in 0s (0s including waiting). Image size: {size} bytes."
            );
            turn.tell(name, Normal, "Pulled", note);
        }
    }
}
