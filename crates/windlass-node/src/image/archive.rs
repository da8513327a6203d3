//! Archives of images: what `docker save`, `podman save`, `skopeo copy` and `docker buildx` write.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// An archive that was opened: where each of its files is.
pub(super) struct ImageArchive {
    file: File,
    /// Offset and length by name.
    entries: BTreeMap<PathBuf, (u64, u64)>,
}

/// Why an archive is of no use.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BadArchive {
    /// It cannot be read.
    #[error("the archive cannot be read")]
    Read(#[from] io::Error),
    /// It is an archive of something else.
    #[error(
        "there is neither a manifest.json nor an index.json in it: this is no image (docker save, podman save and \
         skopeo copy make them)"
    )]
    NoImage,
    /// A file is missing in it.
    #[error("{} is missing in the archive", .0.display())]
    Missing(PathBuf),
    /// A file in it is not what it should be.
    #[error("{} in the archive is damaged", .0.display())]
    Damaged(PathBuf, #[source] Option<serde_json::Error>),
    /// There are images in it, and none for this machine.
    #[error("the archive has no image for linux/{0}")]
    OtherMachine(&'static str),
    /// It uses something that this does not know.
    #[error("{0} is a {1}, which is not supported: save the image with gzip layers")]
    Unsupported(String, String),
}

/// What an archive holds: one image.
#[derive(Debug)]
pub(super) struct Contents {
    /// The names it was saved by, as they are in the archive.
    pub names: Vec<String>,
    /// The digest of its manifest, where it has one.
    pub digest: Option<String>,
    /// Its configuration.
    pub config: Config,
    /// The digest of the configuration: the image's id.
    pub id: String,
    /// Its layers, lowest first.
    pub layers: Vec<PathBuf>,
}

/// The part of an image's configuration that a container runs by.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Config {
    pub entrypoint: Option<Vec<String>>,
    pub cmd: Option<Vec<String>>,
    pub env: Option<Vec<String>>,
    pub working_dir: String,
    pub user: String,
    pub stop_signal: String,
}

#[derive(Deserialize)]
struct ConfigFile {
    #[serde(default)]
    config: Option<Config>,
}

/// An image of `docker save`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: PathBuf,
    repo_tags: Option<Vec<String>>,
    layers: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct ImageManifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    #[serde(default)]
    platform: Option<Platform>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

/// More than any description of an image has.
const TEXT_MAX: u64 = 16 << 20;

impl ImageArchive {
    /// Opens an archive. One that is compressed as a whole is unfolded into `scratch` first.
    pub fn open(path: &Path, scratch: &Path) -> Result<ImageArchive, BadArchive> {
        let mut file = File::open(path)?;
        let mut magic = [0; 2];
        if file.read(&mut magic)? == 2 && magic == GZIP {
            let mut plain = File::options().read(true).write(true).create_new(true).open(scratch)?;
            file.seek(SeekFrom::Start(0))?;
            io::copy(&mut GzDecoder::new(&file), &mut plain)?;
            file = plain;
        }
        file.seek(SeekFrom::Start(0))?;
        let mut entries = BTreeMap::new();
        let mut archive = tar::Archive::new(&file);
        for entry in archive.entries_with_seek()? {
            let entry = entry?;
            let path: PathBuf =
                entry.path()?.components().filter(|part| *part != std::path::Component::CurDir).collect();
            // Older archives name a layer twice, the second time as a link to the first.
            let place = match entry.link_name()? {
                Some(target) => {
                    let target = path.parent().unwrap_or(Path::new("")).join(target);
                    entries.get(&normal(&target)).copied()
                }
                None => Some((entry.raw_file_position(), entry.size())),
            };
            entries.extend(place.map(|place| (path, place)));
        }
        Ok(ImageArchive { file, entries })
    }

