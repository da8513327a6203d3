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
//! folders of volumes. So the same code runs on `windlass up` and on any Kubernetes whose node is this machine.

mod etcd;
mod fault;
mod fifty;
pub mod host;
mod kill;
mod kubectl;
mod load;
mod random;
mod report;
mod rounds;
mod trial;
mod world;

pub use etcd::{Etcd, Healing};
pub use fault::{Fault, Wound};
pub use fifty::{Fifty, fifty};
pub use kill::{Course, killed};
pub use kubectl::Kubectl;
pub use load::{Load, Verdict};
pub use random::Random;
pub use report::Tally;
pub use rounds::{Rounds, rounds};
pub use trial::{Outcome, Trial, attempt, sizes};
pub use world::World;
