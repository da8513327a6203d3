//! Limits of containers, by cgroups of either version, where this machine lets us write them.
//!
//! A container without limits has no group of its own. The folders of a sandbox are below one that is
//! named after its outer stage, which takes it away when all is over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::spec::Limits;

/// Where the groups of this sandbox are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cgroups {
    /// One tree of folders per controller.
    V1 {
        memory: Option<PathBuf>,
        cpu: Option<PathBuf>,
        pids: Option<PathBuf>,
    },
    /// One tree for all controllers.
    V2(PathBuf),
    Absent,
}

/// The group of one container.
#[derive(Debug)]
pub(super) struct Group {
    folders: Vec<PathBuf>,
}

impl Cgroups {
    /// Finds where this process could keep groups under a name.
    pub(super) fn find(name: &str) -> Cgroups {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let unified = |mount: &Path| fs::read_to_string(mount.join("cgroup.controllers")).unwrap_or_default();
        choose(name, &mounts, &own, unified)
    }

    /// Makes the folder of the sandbox; whether limits can be kept in it.
    pub(super) fn open(&self) -> bool {
        match self {
            Cgroups::Absent => false,
            Cgroups::V1 { memory, cpu, pids } => {
                [memory, cpu, pids].into_iter().flatten().all(|base| fs::create_dir_all(base).is_ok())
            }
            Cgroups::V2(base) => {
                let all = "+memory +cpu +pids";
                // Mostly done already by whoever manages the machine; what counts is what comes of it.
                let _ = base.parent().map(|root| fs::write(root.join("cgroup.subtree_control"), all));
                fs::create_dir_all(base).is_ok()
                    && fs::write(base.join("cgroup.subtree_control"), all).is_ok()
            }
        }
    }

    /// Makes the group of a container.
    pub(super) fn add(&self, serial: u64, limits: &Limits) -> io::Result<Option<Group>> {
        if limits.is_empty() || *self == Cgroups::Absent {
            return Ok(None);
        }
        let mut group = Group { folders: Vec::new() };
        for (folder, files) in self.settings(serial, limits) {
            fs::create_dir_all(&folder)?;
            group.folders.push(folder.clone());
            for (file, value) in files {
                fs::write(folder.join(file), value)?;
            }
        }
        Ok(Some(group))
    }

    /// What is written where.
    fn settings(&self, serial: u64, limits: &Limits) -> Vec<(PathBuf, Vec<(&'static str, String)>)> {
        const PERIOD: u64 = 100_000;
        let quota = limits.cpu_millis.map(|millis| (millis * PERIOD / 1000).max(1000));
        let shares = limits.cpu_request_millis.map(|millis| (millis * 1024 / 1000).clamp(2, 262_144));
        let below = |base: &PathBuf| base.join(serial.to_string());
        match self {
            Cgroups::Absent => Vec::new(),
            Cgroups::V1 { memory, cpu, pids } => {
                let mut all = Vec::new();
                if let (Some(base), Some(bytes)) = (memory, limits.memory) {
                    all.push((below(base), vec![("memory.limit_in_bytes", bytes.to_string())]));
                }
                let mut files = Vec::new();
                files.extend(quota.map(|quota| ("cpu.cfs_quota_us", quota.to_string())));
                files.extend(shares.map(|shares| ("cpu.shares", shares.to_string())));
                if let Some(base) = cpu.as_ref().filter(|_| !files.is_empty()) {
                    all.push((below(base), files));
                }
                if let (Some(base), Some(count)) = (pids, limits.pids) {
                    all.push((below(base), vec![("pids.max", count.to_string())]));
                }
                all
            }
            Cgroups::V2(base) => {
                let mut files = Vec::new();
                if let Some(bytes) = limits.memory {
                    // Like kubelet: the container ends as a whole, not one process of it.
                    files.extend([("memory.max", bytes.to_string()), ("memory.oom.group", "1".to_owned())]);
                }
                files.extend(quota.map(|quota| ("cpu.max", format!("{quota} {PERIOD}"))));
                files.extend(
                    shares.map(|shares| ("cpu.weight", (1 + (shares - 2) * 9999 / 262_142).to_string())),
                );
                files.extend(limits.pids.map(|count| ("pids.max", count.to_string())));
                vec![(below(base), files)]
            }
        }
    }

    /// Takes everything away, when the last process has ended.
    pub(super) fn remove(&self) {
        let bases: Vec<&PathBuf> = match self {
            Cgroups::V1 { memory, cpu, pids } => [memory, cpu, pids].into_iter().flatten().collect(),
            Cgroups::V2(base) => vec![base],
            Cgroups::Absent => Vec::new(),
        };
        for base in bases {
            for entry in
                fs::read_dir(base).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir())
            {
                remove(&entry.path());
            }
            remove(base);
        }
    }
}

impl Group {
    /// Takes a process in; what it starts from then on is in it too.
    pub(super) fn join(&self, pid: i32) -> io::Result<()> {
        self.folders.iter().try_for_each(|folder| fs::write(folder.join("cgroup.procs"), pid.to_string()))
    }

