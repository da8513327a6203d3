//! Mounts a container's root and makes it this process's own.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use rustix::fs::StatVfsMountFlags;

use crate::error::Failure;
use crate::spec::{Mount, Spec};
use crate::stage::assemble::assemble;
use crate::stage::kernel;
use crate::stage::tree::{Need, Piece, Tree, look, resolve};

/// Builds the root in this process's mount namespace and enters it.
pub(super) fn enter(spec: &Spec, state: &Path, rootless: bool) -> Result<(), Failure> {
    let at = state.join("root");
    build(spec, state, &at, rootless)?;
    kernel::mount_all(&at, rootless)?;
    let mut mounts: Vec<&Mount> = spec.mounts.iter().collect();
    mounts.sort_by_key(|mount| mount.target.components().count());
    for mount in mounts {
        bind_in(&at, mount)?;
    }
    let step = |step: &'static str| move |error: nix::Error| Failure::step(step)(error.into());
    nix::unistd::chdir(&at).map_err(step("enter the new root"))?;
    // The old root ends up below the new one at the same place, and is let go.
    nix::unistd::pivot_root(".", ".").map_err(step("change the root"))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(step("leave the old root"))?;
    nix::unistd::chdir("/").map_err(step("enter the new root"))
}

/// Mounts the layers: with what is written kept on disk, or in memory where the disk's file system cannot be an upper layer;
/// folders of the host that nothing can be laid over are put together from what is in them.
fn build(spec: &Spec, state: &Path, at: &Path, rootless: bool) -> Result<(), Failure> {
    if let Some(scratch) = &spec.scratch {
        match lay_out(spec, scratch, at, Layers { rootless, always: true }) {
            Err(Failure::Step { step, .. }) if step.starts_with(OVERLAY) => {
                umount2(at, MntFlags::MNT_DETACH).map_err(|e| Failure::step("undo a mount")(e.into()))?;
            }
            other => return other,
        }
    }
    let memory = state.join("memory");
    mount_new("tmpfs", &memory, MsFlags::MS_NODEV, "mode=755").map_err(Failure::step("mount memory"))?;
    lay_out(spec, &memory, at, Layers { rootless, always: false })
}

/// How layers become one.
#[derive(Debug, Clone, Copy)]
struct Layers {
    rootless: bool,
    /// Whether they all have to be laid over each other.
    always: bool,
}

const OVERLAY: &str = "lay folders over each other";

fn lay_out(spec: &Spec, scratch: &Path, at: &Path, layers: Layers) -> Result<(), Failure> {
    let mut tree = Tree::new(&spec.root, &spec.layers, scratch).map_err(Failure::step("lay out the root"))?;
    let mut make = |target: &Path, need| {
        tree.make(target, need).map_err(Failure::step(format!("make a place for {}", target.display())))
    };
    for mount in &spec.mounts {
        let metadata = std::fs::metadata(&mount.source)
            .map_err(Failure::step(format!("find {}", mount.source.display())))?;
        make(&mount.target, if metadata.is_dir() { Need::Folder } else { Need::File })?;
    }
    make(&spec.cwd, Need::Folder)?;
    bind(&tree.base, at)
        .and_then(|()| restrict(at, MsFlags::MS_NODEV))
        .map_err(Failure::step("mount the root"))?;
    let mut mounted = vec![at.to_owned()];
    for piece in &tree.pieces {
        let place = if piece.at.as_os_str().is_empty() { at.to_owned() } else { at.join(&piece.at) };
        match (overlay(piece, &place, layers.rootless), &piece.lowers[..]) {
            (Ok(()), _) => mounted.push(place),
            (Err(_), [only]) if !layers.always => {
                let inside = |(wanted, need): &(PathBuf, Need)| {
                    Some((wanted.strip_prefix(&piece.at).ok()?.to_owned(), *need))
                };
                let wanted: Vec<_> = tree.places.iter().filter_map(inside).collect();
                assemble(only, &place, &wanted)
                    .map_err(Failure::step(format!("put {} together", only.display())))?;
            }
            (Err(failure), _) => return Err(failure),
        }
    }
    if spec.read_only_root {
        for place in mounted {
            restrict(&place, MsFlags::MS_RDONLY | MsFlags::MS_NODEV)
                .map_err(Failure::step("make the root read-only"))?;
        }
    }
    Ok(())
}

fn overlay(piece: &Piece, at: &Path, rootless: bool) -> Result<(), Failure> {
    let lowers: Vec<String> = piece.lowers.iter().map(|lower| escape(lower)).collect();
    let data = format!(
        "lowerdir={},upperdir={},workdir={}",
        lowers.join(":"),
        escape(&piece.upper),
        escape(&piece.work)
    );
    // An ordinary user may not set the attributes that mark what was removed, except as its own.
    let result = if rootless {
        mount_new("overlay", at, MsFlags::MS_NODEV, &format!("{data},userxattr"))
            .or_else(|_| mount_new("overlay", at, MsFlags::MS_NODEV, &data))
    } else {
        mount_new("overlay", at, MsFlags::MS_NODEV, &data)
    };
    result.map_err(Failure::step(format!("{OVERLAY} for /{}", piece.at.display())))
}

