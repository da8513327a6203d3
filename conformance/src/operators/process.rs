//! An operator as a process.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::servers::free_ports;

/// An operator that runs. It ends with this value, also when it is stopped.
pub struct Process {
    child: Child,
    log: PathBuf,
    health: u16,
    metrics: u16,
}

/// How long an answer of the operator's own HTTP may take.
const ANSWER: Duration = Duration::from_secs(5);

impl Process {
    /// Starts a program with a kubeconfig. What it says goes to `log`, after what is there.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        program: &Path,
        kubeconfig: &Path,
        args: &[String],
        env: &[(&str, String)],
        log: &Path,
    ) -> Result<Process> {
        let [health, metrics] = free_ports()?;
        let file = OpenOptions::new().create(true).append(true).open(log)?;
        let child = Command::new(program)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg(format!("--health-probe-bind-address=127.0.0.1:{health}"))
            .arg(format!("--metrics-bind-address=127.0.0.1:{metrics}"))
            .args(args)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        Ok(Process { child, log: log.to_owned(), health, metrics })
    }

    /// Waits until `/readyz` says that all is well.
    ///
    /// # Errors
    /// When it ends instead, or takes too long.
    pub fn ready(&mut self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended()? {
                bail!("the operator ended with {status}; its log ends with{}", self.log_tail());
            }
            let answer = match self.readyz() {
                Ok((200, _)) => return Ok(()),
                Ok((status, text)) => format!("{status} {text}"),
                Err(error) => format!("{error:#}"),
            };
            if Instant::now() > deadline {
                bail!("not ready after {patience:?}: {answer}; its log ends with{}", self.log_tail());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Status and text of `/readyz?verbose`.
    ///
    /// # Errors
    /// When nobody answers.
    pub fn readyz(&self) -> Result<(u16, String)> {
        http_get(self.health, "/readyz?verbose")
    }

    /// The value of a metric: the sum over all its series whose line contains each of `labels`.
    ///
    /// # Errors
    /// When there is none.
    pub fn metric(&self, name: &str, labels: &[&str]) -> Result<f64> {
        let (status, text) = http_get(self.metrics, "/metrics")?;
        let is_it = |line: &&str| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        };
        let values: Vec<f64> =
            text.lines().filter(is_it).filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
        match values.is_empty() {
            true => Err(anyhow!("no {name} with {labels:?} in the metrics ({status}):\n{text}")),
            false => Ok(values.iter().sum()),
        }
    }

    /// Everything it has said.
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// The last lines of it, for an error.
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(25)..].iter().map(|line| format!("\n  | {line}")).collect()
    }

    /// Sends it a signal by its name: `TERM`, `KILL`, `STOP`, `CONT`.
    ///
    /// # Errors
    /// When it has ended already.
    pub fn signal(&mut self, name: &str) -> Result<()> {
        // A process that has ended and was not waited for keeps its number, so nobody else can get the signal.
        if let Some(status) = self.ended()? {
            bail!(
                "the operator ended with {status} before it got {name}; its log ends with{}",
                self.log_tail()
            );
        }
        let sent = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status()?;
        if !sent.success() {
            bail!("kill -{name}: {sent}");
        }
        Ok(())
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it does not come in time.
    pub fn wait(&mut self, patience: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!("the operator has not ended after {patience:?}; its log ends with{}", self.log_tail());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGKILL ends a stopped process as well.
        if self.child.kill().is_ok() {
            let _ = self.child.wait();
        }
    }
}

/// A program that prints something and ends.
///
/// # Errors
/// When it cannot be run, fails, or takes longer than a minute.
pub fn print(program: &Path, args: &[&str], folder: &Path) -> Result<String> {
    let (out, err) = (folder.join("printed.out"), folder.join("printed.err"));
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?)
        .spawn()
        .with_context(|| format!("start {}", program.display()))?;
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            bail!("{} {}: no end after a minute", program.display(), args.join(" "));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let text = fs::read_to_string(&out)?;
    if !status.success() {
        bail!("{} {}: {status}\n{text}{}", program.display(), args.join(" "), fs::read_to_string(&err)?);
    }
    Ok(text)
}

/// Status and body of an answer, over plain HTTP on the loopback interface.
pub(crate) fn http_get(port: u16, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&([127, 0, 0, 1], port).into(), ANSWER)?;
    stream.set_read_timeout(Some(ANSWER))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n").context("an answer without an end of its head")?;
    let status =
        head.split(' ').nth(1).and_then(|code| code.parse().ok()).context("an answer without a status")?;
    Ok((status, body.to_owned()))
}
