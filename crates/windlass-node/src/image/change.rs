//! What people do to the store: load, add, remove.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::archive::{BadArchive, Contents, ImageArchive};
use super::layer;
use super::manifest::{Bind, Manifest};
use super::reference::{Invalid, Reference};
use super::rooted::Rooted;
use super::store::{Images, MANIFEST, Unresolved};

/// Why the store was not changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Unchanged {
    /// The text names no image.
    #[error(transparent)]
    Name(#[from] Invalid),
    /// An archive says of itself no name, and neither did the caller.
    #[error("the archive does not say what its image is called: give it a name with --name")]
    Nameless,
    /// The archive is of no use.
    #[error(transparent)]
    Archive(#[from] BadArchive),
    /// A program is not there.
    #[error("the program {} cannot be used", .path.display())]
    Program {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No program was named.
    #[error("an image is at least one program")]
    NoProgram,
    /// No image of this name can be removed.
    #[error("no image {0} was loaded or added here")]
    Absent(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] Unresolved),
    /// The store cannot be written to.
    #[error("{} cannot be written", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Where programs that were added lie in a container.
const PROGRAMS: &str = "/app";

/// How the folders of loaded and added images begin; others are not ours to remove.
const OWN: [&str; 2] = ["loaded-", "added-"];

impl Images {
    /// Unpacks an archive of an image into the store, under the names that it has or under the one given.
    pub fn load(&self, archive: &Path, name: Option<&str>) -> Result<Manifest, Unchanged> {
        let fresh = Fresh::new(self.folder())?;
        let opened = ImageArchive::open(archive, &fresh.path.join("archive"))?;
        let contents = opened.contents()?;
        let names = names_of(&contents, name)?;
        let root = fresh.path.join("root");
        fs::create_dir(&root).map_err(failed(&root))?;
        let rooted = Rooted::new(root);
        let owners = nix::unistd::geteuid().is_root();
        for path in &contents.layers {
            opened.layer(path, |layer| layer::unpack(layer, &rooted, owners))?;
        }
        match fs::remove_file(fresh.path.join("archive")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&fresh.path)(error)),
            _ => {}
        }
        let id = contents.id.trim_start_matches("sha256:");
        let folder = format!("{}{}", OWN[0], &id[..id.len().min(16)]);
        let config = contents.config;
        let manifest = Manifest {
            names,
            root: Some("root".into()),
            entrypoint: config.entrypoint.unwrap_or_default(),
            cmd: config.cmd.unwrap_or_default(),
            env: config.env.unwrap_or_default(),
            cwd: config.working_dir,
            user: config.user,
            stop_signal: config.stop_signal,
            id: contents.id,
            from: format!("the archive {}", archive.display()),
            ..Manifest::default()
        };
        self.keep(fresh, &folder, manifest)
    }

    /// Makes programs of this machine an image: the first is what runs.
    pub fn add(&self, name: &str, programs: &[PathBuf]) -> Result<Manifest, Unchanged> {
        let reference = Reference::parse(name)?;
        let mut binds = Vec::new();
        for program in programs {
            let failed = |source| Unchanged::Program { path: program.clone(), source };
            let source = fs::canonicalize(program).map_err(failed)?;
            let file = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
            binds.push(Bind { source, target: format!("{PROGRAMS}/{file}") });
        }
        let first = binds.first().ok_or(Unchanged::NoProgram)?;
        let manifest = Manifest {
            names: vec![reference.to_string()],
            entrypoint: vec![first.target.clone()],
            env: vec![format!(
                "PATH={PROGRAMS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
            )],
            from: format!("the program {}", first.source.display()),
            binds,
            ..Manifest::default()
        };
        let plain = reference.to_string().replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-");
        self.keep(Fresh::new(self.folder())?, &format!("{}{plain}", OWN[1]), manifest)
    }

    /// Forgets a name, and the image with its last one. What `tools/setup` made is not removed.
    pub fn remove(&self, name: &str) -> Result<(), Unchanged> {
        let full = Reference::parse(name)?.to_string();
        match self.forget(&full, None)? {
            true => Ok(()),
            false => Err(Unchanged::Absent(full)),
        }
    }

    /// Puts an image in its place. Whoever had one of its names before has it no more.
    fn keep(&self, fresh: Fresh, folder: &str, mut manifest: Manifest) -> Result<Manifest, Unchanged> {
        let place = self.folder().join(folder);
        // The same image under another name keeps the one it had.
        for listed in self.list()?.into_iter().filter(|listed| listed.folder.as_ref() == Some(&place)) {
            manifest.names.extend(listed.manifest.names);
        }
        manifest.names.sort();
        manifest.names.dedup();
        write(&fresh.path.join(MANIFEST), &manifest)?;
        for name in &manifest.names {
            self.forget(name, Some(&place))?;
        }
        remove(&place)?;
        fs::rename(&fresh.path, &place).map_err(failed(&place))?;
        Ok(manifest)
    }

    /// Takes a name away from the images that were loaded or added, but for one; whether anybody had it.
    fn forget(&self, name: &str, but: Option<&Path>) -> Result<bool, Unchanged> {
        let mut had = false;
        for listed in self.list()? {
            let Some(folder) = listed.folder else { continue };
            let file = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let ours = OWN.iter().any(|start| file.starts_with(start));
            let mut manifest = listed.manifest;
            if !ours || but == Some(&folder) || !manifest.names.iter().any(|have| have == name) {
                continue;
            }
            had = true;
            manifest.names.retain(|have| have != name);
            let only_digests = manifest.names.iter().all(|have| have.contains('@'));
            match only_digests {
                true => remove(&folder)?,
                false => write(&folder.join(MANIFEST), &manifest)?,
            }
        }
        Ok(had)
    }
}

