//! Why a list or a watch fails.

use std::time::Duration;

use kube::core::Status;

/// Why a list or a watch failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request did not get an answer.
    #[error("the server cannot be reached")]
    Unreachable(#[source] kube::Error),
    /// The server said no.
    #[error("the server refused with {code} {reason}: {message}")]
    Refused {
        /// The HTTP status, or that of an `ERROR` event.
        code: u16,
        /// One word for machines.
        reason: String,
        /// A sentence for people.
        message: String,
        /// The server asked to wait this long.
        retry_after: Option<Duration>,
    },
    /// The version that the watch goes on from is no longer known: a new list has to be made.
    #[error("the server no longer knows the version to go on from")]
    Expired,
    /// The answer broke off.
    #[error("the answer broke off")]
    BrokenOff(#[source] kube::Error),
    /// The answer is not what it should be.
    #[error("the server sent something that is no {what}")]
    Malformed {
        /// What it should be.
        what: &'static str,
        /// Why it is not.
        #[source]
        error: serde_json::Error,
    },
    /// An event is larger than any object can be.
    #[error("the server sent an event of more than {} bytes", super::body::LINE_MAX)]
    TooLong,
    /// Nothing came for longer than a healthy server takes.
    #[error("nothing came from the server for {} s", .0.as_secs())]
    Silent(Duration),
    /// The watch ended before it had told anything.
    #[error("the server ended the watch before it had told anything")]
    EndedEarly,
}

impl Error {
    /// What a `Status` says.
    pub(super) fn refused(status: Status, code: u16, retry_after: Option<Duration>) -> Error {
        let code = if status.code == 0 { code } else { status.code };
        // A version that is ahead of the server's is as little use as one that is too old.
        if code == 410 || matches!(&*status.reason, "Expired" | "Gone") || is_too_large(&status) {
            return Error::Expired;
        }
        Error::Refused { code, reason: status.reason, message: status.message, retry_after }
    }

    pub(super) fn code(&self) -> Option<u16> {
        match self {
            Error::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Refused { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// The server was set back, by a restored backup, and has not come to that version again.
fn is_too_large(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
}
