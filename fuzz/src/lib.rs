//! What the fuzz targets do. Each module has one `run`, which `fuzz_targets/` hands to libFuzzer
//! and which panics where something does not hold.
//!
//! ```text
//! whole server     request   bytes read as a few HTTP requests
//!                  life      bytes as choices: objects of all kinds, made by their types, and what befalls them
//! its rooms        patch     JSON patch, merge patch, strategic merge patch, apply
//!                  codec     JSON, canonical trees, quantities, times, durations
//!                  yaml, protobuf, selectors
//!                  crd       schemas made by their type, and objects for them
//!                  cel       one rule, in a definition and on objects
//!                  log_recovery   files of a data folder
//! the node         spdy      what a client sends to exec, attach and port-forward
//! ```
//!
//! `seeds/<target>` holds what each starts from; `fuzz/run` runs them.

pub mod cel;
pub mod codec;
pub mod crd;
pub mod life;
pub mod log_recovery;
pub mod patch;
pub mod protobuf;
pub mod request;
pub mod selectors;
pub mod spdy;
pub mod tree;
pub mod world;
pub mod yaml;
