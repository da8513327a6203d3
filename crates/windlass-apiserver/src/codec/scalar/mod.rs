//! Scalars whose text has a canonical form: quantities, times, durations.

pub mod duration;
pub mod quantity;
pub mod time;
