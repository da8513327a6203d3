//! What a person on the host of the nodes sees and does: processes.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;

/// A process of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(i32);

/// What a process has used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Time on a processor, of all its threads.
    pub time: Duration,
    /// Memory of its own, in KiB.
    pub memory_kib: u64,
}

impl Process {
    /// The process of a program whose arguments have all of these in them, if there is one.
    pub fn with_arguments(program: &str, wanted: &[&str]) -> Option<Process> {
        all().find(|process| {
            let arguments = process.words("cmdline");
            let has = |text: &&str| arguments.iter().any(|argument| argument.contains(*text));
            process.is_of(program) && wanted.iter().all(has)
        })
    }

    /// The process of a program in a pod. Kubernetes tells every container the name of its pod as `HOSTNAME`.
    pub fn of_pod(program: &str, pod: &str) -> Option<Process> {
        let hostname = format!("HOSTNAME={pod}");
        all().find(|process| process.is_of(program) && process.words("environ").contains(&hostname))
    }

    /// Its ID.
    pub fn id(self) -> i32 {
        self.0
    }

    /// Whether it has not ended.
    pub fn is_alive(self) -> bool {
        !self.words("cmdline").is_empty()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// It has ended, or is somebody else's.
    pub fn signal(self, signal: Signal) -> Result<()> {
        signal::kill(Pid::from_raw(self.0), signal).with_context(|| format!("{signal} to process {}", self.0))
    }

    /// What it has used so far.
    ///
    /// # Errors
    /// It has ended.
    pub fn usage(self) -> Result<Usage> {
        let text = std::fs::read_to_string(self.path("schedstat"))?;
        ensure!(!text.trim().is_empty(), "this kernel does not count the time of processes");
        // One file for each thread: the first number is nanoseconds on a processor.
        let mut nanoseconds = 0;
        for thread in std::fs::read_dir(self.path("task"))?.flatten() {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            nanoseconds += text.split(' ').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
        }
        let status = std::fs::read_to_string(self.path("status"))?;
        let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let memory_kib = own.and_then(|line| line.split_whitespace().next()?.parse().ok());
        Ok(Usage {
            time: Duration::from_nanos(nanoseconds),
            memory_kib: memory_kib.context("a process has memory")?,
        })
    }

    fn is_of(self, program: &str) -> bool {
        self.words("cmdline").first().is_some_and(|path| path.rsplit('/').next() == Some(program))
    }

    /// What a file of `/proc` has, each part of which ends with a zero; nothing, where the process has ended.
    fn words(self, file: &str) -> Vec<String> {
        let bytes = std::fs::read(self.path(file)).unwrap_or_default();
        let parts = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
    }

    fn path(self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.0))
    }
}

fn all() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Process))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_is_found_by_what_it_was_started_with() {
        let mut child =
            Command::new("sleep").arg("61.25").env("HOSTNAME", "pod-of-this-test").spawn().unwrap();
        let found = || Process::of_pod("sleep", "pod-of-this-test");
        let started = std::time::Instant::now();
        while found().is_none() && started.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let process = found().unwrap();
        assert_eq!(process.id(), i32::try_from(child.id()).unwrap());
        assert_eq!(Process::with_arguments("sleep", &["61.25"]), Some(process));
        assert_eq!(Process::of_pod("sleep", "another-pod"), None);
        assert!(process.is_alive() && process.usage().unwrap().memory_kib > 0);
        process.signal(Signal::SIGKILL).unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(!process.is_alive());
    }
}
