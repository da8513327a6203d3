//! Layers: archives that are unpacked over each other, with marks for what a layer takes away.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};

use tar::{Archive, Entry, EntryType};

use super::rooted::Rooted;

/// What marks a file that a layer takes away, and a folder of which it takes away all that was there before.
const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Unpacks one layer over what is there.
///
/// `owners`: whether files are given to those whom the archive names, which only root can do. Devices are left out: a
/// container has its own.
pub(super) fn unpack(layer: impl Read, root: &Rooted, owners: bool) -> io::Result<()> {
    let mut archive = Archive::new(layer);
    let mut made = BTreeSet::new();
    // Folders get their modes last: one that may not be written to still takes its files.
    let mut modes = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        unpack_entry(&mut entry, &path, root, owners, &mut made, &mut modes)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    }
    for (path, mode) in modes.into_iter().rev() {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

fn unpack_entry(
    entry: &mut Entry<'_, impl Read>,
    path: &Path,
    root: &Rooted,
    owners: bool,
    made: &mut BTreeSet<PathBuf>,
    modes: &mut Vec<(PathBuf, u32)>,
) -> io::Result<()> {
    let name = path.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
    if name == OPAQUE {
        if let Some(place) = root.place(path, true)?
            && let Some(folder) = place.parent()
        {
            clear(folder, made)?;
        }
        return Ok(());
    }
    if let Some(hidden) = name.strip_prefix(WHITEOUT) {
        let hidden = path.with_file_name(std::ffi::OsStr::from_bytes(hidden));
        return match root.place(&hidden, false) {
            Ok(Some(place)) if !made.contains(&place) => remove(&place),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let Some(place) = root.place(path, true)? else { return Ok(()) };
    let mode = entry.header().mode()? & 0o7777;
    let kind = entry.header().entry_type();
    let is_folder = fs::symlink_metadata(&place).is_ok_and(|found| found.is_dir());
    if !(kind == EntryType::Directory && is_folder) {
        remove(&place)?;
    }
    match kind {
        EntryType::Directory => {
            if !is_folder {
                fs::create_dir(&place)?;
            }
            // Whoever unpacked it can also remove it.
            modes.push((place.clone(), if owners { mode } else { mode | 0o700 }));
        }
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
            let mut file = fs::File::create_new(&place)?;
            io::copy(entry, &mut file)?;
        }
        EntryType::Symlink => {
            let target = entry.link_name()?.ok_or_else(|| io::Error::other("a link without a target"))?;
            symlink(target, &place)?;
        }
        EntryType::Link => {
            let target = entry.link_name()?.ok_or_else(|| io::Error::other("a link without a target"))?;
            let target = root.place(&target, false)?.ok_or_else(|| io::Error::other("a link to the root"))?;
            fs::hard_link(target, &place)?;
        }
        _ => return Ok(()),
    }
    if owners {
        let id = |id: u64| u32::try_from(id).ok();
        lchown(&place, id(entry.header().uid()?), id(entry.header().gid()?))?;
    }
    // After the owner, who would take the set-user-id bit away.
    if matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse) {
        fs::set_permissions(&place, fs::Permissions::from_mode(mode))?;
    }
    made.insert(place);
    Ok(())
}

/// Takes away what was in a folder before this layer.
fn clear(folder: &Path, made: &BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // In the order of paths, what is in a folder comes right after it.
        let kept = made.range(path.clone()..).next().is_some_and(|first| first.starts_with(&path));
        match kept {
            true if entry.file_type()?.is_dir() => clear(&path, made)?,
            true => {}
            false => remove(&path)?,
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    /// One entry of a layer: path, sort, and text or target.
    type Item<'a> = (&'a str, EntryType, &'a str);

    fn layer(items: &[Item<'_>]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, kind, text) in items {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(if *kind == EntryType::Directory { 0o755 } else { 0o644 });
            header.set_uid(u64::from(nix::unistd::geteuid().as_raw()));
            header.set_gid(u64::from(nix::unistd::getegid().as_raw()));
            // Written by hand: the builder would refuse what an attacker writes.
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            let data = if *kind == EntryType::Regular { text.as_bytes() } else { b"" };
            if matches!(kind, EntryType::Link | EntryType::Symlink) {
                header.as_gnu_mut().unwrap().linkname[..text.len()].copy_from_slice(text.as_bytes());
            }
            header.set_size(data.len() as u64);
            header.set_cksum();
            builder.append(&header, data).unwrap();
        }
        builder.into_inner().unwrap()
    }

    const FILE: EntryType = EntryType::Regular;
    const FOLDER: EntryType = EntryType::Directory;
    const SYMLINK: EntryType = EntryType::Symlink;
    const LINK: EntryType = EntryType::Link;

    fn unpacked(layers: &[&[Item<'_>]]) -> (tempfile::TempDir, io::Result<()>) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir(&root).unwrap();
        let rooted = Rooted::new(root);
        let outcome = layers.iter().try_for_each(|items| unpack(&layer(items)[..], &rooted, false));
        (folder, outcome)
    }

    fn read(folder: &tempfile::TempDir, path: &str) -> Option<String> {
        fs::read_to_string(folder.path().join("root").join(path)).ok()
    }

    #[test]
    fn layers_add_replace_and_take_away() {
        let (folder, outcome) = unpacked(&[
            &[
                ("etc/", FOLDER, ""),
                ("etc/a", FILE, "one"),
                ("etc/b", FILE, "one"),
                ("var/", FOLDER, ""),
                ("var/old/", FOLDER, ""),
                ("var/old/x", FILE, "one"),
            ],
            &[("etc/a", FILE, "two"), ("etc/.wh.b", FILE, ""), ("etc/.wh.never", FILE, "")],
            &[("var/new", FILE, "three"), ("var/.wh..wh..opq", FILE, ""), ("var/old/y", FILE, "three")],
        ]);
        outcome.unwrap();
        assert_eq!(read(&folder, "etc/a").as_deref(), Some("two"));
        assert_eq!(read(&folder, "etc/b"), None);
        assert_eq!(read(&folder, "var/new").as_deref(), Some("three"));
        assert_eq!(read(&folder, "var/old/x"), None);
        assert_eq!(read(&folder, "var/old/y").as_deref(), Some("three"));
        assert_eq!(read(&folder, "etc/.wh.b"), None);
    }

    #[test]
    fn hard_links_are_one_file_and_a_file_replaces_a_link_not_its_target() {
        let (folder, outcome) = unpacked(&[
            &[
                ("a", FILE, "one"),
                ("b", LINK, "a"),
                ("c", SYMLINK, "a"),
                ("d", SYMLINK, "/e"),
                ("e/", FOLDER, ""),
            ],
            &[("c", FILE, "two"), ("d/f", FILE, "three")],
        ]);
        outcome.unwrap();
        let inode = |path: &str| fs::metadata(folder.path().join("root").join(path)).unwrap().ino();
        assert_eq!(inode("a"), inode("b"));
        assert_eq!(read(&folder, "a").as_deref(), Some("one"));
        assert_eq!(read(&folder, "c").as_deref(), Some("two"));
        assert_eq!(read(&folder, "e/f").as_deref(), Some("three"));
    }

    #[test]
    fn nothing_outside_is_written_linked_or_removed() {
        let layers: &[&[Item<'_>]] = &[
            &[("../outside", FILE, "x"), ("/absolute", FILE, "x")],
            &[("up", SYMLINK, "../.."), ("up/outside", FILE, "x")],
            &[("top", SYMLINK, "/"), ("top/outside2", FILE, "x"), (".wh...", FILE, "")],
        ];
        let (folder, outcome) = unpacked(layers);
        outcome.unwrap();
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["root"]);
        assert_eq!(read(&folder, "outside").as_deref(), Some("x"));
        assert_eq!(read(&folder, "absolute").as_deref(), Some("x"));
        let (folder, outcome) = unpacked(&[&[("stolen", LINK, "../../../../etc/passwd")]]);
        assert!(outcome.is_err());
        assert_eq!(read(&folder, "stolen"), None);
    }
}
