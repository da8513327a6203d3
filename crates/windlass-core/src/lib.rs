//! The pure part of Windlass, shared by the API server and by the framework.
//!
//! Nothing here does IO, reads a clock or draws a random number: time and randomness come in as arguments.
//!
//! ```text
//! event ─► Cause ─► queue (key, causes, priority) ─► worker ─► plan ─► Action… ─► Outcome ─► queue
//! ```

pub mod amounts;
mod cause;
pub mod condition;
pub mod cron;
pub mod diff;
pub mod duration;
mod key;
mod kind;
mod moment;
mod outcome;
pub mod owner;
pub mod plan;
pub mod qos;
pub mod quantity;
pub mod queue;
pub mod quota;
mod random;
pub mod select;
pub mod tree;

pub use cause::{Cause, Origin};
pub use key::ObjectKey;
pub use kind::Kind;
pub use moment::Moment;
pub use outcome::{Outcome, Problem};
pub use plan::{Action, Child, Plan};
pub use queue::Queue;
pub use random::Random;
