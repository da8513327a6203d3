//! When a probe is made, and what its results mean. Pure: what makes the probes is elsewhere.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Probe};

use super::backoff::later;

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeKind {
    /// Whether the container has started; the others wait for it.
    Startup,
    /// Whether it has to be started again.
    Liveness,
    /// Whether it serves.
    Readiness,
}

impl ProbeKind {
    /// All of them.
    pub const ALL: [ProbeKind; 3] = [ProbeKind::Startup, ProbeKind::Liveness, ProbeKind::Readiness];

    /// As events say it.
    pub fn title(self) -> &'static str {
        match self {
            ProbeKind::Startup => "Startup",
            ProbeKind::Liveness => "Liveness",
            ProbeKind::Readiness => "Readiness",
        }
    }

    /// The probe of a container.
    pub fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            ProbeKind::Startup => container.startup_probe.as_ref(),
            ProbeKind::Liveness => container.liveness_probe.as_ref(),
            ProbeKind::Readiness => container.readiness_probe.as_ref(),
        }
    }
}

/// What one probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// All is well.
    Success,
    /// All is well, and somebody should know this.
    Warning(String),
    /// It is not.
    Failure(String),
    /// It could not be asked. Nothing follows from it.
    Errored(String),
}

/// One probe of one run of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prober {
    next: Timestamp,
    in_flight: bool,
    /// Nothing more will be learnt of this run.
    on_hold: bool,
    last: Option<bool>,
    in_a_row: i32,
    /// What has been found often enough to count.
    verdict: Option<bool>,
}

impl Prober {
    /// The probe of a container that has started.
    pub fn new(probe: &Probe, started: Timestamp) -> Prober {
        Prober {
            next: later(started, seconds(probe.initial_delay_seconds, 0)),
            in_flight: false,
            on_hold: false,
            last: None,
            in_a_row: 0,
            verdict: None,
        }
    }

    /// What has been found often enough to count.
    pub fn verdict(&self) -> Option<bool> {
        self.verdict
    }

    /// When the next probe is made; `None` while one is under way, or if none is made any more.
    pub fn due(&self) -> Option<Timestamp> {
        (!self.in_flight && !self.on_hold).then_some(self.next)
    }

    /// A probe is made now.
    pub fn begin(&mut self, probe: &Probe, now: Timestamp) {
        self.in_flight = true;
        self.next = later(now, seconds(probe.period_seconds, 10).max(Duration::from_secs(1)));
    }

    /// Brings the next probe forward.
    pub fn hasten(&mut self, now: Timestamp) {
        self.next = self.next.min(now);
    }

    /// A probe has been made.
    pub fn end(&mut self, kind: ProbeKind, probe: &Probe, finding: &Finding) {
        self.in_flight = false;
        let well = match finding {
            Finding::Success | Finding::Warning(_) => true,
            Finding::Failure(_) => false,
            Finding::Errored(_) => return,
        };
        if self.last == Some(well) {
            self.in_a_row = self.in_a_row.saturating_add(1);
        } else {
            self.last = Some(well);
            self.in_a_row = 1;
        }
        let enough =
            if well { probe.success_threshold.unwrap_or(1) } else { probe.failure_threshold.unwrap_or(3) };
        if self.in_a_row < enough {
            return;
        }
        self.verdict = Some(well);
        self.on_hold = kind == ProbeKind::Startup || (kind == ProbeKind::Liveness && !well);
    }
}

/// How long one probe may take.
pub fn timeout(probe: &Probe) -> Duration {
    seconds(probe.timeout_seconds, 1).max(Duration::from_secs(1))
}

fn seconds(value: Option<i32>, default: u64) -> Duration {
    Duration::from_secs(value.map_or(default, |value| u64::try_from(value).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        later(Timestamp::UNIX_EPOCH, Duration::from_secs(seconds))
    }

    fn probe() -> Probe {
        Probe {
            initial_delay_seconds: Some(5),
            period_seconds: Some(3),
            success_threshold: Some(2),
            failure_threshold: Some(3),
            ..Probe::default()
        }
    }

    #[test]
    fn thresholds_are_of_findings_in_a_row() {
        let probe = probe();
        let mut prober = Prober::new(&probe, at(0));
        assert_eq!(prober.due(), Some(at(5)));
        let mut found = |finding: Finding| {
            prober.begin(&probe, at(5));
            assert_eq!(prober.due(), None);
            prober.end(ProbeKind::Readiness, &probe, &finding);
            assert_eq!(prober.due(), Some(at(8)));
            prober.verdict()
        };
        let failure = || Finding::Failure("no".to_owned());
        assert_eq!(found(Finding::Success), None);
        assert_eq!(found(Finding::Success), Some(true));
        assert_eq!(found(failure()), Some(true));
        assert_eq!(found(failure()), Some(true));
        assert_eq!(found(Finding::Errored("?".to_owned())), Some(true));
        assert_eq!(found(failure()), Some(false));
        assert_eq!(found(Finding::Success), Some(false));
        assert_eq!(found(failure()), Some(false));
    }

    #[test]
    fn a_container_that_is_to_be_started_again_is_not_probed() {
        let probe = Probe { failure_threshold: Some(1), ..Probe::default() };
        for kind in ProbeKind::ALL {
            let mut prober = Prober::new(&probe, at(0));
            prober.begin(&probe, at(0));
            prober.end(kind, &probe, &Finding::Failure(String::new()));
            assert_eq!(prober.due().is_none(), kind != ProbeKind::Readiness);
        }
    }
}
