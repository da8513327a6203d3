//! What the endpoint asks of whoever runs the containers.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

/// The containers of a node, as the endpoint sees them.
///
/// # Expected flow
/// The endpoint looks a pod up by name, checks the request against its spec and status with kubelet's words, and only
/// then asks for a log, a program or a connection, by the pod's uid: a pod of the same name that came later is
/// another one.
pub trait Containers: Send + Sync + 'static {
    /// The pods of this node, each with its status as the node knows it.
    fn pods(&self) -> Vec<Arc<Pod>>;

    /// One of them.
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>>;

    /// The log of one run of a container; `container_id` is as in its status (`scheme://id`). `None` when that run has
    /// left none, or its log was removed.
    fn log(&self, uid: &str, container_id: &str) -> Option<Log>;

    /// Starts a program in a running container.
    fn exec<'a>(
        &'a self,
        uid: &'a str,
        container: &'a str,
        exec: Exec,
    ) -> BoxFuture<'a, Result<Process, Refused>>;

    /// Connects to the program that is the container. Its output comes from here on; what it wrote before is in its
    /// log. [`Process::stdin`] is there when the container was given one.
    fn attach<'a>(
        &'a self,
        uid: &'a str,
        container: &'a str,
        wants: Attach,
    ) -> BoxFuture<'a, Result<Process, Refused>>;

    /// Connects to a port on the pod's loopback, as a program in the pod would.
    fn dial<'a>(&'a self, uid: &'a str, port: u16) -> BoxFuture<'a, Result<Connection, Refused>>;
}

/// The log of one run of a container, in the format of [`logs`](crate::logs).
pub struct Log {
    /// The file. It exists, and grows until the container ends.
    pub path: PathBuf,
    /// Resolves when nothing will be added any more: the container has ended, and its output is in the file.
    pub ended: BoxFuture<'static, ()>,
}

/// A program to start, and what of it somebody wants to hear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exec {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Whether it is given a standard input.
    pub stdin: bool,
    /// Whether its standard output is listened to.
    pub stdout: bool,
    /// Whether its standard error is listened to; never with a terminal, which has one output.
    pub stderr: bool,
    /// Whether it runs on a terminal.
    pub tty: bool,
}

/// What of a running program somebody wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attach {
    /// To write to its standard input.
    pub stdin: bool,
    /// To hear its standard output.
    pub stdout: bool,
    /// To hear its standard error.
    pub stderr: bool,
}

/// A program that runs, and the ends of its streams. Dropping it ends a program that [`Containers::exec`] started, and
/// lets go of one that was attached to.
pub struct Process {
    /// Its standard input, where it has one. Shutting it down is the end of its input.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// Its standard output, where it was asked for; the terminal's, if it runs on one.
    pub stdout: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Its standard error, where it was asked for.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// Takes the size of the terminal whenever it changes, if it runs on one.
    pub resize: Option<mpsc::Sender<Size>>,
    /// Whether the session is over when the client has said all, while the program goes on: it waits for the next one.
    pub ends_with_input: bool,
    /// Resolves to its exit code: 128 and the number of the signal for one that was killed.
    pub exit: BoxFuture<'static, Result<i32, Refused>>,
}

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Size {
    /// Columns.
    pub width: u16,
    /// Lines.
    pub height: u16,
}

/// A connection into a pod.
pub type Connection = Box<dyn Duplex>;

/// Bytes in both directions.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Why a container does not do what it was asked for.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Refused {
    /// The container does not run, or the pod is gone.
    #[error("container not found ({0:?})")]
    NotRunning(String),
    /// The program could not be started, or its end could not be seen: the text says why.
    #[error("{0}")]
    Failed(String),
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("stdin", &self.stdin.is_some())
            .field("stdout", &self.stdout.is_some())
            .field("stderr", &self.stderr.is_some())
            .field("tty", &self.resize.is_some())
            .finish_non_exhaustive()
    }
}
