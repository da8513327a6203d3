//! Scalars whose text has a canonical form: quantities, times, durations.

pub mod time;

pub use windlass_core::{duration, quantity};
