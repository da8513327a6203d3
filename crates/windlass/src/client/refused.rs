//! Requests that never left.

use std::error::Error;

use thiserror::Error;

use super::Call;

/// A request that the client did not send.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// This process does not hold the lease, so another may be writing.
    #[error("{call} was not sent: this process does not lead")]
    NotLeading {
        /// What was asked for.
        call: String,
    },
    /// Nothing that the operator declares covers the call, so in a cluster its role would not either.
    #[error("{call} was not sent: nothing that the operator declares covers it; {advice}")]
    NotDeclared {
        /// What was asked for.
        call: String,
        /// Which line to add.
        advice: String,
    },
    /// The client only reads.
    #[error("{call} was not sent: this client only reads")]
    ReadOnly {
        /// What was asked for.
        call: String,
    },
}

/// Whether a request failed because the client did not send it, and why.
pub fn refusal(error: &kube::Error) -> Option<&Refused> {
    let mut error: &(dyn Error + 'static) = error;
    loop {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return Some(refused);
        }
        error = error.source()?;
    }
}

/// `patch configmaps web/colours`, for messages.
pub(super) fn name(call: &Call) -> String {
    let Some(of) = &call.resource else { return call.verb.to_owned() };
    let mut text = format!("{} {}", call.verb, of.full());
    if !of.group.is_empty() {
        text.push_str(&format!(".{}", of.group));
    }
    match (&*of.namespace, &*of.name) {
        ("", "") => {}
        ("", name) => text.push_str(&format!(" {name}")),
        (namespace, "") => text.push_str(&format!(" in {namespace}")),
        (namespace, name) => text.push_str(&format!(" {namespace}/{name}")),
    }
    text
}
