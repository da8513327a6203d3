//! What goes into a queue, and what comes out.

use std::fmt;
use std::time::Duration;

use crate::Cause;

/// What comes first where several keys are ready: the higher number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub i32);

impl Priority {
    /// Something happened.
    pub const NORMAL: Priority = Priority(0);
    /// Nothing is known to have happened: the object was in the first list. What happens meanwhile goes first.
    pub const INITIAL: Priority = Priority(-100);
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A reason to look at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Why.
    pub cause: Cause,
    /// How it stands to others.
    pub priority: Priority,
    /// Not before this long from now.
    pub delay: Duration,
    /// Where this is about the object itself: the generation that it has now. A generation other than the one that
    /// failed ends the wait after a failure. For kinds that have no generation, the caller has to give another number
    /// that changes with the spec.
    pub generation: Option<i64>,
    /// Whether it ends the wait after a failure in any case: somebody asked for it.
    pub urgent: bool,
}

impl Wake {
    /// A wake-up at once, of [normal](Priority::NORMAL) priority.
    pub fn new(cause: Cause) -> Wake {
        Wake { cause, priority: Priority::NORMAL, delay: Duration::ZERO, generation: None, urgent: false }
    }
}

/// What comes next for a key whose pass has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing, until it is woken; also where the object turned out to be gone. Its failures are forgotten.
    Settled,
    /// Another pass at once, behind the others of its priority. Its failures are forgotten.
    Again,
    /// Another pass after a while, or earlier if it is woken. Its failures are forgotten.
    After(Duration),
    /// Another pass after its [backoff](super::Backoff). What wakes it before then is kept, and does not cut the wait
    /// short, unless it is urgent or brings another generation.
    Retry {
        /// The generation that failed.
        generation: Option<i64>,
    },
    /// No other pass until it is woken by something urgent, or by another generation.
    Terminal {
        /// The generation that cannot be done.
        generation: Option<i64>,
    },
}

/// A key that has to be looked at, now and by whoever took it. It is not given out again before it is
/// [done](super::Queue::done).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken<K> {
    /// The key.
    pub key: K,
    /// Everything that woke it since it was taken last.
    pub causes: Causes,
    /// Which attempt this is: 1, and one more for each failure in a row.
    pub attempt: u32,
    /// How long it was ready and not taken.
    pub waited: Duration,
    /// The highest priority of what woke it.
    pub priority: Priority,
}

/// Why a key was woken: the first few causes, and how many came after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes {
    /// The first ones, each once.
    pub first: Vec<Cause>,
    /// How many more wake-ups there were.
    pub more: u32,
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, cause) in self.first.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{cause}")?;
        }
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        Ok(())
    }
}
