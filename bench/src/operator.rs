//! The walk-through operator as a process of its own.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::{Process, cpu_seconds, resident_bytes};

/// How long it may be silent or busy at most.
const PATIENCE: Duration = Duration::from_secs(300);

/// An operator at work. It ends with this value, as by a crash.
pub struct Operator {
    process: Process,
    started: Instant,
    log: PathBuf,
    probes: SocketAddr,
    metrics: SocketAddr,
}

impl Operator {
    /// Starts the program; its definitions are installed first, if they are not there.
    pub fn start(program: &Path, kubeconfig: &Path, log: &Path, arguments: &[&str]) -> Result<Operator> {
        let (probes, metrics) = (free_address()?, free_address()?);
        let mut command = Command::new(program);
        command
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["--health-probe-bind-address", &probes.to_string()])
            .args(["--metrics-bind-address", &metrics.to_string()])
            .args(arguments)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(log)?);
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("{} does not start", program.display()))?;
        Ok(Operator { process: Process::new(child), started, log: log.to_owned(), probes, metrics })
    }

    /// Waits until its caches are complete.
    pub fn wait_ready(&mut self) -> Result<()> {
        self.wait("ready", |operator| Ok(get(operator.probes, "/readyz")?.0 == 200))
    }

    /// Waits until so many passes have found nothing left to do: how long that took from its start.
    pub fn wait_settled(&mut self, passes: u64) -> Result<Duration> {
        self.wait(&format!("through with {passes} objects"), |operator| Ok(operator.settled()? >= passes))?;
        Ok(self.started.elapsed())
    }

    fn wait(&mut self, what: &str, holds: impl Fn(&Operator) -> Result<bool>) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self).unwrap_or_default() {
            let alive = self.process.is_alive();
            ensure!(alive, "the operator ended; its log is {}", self.log.display());
            ensure!(Instant::now() < deadline, "the operator is not {what} after {PATIENCE:?}");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Passes that found nothing left to do.
    pub fn settled(&self) -> Result<u64> {
        self.passes_by(|result| result == "success")
    }

    /// All passes.
    pub fn passes(&self) -> Result<u64> {
        self.passes_by(|_| true)
    }

    /// Passes, by how they ended.
    fn passes_by(&self, counts: impl Fn(&str) -> bool) -> Result<u64> {
        let (status, metrics) = get(self.metrics, "/metrics")?;
        ensure!(status == 200, "/metrics: {status}");
        let mut passes = 0;
        for line in metrics.lines().filter(|line| line.starts_with("controller_runtime_reconcile_total{")) {
            let (labels, count) = line.rsplit_once(' ').context("a metric without a value")?;
            let result = labels.split_once("result=\"").and_then(|(_, rest)| rest.split_once('"'));
            if counts(result.context("a metric without its result")?.0) {
                passes += count.parse::<u64>()?;
            }
        }
        Ok(passes)
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> Result<u64> {
        resident_bytes(self.process.id())
    }

    /// Processor time in seconds.
    pub fn cpu_seconds(&self) -> Result<f64> {
        cpu_seconds(self.process.id())
    }

    /// What it has logged so far.
    pub fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(&self.log)?)
    }
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?)
}

/// Asks over plain HTTP, on a connection of its own: the status and the body.
fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.0\r\nhost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { bail!("not an answer: {answer}") };
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    Ok((status, body.to_owned()))
}
