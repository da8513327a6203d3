//! What this machine has.

use std::path::Path;

/// What a node says of the machine that it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// How many cores.
    pub cores: usize,
    /// How much memory, in KiB.
    pub memory_kib: u64,
    /// How large the file system of its data folder is, in KiB.
    pub storage_kib: u64,
    /// The name of its operating system.
    pub os: String,
    /// The version of its kernel.
    pub kernel: String,
    /// Which machine.
    pub machine_id: String,
    /// Which start of it.
    pub boot_id: String,
    /// Its processor, as Go names it.
    pub architecture: &'static str,
}

impl Machine {
    /// This one. What cannot be found out is left empty.
    pub fn this(data: &Path) -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let line = |path: &str| read(path).trim().to_owned();
        Machine {
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            memory_kib: memory(&read("/proc/meminfo")),
            storage_kib: storage(data),
            os: os(&read("/etc/os-release")),
            kernel: line("/proc/sys/kernel/osrelease"),
            machine_id: line("/etc/machine-id"),
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            architecture: match std::env::consts::ARCH {
                "x86_64" => "amd64",
                "aarch64" => "arm64",
                other => other,
            },
        }
    }
}

/// `MemTotal:       16322648 kB`
fn memory(meminfo: &str) -> u64 {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    total.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}

/// `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"`
fn os(release: &str) -> String {
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("Linux").trim_matches('"').to_owned()
}

fn storage(folder: &Path) -> u64 {
    let Ok(stat) = nix::sys::statvfs::statvfs(folder) else { return 0 };
    // The widths of these differ between systems.
    #[allow(clippy::useless_conversion)]
    let (blocks, size) = (u64::from(stat.blocks()), u64::from(stat.fragment_size()));
    blocks.saturating_mul(size) / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_read() {
        assert_eq!(memory("MemTotal:       16322648 kB\nMemFree: 1 kB\n"), 16322648);
        assert_eq!(
            os("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)"
        );
        let this = Machine::this(Path::new("/"));
        assert!(
            this.cores > 0 && this.memory_kib > 0 && this.storage_kib > 0 && !this.kernel.is_empty(),
            "{this:?}"
        );
    }
}
