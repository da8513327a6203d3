//! Why a write failed, and what that means for whoever planned it.

use std::fmt;
use std::time::Duration;

use kube::core::Status;

/// A write that failed. Each says which: `apply ConfigMap default/one`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The object is not what was looked at: it was changed, replaced, or is gone. Look again.
    #[error("cannot {what}: it has changed")]
    Conflict {
        /// The call.
        what: String,
        /// What the server said.
        source: Refusal,
    },
    /// An object was to be created, and there is one of that name.
    #[error("cannot {what}: there is one")]
    Exists {
        /// The call.
        what: String,
        /// What the server said.
        source: Refusal,
    },
    /// The object, its namespace or its kind is not there.
    #[error("cannot {what}: not found")]
    NotFound {
        /// The call.
        what: String,
        /// What the server said.
        source: Refusal,
    },
    /// We may not do this, or a quota or a policy does not allow it.
    #[error("cannot {what}: forbidden")]
    Forbidden {
        /// The call.
        what: String,
        /// What the server said.
        source: Refusal,
    },
    /// The server does not take such an object. The same object will be refused again.
    #[error("cannot {what}: invalid")]
    Invalid {
        /// The call.
        what: String,
        /// What the server said.
        source: Refusal,
    },
    /// No answer came in time. Nobody knows whether it was done.
    #[error("cannot {what}: no answer in {} s", .after.as_secs_f64())]
    Timeout {
        /// The call.
        what: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// The server could not do it just now.
    #[error("cannot {what}: the server failed")]
    Server {
        /// The call.
        what: String,
        /// What the server said.
        source: Refusal,
    },
    /// The request was not sent, or its answer was lost.
    #[error("cannot {what}")]
    Client {
        /// The call.
        what: String,
        /// What went wrong.
        #[source]
        source: Box<kube::Error>,
    },
    /// The name of the object is none that a request can be made of.
    #[error("cannot {what}: no such address")]
    Unaddressable {
        /// The call.
        what: String,
        /// What is wrong with it.
        #[source]
        source: http::Error,
    },
    /// The server has done it, and its answer is not JSON.
    #[error("cannot read the answer to {what}")]
    Answer {
        /// The call.
        what: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

/// What the server said when it refused.
#[derive(Debug, PartialEq)]
pub struct Refusal(pub Box<Status>);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Refusal {}

impl Error {
    /// Whether the world is only not what it was when it was looked at: to look again is enough, and no failure.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Conflict { .. })
    }

    /// Whether the same write would be refused again, until somebody changes something.
    pub fn is_lasting(&self) -> bool {
        matches!(self, Error::Invalid { .. } | Error::Unaddressable { .. })
    }

    pub(super) fn from_client(what: &str, source: kube::Error) -> Error {
        Error::Client { what: what.to_owned(), source: Box::new(source) }
    }

    pub(super) fn from_status(what: String, status: Status) -> Error {
        let code = status.code;
        // An apply of a field that the schema does not have is answered with a 500.
        let is_untyped = status.message.contains("failed to create typed patch object");
        let source = Refusal(Box::new(status));
        match code {
            403 => Error::Forbidden { what, source },
            404 => Error::NotFound { what, source },
            409 => Error::Conflict { what, source },
            400 | 405 | 413 | 415 | 422 => Error::Invalid { what, source },
            500 if is_untyped => Error::Invalid { what, source },
            _ => Error::Server { what, source },
        }
    }

    /// Of a create: what the server calls a conflict is that there is one.
    pub(super) fn conflict_is_existence(self) -> Error {
        match self {
            Error::Conflict { what, source } => Error::Exists { what, source },
            other => other,
        }
    }

    /// Of a write that names a UID: the server calls another one a change of a field that cannot change.
    pub(super) fn other_uid_is_conflict(self) -> Error {
        match self {
            Error::Invalid { what, source } if names_uid(&source.0) => Error::Conflict { what, source },
            other => other,
        }
    }

    /// Of a write to an object that was there: where it is not found, it has gone since. Where its kind or its
    /// subresource is not found, the server names no object, and to look again would not help.
    pub(super) fn absence_is_conflict(self) -> Error {
        match self {
            Error::NotFound { what, source } if names_object(&source.0) => Error::Conflict { what, source },
            other => other,
        }
    }
}

fn names_object(status: &Status) -> bool {
    status.details.as_ref().is_some_and(|details| !details.name.is_empty())
}

fn names_uid(status: &Status) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.field == "metadata.uid")
}
