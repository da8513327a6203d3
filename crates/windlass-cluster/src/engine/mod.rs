//! What runs a built-in controller: what it watches, when it looks at a key, how its writes are sent.

mod discover;
mod look;
mod run;
mod send;
mod turn;
mod view;
mod wiring;
mod work;

pub use discover::{Kinds, Served};
pub(crate) use look::Answers;
pub use look::{Listed, LookUp, Looked, Scaled};
pub(crate) use run::Runner;
pub(crate) use send::{Sender, as_go_writes};
pub use turn::{Delete, Propagation, Told, Turn, Write};
pub use view::{Refusal, View};
pub use wiring::{Metadata, Wiring};
pub(crate) use work::Work;

use jiff::Timestamp;
use serde_json::Value;
use windlass_core::{Kind, ObjectKey};

/// A controller as a function from what is there to what should be written.
pub trait Controller: Send + Sync + 'static {
    /// Its name in events and logs, as kube-controller-manager has it: `replicaset-controller`.
    fn name(&self) -> &'static str;

    /// Says which objects it reads, and which keys a change of one leads to.
    fn declare(&self, wiring: &mut Wiring);

    /// What should be written about one key now, and when to look again if nothing changes.
    ///
    /// It is called for keys whose object is gone, too. A [write that the server refused](View::refused) is told to the
    /// next call: that one only reports it, and the runner tries again after a while.
    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn;

    /// A signed token that says this, where a step has [asked](LookUp::Token) for one: by a controller that has a key.
    fn sign(&self, claims: &Value) -> Option<String> {
        let _ = claims;
        None
    }

    /// Declares a kind that a step wants [watched](Turn::watch), which may be one that is watched already.
    fn watch(&self, kind: &Kind, wiring: &mut Wiring) {
        let _ = (kind, wiring);
    }
}
