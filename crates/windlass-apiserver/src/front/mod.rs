//! The fronts: where the server meets sockets, clocks and files.

pub mod durable;
