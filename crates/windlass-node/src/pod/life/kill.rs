//! How a container is ended: its hook, its turn, a signal it may act on, and one that it cannot.

use std::time::Duration;

use jiff::Timestamp;

use crate::pod::backoff::later;

/// Every container has this long between the two signals.
const LEAST: Duration = Duration::from_secs(2);

/// A container that is being ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    pub stage: Stage,
    /// When its patience is over.
    pub deadline: Timestamp,
    /// It is started again whatever its policy says.
    pub forced: bool,
    /// It is ended in order to be started again, so that its wait counts from how it ended the time before.
    pub restarts: bool,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its `preStop` hook runs.
    Hook,
    /// Others have to end first.
    Turn,
    /// It was asked to end, and is made to at this time.
    Asked(Timestamp),
    /// It was made to end.
    Forced,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask it to end.
    Ask,
    /// Make it end.
    Force,
    /// Nothing until then.
    Wait(Timestamp),
    /// Nothing but its end.
    Done,
}

impl Kill {
    pub fn new(hook: bool, grace: Duration, now: Timestamp) -> Kill {
        let stage = if hook && !grace.is_zero() { Stage::Hook } else { Stage::Turn };
        Kill { stage, deadline: later(now, grace), forced: false, restarts: false }
    }

    /// Takes the next step. `its_turn` says whether those that have to end first have.
    pub fn step(&mut self, its_turn: bool, now: Timestamp) -> Step {
        let late = now >= self.deadline;
        match self.stage {
            Stage::Hook if !late => Step::Wait(self.deadline),
            Stage::Turn if !late && !its_turn => Step::Wait(self.deadline),
            Stage::Hook | Stage::Turn => {
                self.stage = Stage::Asked(self.deadline.max(later(now, LEAST)));
                Step::Ask
            }
            Stage::Asked(until) if now < until => Step::Wait(until),
            Stage::Asked(_) => {
                self.stage = Stage::Forced;
                Step::Force
            }
            Stage::Forced => Step::Done,
        }
    }

    /// The hook has ended.
    pub fn hook_ended(&mut self) {
        if self.stage == Stage::Hook {
            self.stage = Stage::Turn;
        }
    }

    /// There is less patience than there was.
    pub fn hasten(&mut self, grace: Duration, now: Timestamp) {
        self.deadline = self.deadline.min(later(now, grace));
        if let Stage::Asked(until) = &mut self.stage {
            *until = (*until).min(self.deadline.max(later(now, LEAST)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        later(Timestamp::UNIX_EPOCH, Duration::from_secs(seconds))
    }

    #[test]
    fn the_hook_takes_from_the_grace() {
        let mut kill = Kill::new(true, Duration::from_secs(30), at(0));
        assert_eq!(kill.step(true, at(0)), Step::Wait(at(30)));
        kill.hook_ended();
        assert_eq!(kill.step(true, at(12)), Step::Ask);
        assert_eq!(kill.step(true, at(12)), Step::Wait(at(30)));
        assert_eq!(kill.step(true, at(30)), Step::Force);
        assert_eq!(kill.step(true, at(31)), Step::Done);
    }

    #[test]
    fn a_hook_that_takes_it_all_leaves_two_seconds() {
        let mut kill = Kill::new(true, Duration::from_secs(5), at(0));
        assert_eq!(kill.step(true, at(5)), Step::Ask);
        assert_eq!(kill.step(true, at(5)), Step::Wait(at(7)));
        assert_eq!(kill.step(true, at(7)), Step::Force);
    }

    #[test]
    fn whoever_ends_last_waits_for_the_others_but_not_for_ever() {
        let mut kill = Kill::new(false, Duration::from_secs(10), at(0));
        assert_eq!(kill.step(false, at(0)), Step::Wait(at(10)));
        assert_eq!(kill.step(true, at(3)), Step::Ask);
        assert_eq!(kill.step(true, at(10)), Step::Force);
        let mut kill = Kill::new(false, Duration::from_secs(10), at(0));
        assert_eq!(kill.step(false, at(10)), Step::Ask);
        assert_eq!(kill.step(false, at(12)), Step::Force);
    }

    #[test]
    fn patience_can_only_shrink() {
        let mut kill = Kill::new(false, Duration::from_secs(30), at(0));
        assert_eq!(kill.step(true, at(0)), Step::Ask);
        kill.hasten(Duration::from_secs(1), at(4));
        assert_eq!(kill.step(true, at(5)), Step::Wait(at(6)));
        kill.hasten(Duration::from_secs(60), at(5));
        assert_eq!(kill.step(true, at(6)), Step::Force);
    }
}
