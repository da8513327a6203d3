//! What can go wrong.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::spec::Tool;

/// Why the sandbox could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// This machine does not allow namespaces.
    #[error("this machine does not allow namespaces: {why}")]
    Forbidden {
        /// What forbids it, and the command that allows it.
        why: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The sandbox's own process could not be started.
    #[error("cannot start {} as the sandbox", program.display())]
    Spawn {
        /// The program that was to be re-executed.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The sandbox has ended, and everything in it.
    #[error("the sandbox has ended, and every container with it")]
    Gone,
    /// The container's program cannot be run. The text is what container runtimes say.
    #[error("{0}")]
    Program(String),
    /// The kernel refused a step.
    #[error("cannot {step}")]
    Step {
        /// What was to be done.
        step: String,
        /// Why not.
        source: io::Error,
    },
    /// A program of the machine is missing.
    #[error(
        "{} is not installed and the network needs it: install the package {} (`apt-get install {}`)",
        tool.program(), tool.package(), tool.package()
    )]
    Missing {
        /// The program.
        tool: Tool,
    },
    /// A program that changes a network refused its script.
    #[error("{} refused: {output}", tool.program())]
    Script {
        /// The program.
        tool: Tool,
        /// What it said.
        output: String,
    },
    /// There is one of this name already.
    #[error("there is a {kind} named {name} already")]
    Exists {
        /// `container` or `network`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// There is none of this name.
    #[error("there is no {kind} named {name}")]
    Unknown {
        /// `container` or `network`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// What was asked cannot be said to the sandbox's process, such as a path that is not UTF-8.
    #[error("the request cannot be written as JSON")]
    Request(#[source] serde_json::Error),
}

/// An [`Error`] as it travels from the stages to the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Failure {
    Program(String),
    Step { step: String, errno: i32 },
    Missing(Tool),
    Script { tool: Tool, output: String },
    Exists { network: bool, name: String },
    Unknown { network: bool, name: String },
}

impl Failure {
    /// A step that the kernel refused.
    pub(crate) fn step(step: impl Into<String>) -> impl FnOnce(io::Error) -> Failure {
        let step = step.into();
        move |error| match error.raw_os_error() {
            Some(errno) => Failure::Step { step, errno },
            // An error of the library, without a number: its text is all there is.
            None => Failure::Step { step: format!("{step} ({error})"), errno: 0 },
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Error {
        let kind = |network| if network { "network" } else { "container" };
        match failure {
            Failure::Program(text) => Error::Program(text),
            Failure::Step { step, errno } => {
                Error::Step { step, source: io::Error::from_raw_os_error(errno) }
            }
            Failure::Missing(tool) => Error::Missing { tool },
            Failure::Script { tool, output } => Error::Script { tool, output },
            Failure::Exists { network, name } => Error::Exists { kind: kind(network), name },
            Failure::Unknown { network, name } => Error::Unknown { kind: kind(network), name },
        }
    }
}