    /// What it holds.
    pub fn contents(&self) -> Result<Contents, BadArchive> {
        if self.entries.contains_key(Path::new("manifest.json")) {
            let saved: Vec<Saved> = self.json(Path::new("manifest.json"))?;
            let saved = saved.into_iter().next().ok_or(BadArchive::NoImage)?;
            let (config, id) = self.config(&saved.config)?;
            let names = saved.repo_tags.unwrap_or_default();
            return Ok(Contents { names, digest: None, config, id, layers: saved.layers });
        }
        if !self.entries.contains_key(Path::new("index.json")) {
            return Err(BadArchive::NoImage);
        }
        let index: Index = self.json(Path::new("index.json"))?;
        let mut chosen = choose(index.manifests)?;
        let names = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];
        let names = names.iter().find_map(|key| chosen.annotations.get(*key)).cloned().into_iter().collect();
        // An index of indices: one per image, then one per machine.
        while chosen.media_type.contains("index") || chosen.media_type.contains("manifest.list") {
            let index: Index = self.json(&blob(&chosen))?;
            chosen = choose(index.manifests)?;
        }
        let manifest: ImageManifest = self.json(&blob(&chosen))?;
        for layer in &manifest.layers {
            if layer.media_type.contains("zstd") {
                return Err(BadArchive::Unsupported(layer.digest.clone(), layer.media_type.clone()));
            }
        }
        let (config, id) = self.config(&blob(&manifest.config))?;
        let layers = manifest.layers.iter().map(blob).collect();
        Ok(Contents { names, digest: Some(chosen.digest), config, id, layers })
    }

    fn config(&self, path: &Path) -> Result<(Config, String), BadArchive> {
        let text = self.text(path)?;
        let file: ConfigFile = serde_json::from_slice(&text)
            .map_err(|error| BadArchive::Damaged(path.to_owned(), Some(error)))?;
        Ok((file.config.unwrap_or_default(), format!("sha256:{}", hex(&Sha256::digest(&text)))))
    }

    fn json<T: DeserializeOwned>(&self, path: &Path) -> Result<T, BadArchive> {
        let text = self.text(path)?;
        serde_json::from_slice(&text).map_err(|error| BadArchive::Damaged(path.to_owned(), Some(error)))
    }

    fn text(&self, path: &Path) -> Result<Vec<u8>, BadArchive> {
        let mut text = Vec::new();
        self.open_entry(path)?.take(TEXT_MAX).read_to_end(&mut text)?;
        match expected(path) {
            Some(digest) if digest != hex(&Sha256::digest(&text)) => {
                Err(BadArchive::Damaged(path.to_owned(), None))
            }
            _ => Ok(text),
        }
    }

    /// Gives a layer, unfolded, to `unpack`, and checks that it was what its name says.
    pub fn layer(
        &self,
        path: &Path,
        unpack: impl FnOnce(&mut dyn Read) -> io::Result<()>,
    ) -> Result<(), BadArchive> {
        let mut digesting = Digesting { from: self.open_entry(path)?, digest: Sha256::new() };
        let mut magic = [0; 2];
        let read = digesting.read(&mut magic)?;
        let whole = (&magic[..read]).chain(&mut digesting);
        match magic == GZIP {
            true => unpack(&mut GzDecoder::new(whole))?,
            false => unpack(&mut { whole })?,
        }
        // What follows the end of the archive belongs to the digest, too.
        io::copy(&mut digesting, &mut io::sink())?;
        match expected(path) {
            Some(digest) if digest != hex(&digesting.digest.finalize()) => {
                Err(BadArchive::Damaged(path.to_owned(), None))
            }
            _ => Ok(()),
        }
    }

    fn open_entry(&self, path: &Path) -> Result<impl Read + '_, BadArchive> {
        let (offset, length) =
            *self.entries.get(&normal(path)).ok_or_else(|| BadArchive::Missing(path.to_owned()))?;
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        Ok(file.take(length))
    }
}

const GZIP: [u8; 2] = [0x1f, 0x8b];

struct Digesting<R> {
    from: R,
    digest: Sha256,
}

impl<R: Read> Read for Digesting<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.digest.update(&into[..read]);
        Ok(read)
    }
}

/// The image for this machine: of several, the one that says so; of one, that one if it says nothing else.
fn choose(manifests: Vec<Descriptor>) -> Result<Descriptor, BadArchive> {
    let here = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let fits = |one: &Descriptor| match &one.platform {
        Some(platform) => platform.os == "linux" && platform.architecture == here,
        None => true,
    };
    manifests.into_iter().find(fits).ok_or(BadArchive::OtherMachine(here))
}

fn blob(descriptor: &Descriptor) -> PathBuf {
    Path::new("blobs").join(descriptor.digest.replacen(':', "/", 1))
}

/// The digest that a blob's name promises.
fn expected(path: &Path) -> Option<&str> {
    path.strip_prefix("blobs/sha256").ok()?.to_str()
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::Normal(name) => out.push(name),
            std::path::Component::ParentDir => drop(out.pop()),
            _ => {}
        }
    }
    out
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
