//! What a container's root is made of, before it is mounted: layers, what is written over them, and
//! the places that mounts need.
//!
//! Places are made in the upper layer, not through the mounted overlay: an ordinary user may not write
//! to the host's `/usr/share`, but may well own a folder of that name in a layer above it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::spec::Root;

/// A root that is to be mounted.
pub(super) struct Tree {
    /// Where plain folders are kept; what is no part of a piece is here.
    pub(super) base: PathBuf,
    pub(super) pieces: Vec<Piece>,
    /// The places that were asked for.
    pub(super) places: Vec<(PathBuf, Need)>,
}

/// A place of the root that is made of layers.
pub(super) struct Piece {
    /// Relative to the root; empty for the root itself.
    pub(super) at: PathBuf,
    /// What is only read, the first on top.
    pub(super) lowers: Vec<PathBuf>,
    pub(super) upper: PathBuf,
    pub(super) work: PathBuf,
}

/// What is at a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Folder { mode: u32 },
    Link(PathBuf),
    File,
}

/// What a place is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Folder,
    File,
}

/// The folders of the host that its programs are in. Others hold data, and stay outside.
const HOST_FOLDERS: [&str; 11] =
    ["usr", "etc", "opt", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix", "gnu"];

/// What every root of the host's programs has beside them, with its mode. Programs that are not root
/// may make their own folders where images would have made one for them.
const PRIVATE_FOLDERS: [(&str, u32); 14] = [
    ("root", 0o700),
    ("home", 0o755),
    ("mnt", 0o755),
    ("media", 0o755),
    ("srv", 0o755),
    ("run", 0o1777),
    ("run/lock", 0o1777),
    ("tmp", 0o1777),
    ("var", 0o755),
    ("var/cache", 0o1777),
    ("var/lib", 0o1777),
    ("var/log", 0o1777),
    ("var/spool", 0o1777),
    ("var/tmp", 0o1777),
];

impl Tree {
    /// Lays a root out in a folder for what is written to it.
    pub(super) fn new(root: &Root, layers: &[PathBuf], scratch: &Path) -> io::Result<Tree> {
        let base = scratch.join("root");
        make_folder(&base, 0o755)?;
        let mut tree = Tree { base, pieces: Vec::new(), places: Vec::new() };
        match root {
            Root::Folder(folder) => {
                let lowers = layers.iter().chain([folder]).cloned().collect();
                tree.add_piece(scratch, Path::new(""), lowers)?;
            }
            Root::Host => tree.lay_out_host(layers, scratch)?,
        }
        for place in ["proc", "sys", "dev"] {
            tree.make(Path::new(place), Need::Folder)?;
        }
        Ok(tree)
    }

    fn lay_out_host(&mut self, layers: &[PathBuf], scratch: &Path) -> io::Result<()> {
        let mut names: Vec<OsString> = HOST_FOLDERS.iter().map(OsString::from).collect();
        for layer in layers {
            for entry in fs::read_dir(layer)? {
                names.push(entry?.file_name());
            }
        }
        names.sort();
        names.dedup();
        for name in names {
            let host = HOST_FOLDERS.iter().any(|folder| name == **folder).then(|| Path::new("/").join(&name));
            let candidates = layers.iter().map(|layer| layer.join(&name)).chain(host);
            let found: Vec<(PathBuf, Metadata)> = candidates
                .filter_map(|path| Some((fs::symlink_metadata(&path).ok()?, path)))
                .map(|(m, p)| (p, m))
                .collect();
            // `/bin` and `/lib` are links into `/usr` on most machines, also where a package has a folder.
            if let Some((link, _)) = found.iter().find(|(_, metadata)| metadata.is_symlink()) {
                symlink_if_absent(&fs::read_link(link)?, &self.base.join(&name))?;
                continue;
            }
            let lowers: Vec<PathBuf> =
                found.into_iter().filter(|(_, m)| m.is_dir()).map(|(path, _)| path).collect();
            if !lowers.is_empty() {
                self.add_piece(scratch, Path::new(&name), lowers)?;
            }
        }
        for (place, mode) in PRIVATE_FOLDERS {
            let (own, _) = self.own(Path::new(place));
            make_folder(&own, mode)?;
        }
        for (link, target) in [("var/run", "/run"), ("var/lock", "/run/lock")] {
            symlink_if_absent(Path::new(target), &self.own(Path::new(link)).0)?;
        }
        Ok(())
    }

    fn add_piece(&mut self, scratch: &Path, at: &Path, lowers: Vec<PathBuf>) -> io::Result<()> {
        let name = if at.as_os_str().is_empty() { Path::new("whole") } else { at };
        let (upper, work) = (scratch.join("upper").join(name), scratch.join("work").join(name));
        // The upper layer's own mode is what the merged folder shows.
        let mode = lowers
            .last()
            .map_or(Ok(0o755), |lower| fs::metadata(lower).map(|m| m.permissions().mode() & 0o7777))?;
        make_folder(&upper, mode)?;
        make_folder(&work, 0o755)?;
        make_folder(&self.base.join(at), mode)?;
        self.pieces.push(Piece { at: at.to_owned(), lowers, upper, work });
        Ok(())
    }

    /// Where something at this place is written, and the layers below that may have it.
    fn own(&self, place: &Path) -> (PathBuf, Vec<PathBuf>) {
        let piece = self.pieces.iter().find_map(|piece| Some((piece, place.strip_prefix(&piece.at).ok()?)));
        match piece {
            Some((piece, rest)) => {
                (join(&piece.upper, rest), piece.lowers.iter().map(|lower| join(lower, rest)).collect())
            }
            None => (self.base.join(place), Vec::new()),
        }
    }

    /// What is at a place, as the container will see it.
    fn look(&self, place: &Path) -> Option<Found> {
        let (own, lowers) = self.own(place);
        std::iter::once(own).chain(lowers).find_map(|path| look(&path))
    }

    /// Makes a place that mounts or the program need, and gives where it is without links.
    pub(super) fn make(&mut self, target: &Path, need: Need) -> io::Result<PathBuf> {
        let place = resolve(target, |path| self.look(path))?;
        self.places.push((place.clone(), need));
        if self.look(&place).is_some() {
            return Ok(place);
        }
        let parents: Vec<&Path> =
            place.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()).collect();
        for parent in parents.into_iter().rev() {
            let mode = match self.look(parent) {
                Some(Found::Folder { mode }) => mode,
                Some(_) => return Err(io::Error::from_raw_os_error(20)), // ENOTDIR
                None => 0o755,
            };
            make_folder(&self.own(parent).0, mode)?;
        }
        let (own, _) = self.own(&place);
        match need {
            Need::Folder => make_folder(&own, 0o755)?,
            Need::File => drop(fs::File::create(own)?),
        }
        Ok(place)
    }
}

