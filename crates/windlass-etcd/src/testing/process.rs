//! One member as a process.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::ports::Port;
use super::{Failure, Release};
use crate::{Client, Options};

/// How a member is started for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// As the first of a new cluster.
    Seed,
    /// As one that joins: what `--initial-cluster` has to say beside the member itself.
    Join(Vec<(String, String)>),
}

/// A member as a process. It ends, by SIGKILL, when the value is dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    program: PathBuf,
    args: Vec<String>,
    folder: PathBuf,
    scheme: &'static str,
    client: Port,
    peer: Port,
    child: Option<Child>,
}

impl Process {
    /// A member that is not started yet, with ports of its own, and a folder inside `folder`. Where the arguments have a
    /// `--cert-file`, clients speak TLS.
    ///
    /// # Errors
    /// No port, no folder.
    pub fn new(
        release: &Release,
        folder: &Path,
        name: &str,
        start: &Start,
        args: &[String],
    ) -> Result<Self, Failure> {
        let failed = |source| Failure::Process { step: "prepare the start", name: name.to_owned(), source };
        let tls = args.iter().any(|arg| arg.starts_with("--cert-file"));
        let mut process = Self {
            name: name.to_owned(),
            program: release.program("etcd"),
            args: Vec::new(),
            folder: folder.join(name),
            scheme: if tls { "https" } else { "http" },
            client: Port::take().map_err(failed)?,
            peer: Port::take().map_err(failed)?,
            child: None,
        };
        fs::create_dir_all(&process.folder).map_err(failed)?;
        process.args = process.arguments(start).into_iter().chain(args.iter().cloned()).collect();
        Ok(process)
    }

    fn arguments(&self, start: &Start) -> Vec<String> {
        let (client, peer) = (self.client_url(), self.peer_url());
        let (state, others) = match start {
            Start::Seed => ("new", &[][..]),
            Start::Join(others) => ("existing", &others[..]),
        };
        let cluster: Vec<_> = others.iter().map(|(name, url)| format!("{name}={url}")).collect();
        let cluster = [cluster, vec![format!("{}={peer}", self.name)]].concat().join(",");
        vec![
            format!("--name={}", self.name),
            format!("--data-dir={}", self.data().display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster={cluster}"),
            format!("--initial-cluster-state={state}"),
        ]
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where clients reach it.
    #[must_use]
    pub fn client_url(&self) -> String {
        self.client.url(self.scheme)
    }

    /// Where the other members reach it.
    #[must_use]
    pub fn peer_url(&self) -> String {
        self.peer.url("http")
    }

    /// A client of it.
    ///
    /// # Errors
    /// None: its address is one.
    pub fn client(&self) -> Result<Client, crate::Error> {
        Client::with(&self.client_url(), Options::default())
    }

    /// Its data folder.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// All that it has said.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Starts it, for the first time or again. It is not waited for.
    ///
    /// # Errors
    /// The program does not start.
    pub fn start(&mut self) -> Result<(), Failure> {
        self.attempt("start the program", |this| {
            let log = File::options().create(true).append(true).open(this.folder.join("log"))?;
            let child = Command::new(&this.program)
                .args(&this.args)
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log)
                .spawn()?;
            this.child = Some(child);
            Ok(())
        })
    }

    /// Whether the process is there, be it stopped or not.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn is_running(&mut self) -> Result<bool, Failure> {
        self.attempt("ask for the state", |this| match &mut this.child {
            Some(child) => Ok(child.try_wait()?.is_none()),
            None => Ok(false),
        })
    }

    /// SIGKILL, and waits until it is gone. Its data stays.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn kill(&mut self) -> Result<(), Failure> {
        self.attempt("kill the process", |this| match this.child.take() {
            Some(mut child) => {
                child.kill()?;
                child.wait().map(drop)
            }
            None => Ok(()),
        })
    }

    /// SIGTERM, and waits until it is gone: a leader gives its place away before it goes.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn terminate(&mut self) -> Result<(), Failure> {
        self.signal(Signal::SIGTERM)?;
        self.attempt("wait for the end", |this| match this.child.take() {
            Some(mut child) => child.wait().map(drop),
            None => Ok(()),
        })
    }

    /// SIGSTOP: it is there, its connections are open, and it answers nothing. Waits until all its threads have stopped: on a
    /// busy machine some of them run on for a moment, and answer.
    ///
    /// # Errors
    /// The kernel refuses, or the process ended instead.
    pub fn pause(&mut self) -> Result<(), Failure> {
        self.signal(Signal::SIGSTOP)?;
        self.attempt("wait for the stop", |this| match waitpid(this.id()?, Some(WaitPidFlag::WUNTRACED))? {
            WaitStatus::Stopped(..) => Ok(()),
            ended => {
                this.child = None;
                Err(io::Error::other(format!("it ended: {ended:?}")))
            }
        })
    }

    /// SIGCONT: it goes on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn resume(&mut self) -> Result<(), Failure> {
        self.signal(Signal::SIGCONT)
    }

    /// Removes its data folder.
    ///
    /// # Errors
    /// The folder cannot be removed.
    pub fn wipe(&mut self) -> Result<(), Failure> {
        self.attempt("wipe the data", |this| fs::remove_dir_all(this.data()))
    }

    fn signal(&mut self, signal: Signal) -> Result<(), Failure> {
        self.attempt("signal the process", |this| Ok(kill(this.id()?, signal)?))
    }

    fn id(&self) -> io::Result<Pid> {
        let child = self.child.as_ref().ok_or_else(|| io::Error::other("it is not running"))?;
        Ok(Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?))
    }

    fn attempt<T>(
        &mut self,
        step: &'static str,
        act: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> Result<T, Failure> {
        act(self).map_err(|source| Failure::Process { step, name: self.name.clone(), source })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing is to be done about a process that cannot be killed, and nobody to tell.
        drop(self.kill());
    }
}