    /// Whether the kernel killed a process of it for want of memory.
    pub(super) fn oom(&self) -> bool {
        self.folders.iter().any(|folder| {
            ["memory.events", "memory.oom_control"].iter().any(|file| {
                let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
                let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
                count.is_some_and(|count| count.trim() != "0")
            })
        })
    }

    /// Takes it away with what is left in it: where processes are shared with another container, they do not end with the
    /// first one.
    pub(super) fn remove(self) {
        for folder in &self.folders {
            let left = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            for pid in left.lines().filter_map(|line| line.parse().ok()) {
                // It may end by itself meanwhile.
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        for folder in &self.folders {
            // A process that was killed with the container may take a moment more. The outer stage
            // removes what is left.
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Removes a group whose processes are ending.
fn remove(folder: &Path) {
    for _ in 0..50 {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            _ => return,
        }
    }
}

/// Chooses by the tables of the kernel: version 2 when it has the memory controller, else version 1.
fn choose(name: &str, mounts: &str, own: &str, unified: impl Fn(&Path) -> String) -> Cgroups {
    let folder = format!("windlass-{name}");
    let mut chosen = Cgroups::Absent;
    for line in mounts.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let (Some(root), Some(at), Some(kind), Some(options)) =
            (left.get(3), left.get(4), right.first(), right.get(2))
        else {
            continue;
        };
        match *kind {
            // Groups of version 2 can only be below one that has no processes: the root.
            "cgroup2"
                if unified(Path::new(at)).split_whitespace().any(|controller| controller == "memory") =>
            {
                return Cgroups::V2(Path::new(at).join(folder));
            }
            "cgroup" => {
                for controller in options.split(',') {
                    let place = || Some(Path::new(at).join(place_in(own, controller, root)).join(&folder));
                    let (memory, cpu, pids) = match &mut chosen {
                        Cgroups::V1 { memory, cpu, pids } => (memory, cpu, pids),
                        other => {
                            *other = Cgroups::V1 { memory: None, cpu: None, pids: None };
                            match other {
                                Cgroups::V1 { memory, cpu, pids } => (memory, cpu, pids),
                                _ => continue,
                            }
                        }
                    };
                    match controller {
                        "memory" => *memory = memory.take().or_else(place),
                        "cpu" => *cpu = cpu.take().or_else(place),
                        "pids" => *pids = pids.take().or_else(place),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    chosen
}

/// The group that this process is in, below where a controller is mounted.
fn place_in(own: &str, controller: &str, root: &str) -> PathBuf {
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let has = fields.next()?.split(',').any(|field| field == controller);
        has.then(|| fields.next())?
    });
    let path = Path::new(path.unwrap_or("/"));
    path.strip_prefix(root).map(Path::to_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        memory: Some(1 << 20),
        cpu_millis: Some(500),
        cpu_request_millis: Some(250),
        pids: Some(64),
    };

    #[test]
    fn version_1_is_found_per_controller_below_the_own_group() {
        let mounts = "1 0 0:1 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
                      2 0 0:2 /docker/x /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n\
                      3 0 0:3 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let own = "2:memory:/docker/x/inner\n1:cpu,cpuacct:/user\n0::/\n";
        let found = choose("7", mounts, own, |_| String::new());
        let expected = Cgroups::V1 {
            memory: Some("/sys/fs/cgroup/memory/inner/windlass-7".into()),
            cpu: Some("/sys/fs/cgroup/cpu,cpuacct/user/windlass-7".into()),
            pids: None,
        };
        assert_eq!(found, expected);
        let settings = found.settings(3, &LIMITS);
        assert_eq!(
            settings,
            vec![
                (
                    "/sys/fs/cgroup/memory/inner/windlass-7/3".into(),
                    vec![("memory.limit_in_bytes", "1048576".to_owned())]
                ),
                (
                    "/sys/fs/cgroup/cpu,cpuacct/user/windlass-7/3".into(),
                    vec![("cpu.cfs_quota_us", "50000".to_owned()), ("cpu.shares", "256".to_owned())]
                ),
            ]
        );
    }

    #[test]
    fn version_2_keeps_all_limits_in_one_folder() {
        let mounts = "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let found = choose("7", mounts, "0::/user.slice\n", |_| "cpuset cpu io memory pids".to_owned());
        assert_eq!(found, Cgroups::V2("/sys/fs/cgroup/windlass-7".into()));
        let [(folder, files)] = &found.settings(3, &LIMITS)[..] else { panic!("one folder") };
        assert_eq!(folder, Path::new("/sys/fs/cgroup/windlass-7/3"));
        let text: Vec<String> = files.iter().map(|(file, value)| format!("{file} {value}")).collect();
        let expected = [
            "memory.max 1048576",
            "memory.oom.group 1",
            "cpu.max 50000 100000",
            "cpu.weight 10",
            "pids.max 64",
        ];
        assert_eq!(text, expected);
    }

    #[test]
    fn a_machine_without_groups_has_no_limits() {
        assert_eq!(choose("7", "1 0 0:1 / / rw - ext4 /dev/x rw\n", "", |_| String::new()), Cgroups::Absent);
    }
}
