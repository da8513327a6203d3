//! The server as a process that can be killed.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::client::Address;

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// `windlass apiserver`.
    Server,
    /// `windlass up` with one node and pods on it.
    Cluster,
}

impl Target {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Target::Server => &["apiserver"],
            Target::Cluster => &["up", "--nodes", "1"],
        }
    }
}

/// A server with a data folder, killed at the latest when it is dropped.
pub struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts the program, and does not wait for it. What it logs replaces what the last one logged.
    pub fn start(target: Target, program: &Path, data: &Path) -> Result<Server> {
        let log = data.with_extension("log");
        let child = Command::new(program)
            .args(target.arguments())
            .args(["--port", "0", "--log", "info", "--data-dir"])
            .arg(data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).with_context(|| format!("cannot write {}", log.display()))?)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Server { child, log })
    }

    /// Waits until it says where it listens.
    pub fn ready(&mut self, data: &Path) -> Result<Address> {
        let out = self.child.stdout.take().context("asked twice")?;
        for line in BufReader::new(out).lines() {
            let line = line.context("cannot read what the server says")?;
            if let Some((_, rest)) = line.split_once(" at https://") {
                let authority = rest.split(' ').next().unwrap_or_default();
                let path = data.join("kubeconfig");
                let kubeconfig = std::fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                return Address::new(authority, &kubeconfig);
            }
        }
        let status = self.child.wait()?;
        bail!(
            "the server did not start ({status}):\n{}",
            std::fs::read_to_string(&self.log).unwrap_or_default()
        );
    }

    /// Whether it said that it cut the tail of an unfinished write when it started.
    pub fn cut_a_tail(&self) -> bool {
        std::fs::read_to_string(&self.log).is_ok_and(|log| log.contains("of an unfinished write cut from"))
    }

    /// Asks it to end, as Ctrl-C does, and waits for it.
    pub fn end(mut self) -> Result<()> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().context("cannot run kill")?;
        anyhow::ensure!(sent.success(), "cannot send a signal to {id}");
        let status = self.child.wait().context("cannot wait for the server")?;
        anyhow::ensure!(status.success(), "it ended with {status} when it was asked to");
        Ok(())
    }

    /// `kill -9`.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill().context("cannot kill the server")?;
        self.child.wait().context("cannot wait for the server")?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been killed already, and there is nobody to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
