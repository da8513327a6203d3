//! How a pass ended.

use std::time::Duration;

use jiff::Timestamp;

/// What a pass that did its work wants next. Waiting is not retrying: none of these is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing, until something changes.
    AwaitChange,
    /// Another look at once: the pass wrote something.
    Again,
    /// Another look after a while, changed or not.
    After(Duration),
    /// Another look at a time of the wall clock.
    At(Timestamp),
    /// No look until the spec changes: this one cannot be done.
    Terminal(Problem),
}

/// What is wrong with an object, for its conditions and for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// One CamelCase word for machines.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}
