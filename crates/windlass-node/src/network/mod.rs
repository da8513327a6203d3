//! The cluster's network: an address for every pod, Services, names, and the ways in from this machine.
//!
//! ```text
//! this process ─── fabric (bridge) ─┬─ node-a ─┬─ pod
//!   API server, DNS, relays         │          └─ pod
//!                                   └─ node-b ─── pod
//! ```
//!
//! Every node and every pod is a network namespace. Pods have no way out: nothing in there has a link to this machine's
//! own networks, and what is to come in is carried by this process.

pub mod addresses;
pub mod dns;
mod doors;
mod leases;
mod resolv;
mod ruleset;
mod services;

pub use doors::{BALANCER, Behind, Door, doors, is_balanced, is_balancer};
pub use leases::Leases;
pub use resolv::{DOMAIN, resolv_conf};
pub use ruleset::{Place, ruleset};
pub use services::{Front, Protocol, Target, fronts};
