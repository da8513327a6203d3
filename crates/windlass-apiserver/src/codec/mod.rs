//! Bodies to canonical trees and back: JSON, YAML and protobuf, by the type table.
//!
//! ```text
//! JSON, YAML ──parse──▶ untyped tree ──canonical──▶ canonical tree ──write──▶ final JSON, with offsets
//! protobuf ──envelope──▶ type and payload ──decode_proto──────▲
//! ```
//!
//! The canonical tree is what kube-apiserver would answer for the same body: Go's structures decide order and
//! omission, so two bodies that mean the same become the same bytes.

mod canonical;
mod parse;
mod path;
pub mod scalar;
mod write;
mod yaml;

pub use canonical::{canonical, canonical_meta};
pub use parse::{ParseError, Parsed, Problems, parse, summary};
pub use scalar::quantity::Quantity;
pub use write::{Encoded, write, write_value};

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

/// A body that does not fit its type, with the message that kube-apiserver gives after
/// `Kind in version "v1" cannot be handled as a Kind: `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(String);

impl DecodeError {
    fn new(message: impl ToString) -> DecodeError {
        DecodeError(message.to_string())
    }
}
