//! A real kube-apiserver with etcd and a kube-controller-manager.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;

use super::calls::Call;
use super::kubectl::Kubectl;
use super::server::{self, Server};
use crate::servers::{self, Extra};

/// A real cluster without nodes, on loopback.
pub struct Real {
    folder: PathBuf,
    server: servers::Server,
    users: Vec<String>,
    kubectl: Kubectl,
    audit: Mutex<Audit>,
}

impl Real {
    /// Starts it, with these users and their groups. It takes about ten seconds.
    ///
    /// # Errors
    /// When a program is missing, or does not come up.
    pub fn start(folder: &Path, users: Vec<(String, &'static str)>) -> Result<Real> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        let names = users.iter().map(|(name, _)| name.clone()).collect();
        let audit = Some(folder.join("audit.log"));
        let extra = Extra { users, audit, controllers: true, beside_nodes: None };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let server = runtime.block_on(servers::reference_with(folder, &extra))?;
        let kubectl = Kubectl::new(&server.kubeconfig, "default", &folder.join("home"))?;
        server::grant(&kubectl)?;
        let file = File::open(folder.join("audit.log")).context("the audit log")?;
        let audit = Mutex::new(Audit { file, rest: Vec::new(), calls: Vec::new() });
        Ok(Real { folder: folder.to_owned(), server, users: names, kubectl, audit })
    }
}

/// The audit log, as far as it has been read.
struct Audit {
    file: File,
    /// A line that was on its way.
    rest: Vec<u8>,
    calls: Vec<Call>,
}

impl Audit {
    fn read_on(&mut self) -> Result<()> {
        self.file.read_to_end(&mut self.rest).context("the audit log")?;
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let new = self.rest.split_off(end + 1);
        let whole = std::mem::replace(&mut self.rest, new);
        for line in std::str::from_utf8(&whole)?.lines() {
            self.calls.extend(Call::of_audit(line)?);
        }
        Ok(())
    }
}

impl Server for Real {
    fn name(&self) -> &'static str {
        "real"
    }

    fn admin(&self) -> PathBuf {
        self.server.kubeconfig.clone()
    }

    fn user(&self, name: &str) -> Result<PathBuf> {
        if !self.users.iter().any(|user| user == name) {
            bail!("the real server was started without a user {name}");
        }
        let path = self.folder.join(format!("{}.kubeconfig", name.replace(':', "-")));
        let url = format!("https://{}", self.server.https.address());
        fs::write(&path, servers::kubeconfig_text(&url, name))?;
        Ok(path)
    }

    fn calls(&self, since: Timestamp) -> Result<Vec<Call>> {
        let mut audit = self.audit.lock().unwrap_or_else(PoisonError::into_inner);
        audit.read_on()?;
        let mut calls: Vec<Call> = audit.calls.iter().filter(|call| call.time >= since).cloned().collect();
        calls.sort_by_key(|call| call.time);
        Ok(calls)
    }

    fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }
}
