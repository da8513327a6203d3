//! Programs in namespaces of their own, as root or as an ordinary user: mounts, processes, networks.
//!
//! ```text
//! caller ──socket: JSON and open files──▶ agent ──▶ container's program (PID 1 of its own world)
//!   │                                       ├─────▶ further programs in it
//!   └─ host's namespaces                    └─────▶ ip, nft
//! ```
//!
//! The caller's program is re-executed for its stages, so its `main` begins with [`entry`]. The
//! *agent* is the first process of a pid namespace, with a mount and a network namespace of its own
//! and, when the caller is an ordinary user, a user namespace. It ends when the socket to the caller
//! closes, also when the caller is killed; the kernel then ends every process, mount and network that
//! was in it. So nothing is left behind, and no container runs without the caller that knows it.
//!
//! A container is one process, that of its program: there is no process of ours beside it. Networks
//! are kept by open files. Sockets are made inside a network and handed to the caller, who can
//! listen and dial there with plain tokio.
//!
//! Linux only: on other systems the crate is empty.
#![cfg(target_os = "linux")]

mod error;
mod forbidden;
mod link;
mod process;
mod removal;
mod sandbox;
mod spec;
mod stage;
mod wire;

pub use error::Error;
pub use process::{Process, resize};
pub use removal::remove_tree;
pub use sandbox::{Options, Sandbox};
pub use spec::{
    About, Capabilities, DEFAULT_PATH, Exec, Exit, Limits, Mount, Root, Size, Socket, Spec, Stdio, Tool, User,
};
pub use stage::entry;
