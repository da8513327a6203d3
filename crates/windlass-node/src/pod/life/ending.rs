//! A pod that should not run, or not any more: its containers are ended, then its network and volumes go, then itself.

use jiff::Timestamp;
use windlass::events::EventType::Normal;

use super::kill::Step;
use super::{Action, Finish, Life, Place, Role, Turn, seconds};
use crate::pod::backoff::later;

/// Why a pod ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its containers have done what they were for, or failed for good.
    Finished,
    /// It was active for longer than it may.
    Deadline,
    /// It is being deleted.
    Deleted,
    /// It is not in the API any more.
    Gone,
    /// Its node is being shut down: it will run again.
    Stopped,
}

/// The end of a pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub cause: Cause,
}

impl Ending {
    pub fn finished() -> Ending {
        Ending { cause: Cause::Finished }
    }
}

impl Life {
    /// Whether the pod has ended for good: nothing of it runs, nor will.
    pub(crate) fn is_over(&self) -> bool {
        self.ending.is_some() && !self.is_active()
    }

    /// Whether it was active for longer than it may.
    pub(crate) fn is_past_deadline(&self) -> bool {
        self.ending.is_some_and(|ending| ending.cause == Cause::Deadline)
    }

    /// Whether the pod has a network.
    pub(crate) fn has_place(&self) -> bool {
        self.place == Place::Ready
    }

    /// Whether nothing of it is left but what is said of it.
    pub(crate) fn is_released(&self) -> bool {
        self.is_over() && matches!(self.place, Place::Absent(_) | Place::Released)
    }

    pub(super) fn check_end(&mut self, now: Timestamp, turn: &mut Turn) {
        let cause = self.ending.map(|ending| ending.cause);
        if cause == Some(Cause::Gone) {
            return;
        }
        if self.pod.metadata.deletion_timestamp.is_some() {
            self.ending = Some(Ending { cause: Cause::Deleted });
            return;
        }
        let deadline = self.pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
        if let (None, Some(deadline), Some(start)) = (cause, deadline, &self.status.start_time) {
            let until = later(start.0, seconds(deadline));
            if now < until {
                turn.wake_at(until);
                return;
            }
            self.ending = Some(Ending { cause: Cause::Deadline });
            let note = "Pod was active on the node longer than the specified deadline";
            turn.tell(None, Normal, "DeadlineExceeded", note);
        }
    }

    pub(super) fn end(&mut self, now: Timestamp, turn: &mut Turn) {
        // Less than a second is not given to anybody.
        let grace = self.patience().max(seconds(1));
        let running: Vec<String> = self
            .members
            .iter()
            .filter(|member| self.record(member.name()).run().is_some_and(|run| run.kill.is_none()))
            .map(|member| member.name().to_owned())
            .collect();
        for container in running {
            self.kill(&container, format!("Stopping container {container}"), grace, now, turn);
        }
        if self.is_active() {
            return;
        }
        let cause = self.ending.map(|ending| ending.cause);
        match self.place {
            // What it has goes with the node, and nobody is told that it ended.
            Place::Ready if cause == Some(Cause::Stopped) => {}
            Place::Ready => {
                self.place = Place::Releasing;
                turn.actions.push(Action::Release);
            }
            Place::Preparing | Place::Releasing => {}
            Place::Absent(_) | Place::Released => {
                turn.finish = match cause {
                    Some(Cause::Gone) => Some(Finish::Forget),
                    Some(Cause::Deleted) => Some(Finish::Delete),
                    _ => None,
                };
            }
        }
    }

    /// Takes the next step with everyone who is being ended.
    pub(super) fn kill_on(&mut self, now: Timestamp, turn: &mut Turn) {
        for at in 0..self.members.len() {
            let its_turn = self.may_end(at);
            let container = self.members[at].name().to_owned();
            let Some(run) = self.records.get_mut(&container).and_then(|record| record.run_mut()) else {
                continue;
            };
            let Some(kill) = &mut run.kill else { continue };
            loop {
                let force = match kill.step(its_turn, now) {
                    Step::Ask => false,
                    Step::Force => true,
                    Step::Wait(until) => {
                        turn.wake_at(until);
                        break;
                    }
                    Step::Done => break,
                };
                let (container, id) = (container.clone(), run.id.clone());
                turn.actions.push(Action::Signal { container, id, force });
            }
        }
    }

    /// Sidecars end after the main containers, the last one first.
    fn may_end(&self, at: usize) -> bool {
        if self.ending.is_none() || self.members[at].role != Role::Sidecar {
            return true;
        }
        let later = self.members[at + 1..].iter();
        let mut before = later.filter(|member| matches!(member.role, Role::Sidecar | Role::Main));
        before.all(|member| !self.record(member.name()).is_active())
    }

    /// The pod was deleted with less patience than before.
    pub(super) fn hasten(&mut self, now: Timestamp) {
        let grace = self.patience().max(seconds(1));
        for run in self.records.values_mut().filter_map(|record| record.run_mut()) {
            if let Some(kill) = &mut run.kill {
                kill.hasten(grace, now);
            }
        }
    }
}
