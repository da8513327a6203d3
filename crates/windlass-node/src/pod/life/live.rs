//! A pod that should run: who is started next, who is started again, and who is ended for it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use windlass::events::EventType::{Normal, Warning};

use super::ending::Ending;
use super::kill::Kill;
use super::record::{Slot, Waiting};
use super::{Action, Hook, Life, Member, Place, Role, Turn, full_name, seconds};
use crate::pod::backoff::later;
use crate::pod::probe::ProbeKind;

/// How long it is said of a container how it ended, before it is said that it waits.
const SETTLE: Duration = Duration::from_secs(1);

/// Why a container is ended while its pod goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Changed,
    Liveness,
    Startup,
}

/// How far the init containers have come.
enum Initialized {
    Yes,
    /// Not yet; this one is to be started, if any.
    No(Option<String>),
    /// Never: one has failed for good.
    Failed,
}

impl Life {
    pub(super) fn live(&mut self, now: Timestamp, turn: &mut Turn) {
        match self.place {
            Place::Absent(at) if at <= now => {
                if std::mem::take(&mut self.displaced) {
                    let note = "Pod sandbox changed, it will be killed and re-created.";
                    turn.tell(None, Normal, "SandboxChanged", note);
                }
                self.place = Place::Preparing;
                turn.actions.push(Action::Prepare);
            }
            Place::Absent(at) => turn.wake_at(at),
            Place::Ready => self.run(now, turn),
            Place::Preparing | Place::Releasing | Place::Released => {}
        }
    }

    fn run(&mut self, now: Timestamp, turn: &mut Turn) {
        self.end_faulty(now, turn);
        let debug: Vec<String> = self.of(|role| role == Role::Ephemeral).map(name).collect();
        for container in debug.iter().filter(|name| !self.record(name).exists()).collect::<Vec<_>>() {
            self.start(container, now, turn);
        }
        let policy = self.policy();
        let running = self.of(|role| role == Role::Main).any(|member| self.record(member.name()).is_active());
        let initialized = if running { Initialized::Yes } else { self.initialized() };
        // Those that were started and are down come first, and do not wait for each other.
        let down: Vec<String> = self.of(|role| role == Role::Sidecar).map(name).collect();
        for sidecar in down {
            let record = self.record(&sidecar);
            if record.exited().is_some() || (running && !record.exists()) {
                self.start(&sidecar, now, turn);
            }
        }
        match initialized {
            Initialized::Failed => self.ending = Some(Ending::finished()),
            Initialized::No(Some(next)) => self.start(&next, now, turn),
            Initialized::No(None) => {}
            Initialized::Yes => {
                let main: Vec<Member> = self.of(|role| role == Role::Main).cloned().collect();
                let starts = |life: &Life, member: &Member| match &life.record(member.name()).slot {
                    Slot::Never => true,
                    Slot::Exited(exited) => {
                        exited.forced || member.restarts_after(policy, exited.state.exit_code)
                    }
                    Slot::Starting(_) | Slot::Running(_) => false,
                };
                let active = main.iter().any(|member| self.record(member.name()).is_active());
                let next: Vec<&Member> = main.iter().filter(|member| starts(self, member)).collect();
                if !active && next.is_empty() {
                    self.ending = Some(Ending::finished());
                    return;
                }
                for member in next {
                    self.start(member.name(), now, turn);
                }
            }
        }
    }

    fn initialized(&self) -> Initialized {
        let init: Vec<&Member> = self.of(|role| matches!(role, Role::Init | Role::Sidecar)).collect();
        let Some(first) = init.first() else { return Initialized::Yes };
        let Some(at) = init.iter().rposition(|member| self.record(member.name()).exists()) else {
            return Initialized::No(Some(name(first)));
        };
        let member = init[at];
        let record = self.record(member.name());
        let done = match (&record.slot, member.role) {
            (_, Role::Sidecar) => record.is_started() && record.run().is_some_and(|run| run.kill.is_none()),
            (Slot::Exited(exited), _) if exited.state.exit_code == 0 => true,
            (Slot::Exited(exited), _) => {
                if member.restarts_after(self.policy(), exited.state.exit_code) {
                    return Initialized::No(Some(name(member)));
                }
                return Initialized::Failed;
            }
            _ => false,
        };
        match init.get(at + 1) {
            _ if !done => Initialized::No(None),
            Some(next) => Initialized::No(Some(name(next))),
            None => Initialized::Yes,
        }
    }

