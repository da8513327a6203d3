//! Time that only goes forward.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point of monotonic time, counted from a start that only its environment knows.
///
/// ```
/// use std::time::Duration;
/// use windlass_core::Moment;
///
/// let later = Moment::START + Duration::from_secs(5);
/// assert_eq!(later - Moment::START, Duration::from_secs(5));
/// assert_eq!(Moment::START - later, Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// The start.
    pub const START: Moment = Moment(Duration::ZERO);

    /// The moment that is this long after the start.
    pub const fn after_start(passed: Duration) -> Moment {
        Moment(passed)
    }

    /// How long ago the start was.
    pub const fn since_start(self) -> Duration {
        self.0
    }
}

/// Later by a duration; the last moment there is, where that is too far.
impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, passed: Duration) -> Moment {
        Moment(self.0.saturating_add(passed))
    }
}

/// The time between two moments; none where the second is the later one.
impl Sub for Moment {
    type Output = Duration;

    fn sub(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}
