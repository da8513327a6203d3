//! The node's HTTPS endpoint, as kubelet has it: logs, exec, attach and port-forward.

mod containers;

pub use containers::{Attach, Connection, Containers, Duplex, Exec, Log, Process, Refused, Size};
