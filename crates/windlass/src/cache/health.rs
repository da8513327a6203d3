//! How an informer is doing.

use std::fmt;

use windlass_core::{Kind, Moment};

/// How one list and watch is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The first list is under way.
    #[default]
    Syncing,
    /// The cache follows the server.
    Live,
    /// The server cannot be reached, or refuses. What was known before is still there.
    Failing {
        /// What it said, with all causes.
        error: String,
        /// Since when.
        since: Moment,
    },
    /// The server does not have this kind. The cache waits for it to appear.
    Absent,
}

/// What one list and watch is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The kind.
    pub kind: Kind,
    /// The namespace; `None` for all of them, and for kinds that live in none.
    pub namespace: Option<String>,
    /// Which objects, as the server understands it; empty for all.
    pub selector: String,
    /// Whether only metadata is held.
    pub metadata_only: bool,
}

impl Target {
    /// Everything but the kind, in one line: empty for all there is.
    pub fn scope(&self) -> String {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        let metadata = if self.metadata_only { "metadata" } else { "" };
        let parts = [namespace, &self.selector, metadata];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// `ConfigMap`, or `ConfigMap (default a=b)`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope() {
            scope if scope.is_empty() => write!(f, "{}", self.kind),
            scope => write!(f, "{} ({scope})", self.kind),
        }
    }
}

/// How one informer is doing in one namespace, or in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InformerHealth {
    /// What it holds.
    pub target: Target,
    /// Whether the kind may be missing without anything being wrong.
    pub optional: bool,
    /// How it is doing.
    pub state: State,
    /// Whether a list was ever complete: whether there is anything to read.
    pub listed: bool,
    /// The last sign of life: a list, an event, or a bookmark. The server sends one about every minute.
    pub heard: Moment,
    /// How many objects are held.
    pub objects: usize,
    /// How many objects are on the server whose latest version does not decode.
    pub undecodable: usize,
}

/// How the wait for a first list ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Synced {
    /// Everything is there.
    Listed,
    /// The server does not have the kind.
    Absent,
    /// The first try failed; others follow.
    Failing(String),
}