    /// Ends those that a probe has found dead, and those whose image is another one now.
    fn end_faulty(&mut self, now: Timestamp, turn: &mut Turn) {
        let policy = self.policy();
        for member in self.members.clone() {
            let Some(fault) = self.fault(&member) else { continue };
            let restarts = fault == Fault::Changed || member.restarts_when_killed(policy);
            let what = match fault {
                Fault::Changed => "definition changed",
                Fault::Liveness => "failed liveness probe",
                Fault::Startup => "failed startup probe",
            };
            let name = member.name();
            let mut note = match member.role {
                Role::Sidecar => format!("Init container {name} {what}"),
                _ => format!("Container {name} {what}"),
            };
            if restarts && member.role == Role::Main {
                note.push_str(", will be restarted");
            }
            let probe = match fault {
                Fault::Changed => None,
                Fault::Liveness => ProbeKind::Liveness.of(&member.spec),
                Fault::Startup => ProbeKind::Startup.of(&member.spec),
            };
            let of_probe = probe.and_then(|probe| probe.termination_grace_period_seconds).map(seconds);
            let grace = of_probe.unwrap_or_else(|| self.patience());
            self.kill(name, note, grace, now, turn);
            if let Some(kill) = self.record_mut(name).run_mut().and_then(|run| run.kill.as_mut()) {
                kill.restarts = restarts;
                kill.forced = fault == Fault::Changed;
            }
        }
    }

    fn fault(&self, member: &Member) -> Option<Fault> {
        let run = self.record(member.name()).run()?;
        if run.kill.is_some() || run.post_start || !matches!(member.role, Role::Main | Role::Sidecar) {
            return None;
        }
        if run.image != member.image() {
            Some(Fault::Changed)
        } else if run.has_failed(ProbeKind::Liveness) {
            Some(Fault::Liveness)
        } else if run.has_failed(ProbeKind::Startup) {
            Some(Fault::Startup)
        } else {
            None
        }
    }

    /// How long containers of this pod have to end.
    pub(super) fn patience(&self) -> Duration {
        patience(&self.pod)
    }

    /// Begins to end a container that runs.
    pub(super) fn kill(
        &mut self,
        container: &str,
        note: String,
        grace: Duration,
        now: Timestamp,
        turn: &mut Turn,
    ) {
        let hooks = self.member(container).and_then(|member| member.spec.lifecycle.clone());
        let hook = hooks.is_some_and(|hooks| hooks.pre_stop.is_some());
        let Some(run) = self.record_mut(container).run_mut() else { return };
        let kill = Kill::new(hook, grace, now);
        let (id, hooked) = (run.id.clone(), matches!(kill.stage, super::kill::Stage::Hook));
        run.kill = Some(kill);
        turn.tell(Some(container), Normal, "Killing", note);
        if hooked {
            let container = container.to_owned();
            turn.actions.push(Action::Hook { container, id, hook: Hook::PreStop, patience: grace });
        }
    }