/// Follows links from the root of a container, never out of it. What is not there is no link.
pub(super) fn resolve(target: &Path, look: impl Fn(&Path) -> Option<Found>) -> io::Result<PathBuf> {
    const LINKS_MAX: usize = 40;
    let parts = |path: &Path| -> Vec<OsString> {
        path.components().map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut pending: VecDeque<OsString> = parts(target).into();
    let mut place = PathBuf::new();
    let mut links = 0;
    while let Some(part) = pending.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir | Component::Prefix(_)) => place = PathBuf::new(),
            Some(Component::CurDir) | None => {}
            Some(Component::ParentDir) => drop(place.pop()),
            Some(Component::Normal(name)) => {
                let next = place.join(name);
                if let Some(Found::Link(to)) = look(&next) {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(io::Error::from_raw_os_error(40)); // ELOOP
                    }
                    for part in parts(&to).into_iter().rev() {
                        pending.push_front(part);
                    }
                } else {
                    place = next;
                }
            }
        }
    }
    Ok(place)
}

/// What is at a path of this machine.
pub(super) fn look(path: &Path) -> Option<Found> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some(if metadata.is_symlink() {
        Found::Link(fs::read_link(path).ok()?)
    } else if metadata.is_dir() {
        Found::Folder { mode: metadata.permissions().mode() & 0o7777 }
    } else {
        Found::File
    })
}

