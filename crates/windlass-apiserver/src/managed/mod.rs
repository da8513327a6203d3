//! Field ownership (`managedFields`) and server-side apply.
//!
//! ```text
//! create, update, patch:  live, new ── compare ──► what changed ──► entries of all managers
//! apply:    live, configuration ── merge ── prune ──► new ── compare ──► conflicts, or entries
//! ```
//!
//! [`update`] runs on the object that is about to be stored, after defaulting; [`apply`] makes that object, and the
//! caller runs it through the codec and defaulting as if a client had sent it. [`settle`] comes last and makes a
//! write that changes nothing but times change nothing at all.
//!
//! All versions of a kind are taken to have the same fields: a set that a manager wrote in another version is kept
//! as it is and compared as if it were of this one. A conversion of sets would come between [`entries`] and the
//! comparison, in `own`.

mod apply;
mod compare;
mod element;
mod entries;
mod error;
mod fields_v1;
mod fieldset;
mod last_applied;
mod merge;
mod own;
mod reconcile;
mod remove;
mod scale;
mod set;
mod shape;
mod times;
mod validate;
mod zero;

#[cfg(test)]
mod tests;

pub use apply::apply;
pub use element::PathElement;
pub use entries::Operation;
pub use error::{ApplyError, Conflict};
pub use own::{Reset, Write, update};
pub use scale::{ReplicasPath, from_scale, to_scale};
pub use set::Set;
pub use shape::Schema;
pub use times::settle;
