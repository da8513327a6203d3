//! A folder where the kernel lays nothing over it: put together from what is in it.
//!
//! An ordinary user may not lay a folder over one in which something is mounted, as `/etc` is inside of most containers
//! (`resolv.conf`, `hosts`) and `/opt` or `/usr/local` on some machines: what the mount hides could come to light. Each
//! thing in the folder is mounted on its own instead, read-only, in a folder that is the container's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::stage::root::bind_tree;
use crate::stage::tree::{Found, Need, look};

/// A thing of such a folder, by its place in it. What is in a folder comes after the folder.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// A folder of the container, for the parts in it.
    Folder(PathBuf),
    /// A file of the container, to mount another on.
    File(PathBuf),
    /// A link as it is there.
    Link(PathBuf, PathBuf),
    /// A file or folder as it is there.
    Whole(PathBuf),
}

/// Puts a folder together at a place that is there and empty, with room for these.
pub(super) fn assemble(source: &Path, at: &Path, wanted: &[(PathBuf, Need)]) -> io::Result<()> {
    for part in parts(source, wanted)? {
        match part {
            Part::Folder(place) => fs::create_dir(at.join(place))?,
            Part::File(place) => drop(fs::File::create(at.join(place))?),
            Part::Link(place, to) => std::os::unix::fs::symlink(to, at.join(place))?,
            Part::Whole(place) => {
                let (source, at) = (source.join(&place), at.join(&place));
                if source.is_dir() {
                    fs::create_dir(&at)?
                } else {
                    drop(fs::File::create(&at)?)
                }
                bind_tree(&source, &at, true)?;
            }
        }
    }
    Ok(())
}

/// What a folder is put together from: what is in it, opened up as far as something is wanted that is not there.
fn parts(source: &Path, wanted: &[(PathBuf, Need)]) -> io::Result<Vec<Part>> {
    let is_new = |place: &Path| look(&source.join(place)).is_none();
    let wanted: Vec<&(PathBuf, Need)> = wanted.iter().filter(|(place, _)| is_new(place)).collect();
    let mut parts = Vec::new();
    open(source, Path::new(""), &wanted, &mut parts)?;
    for (place, need) in wanted {
        let above = place.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty() && is_new(path));
        let mut made: Vec<Part> = above.map(|path| Part::Folder(path.to_owned())).collect();
        made.reverse();
        made.push(match need {
            Need::Folder => Part::Folder(place.clone()),
            Need::File => Part::File(place.clone()),
        });
        for part in made {
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
    }
    Ok(parts)
}

fn open(source: &Path, folder: &Path, wanted: &[&(PathBuf, Need)], parts: &mut Vec<Part>) -> io::Result<()> {
    let mut names: Vec<_> =
        fs::read_dir(source.join(folder))?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort();
    for name in names {
        let place = folder.join(name);
        match look(&source.join(&place)) {
            Some(Found::Link(to)) => parts.push(Part::Link(place, to)),
            Some(Found::Folder { .. }) if wanted.iter().any(|(wanted, _)| wanted.starts_with(&place)) => {
                parts.push(Part::Folder(place.clone()));
                open(source, &place, wanted, parts)?;
            }
            Some(_) => parts.push(Part::Whole(place)),
            // It has gone while we looked.
            None => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_opened_up_as_far_as_something_new_is_wanted_in_it() {
        let source = std::env::temp_dir().join(format!("windlass-assemble-{}", std::process::id()));
        for folder in ["ssl/certs", "app/conf.d"] {
            fs::create_dir_all(source.join(folder)).expect("a folder");
        }
        fs::write(source.join("hosts"), "").expect("a file");
        fs::write(source.join("app/main.conf"), "").expect("a file");
        std::os::unix::fs::symlink("../run/resolv.conf", source.join("resolv.conf")).expect("a link");
        let wanted = [
            ("nginx", Need::Folder),
            ("app/own/key", Need::File),
            ("app/own/cert", Need::File),
            ("hosts", Need::File),
            ("ssl", Need::Folder),
        ];
        let wanted = wanted.map(|(place, need)| (PathBuf::from(place), need));
        let found = parts(&source, &wanted).expect("parts");
        fs::remove_dir_all(&source).expect("the folder goes");
        let path = PathBuf::from;
        let expected = [
            Part::Folder(path("app")),
            Part::Whole(path("app/conf.d")),
            Part::Whole(path("app/main.conf")),
            Part::Whole(path("hosts")),
            Part::Link(path("resolv.conf"), path("../run/resolv.conf")),
            Part::Whole(path("ssl")),
            Part::Folder(path("nginx")),
            Part::Folder(path("app/own")),
            Part::File(path("app/own/key")),
            Part::File(path("app/own/cert")),
        ];
        assert_eq!(found, expected);
    }
}
