//! Breaks etcd clusters under a load of writes, on a running Kubernetes, and looks whether they heal and whether anything is
//! lost.
//!
//! ```text
//! World: a cluster, the operator in it as a pod
//!   └─ Etcd: an EtcdCluster of 3
//!        ├─ Load: a pod that writes 200 times a second, with a ledger
//!        ├─ Fault::inflict at a random moment ─► Wound: what must be different afterwards
//!        ├─ until the wound is closed, the status says healthy, and etcd says the same ─► time to heal
//!        └─ Load::end ─► the ledger's verdict: none lost, none reordered
//! ```
//!
//! Everything is done with kubectl, or is what a person on the host of the nodes can do: signals to processes, files in the
//! folders of volumes. So the same code runs on `windlass up` and on any Kubernetes whose node is this machine:
//!
//! ```text
//! etcd-e2e all                         on a `windlass up` of its own
//! etcd-e2e all --real                  on a real node of its own (as root; see tools/real-node/node)
//! etcd-e2e all --kubeconfig FILE       on a cluster that is there, with the operator in it
//! ```
//!
//! On the real node the rights of the operator are enforced, both namespaces enforce the restricted standard of pod security,
//! and volumes belong to whom `fsGroup` says. It is one node, so no node can be cut off there.

mod doom;
mod etcd;
mod fault;
mod fifty;
pub mod host;
mod kill;
mod kubectl;
mod load;
mod random;
mod real;
mod report;
mod rounds;
mod trial;
mod world;

pub use doom::doomed;
pub use etcd::{Etcd, Healing};
pub use fault::{Fault, Wound};
pub use fifty::{Fifty, fifty};
pub use kill::{Course, killed};
pub use kubectl::Kubectl;
pub use load::{Load, Verdict};
pub use random::Random;
pub use real::enter;
pub use report::Tally;
pub use rounds::{Rounds, rounds};
pub use trial::{Outcome, Trial, attempt, sample, sizes};
pub use world::World;
