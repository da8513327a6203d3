//! Paths inside a folder that is to become a root: whatever an archive says, nothing outside of it is touched.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// How many symbolic links a path may lead over, as in the kernel.
const LINKS_MAX: usize = 40;

/// A folder that is to become a root.
#[derive(Clone, Debug)]
pub(super) struct Rooted {
    root: PathBuf,
}

impl Rooted {
    pub fn new(root: impl Into<PathBuf>) -> Rooted {
        Rooted { root: root.into() }
    }

    /// Where a path of the image lies. Symbolic links on the way are followed as a program inside would follow them;
    /// what the path ends with is not. `None` for the root itself.
    ///
    /// With `make`, folders that are missing on the way are made.
    pub fn place(&self, path: &Path, make: bool) -> io::Result<Option<PathBuf>> {
        let mut left: Vec<PathBuf> = parts(path).rev().collect();
        let mut links = 0;
        let mut at = self.root.clone();
        while let Some(part) = left.pop() {
            if part == Path::new("..") {
                if at != self.root {
                    at.pop();
                }
                continue;
            }
            let next = at.join(&part);
            if left.is_empty() {
                return Ok(Some(next));
            }
            match fs::symlink_metadata(&next) {
                Ok(found) if found.is_symlink() => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(io::Error::other("too many symbolic links"));
                    }
                    let target = fs::read_link(&next)?;
                    if target.is_absolute() {
                        at.clone_from(&self.root);
                    }
                    left.extend(parts(&target).rev());
                }
                Ok(found) if found.is_dir() => at = next,
                Ok(_) => return Err(io::Error::from(io::ErrorKind::NotADirectory)),
                Err(error) if error.kind() == io::ErrorKind::NotFound && make => {
                    fs::create_dir(&next)?;
                    at = next;
                }
                Err(error) => return Err(error),
            }
        }
        Ok((at != self.root).then_some(at))
    }
}

/// The parts of a path that lead somewhere.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some(PathBuf::from("..")),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_path_leads_out() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("usr/lib")).unwrap();
        symlink("usr/lib", root.join("lib")).unwrap();
        symlink("/", root.join("top")).unwrap();
        symlink("../../../..", root.join("up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let rooted = Rooted::new(&root);
        let place = |path: &str| rooted.place(Path::new(path), false);
        for (path, expected) in [
            ("a", "a"),
            ("/a", "a"),
            ("./usr/x", "usr/x"),
            ("lib/x", "usr/lib/x"),
            ("top/etc", "etc"),
            ("top/lib/x", "usr/lib/x"),
            ("up/etc", "etc"),
            ("../../etc", "etc"),
            ("usr/../../../x", "x"),
            ("lib", "lib"),
        ] {
            assert_eq!(place(path).unwrap(), Some(root.join(expected)), "{path}");
        }
        assert_eq!(place("/").unwrap(), None);
        assert_eq!(place("..").unwrap(), None);
        assert!(place("loop/x").is_err());
        assert!(place("missing/x").is_err());
        assert_eq!(rooted.place(Path::new("new/deep/x"), true).unwrap(), Some(root.join("new/deep/x")));
        assert!(root.join("new/deep").is_dir());
    }
}
