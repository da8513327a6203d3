//! What the kernel shows in every container: `/proc`, `/sys` and `/dev`.

use std::fs::File;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::mount::MsFlags;

use crate::error::Failure;
use crate::stage::root::{bind, bind_tree, mount_new, restrict};

/// Mounts them below a root. This process is in the container's pid and network namespaces already.
pub(super) fn mount_all(root: &Path, rootless: bool) -> Result<(), Failure> {
    let (proc, sys, dev) = (root.join("proc"), root.join("sys"), root.join("dev"));
    let closed = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount_new("proc", &proc, closed, "").map_err(Failure::step("mount /proc"))?;
    if !rootless {
        // The user with number 0 owns these files of the machine, whatever powers were taken away.
        guard(&proc).map_err(Failure::step("guard /proc"))?;
    }
    mount_new("sysfs", &sys, closed | MsFlags::MS_RDONLY, "")
        .or_else(|_| bind_tree(Path::new("/sys"), &sys, true))
        .map_err(Failure::step("mount /sys"))?;
    devices(&dev, rootless).map_err(Failure::step("mount /dev"))
}

/// Makes what changes the machine read-only, and hides what shows its memory, as container runtimes do.
fn guard(proc: &Path) -> io::Result<()> {
    for name in ["bus", "fs", "irq", "sys", "sysrq-trigger"] {
        let path = proc.join(name);
        if path.exists() {
            bind(&path, &path)?;
            restrict(
                &path,
                MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC,
            )?;
        }
    }
    for name in ["kcore", "keys", "timer_list"] {
        let path = proc.join(name);
        if path.exists() {
            bind(Path::new("/dev/null"), &path)?;
        }
    }
    Ok(())
}

fn devices(dev: &Path, rootless: bool) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    mount_new("tmpfs", dev, flags | MsFlags::MS_NODEV, "mode=755,size=64k")?;
    for name in ["null", "zero", "full", "random", "urandom", "tty"] {
        let path = dev.join(name);
        File::create(&path)?;
        bind(&Path::new("/dev").join(name), &path)?;
    }
    for (link, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ] {
        symlink(target, dev.join(link))?;
    }
    for name in ["pts", "shm", "mqueue"] {
        std::fs::create_dir(dev.join(name))?;
    }
    // Group 5 is `tty` everywhere; an ordinary user has no such group to give.
    let group = if rootless { "" } else { ",gid=5" };
    let terminals = format!("newinstance,ptmxmode=0666,mode=0620{group}");
    mount_new("devpts", &dev.join("pts"), flags, &terminals)?;
    mount_new("tmpfs", &dev.join("shm"), flags | MsFlags::MS_NODEV, "mode=1777,size=64m")?;
    mount_new("mqueue", &dev.join("mqueue"), flags | MsFlags::MS_NODEV, "")
}
