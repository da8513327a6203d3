//! Whether a member is well, and for how long it has not been.

use std::fmt;

use super::view::View;
use crate::observe::{Member, Volume};

/// How a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answers, follows a leader and has sound data.
    Healthy,
    /// It does not, and not for long: it may be starting, or its node may be.
    Unready,
    /// It does not for so long that a restart is due.
    Suspect,
    /// It will not be well again: another one has to take its place.
    Failed(Failure),
}

/// Why a member will not be well again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Its volume is gone.
    VolumeLost,
    /// Its process ends over and over.
    CrashLoop,
    /// etcd says that its data is corrupt.
    Corrupt,
    /// It was not well for too long.
    TooLong,
}

impl View<'_> {
    /// How a member that etcd knows is.
    pub fn health(&self, member: &Member) -> Health {
        if self.is_healthy(member) {
            return Health::Healthy;
        }
        match self.failure(member) {
            Some(failure) => Health::Failed(failure),
            None if self.unhealthy_seconds(member) >= i64::from(self.spec.healing.suspect_after_seconds) => {
                Health::Suspect
            }
            None => Health::Unready,
        }
    }

    /// How long a member has not been healthy.
    pub fn unhealthy_seconds(&self, member: &Member) -> i64 {
        self.memory.unhealthy_since(&member.name).map_or(0, |at| self.seconds_since(at))
    }

    fn failure(&self, member: &Member) -> Option<Failure> {
        let healing = &self.spec.healing;
        let listed = self.best().and_then(|list| list.of(&member.name));
        // In memory, the data is there with the pod, and a member that was never started has none to lose.
        let has_data = listed.is_none_or(|listed| listed.started);
        if matches!(member.volume, Volume::Absent | Volume::Lost) && (has_data || self.on_disk()) {
            return Some(Failure::VolumeLost);
        }
        let is_corrupt = |id| self.best().is_some_and(|list| list.corrupt.contains(&id));
        if listed.is_some_and(|listed| is_corrupt(listed.id)) {
            return Some(Failure::Corrupt);
        }
        // Another member would need as much memory: to replace this one helps nobody.
        if member.pod.as_ref().is_some_and(|pod| pod.out_of_memory) {
            return None;
        }
        let restarts = member.pod.as_ref().map_or(0, |pod| pod.restarts);
        if i64::from(restarts) >= i64::from(healing.crash_loop_restarts) {
            return Some(Failure::CrashLoop);
        }
        let is_too_long = self.unhealthy_seconds(member) >= i64::from(healing.failed_after_seconds);
        is_too_long.then_some(Failure::TooLong)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::VolumeLost => "its volume is gone",
            Failure::CrashLoop => "its process ends over and over",
            Failure::Corrupt => "etcd says that its data is corrupt",
            Failure::TooLong => "it was not healthy for too long",
        })
    }
}