/// Joins without the slash at the end that an empty rest would give.
fn join(folder: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { folder.to_owned() } else { folder.join(rest) }
}

fn make_folder(path: &Path, mode: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(mode & 0o755).create(path)?;
    if mode & !0o755 == 0 {
        return Ok(());
    }
    // The umask cut the rest.
    fs::set_permissions(path, Permissions::from_mode(mode))
}

fn symlink_if_absent(target: &Path, link: &Path) -> io::Result<()> {
    match std::os::unix::fs::symlink(target, link) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scratch folder that is gone after the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let path = std::env::temp_dir().join(format!("windlass-tree-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).expect("a folder");
            Scratch(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn image(scratch: &Scratch) -> PathBuf {
        let image = scratch.0.join("image");
        for folder in ["usr/share/doc", "etc", "run", "var"] {
            fs::create_dir_all(image.join(folder)).expect("a folder");
        }
        fs::set_permissions(image.join("usr/share"), Permissions::from_mode(0o751)).expect("a mode");
        std::os::unix::fs::symlink("/run", image.join("var/run")).expect("a link");
        std::os::unix::fs::symlink("../../../../etc", image.join("usr/share/conf")).expect("a link");
        std::os::unix::fs::symlink("loop", image.join("loop")).expect("a link");
        image
    }

    #[test]
    fn places_are_made_in_the_upper_layer_with_the_modes_of_what_is_below() {
        let scratch = Scratch::new("upper");
        let image = image(&scratch);
        let mut tree = Tree::new(&Root::Folder(image.clone()), &[], &scratch.0.join("own")).expect("a tree");
        let place = tree.make(Path::new("/usr/share/nginx/html"), Need::Folder).expect("a place");
        assert_eq!(place, Path::new("usr/share/nginx/html"));
        let upper = scratch.0.join("own/upper/whole");
        assert_eq!(look(&upper.join("usr/share/nginx/html")), Some(Found::Folder { mode: 0o755 }));
        assert_eq!(look(&upper.join("usr/share")), Some(Found::Folder { mode: 0o751 }));
        assert_eq!(look(&image.join("usr/share/nginx")), None, "the image is only read");
        tree.make(Path::new("/etc/app/config"), Need::File).expect("a place");
        assert_eq!(look(&upper.join("etc/app/config")), Some(Found::File));
    }

    #[test]
    fn links_are_followed_inside_the_root_only() {
        let scratch = Scratch::new("links");
        let image = image(&scratch);
        let mut tree = Tree::new(&Root::Folder(image), &[], &scratch.0.join("own")).expect("a tree");
        let mut made = |target: &str| tree.make(Path::new(target), Need::Folder);
        assert_eq!(made("/var/run/secrets/x").expect("a place"), Path::new("run/secrets/x"));
        assert_eq!(made("/usr/share/conf/x").expect("a place"), Path::new("etc/x"));
        assert_eq!(made("/../../x").expect("a place"), Path::new("x"));
        assert_eq!(made("/loop/x").expect_err("no end").raw_os_error(), Some(40));
    }

    #[test]
    fn a_package_lies_over_the_hosts_folders() {
        let scratch = Scratch::new("package");
        let package = scratch.0.join("package");
        fs::create_dir_all(package.join("usr/sbin")).expect("a folder");
        fs::create_dir_all(package.join("srv-of-package/data")).expect("a folder");
        let mut tree =
            Tree::new(&Root::Host, std::slice::from_ref(&package), &scratch.0.join("own")).expect("a tree");
        let lowers = |at: &str| {
            tree.pieces.iter().find(|piece| piece.at == Path::new(at)).map(|piece| piece.lowers.clone())
        };
        assert_eq!(lowers("usr"), Some(vec![package.join("usr"), PathBuf::from("/usr")]));
        assert_eq!(lowers("srv-of-package"), Some(vec![package.join("srv-of-package")]));
        assert_eq!(lowers("home"), None, "the host's data stays outside");
        assert_eq!(look(&tree.base.join("tmp")), Some(Found::Folder { mode: 0o1777 }));
        assert_eq!(tree.make(Path::new("/var/run/x"), Need::Folder).expect("a place"), Path::new("run/x"));
    }
}
