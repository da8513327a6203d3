//! Where and of what the figures were taken.

use std::fs;
use std::process::Command;

/// Facts about the machine and the tree, one a line.
pub fn facts() -> Vec<(&'static str, String)> {
    let cpu = first_after("/proc/cpuinfo", "model name");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = first_after("/proc/meminfo", "MemTotal");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    vec![
        ("date", jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string()),
        ("commit", said_by("git", &["describe", "--always", "--dirty"])),
        ("processor", format!("{cpu}, {cores} cores")),
        ("memory", memory),
        ("kernel", kernel.trim().to_owned()),
        ("load average at the start", load.split(' ').take(3).collect::<Vec<_>>().join(" ")),
        ("compiler", said_by("rustc", &["--version"])),
    ]
}

/// What a program says in its first line.
pub fn said_by(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

fn first_after(file: &str, key: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.map_or_else(|| "unknown".to_owned(), |rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
}
