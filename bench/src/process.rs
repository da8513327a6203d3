//! What the kernel says about a process: how much memory it holds, how much time it has used.

use std::fs;
use std::process::Child;

use anyhow::{Context as _, Result};

/// The kernel counts processor time in hundredths of a second on every Linux that we run on.
const TICKS_PER_SECOND: f64 = 100.0;

/// A program that was started here, and that ends with this value.
pub struct Process(Child);

impl Process {
    /// Takes care of a child.
    pub fn new(child: Child) -> Process {
        Process(child)
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it is still running.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing that a benchmark writes is worth an orderly end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Resident memory in bytes.
pub fn resident_bytes(id: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS line")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib << 10)
}

/// Processor time used so far, in seconds, in user and kernel mode.
pub fn cpu_seconds(id: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The second field is the program's name in brackets, which may hold anything.
    let (_, fields) = stat.rsplit_once(')').context("no name")?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut next = || -> Result<f64> { Ok(fields.next().context("too few fields")?.parse()?) };
    Ok((next()? + next()?) / TICKS_PER_SECOND)
}
