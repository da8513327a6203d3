//! The cache against a live API server in the process.

mod follow;
mod support;
