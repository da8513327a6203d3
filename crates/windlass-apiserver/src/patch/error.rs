//! Why a patch was refused.

use thiserror::Error;

use crate::status::{Details, Status};

/// A patch that cannot be applied. The text of [`PatchError::Rejected`] stays in the server, as upstream.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchError {
    /// The patch is not of the form that its media type demands.
    #[error("{0}")]
    Malformed(String),
    /// The patch is well formed but does not fit the object: a failed `test`, a missing path.
    #[error("{0}")]
    Rejected(String),
    /// The patch asks for more work than the server is willing to do.
    #[error("{0}")]
    TooLarge(String),
    /// Upstream has no status for this fault of a strategic patch and answers with a bare `500`.
    #[error("{0}")]
    Unclassified(String),
}

impl From<PatchError> for Status {
    fn from(error: PatchError) -> Status {
        match error {
            PatchError::Malformed(message) => Status::bad_request(message),
            PatchError::Rejected(_) => {
                let message = "the server rejected our request due to an error in our request";
                let mut status = Status::new(422, "Invalid", message);
                status.details = Some(Box::new(Details::default()));
                status
            }
            PatchError::TooLarge(message) => {
                let message = format!("Request entity too large: {message}");
                Status::new(413, "RequestEntityTooLarge", message)
            }
            PatchError::Unclassified(message) => Status::new(500, "", message),
        }
    }
}
