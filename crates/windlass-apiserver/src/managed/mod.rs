//! Field ownership (`managedFields`) and server-side apply.
//!
//! ```text
//! create, update, patch:  live, new ── compare ──► what changed ──► entries of all managers
//! apply:    live, configuration ── merge ── prune ──► new ── compare ──► conflicts, or entries
//! ```
//!
//! # Expected flow
//! [`update`] runs on the decoded and defaulted object, before admission, before the kind prepares it for storage and
//! before anything is allocated: what those add is nobody's. [`apply`] makes such an object, and the caller runs it
//! through the codec and defaulting as if a client had sent it. [`settle`] runs when the kind has prepared the object,
//! and makes a write that changes nothing but times change nothing at all.
//!
//! # Caveats
//! All versions of a kind are taken to have the same fields: a set that a manager wrote in another version is kept
//! as it is, and compared as if it were of this one. A conversion of sets belongs into `own::reconciled`, where
//! those of lost versions are dropped.
//!
//! Only fields of structures have list types: a list within a list, or in a map, is one value.

mod apply;
mod compare;
mod element;
mod entries;
mod error;
mod fields_v1;
mod fieldset;
mod last_applied;
mod merge;
mod overlay;
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
pub use overlay::overlay;
pub use own::{Reset, Write, update};
pub use scale::{ReplicasPath, from_scale, to_scale};
pub use set::Set;
pub use shape::Schema;
pub use times::settle;
