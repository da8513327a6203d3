//! What can go wrong with one action.

use tower::BoxError;
use windlass_core::Problem;

use crate::error::chain;
use crate::write;

/// An action that failed. The others were done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The API server was not reached, or refused.
    #[error(transparent)]
    Write(#[from] write::Error),
    /// There is an object of that name that is not ours.
    #[error("cannot {what}: there is one that {owner}")]
    Foreign {
        /// The action.
        what: String,
        /// Whose it is.
        owner: String,
    },
    /// A child that lives in a namespace, of a parent that does not, names none.
    #[error("cannot {what}: it names no namespace, and its parent has none")]
    NoNamespace {
        /// The action.
        what: String,
    },
    /// A plan has a child twice.
    #[error("cannot {what}: the plan has it twice")]
    Twice {
        /// The action.
        what: String,
    },
    /// A delete that does not say what exactly should go, or why.
    #[error("will not {what}: it has no {missing}")]
    Unjustified {
        /// The action.
        what: String,
        /// What it lacks.
        missing: &'static str,
    },
    /// The operator's own effect failed.
    #[error("cannot {what}")]
    Effect {
        /// The effect.
        what: String,
        /// What is wrong, where only a change of the spec can mend it.
        terminal: Option<Problem>,
        /// What it said.
        #[source]
        source: BoxError,
    },
}

impl Failure {
    /// Whether the world is only not what it was when it was looked at.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Failure::Write(error) if error.is_conflict())
    }

    /// Whether it will fail again until somebody changes something: this is worth a condition.
    pub fn is_lasting(&self) -> bool {
        match self {
            Failure::Write(error) => error.is_lasting(),
            Failure::Foreign { .. }
            | Failure::NoNamespace { .. }
            | Failure::Twice { .. }
            | Failure::Unjustified { .. } => true,
            Failure::Effect { terminal, .. } => terminal.is_some(),
        }
    }

    /// What is wrong, where only a change of the spec can mend it, and to try again would be of no use.
    pub fn terminal(&self) -> Option<&Problem> {
        match self {
            Failure::Effect { terminal, .. } => terminal.as_ref(),
            _ => None,
        }
    }

    /// One word for machines and a sentence for people.
    pub fn problem(&self) -> Problem {
        if let Some(problem) = self.terminal() {
            return problem.clone();
        }
        let reason = match self {
            Failure::Write(error) if error.is_lasting() => "ChildInvalid",
            Failure::Write(_) => "WriteFailed",
            Failure::Foreign { .. } => "ChildNotOwned",
            Failure::NoNamespace { .. } => "ChildWithoutNamespace",
            Failure::Twice { .. } => "ChildTwice",
            Failure::Unjustified { .. } => "DeleteUnjustified",
            Failure::Effect { .. } => "EffectFailed",
        };
        Problem { reason: reason.to_owned(), message: chain(self) }
    }
}
