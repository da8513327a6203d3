//! Operators on the in-process server, as those who write and run them meet them.

#[path = "../support/mod.rs"]
mod support;

mod tap;
mod widget;

mod beside;
mod echo;
mod effects;
mod namespaces;
mod optional;
mod outcomes;
mod raw;
mod reads;
mod replicas;
mod shutdown;
mod start;
mod telling;
mod terminal;
mod wakes;
