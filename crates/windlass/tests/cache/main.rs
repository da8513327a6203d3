//! The cache against a live API server in the process.

mod failing;
mod faults;
mod follow;
mod own;
mod scope;
mod support;
