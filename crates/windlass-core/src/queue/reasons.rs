//! What has woken a key since it was taken last.

use super::{Causes, Priority};
use crate::{Cause, Moment};

/// So many causes are kept with a key; the rest is counted.
const KEPT: usize = 8;

/// The wake-ups of one key. Each keeps its own time and weight, so that one of them can be taken back.
#[derive(Clone, Debug, Default)]
pub(super) struct Reasons {
    kept: Vec<(Cause, Reason)>,
    /// Those that came when the list was full, and how many they were.
    more: Option<(u32, Reason)>,
}

/// What a wake-up asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reason {
    pub(super) due: Moment,
    pub(super) priority: Priority,
    pub(super) generation: Option<i64>,
    pub(super) urgent: bool,
}

/// Why a key may not run although it was woken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    /// Until then; `None` is without end.
    pub(super) until: Option<Moment>,
    /// The generation that failed.
    pub(super) generation: Option<i64>,
}

impl Reasons {
    pub(super) fn add(&mut self, cause: Cause, reason: Reason) {
        if let Some((_, known)) = self.kept.iter_mut().find(|(known, _)| *known == cause) {
            known.merge(reason);
        } else if self.kept.len() < KEPT {
            self.kept.push((cause, reason));
        } else if let Some((count, known)) = &mut self.more {
            *count = count.saturating_add(1);
            known.merge(reason);
        } else {
            self.more = Some((1, reason));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.more.is_none()
    }

    /// Drops what has an echo for its cause. What the last pass asked for is never one, nor is what was only counted.
    pub(super) fn drop_echoes(&mut self, mut is_echo: impl FnMut(&Cause) -> bool) {
        self.kept.retain(|(cause, _)| {
            !(matches!(cause, Cause::Changed { .. } | Cause::Deleted { .. }) && is_echo(cause))
        });
    }

    /// When the key may run.
    pub(super) fn due(&self, hold: Option<Hold>) -> Option<Moment> {
        let Some(hold) = hold else {
            return self.all().map(|reason| reason.due).min();
        };
        let changed = self.generation().filter(|_| self.is_new_to(hold));
        let breaks = |reason: &&Reason| reason.urgent || changed.is_some() && reason.generation == changed;
        self.all().filter(breaks).map(|reason| reason.due).chain(hold.until).min()
    }

    /// The highest priority of all, also of those whose time has not come: they are taken together.
    pub(super) fn priority(&self) -> Priority {
        self.all().map(|reason| reason.priority).max().unwrap_or(Priority::NORMAL)
    }

    /// The last generation that a wake-up told of.
    fn generation(&self) -> Option<i64> {
        self.all().filter_map(|reason| reason.generation).last()
    }

    /// Whether a wake-up told of a generation other than the one that failed.
    pub(super) fn is_new_to(&self, hold: Hold) -> bool {
        let generation = self.generation();
        generation.is_some() && generation != hold.generation
    }

    /// The causes of a pass that begins now. A timer that something else came before of is none.
    pub(super) fn into_causes(self, now: Moment) -> Causes {
        let counts = |(cause, reason): &(Cause, Reason)| {
            reason.due <= now || !matches!(cause, Cause::Timer | Cause::Retry)
        };
        let first = self.kept.into_iter().filter(counts).map(|(cause, _)| cause).collect();
        Causes { first, more: self.more.map_or(0, |(count, _)| count) }
    }

    fn all(&self) -> impl Iterator<Item = &Reason> {
        self.kept.iter().map(|(_, reason)| reason).chain(self.more.iter().map(|(_, reason)| reason))
    }
}

impl Reason {
    fn merge(&mut self, other: Reason) {
        self.due = self.due.min(other.due);
        self.priority = self.priority.max(other.priority);
        self.generation = other.generation.or(self.generation);
        self.urgent |= other.urgent;
    }
}