/// The full names of an image: those it was saved by, or the one it is given; and its digest's.
fn names_of(contents: &Contents, given: Option<&str>) -> Result<Vec<String>, Unchanged> {
    let mut references = Vec::new();
    match given {
        Some(name) => references.push(Reference::parse(name)?),
        // A name that is only a tag says nothing about what it is a tag of.
        None => references.extend(
            contents
                .names
                .iter()
                .filter(|name| name.contains([':', '/']))
                .filter_map(|name| Reference::parse(name).ok()),
        ),
    }
    let first = references.first().ok_or(Unchanged::Nameless)?;
    let digest = contents.digest.as_ref().map(|digest| format!("{}@{digest}", first.repository));
    Ok(references.iter().map(Reference::to_string).chain(digest).collect())
}

/// A folder that becomes an image, or goes.
struct Fresh {
    path: PathBuf,
}

impl Fresh {
    fn new(store: &Path) -> Result<Fresh, Unchanged> {
        fs::create_dir_all(store).map_err(failed(store))?;
        let path = store.join(format!(".fresh-{}", std::process::id()));
        remove(&path)?;
        fs::create_dir(&path).map_err(failed(&path))?;
        Ok(Fresh { path })
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // After it has become an image it is not there; otherwise what is left is a dot-folder, which nobody reads.
        let _ = windlass_sandbox::remove_tree(&self.path);
    }
}

fn remove(path: &Path) -> Result<(), Unchanged> {
    windlass_sandbox::remove_tree(path).map_err(failed(path))
}

fn write(path: &Path, manifest: &Manifest) -> Result<(), Unchanged> {
    let text = serde_json::to_vec_pretty(manifest).map_err(|error| failed(path)(error.into()))?;
    // In one step: a pod may look it up meanwhile.
    let fresh = path.with_extension("fresh");
    fs::write(&fresh, text).and_then(|()| fs::rename(&fresh, path)).map_err(failed(path))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Unchanged {
    let path = path.to_owned();
    move |source| Unchanged::Write { path, source }
}
