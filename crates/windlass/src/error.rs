//! Why a pass failed, as a value that the queue can treat as it should.

use std::error::Error as StdError;
use std::fmt;

use windlass_core::Problem;

use crate::cache::ReadError;

/// Why a pass failed.
///
/// Every error of another library becomes one by `?`, and is tried again with a growing delay. What no retry can mend
/// is [terminal](Error::terminal): the object rests until its spec changes. Waiting is no failure: see
/// [`Outcome`](crate::core::Outcome).
pub struct Error {
    terminal: Option<Problem>,
    source: Box<dyn StdError + Send + Sync>,
}

impl Error {
    /// A failure that may pass: it is tried again after 5 ms, then ever later, up to 1000 s.
    pub fn retry(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error { terminal: None, source: source.into() }
    }

    /// A failure that only a change of the spec can mend: it is not tried again until then, and an event tells of it.
    /// From a [`Planner`](crate::Planner) it shows as the condition [`Stalled`](crate::executor::STALLED), too. A raw
    /// function writes its own status.
    pub fn terminal(reason: impl Into<String>, message: impl Into<String>) -> Error {
        let problem = Problem { reason: reason.into(), message: message.into() };
        Error { source: problem.message.clone().into(), terminal: Some(problem) }
    }

    /// What is wrong, where only a change of the spec can mend it.
    pub fn problem(&self) -> Option<&Problem> {
        self.terminal.as_ref()
    }

    /// Whether the cache does not know a kind yet. The informer of that kind has told why, once for all objects.
    pub(crate) fn is_of_cache(&self) -> bool {
        let mut layer: Option<&(dyn StdError + 'static)> = Some(&*self.source);
        while let Some(error) = layer {
            if matches!(error.downcast_ref(), Some(ReadError::NotSynced { .. })) {
                return true;
            }
            layer = error.source();
        }
        false
    }

    /// What is wrong, where only a change of the spec can mend it, and the error itself.
    pub(crate) fn into_parts(self) -> (Option<Problem>, Box<dyn StdError + Send + Sync>) {
        (self.terminal, self.source)
    }

    /// The error and what caused it, in one line.
    pub fn chain(&self) -> String {
        chain(&*self.source)
    }
}

/// An error with all its causes, in one line.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let layer = error.to_string();
        // Some libraries print their cause themselves.
        if !text.ends_with(&layer) {
            text.push_str(": ");
            text.push_str(&layer);
        }
        cause = error.source();
    }
    text
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Error {
        Error::retry(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error").field("terminal", &self.terminal).field("source", &self.source).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the member list")]
    struct Layer(#[source] std::io::Error);

    #[test]
    fn an_error_prints_its_causes_once() {
        let error = Error::from(Layer(std::io::Error::other("connection refused")));
        assert_eq!(error.to_string(), "cannot read the member list: connection refused");
        assert_eq!(error.problem(), None);
    }

    #[test]
    fn what_the_cache_does_not_know_yet_is_told_from_other_errors() {
        let why = || ReadError::NotSynced { kind: "ConfigMap".to_owned(), why: "forbidden".to_owned() };
        #[derive(Debug, thiserror::Error)]
        #[error("cannot tell what is there")]
        struct Above(#[source] ReadError);
        assert!(Error::from(why()).is_of_cache());
        assert!(Error::from(Above(why())).is_of_cache());
        assert!(!Error::from(std::io::Error::other("refused")).is_of_cache());
    }

    #[test]
    fn a_terminal_error_says_what_is_wrong() {
        let error = Error::terminal("InvalidTarget", "target must be a host name");
        assert_eq!(error.problem().map(|problem| problem.reason.as_str()), Some("InvalidTarget"));
        assert_eq!(error.to_string(), "target must be a host name");
    }
}
