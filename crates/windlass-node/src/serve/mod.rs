//! The node's HTTPS endpoint, as kubelet has it: logs, exec, attach and port-forward.
//!
//! ```text
//! API server ─ TLS ─► access ─► route ─┬─ logs: validated by the pod's status, read from its file
//!                                      ├─ upgrade ─┬─ websocket: channels v1, v4, v5; a tunnel of SPDY
//!                                      │           └─ spdy: SPDY/3.1
//!                                      └─ command (exec, attach), forward: streams of a session, over either
//!                                                └─► Containers: whoever runs the pods
//! ```
//!
//! Both ways of carrying streams end in the same two values, one to read from and one to write to, so exec, attach and
//! port-forward are written once. A connection is one task: its requests, and then the session that it turns into. The
//! client that goes takes its session with it.

mod access;
mod command;
mod containers;
mod endpoint;
mod forward;
mod logs;
mod route;
mod spdy;
mod streams;
#[cfg(test)]
mod tests;
mod upgrade;
mod websocket;

pub use access::{Access, Certificate, Error};
pub use containers::{Attach, Connection, Containers, Duplex, Exec, Log, Process, Refused, Size};
pub use endpoint::Endpoint;
