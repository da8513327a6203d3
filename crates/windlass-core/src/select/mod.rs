//! Label and field selectors.

mod field;
mod label;
mod names;
mod parse;

pub use field::{FieldRequirement, FieldSelector};
pub use label::{LabelSelector, Labels, Operator, Requirement};
pub use names::{label_key_faults, label_value_faults};

use thiserror::Error;

/// A selector that makes no sense, in upstream's words.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Error(pub String);
