//! Operators as processes, on our server and on a real one: the same checks, driven by kubectl.
//!
//! ```text
//!            ┌ Ours: in this process ─┐            ┌▶ kubectl (what a user does)
//! server ────┤                        ├─▶ Scene ───┼▶ Process: the operator, killed, stopped, started again
//!            └ Real: kube-apiserver, ─┘     │      └▶ calls: who asked the server for what, and when
//!              etcd, controller-manager     ▼
//!                                    a check ─▶ what it saw, or why not
//! ```
//!
//! A check sees a server only through [`Server`], so that it cannot tell which one it is on. `make test` runs the checks
//! of an operator on ours with short times, `windlass-conformance operators` on both with the times that users have.

pub mod calls;
mod control;
pub mod foobar;
mod kubectl;
mod ours;
mod process;
mod real;
mod run;
mod scene;
mod server;

pub use calls::Call;
pub use kubectl::Kubectl;
pub use ours::Ours;
pub use process::Process;
pub(crate) use process::http_get;
pub use real::Real;
pub use run::{Check, run_all, run_one};
pub use scene::{Lease, Scene, Times};
pub use server::{RESTRICTED, Server};
