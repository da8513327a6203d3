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
mod fabric;
mod host;
mod leases;
mod proxy;
mod relay;
mod resolv;
mod ruleset;
mod script;
mod services;

pub use doors::{Behind, Door, doors};
pub use fabric::{Error, Network, PodNet, PodNetwork, dial};
pub use host::Host;
pub use leases::Leases;
pub use proxy::run as run_rules;
pub use resolv::{DOMAIN, resolv_conf};
pub use ruleset::{Place, ruleset};
pub use script::{node_net, pod_net};
pub use services::{Front, Protocol, Target, fronts};
