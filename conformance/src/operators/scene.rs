//! Where a check takes place: a namespace on a server, users of its own, and the operator's program.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use jiff::Timestamp;

use super::calls::{Call, lines};
use super::kubectl::Kubectl;
use super::process::{self, Process};
use super::server::Server;

/// How long what a check is about may take.
#[derive(Clone, Debug)]
pub struct Times {
    /// How long an operator has to be at rest.
    pub rest: Duration,
    /// How long a watch is refused.
    pub refusal: Duration,
    /// The lease of the leader.
    pub lease: Lease,
}

/// The times of a leader's lease.
#[derive(Clone, Debug)]
pub struct Lease {
    /// How long others wait for a leader that is not heard of.
    pub duration: Duration,
    /// How long a leader tries to renew.
    pub deadline: Duration,
    /// How long anybody waits between two tries.
    pub retry: Duration,
}

impl Times {
    /// Those that users have, and a minute of rest.
    pub fn of_users() -> Times {
        let seconds = Duration::from_secs;
        let lease = Lease { duration: seconds(15), deadline: seconds(10), retry: seconds(2) };
        Times { rest: seconds(60), refusal: seconds(20), lease }
    }

    /// Short ones, for `make test`.
    pub fn short() -> Times {
        let millis = Duration::from_millis;
        let lease = Lease { duration: millis(4000), deadline: millis(3000), retry: millis(500) };
        Times { rest: millis(10_000), refusal: millis(8000), lease }
    }
}

/// What should be so within this time, when the machine is busy with other things.
pub const SOON: Duration = Duration::from_secs(30);

/// Where a check takes place.
pub struct Scene<'a> {
    /// The server.
    pub server: &'a dyn Server,
    /// kubectl as the administrator, in the check's own namespace.
    pub kubectl: Kubectl,
    /// The namespace.
    pub namespace: String,
    /// How long things may take.
    pub times: &'a Times,
    program: &'a Path,
    folder: PathBuf,
    name: &'static str,
}

impl<'a> Scene<'a> {
    /// Sets the scene for a check: makes its namespace.
    ///
    /// # Errors
    /// When the namespace cannot be made.
    pub fn new(
        name: &'static str,
        server: &'a dyn Server,
        program: &'a Path,
        times: &'a Times,
        folder: &Path,
    ) -> Result<Scene<'a>> {
        let folder = folder.join(name);
        let _ = std::fs::remove_dir_all(&folder);
        let kubectl = Kubectl::new(&server.admin(), name, &folder)?;
        kubectl.run(&["create", "namespace", name])?;
        Ok(Scene { server, kubectl, namespace: name.to_owned(), times, program, folder, name })
    }

    /// The same in another namespace, which is there.
    ///
    /// # Errors
    /// When its folder cannot be made.
    pub fn within(&self, namespace: &str) -> Result<Scene<'a>> {
        let folder = self.folder.join(namespace);
        let kubectl = Kubectl::new(&self.server.admin(), namespace, &folder)?;
        let Scene { server, times, program, name, .. } = *self;
        Ok(Scene { server, kubectl, namespace: namespace.to_owned(), times, program, folder, name })
    }

    /// The users that [`operator`](Scene::operator) may be called with in a check.
    pub fn users(check: &str) -> Vec<String> {
        ["a", "b"].map(|letter| format!("{check}-{letter}")).into()
    }

    /// One of the check's own users.
    pub fn user(&self, letter: &str) -> String {
        format!("{}-{letter}", self.name)
    }

    /// An operator to be started as a user, in the check's namespace only.
    pub fn operator(&self, user: &str) -> Launch<'_> {
        let args = vec!["--install-crds".to_owned(), format!("--watch-namespaces={}", self.namespace)];
        Launch { scene: self, user: user.to_owned(), args, env: Vec::new() }
    }

    /// What the operator's program prints when it is called with these arguments.
    ///
    /// # Errors
    /// When it fails.
    pub fn print(&self, args: &[&str]) -> Result<String> {
        process::print(self.program, args, &self.folder)
    }

    /// A file of the check.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn file(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        std::fs::write(&path, content)?;
        Ok(path)
    }

    /// What a user asked since then.
    ///
    /// # Errors
    /// When the server does not tell.
    pub fn calls(&self, user: &str, since: Timestamp) -> Result<Vec<Call>> {
        let mut calls = self.server.calls(since)?;
        calls.retain(|call| call.user == user);
        Ok(calls)
    }

    /// Tries until it is so.
    ///
    /// # Errors
    /// When it is not so in time, with what was seen last; at once when trying fails.
    pub fn until<T>(
        &self,
        what: &str,
        patience: Duration,
        mut look: impl FnMut() -> Result<Result<T, String>>,
    ) -> Result<T> {
        let started = Instant::now();
        loop {
            let seen = match look()? {
                Ok(value) => return Ok(value),
                Err(seen) => seen,
            };
            if started.elapsed() > patience {
                bail!("not within {patience:?}: {what}; last seen: {seen}");
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits until a user has asked for no change but of its lease for a while.
    ///
    /// # Errors
    /// When it goes on.
    pub fn quiet(&self, user: &str, period: Duration) -> Result<()> {
        self.until(&format!("{user} comes to rest"), SOON, || {
            let mut calls = self.calls(user, Timestamp::now() - period)?;
            calls.retain(|call| call.is_write() && !call.is_lease());
            Ok(if calls.is_empty() { Ok(()) } else { Err(lines(&calls)) })
        })
    }
}

/// An operator that is about to be started.
pub struct Launch<'a> {
    scene: &'a Scene<'a>,
    user: String,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
}

impl Launch<'_> {
    /// In all namespaces.
    #[must_use]
    pub fn everywhere(mut self) -> Self {
        self.args.retain(|arg| !arg.starts_with("--watch-namespaces"));
        self
    }

    /// As one of several replicas, with the lease in the check's namespace.
    #[must_use]
    pub fn elected(self) -> Self {
        let Lease { duration, deadline, retry } = &self.scene.times.lease;
        let namespace = self.scene.namespace.clone();
        self.arg("--leader-elect")
            .arg(&format!("--leader-election-namespace={namespace}"))
            .arg(&format!("--leader-elect-lease-duration={}ms", duration.as_millis()))
            .arg(&format!("--leader-elect-renew-deadline={}ms", deadline.as_millis()))
            .arg(&format!("--leader-elect-retry-period={}ms", retry.as_millis()))
    }

    /// With these arguments and no others.
    #[must_use]
    pub fn only(mut self, args: Vec<String>) -> Self {
        self.args = args;
        self
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    /// With a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &'static str, value: &str) -> Self {
        self.env.push((name, value.to_owned()));
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(self) -> Result<Process> {
        let kubeconfig = self.scene.server.user(&self.user)?;
        let log = self.scene.folder.join(format!("{}.log", self.user.replace(':', "-")));
        Process::start(self.scene.program, &kubeconfig, &self.args, &self.env, &log)
    }

    /// Starts it and waits until it is ready.
    ///
    /// # Errors
    /// When it does not become so.
    pub fn start(self) -> Result<Process> {
        let user = self.user.clone();
        let mut process = self.spawn()?;
        process.ready(SOON).map_err(|error| anyhow!("{user}: {error:#}"))?;
        Ok(process)
    }
}