    /// Starts a container if nothing is to be waited for. One is started at a time, as kubelet does.
    fn start(&mut self, container: &str, now: Timestamp, turn: &mut Turn) {
        let pod = full_name(&self.pod);
        let Some(image) = self.member(container).map(|member| member.image().to_owned()) else { return };
        let busy = self.records.values().any(|record| match &record.slot {
            Slot::Starting(_) => true,
            Slot::Running(run) => run.post_start,
            _ => false,
        });
        let record = self.record_mut(container);
        if record.is_active() {
            return;
        }
        if let Slot::Exited(exited) = &mut record.slot
            && let Some(since) = exited.since
            && let Some(until) = record.crash.until(since)
            && now < until
        {
            let shown = later(exited.at, SETTLE);
            let reason = "CrashLoopBackOff";
            if now < shown {
                turn.wake_at(shown);
            } else if record.waiting.as_ref().is_none_or(|waiting| waiting.reason != reason) {
                let wait = go_duration(record.crash.wait());
                let message = format!("back-off {wait} restarting failed container={container} pod={pod}");
                record.waiting = Some(Waiting::new(reason, message));
            }
            if !std::mem::replace(&mut exited.told, true) {
                let note = format!("Back-off restarting failed container {container} in pod {pod}");
                turn.tell(Some(container), Warning, "BackOff", note);
            }
            turn.wake_at(until);
            return;
        }
        if let Some(failure) = &record.pull
            && let Some(until) = failure.backoff.until(failure.at)
            && now < until
        {
            let shown = later(failure.at, SETTLE);
            if now < shown {
                turn.wake_at(shown);
            } else if record.waiting.as_ref().is_none_or(|waiting| waiting.reason != "ImagePullBackOff") {
                let note = format!("Back-off pulling image \"{image}\"");
                let message = format!("{note}: ErrImagePull: {}", failure.message);
                record.waiting = Some(Waiting::new("ImagePullBackOff", message));
                turn.tell(Some(container), Normal, "BackOff", note);
                turn.tell(Some(container), Warning, "Failed", "Error: ImagePullBackOff");
            }
            turn.wake_at(until);
            return;
        }
        if let Some(retry) = record.retry.filter(|retry| now < *retry) {
            turn.wake_at(retry);
            return;
        }
        if busy {
            return;
        }
        record.retry = None;
        let slot = std::mem::take(&mut record.slot);
        let exited = match slot {
            Slot::Exited(exited) => Some(exited),
            _ => None,
        };
        if let Some(since) = exited.as_ref().and_then(|exited| exited.since) {
            record.crash.next(since, now);
        }
        record.slot = Slot::Starting(exited);
        let attempt =
            if record.created { record.restart_count.saturating_add(1) } else { record.restart_count };
        turn.actions.push(Action::Start { container: container.to_owned(), attempt });
    }

    /// Makes the probes that are due.
    pub(super) fn probe(&mut self, now: Timestamp, turn: &mut Turn) {
        let ending = self.ending.is_some();
        for member in &self.members {
            let Some(record) = self.records.get_mut(member.name()) else { continue };
            let started = record.is_started();
            let Some(run) = record.run_mut().filter(|run| !run.post_start) else { continue };
            let only_readiness = ending || run.kill.is_some();
            for (&kind, prober) in &mut run.probes {
                let wanted = match kind {
                    ProbeKind::Startup => !started && !only_readiness,
                    ProbeKind::Liveness => started && !only_readiness,
                    ProbeKind::Readiness => started,
                };
                let (Some(due), Some(probe)) = (prober.due().filter(|_| wanted), kind.of(&member.spec))
                else {
                    continue;
                };
                if due > now {
                    turn.wake_at(due);
                    continue;
                }
                prober.begin(probe, now);
                let container = member.name().to_owned();
                turn.actions.push(Action::Probe { container, id: run.id.clone(), kind });
            }
        }
    }
}

/// How long the containers of a pod have to end.
pub(crate) fn patience(pod: &Pod) -> Duration {
    let of_spec = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    let of_deletion = pod.metadata.deletion_grace_period_seconds;
    seconds(of_deletion.or(of_spec).unwrap_or(30))
}

fn name(member: &Member) -> String {
    member.name().to_owned()
}

/// A duration as Go prints it: `10s`, `1m20s`, `5m0s`.
fn go_duration(time: Duration) -> String {
    let (minutes, seconds) = (time.as_secs() / 60, time.as_secs() % 60);
    if minutes == 0 { format!("{seconds}s") } else { format!("{minutes}m{seconds}s") }
}
