//! `windlass up` as people use it: alone, with pods, by kubectl, and as the README shows it.

mod alone;
mod cluster;
mod kubectl;
mod node;
#[path = "../support/mod.rs"]
mod support;
mod walkthrough;
