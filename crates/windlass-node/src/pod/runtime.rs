//! What pods need of the world below: programs in places of their own, and networks.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use windlass_sandbox::{Exec, Exit, Spec};

use crate::serve::{Connection, Size};

/// Programs in places of their own.
pub trait Runtime: Send + Sync + 'static {
    /// Starts a container. The id is free again once the container has ended.
    fn run<'a>(&'a self, id: &'a str, spec: Spec, io: Io) -> BoxFuture<'a, Result<Program, RunError>>;

    /// Starts a further program in a container that runs.
    fn exec<'a>(&'a self, id: &'a str, exec: Exec, io: Io) -> BoxFuture<'a, Result<Program, RunError>>;

    /// Connects to an address from inside a network.
    fn dial<'a>(&'a self, net: &'a str, to: SocketAddr) -> BoxFuture<'a, io::Result<Connection>>;

    /// Makes a folder memory, as far as containers see it.
    fn mount_memory<'a>(&'a self, path: &'a Path, bytes: Option<u64>) -> BoxFuture<'a, Result<(), String>>;

    /// Takes such memory away.
    fn unmount_memory<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, ()>;
}

/// The network of a node, as pods need it.
pub trait Network: Send + Sync + 'static {
    /// Gives a pod its place in the network, the same one as before if it had one.
    ///
    /// # Errors
    /// A sentence that says why not.
    fn attach<'a>(&'a self, pod: &'a Pod, hostname: &'a str) -> BoxFuture<'a, Result<PodNet, String>>;

    /// Takes it away. A pod that has none is none the worse.
    fn detach<'a>(&'a self, uid: &'a str) -> BoxFuture<'a, ()>;

    /// Frees what pods have left behind that went while nobody looked: all but these.
    fn keep_only(&self, uids: &BTreeSet<String>);

    /// The text of a pod's `/etc/resolv.conf`.
    fn resolv_conf(&self, pod: &Pod) -> String;
}

/// A pod's place in the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodNet {
    /// The network that its programs run in.
    pub name: String,
    /// Its addresses, the first one first.
    pub ips: Vec<String>,
}

/// What a program is given to read and to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Whether it has a standard input that somebody may write to.
    pub stdin: bool,
    /// Whether it runs on a terminal, which is all three.
    pub tty: bool,
}

/// A program that runs, and the ends of its streams.
pub struct Program {
    /// Its standard input, if it was to have one.
    pub stdin: Option<Input>,
    /// Its standard output; the terminal's, if it runs on one.
    pub stdout: Option<Output>,
    /// Its standard error, if it does not run on a terminal.
    pub stderr: Option<Output>,
    /// Takes the size of its terminal.
    pub resize: Option<mpsc::Sender<Size>>,
    /// Resolves to how it ended.
    pub exit: BoxFuture<'static, Exit>,
    /// Sends it a signal. One that has ended does not mind.
    pub signal: Signaller,
}

/// The end of a stream that is written to.
pub type Input = Box<dyn AsyncWrite + Send + Unpin>;
/// The end of a stream that is read from.
pub type Output = Box<dyn AsyncRead + Send + Unpin>;
/// Sends a program a signal.
pub type Signaller = Arc<dyn Fn(i32) -> BoxFuture<'static, ()> + Send + Sync>;

/// Why a program does not run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// It is not there, or is not one.
    #[error("{0}")]
    Program(String),
    /// Its place could not be made.
    #[error("{0}")]
    Place(String),
}
