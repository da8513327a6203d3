//! The objects that an operator looks at, kept in memory and up to date.
//!
//! ```text
//! source (one list and watch per kind and namespace) ─► decode ─► Store ─► Subscriber (controllers)
//!                                                                  │ ▲
//!                                            Cache::get, list… ◄───┘ └─── absorb, removed: answers to our own writes
//! ```
//!
//! # Guarantees
//! - One informer per kind, scope and selector, whoever asks for it.
//! - A write of our own is there when its answer has been [absorbed](Cache::absorb), and is told to subscribers once, with
//!   who made it.
//! - Subscribers are told of every object, in the order of its versions, deletions included: also of those that nobody saw
//!   because the watch was interrupted.
//! - Nothing is watched that was not declared.
//! - An object that does not decode is skipped, and what was known of it stays. A watch that fails leaves the others
//!   alone, and what it knew can still be read.

mod any;
mod declare;
mod decode;
mod delta;
mod feed;
mod health;
mod index;
mod informer;
mod managed;
mod observe;
mod read;
mod registry;
mod store;

pub use any::ObjectMetadata;
pub use declare::{Declared, Namespaces, Scope};
pub use decode::{Cached, DecodeError, Transform};
pub use delta::{Delta, Subscriber};
pub use health::{InformerHealth, State, Synced, Target};
pub use index::Index;
pub use informer::Informer;
pub use observe::{Observer, Reporter};
pub use read::ReadError;
pub use registry::Cache;
pub(crate) use store::Listed;
