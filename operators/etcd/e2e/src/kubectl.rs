//! kubectl, with a kubeconfig.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// kubectl, with a kubeconfig and a namespace.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    namespace: String,
}

/// How long one call may take, in seconds: a command inside a pod whose process hangs would never end.
const PATIENCE: &str = "25";

impl Kubectl {
    /// The kubectl of the set-up, or of the PATH.
    pub fn new(kubeconfig: &Path, namespace: &str) -> Kubectl {
        let (kubeconfig, namespace) = (kubeconfig.to_owned(), namespace.to_owned());
        Kubectl { program: windlass_testing::up::kubectl(), kubeconfig, namespace }
    }

    /// The same, in another namespace.
    #[must_use]
    pub fn within(&self, namespace: &str) -> Kubectl {
        Kubectl { namespace: namespace.to_owned(), ..self.clone() }
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Runs it; what it printed.
    ///
    /// # Errors
    /// It failed, or took too long.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        self.feed(arguments, "")
    }

    /// Runs it with an input.
    ///
    /// # Errors
    /// It failed, or took too long.
    pub fn feed(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut command = Command::new("timeout");
        command.arg("--kill-after=1").arg(PATIENCE).arg(&self.program);
        self.aim(&mut command).args(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("kubectl cannot be run")?;
        // Dropped at once, so that the input ends. A kubectl that does not read it says below why.
        let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "kubectl {}: {}", arguments.join(" "), said.trim());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A kubectl that goes on, to be read line by line.
    pub(crate) fn follow(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        self.aim(&mut command).args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    fn aim<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("KUBECONFIG", &self.kubeconfig).args(["--namespace", &self.namespace])
    }

    /// Runs it and reads what it printed as JSON.
    ///
    /// # Errors
    /// It failed, or printed something else.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let said = self.run(arguments)?;
        serde_json::from_str(&said).with_context(|| format!("kubectl {}: no JSON", arguments.join(" ")))
    }

    /// `kubectl get … -o json`; `None` where it is not there.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn get(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let said = self.run(&["get", kind, name, "--ignore-not-found", "-o", "json"])?;
        match said.trim() {
            "" => Ok(None),
            text => Ok(Some(serde_json::from_str(text)?)),
        }
    }

    /// The objects of a kind that have these labels.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn list(&self, kind: &str, labels: &str) -> Result<Vec<Value>> {
        let mut list = self.json(&["get", kind, "-l", labels, "-o", "json"])?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => bail!("kubectl get {kind}: no list"),
        }
    }

    /// `kubectl apply`.
    ///
    /// # Errors
    /// The server does not want it.
    pub fn apply(&self, object: &Value) -> Result<()> {
        self.feed(&["apply", "-f", "-"], &object.to_string()).map(|_| ())
    }
}

/// Looks again and again until something is so; how long it took.
///
/// # Errors
/// It is not so within the time; with what was seen last.
pub(crate) fn until<T>(
    what: &str,
    within: Duration,
    mut look: impl FnMut() -> Result<Result<T, String>>,
) -> Result<(T, Duration)> {
    let started = Instant::now();
    loop {
        // A look that fails, because a pod is just gone, is no answer; the last failure is told.
        let seen = look().unwrap_or_else(|error| Err(format!("{error:#}")));
        match seen {
            Ok(found) => return Ok((found, started.elapsed())),
            Err(why) if started.elapsed() > within => bail!("not {what} after {within:?}: {why}"),
            Err(_) => std::thread::sleep(Duration::from_millis(150)),
        }
    }
}

/// The name of an object.
pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The UID of an object.
pub(crate) fn uid_of(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}
