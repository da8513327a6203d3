//! The store: a folder of images.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::manifest::{Image, Manifest};
use super::reference::{Invalid, Reference};

/// The images of this machine. Clones are the same store.
///
/// The folder is read each time: what is added while the cluster runs is found by the next pod.
#[derive(Clone, Debug)]
pub struct Images {
    folder: PathBuf,
}

/// Why an image cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Unresolved {
    /// The text names no image.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// It is not in the store.
    #[error("{name} is not on this machine, which pulls from no registry: {advice}")]
    Missing {
        /// Its full name.
        name: String,
        /// What to do.
        advice: String,
    },
    /// It is in the store and cannot be read.
    #[error("{} cannot be read: remove the folder it is in and add the image again", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// One image of the store, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its folder; `None` for what is there without one.
    pub folder: Option<PathBuf>,
    /// What it says of itself.
    pub manifest: Manifest,
}

pub(super) const MANIFEST: &str = "image.json";

impl Images {
    /// The store in this folder, which need not exist.
    pub fn open(folder: impl Into<PathBuf>) -> Images {
        Images { folder: folder.into() }
    }

    /// Where the store of this user is: `images` in the cache that `tools/setup` fills. `None` without a home.
    pub fn default_folder() -> Option<PathBuf> {
        let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = from("WINDLASS_CACHE")
            .or_else(|| from("XDG_CACHE_HOME").map(|cache| cache.join("windlass")))
            .or_else(|| from("HOME").map(|home| home.join(".cache/windlass")))?;
        Some(cache.join("images"))
    }

    /// The store of this user; without a home it has nothing but the programs of this machine.
    pub fn of_user() -> Images {
        Images::open(Images::default_folder().unwrap_or_default())
    }

    /// Where the store is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The image that a container's `image` means.
    pub fn resolve(&self, name: &str) -> Result<Image, Unresolved> {
        let reference = Reference::parse(name)?;
        let full = reference.to_string();
        // The name that says most counts: a tag before any tag, and whatever is in the store before this machine.
        let mut best = None;
        for folder in self.folders()? {
            let Some((text, manifest)) = read(&folder.join(MANIFEST))? else { continue };
            let fit = manifest.names.iter().filter_map(|name| reference.fit(name)).max();
            if fit > best.as_ref().map(|(fit, _)| *fit) {
                best = fit.map(|fit| (fit, manifest.image(&folder, &full, &hex_digest(&text))));
            }
        }
        if let Some((_, image)) = best {
            return Ok(image);
        }
        for manifest in Manifest::of_this_machine() {
            if manifest.names.iter().any(|name| reference.fit(name).is_some()) {
                return Ok(manifest.image(Path::new("/"), &full, &hex_digest(manifest.names[0].as_bytes())));
            }
        }
        let advice = advice(&reference);
        Err(Unresolved::Missing { name: full, advice })
    }

    /// All images, in the order in which they are looked at.
    pub fn list(&self) -> Result<Vec<Listed>, Unresolved> {
        let mut all = Vec::new();
        for folder in self.folders()? {
            if let Some((_, manifest)) = read(&folder.join(MANIFEST))? {
                all.push(Listed { folder: Some(folder), manifest });
            }
        }
        let here = Manifest::of_this_machine().into_iter();
        all.extend(here.map(|manifest| Listed { folder: None, manifest }));
        Ok(all)
    }

    /// The folders of the store, in the order of their names. Those that begin with a dot are still being made.
    fn folders(&self) -> Result<Vec<PathBuf>, Unresolved> {
        let damaged = |source| Unresolved::Damaged { path: self.folder.clone(), source };
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(damaged(error)),
        };
        let mut folders = Vec::new();
        for entry in entries {
            let entry = entry.map_err(damaged)?;
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                folders.push(entry.path());
            }
        }
        folders.sort();
        Ok(folders)
    }
}

/// A manifest and its text; `None` when there is none.
fn read(path: &Path) -> Result<Option<(Vec<u8>, Manifest)>, Unresolved> {
    let damaged = |source| Unresolved::Damaged { path: path.to_owned(), source };
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(damaged(error)),
    };
    let manifest = serde_json::from_slice(&text).map_err(|error| damaged(error.into()))?;
    Ok(Some((text, manifest)))
}

/// What brings an image here.
fn advice(reference: &Reference) -> String {
    let short = reference.repository.rsplit('/').next().unwrap_or_default();
    let tag = reference.tag.strip_prefix('v').unwrap_or(&reference.tag);
    let package = match short {
        "nginx" | "postgres" => Some(short.to_owned()),
        "etcd" => ["3.4", "3.5", "3.6", "3.7"]
            .into_iter()
            .find(|version| tag.starts_with(version))
            .map(|version| format!("etcd-{version}")),
        _ => None,
    };
    match package {
        Some(package) if reference.digest.is_empty() => {
            format!("`tools/setup {package}` makes it from packages")
        }
        _ => format!(
            "save it where it can be pulled (`docker save {reference} -o image.tar`) and run `windlass image load \
             image.tar`, or run `windlass image add {} --program FILE` if it is one program",
            reference.repository.strip_prefix("docker.io/library/").unwrap_or(&reference.repository)
        ),
    }
}

fn hex_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::manifest::Root;
    use super::*;

    #[test]
    fn machine_images_have_any_tag() {
        let images = Images::open("/nonexistent");
        for name in ["busybox", "alpine:3.19", "debian:bookworm-slim", "docker.io/library/ubuntu:24.04"] {
            assert_eq!(images.resolve(name).unwrap().root, Root::Host, "{name}");
        }
    }

    #[test]
    fn what_is_missing_says_how_to_add_it() {
        let images = Images::open("/nonexistent");
        let text = |name: &str| images.resolve(name).unwrap_err().to_string();
        assert!(text("nginx:1.7.9").ends_with("`tools/setup nginx` makes it from packages"));
        assert!(
            text("quay.io/coreos/etcd:v3.4.3").ends_with("`tools/setup etcd-3.4` makes it from packages")
        );
        assert!(text("redis").contains("`windlass image load image.tar`"));
        assert!(matches!(images.resolve("A B").unwrap_err(), Unresolved::Invalid(_)));
    }
}
