//! Why an apply is refused.

use std::collections::BTreeMap;
use std::fmt;

use super::entries::{Id, Operation};
use crate::status::Status;

/// Why an apply is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Other managers own fields that the configuration would change.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The request makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// An object is not of its type.
    #[error("{0}")]
    Typed(String),
}

/// A field that somebody else owns.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// Who owns it.
    pub manager: String,
    /// How they came to own it.
    pub operation: Operation,
    /// The version in which they wrote it; empty for appliers.
    pub api_version: String,
    /// The subresource through which they wrote it; empty for the object itself.
    pub subresource: String,
    /// The field, such as `.spec.ports[port=80,protocol="TCP"].name`.
    pub path: String,
}

impl Conflict {
    pub(super) fn new(id: &Id, path: String) -> Conflict {
        Conflict {
            manager: id.manager.clone(),
            operation: id.operation,
            api_version: id.version.clone(),
            subresource: id.subresource.clone(),
            path,
        }
    }

    fn owner(&self) -> Owner<'_> {
        Owner(self)
    }
}

/// The owner of a field, as messages name it.
#[derive(Clone, Copy)]
struct Owner<'a>(&'a Conflict);

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conflict { manager, operation, api_version, subresource, .. } = self.0;
        write!(f, "{manager:?}")?;
        if !subresource.is_empty() {
            write!(f, " with subresource {subresource:?}")?;
        }
        if *operation == Operation::Update {
            write!(f, " using {api_version}")?;
        }
        Ok(())
    }
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [conflict] = conflicts {
        let owner = conflict.owner();
        return format!("Apply failed with 1 conflict: conflict with {owner}: {}", conflict.path);
    }
    let mut by_owner: BTreeMap<_, (Owner<'_>, Vec<&str>)> = BTreeMap::new();
    for conflict in conflicts {
        let key = (&conflict.manager, conflict.operation, &conflict.api_version, &conflict.subresource);
        by_owner.entry(key).or_insert((conflict.owner(), Vec::new())).1.push(&conflict.path);
    }
    let mut lines = Vec::new();
    for (owner, paths) in by_owner.values() {
        lines.push(format!("conflicts with {owner}:"));
        lines.extend(paths.iter().map(|path| format!("- {path}")));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

impl From<ApplyError> for Status {
    fn from(error: ApplyError) -> Status {
        let message = error.to_string();
        match error {
            ApplyError::Conflicts(conflicts) => {
                conflicts.iter().fold(Status::new(409, "Conflict", message), |status, conflict| {
                    let text = format!("conflict with {}", conflict.owner());
                    status.cause("FieldManagerConflict", text, &conflict.path)
                })
            }
            ApplyError::BadRequest(_) => Status::bad_request(message),
            // kube-apiserver lets these out as they are: a server error without a reason.
            ApplyError::Typed(_) => Status::new(500, "", message),
        }
    }
}
