//! Of the process: what dashboards show beside the controllers. Read from the kernel when somebody asks, on Linux.

use std::fmt;
use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

#[derive(Debug)]
pub(super) struct Process;

/// The kernel's `USER_HZ`: a constant of the interface between kernel and programs on every architecture that we run on.
const TICKS_PER_SECOND: f64 = 100.0;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name of the program is in parentheses, and may hold anything. Field 3 of proc(5) follows it.
        let fields: Vec<f64> = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split(' ')
            .skip(1)
            .map(|field| field.parse().unwrap_or(0.0))
            .collect();
        let field = |number: usize| fields.get(number - 3).copied();
        if let (Some(user), Some(system)) = (field(14), field(15)) {
            let seconds = ConstCounter::new((user + system) / TICKS_PER_SECOND);
            let help = "Processor time of this process in seconds.";
            let name = "process_cpu_seconds";
            seconds.encode(encoder.encode_descriptor(name, help, None, seconds.metric_type())?)?;
        }
        let started = field(22).zip(boot_time()).map(|(ticks, boot)| boot + ticks / TICKS_PER_SECOND);
        let gauges = [
            ("process_resident_memory_bytes", "Memory that this process has in use.", status("VmRSS:")),
            ("process_virtual_memory_bytes", "Addresses that this process has reserved.", status("VmSize:")),
            ("process_open_fds", "Files and sockets that are open.", open_files()),
            ("process_max_fds", "Files and sockets that may be open.", file_limit()),
            (
                "process_start_time_seconds",
                "When this process started, in seconds of the Unix epoch.",
                started,
            ),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                let gauge = ConstGauge::new(value);
                gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
            }
        }
        Ok(())
    }
}

/// A line of the status file, which the kernel writes in kilobytes.
fn status(name: &str) -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
}

fn open_files() -> Option<f64> {
    // The folder itself is open while it is read.
    Some((fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1)) as f64)
}

fn file_limit() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

fn boot_time() -> Option<f64> {
    fs::read_to_string("/proc/stat").ok()?.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()
}
