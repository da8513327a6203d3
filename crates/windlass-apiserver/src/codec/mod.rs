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
mod proto;
pub mod scalar;
mod syntax;
mod write;
mod yaml;

pub use canonical::{canonical, canonical_again, canonical_meta, drop_malformed_meta};
pub use parse::{ParseError, Parsed, Problems, parse, summary, type_meta};
pub use proto::{Envelope, decode_proto, envelope};
pub use scalar::quantity::Quantity;
pub use write::{Encoded, pretty_line, write, write_pretty, write_value};
pub(crate) use yaml::is_text as yaml_is_text;

use serde_json::Value;

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

/// Puts `kind` and `apiVersion` first, where built-in kinds have them. Empty ones are left as they are.
pub fn set_type(value: &mut Value, api_version: &str, kind: &str) {
    let Value::Object(map) = value else { return };
    for (name, text) in [("apiVersion", api_version), ("kind", kind)] {
        if !text.is_empty() {
            map.shift_insert(0, name.to_owned(), Value::String(text.to_owned()));
        }
    }
}