/// Writes a path so that the characters between options stay part of it.
fn escape(path: &Path) -> String {
    let mut escaped = String::new();
    for character in path.to_string_lossy().chars() {
        if matches!(character, '\\' | ':' | ',') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Binds what the caller asked for; the place may lie in a mount before it.
fn bind_in(root: &Path, mount: &Mount) -> Result<(), Failure> {
    let step = || Failure::step(format!("mount {} at {}", mount.source.display(), mount.target.display()));
    let place = resolve(&mount.target, |path| look(&root.join(path))).map_err(step())?;
    let place = root.join(place);
    if look(&place).is_none() {
        let made = if mount.source.is_dir() {
            std::fs::create_dir_all(&place)
        } else {
            place
                .parent()
                .map_or(Ok(()), std::fs::create_dir_all)
                .and_then(|()| std::fs::File::create(&place).map(drop))
        };
        made.map_err(step())?;
    }
    bind_tree(&mount.source, &place, mount.read_only).map_err(step())
}

/// Binds a file or folder with all that is mounted in it.
pub(super) fn bind_tree(source: &Path, at: &Path, read_only: bool) -> io::Result<()> {
    mount(Some(source), at, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)?;
    let mut flags = MsFlags::MS_NODEV;
    if read_only {
        flags |= MsFlags::MS_RDONLY;
    }
    // A bind takes its flags from the source, and each mount in it has its own.
    restrict(at, flags)?;
    for place in mounts_below(at)? {
        match restrict(&place, flags) {
            // Under another mount, or in a folder that this user may not enter: nor can the container.
            Err(error) if matches!(error.raw_os_error(), Some(EACCES | EINVAL | ENOENT)) => {}
            other => other?,
        }
    }
    Ok(())
}

const ENOENT: i32 = nix::errno::Errno::ENOENT as i32;
const EACCES: i32 = nix::errno::Errno::EACCES as i32;
const EINVAL: i32 = nix::errno::Errno::EINVAL as i32;

/// Binds one file or folder as it is.
pub(super) fn bind(source: &Path, at: &Path) -> io::Result<()> {
    Ok(mount(Some(source), at, None::<&str>, MsFlags::MS_BIND, None::<&str>)?)
}

/// Mounts a file system that needs no source.
pub(super) fn mount_new(kind: &str, at: &Path, flags: MsFlags, data: &str) -> io::Result<()> {
    Ok(mount(Some(kind), at, Some(kind), flags, Some(data))?)
}

/// Adds restrictions to a mount. Those it has stay: in a user namespace the kernel insists on it.
pub(super) fn restrict(at: &Path, flags: MsFlags) -> io::Result<()> {
    let has = rustix::fs::statvfs(at)?.f_flag;
    let mut all = flags | MsFlags::MS_BIND | MsFlags::MS_REMOUNT;
    for (flag, same) in [
        (StatVfsMountFlags::RDONLY, MsFlags::MS_RDONLY),
        (StatVfsMountFlags::NOSUID, MsFlags::MS_NOSUID),
        (StatVfsMountFlags::NODEV, MsFlags::MS_NODEV),
        (StatVfsMountFlags::NOEXEC, MsFlags::MS_NOEXEC),
        (StatVfsMountFlags::NOATIME, MsFlags::MS_NOATIME),
        (StatVfsMountFlags::NODIRATIME, MsFlags::MS_NODIRATIME),
        (StatVfsMountFlags::RELATIME, MsFlags::MS_RELATIME),
    ] {
        if has.contains(flag) {
            all |= same;
        }
    }
    Ok(mount(None::<&str>, at, None::<&str>, all, None::<&str>)?)
}

/// The mounts below a place.
fn mounts_below(at: &Path) -> io::Result<Vec<PathBuf>> {
    let table = std::fs::read_to_string("/proc/self/mountinfo")?;
    let mut places: Vec<PathBuf> = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .map(unescape)
        .filter(|place| place.starts_with(at) && place != at)
        .collect();
    places.dedup();
    Ok(places)
}

/// Reads a path of the mount table, in which spaces and the like are written as octal numbers.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let octal = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()).filter(|_| *first == b'\\') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_between_options_are_escaped() {
        assert_eq!(escape(Path::new("/a:b,c\\d")), "/a\\:b\\,c\\\\d");
    }

    #[test]
    fn paths_of_the_mount_table_are_read_as_they_are() {
        assert_eq!(unescape("/a\\040b\\134c"), Path::new("/a b\\c"));
    }
}
