//! JSON patch, merge patch and strategic merge patch on trees.
//!
//! All three follow kube-apiserver rather than the letter of the RFCs: what its libraries do in corners (a
//! `replace` of an absent member adds it, `test` of an absent member against `null` holds, negative indices count
//! from the end) is what clients have been tested against.

mod error;
pub(crate) mod go;
mod json;
mod merge;
mod order;
mod restore;
mod strategic;
mod touched;

pub use error::PatchError;
pub(crate) use go::value as go_text;
pub use json::{OPERATIONS_MAX, check_json_patch, json_patch};
pub use merge::{check_merge_patch, merge_patch};
pub use restore::{misfit, without_field};
pub use strategic::strategic;
pub use touched::sort_touched;

#[cfg(test)]
mod laws;
