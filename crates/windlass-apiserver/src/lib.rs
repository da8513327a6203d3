//! A Kubernetes API server that lives in your process.
//!
//! ```text
//! front (tower, HTTPS)                              the only module that does IO
//!   └─ api      request → route → negotiate → verb → response, as one synchronous `step`
//!        ├─ codec     bytes (JSON, YAML, protobuf) ⇄ canonical trees, by the type table
//!        ├─ schema    the type table: built-in kinds from `table/`, custom kinds from their CRDs
//!        ├─ kinds     what the table cannot say of built-in kinds: defaults, preparation, validation
//!        ├─ crd       structural schemas, validation, CEL rules, the life of a definition
//!        ├─ patch     JSON patch, merge patch, strategic merge patch
//!        ├─ managed   field ownership and server-side apply
//!        ├─ print     tables, as `kubectl get` shows them
//!        └─ store     one revision counter, copy-on-write trees, event log
//! ```
//!
//! Everything but [`front`] is sans-IO: time and identifiers come in as arguments, so the same requests give the
//! same answers, and a clone of the server is an independent server.

pub mod api;
pub mod codec;
pub mod crd;
pub mod field;
pub mod front;
mod go;
pub mod json;
pub mod kinds;
pub mod managed;
pub mod patch;
pub mod print;
pub mod schema;
pub mod status;
pub mod store;
mod x509;
