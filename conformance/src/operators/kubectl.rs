//! kubectl, as a user of a server runs it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::servers;

/// No command takes longer; those that wait have limits of their own.
const PATIENCE: Duration = Duration::from_secs(90);

/// kubectl 1.36 against one server, as its administrator, in one namespace.
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
    /// Where it keeps what it has discovered, and what it prints goes.
    folder: PathBuf,
    count: AtomicU64,
}

/// What a command printed.
#[derive(Debug)]
pub struct Printed {
    /// How it ended.
    pub status: ExitStatus,
    /// Its output.
    pub out: String,
    /// Its errors and warnings.
    pub err: String,
}

impl Kubectl {
    /// The program that `tools/setup kubectl` brings.
    ///
    /// # Errors
    /// When it is missing, or the folder cannot be made.
    pub fn new(kubeconfig: &Path, namespace: &str, folder: &Path) -> Result<Kubectl> {
        fs::create_dir_all(folder)?;
        Ok(Kubectl {
            program: servers::program("kube/kubectl")?,
            kubeconfig: kubeconfig.to_owned(),
            namespace: namespace.to_owned(),
            folder: folder.to_owned(),
            count: AtomicU64::new(0),
        })
    }

    /// Runs a command, whatever comes of it. `input` is what it reads with `-f -`.
    ///
    /// # Errors
    /// When it cannot be run, or does not end.
    pub fn try_run(&self, args: &[&str], input: &str) -> Result<Printed> {
        self.anywhere(&self.here(args), input)
    }

    /// The same, in the namespaces that the manifests say.
    ///
    /// # Errors
    /// When it cannot be run, or does not end.
    pub fn anywhere(&self, args: &[&str], input: &str) -> Result<Printed> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let file = |what: &str| self.folder.join(format!("kubectl-{number}.{what}"));
        fs::write(file("in"), input)?;
        let mut child = self
            .command(args)
            .stdin(File::open(file("in"))?)
            .stdout(Stdio::from(File::create(file("out"))?))
            .stderr(Stdio::from(File::create(file("err"))?))
            .spawn()
            .with_context(|| self.program.display().to_string())?;
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if Instant::now() > deadline {
                child.kill()?;
                child.wait()?;
                bail!("kubectl {}: no end after {PATIENCE:?}", args.join(" "));
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let text = |what| fs::read(file(what)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let printed = Printed { status, out: text("out")?, err: text("err")? };
        for what in ["in", "out", "err"] {
            fs::remove_file(file(what))?;
        }
        Ok(printed)
    }

    /// Starts a command, for as long as the caller wants. What it prints can be read.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&self, args: &[&str]) -> Result<Child> {
        let child = self.command(&self.here(args)).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        child.with_context(|| self.program.display().to_string())
    }

    /// The namespace comes first: what comes last may be the command of a container.
    fn here<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [&["--namespace", &self.namespace], args].concat()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(args).env("KUBECONFIG", &self.kubeconfig).env("HOME", &self.folder);
        command
    }

    /// Runs a command that has to succeed; returns its output.
    ///
    /// # Errors
    /// When it does not, with what it said.
    pub fn run(&self, args: &[&str]) -> Result<String> {
        self.run_with(args, "")
    }

    /// The same, for a command that reads its input.
    ///
    /// # Errors
    /// When it does not succeed, with what it said.
    pub fn run_with(&self, args: &[&str], input: &str) -> Result<String> {
        let printed = self.try_run(args, input)?;
        if !printed.status.success() {
            bail!("kubectl {}: {}{}", args.join(" "), printed.out, printed.err);
        }
        Ok(printed.out)
    }

    /// Runs a command that has to fail; returns what it complains of.
    ///
    /// # Errors
    /// When it succeeds.
    pub fn fail(&self, args: &[&str], input: &str) -> Result<String> {
        let printed = self.try_run(args, input)?;
        if printed.status.success() {
            bail!("kubectl {} succeeded: {}", args.join(" "), printed.out);
        }
        Ok(printed.err)
    }

    /// Creates or changes objects from their manifests, as `kubectl apply` does by default.
    ///
    /// # Errors
    /// When one is not accepted.
    pub fn apply(&self, manifests: &str) -> Result<()> {
        self.run_with(&["apply", "-f", "-"], manifests).map(drop)
    }

    /// An object as it is; `None` when it is not there.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub fn get(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let args = ["get", kind, name, "-o", "json", "--ignore-not-found", "--show-managed-fields"];
        let out = self.run(&args)?;
        if out.is_empty() {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&out).with_context(|| out.clone())?))
    }

    /// All objects of a kind in the namespace.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub fn list(&self, kind: &str) -> Result<Vec<Value>> {
        let out = self.run(&["get", kind, "-o", "json"])?;
        let mut list: Value = serde_json::from_str(&out).with_context(|| out.clone())?;
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }
}
