//! Why an object is looked at again.

use std::fmt;
use std::sync::Arc;

use crate::ObjectKey;

/// One reason for a wake-up. It is kept with the key for logs and metrics; a plan never sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The object was there when the operator started.
    Initial,
    /// An object was created or changed: the one that is reconciled, or one that leads to it.
    Changed {
        /// Its kind, as `Kind.group`.
        kind: Arc<str>,
        /// Which one.
        object: ObjectKey,
        /// The resourceVersion that it has now.
        version: u64,
    },
    /// An object was deleted.
    Deleted {
        /// Its kind, as `Kind.group`.
        kind: Arc<str>,
        /// Which one.
        object: ObjectKey,
        /// The resourceVersion of the deletion.
        version: u64,
    },
    /// A time came that the last pass asked for.
    Timer,
    /// The last pass failed, and its backoff is over.
    Retry,
    /// The last pass wrote something, and looks at what came of it.
    Again,
    /// Somebody asked for it, by annotation.
    Requested,
    /// A source outside of the cluster, by its name.
    Outside(Arc<str>),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Initial => f.write_str("initial list"),
            Cause::Changed { kind, object, version } => write!(f, "{kind} {object} changed at {version}"),
            Cause::Deleted { kind, object, version } => write!(f, "{kind} {object} deleted at {version}"),
            Cause::Timer => f.write_str("timer"),
            Cause::Retry => f.write_str("retry"),
            Cause::Again => f.write_str("own write"),
            Cause::Requested => f.write_str("reconcile-now"),
            Cause::Outside(source) => f.write_str(source),
        }
    }
}

/// Who wrote something: a controller, while it reconciled an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The controller's name.
    pub controller: Arc<str>,
    /// What it reconciled.
    pub key: ObjectKey,
}
