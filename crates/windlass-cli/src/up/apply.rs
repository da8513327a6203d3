//! `--apply`: manifests into the cluster.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use windlass_apiserver::front::{ApiServer, ApplyError};

/// Why a manifest could not be applied. Those before it were.
#[derive(Debug, Error)]
pub enum Error {
    /// It could not be read.
    #[error("cannot read the manifest {}", .path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The server does not want it.
    #[error("cannot apply {}", .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: ApplyError,
    },
}

/// Reads what `--apply` names: files as they are named, of folders the manifests in the order of their names. Done before
/// anything is started, so that a typing error costs nothing.
pub fn read(named: &[PathBuf]) -> Result<Vec<(PathBuf, String)>, Error> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Read { path, source }
    };
    let mut files = Vec::new();
    for path in named {
        if !fs::metadata(path).map_err(failed(path))?.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).map_err(failed(path))?;
        let entries: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut entries = entries.map_err(failed(path))?;
        entries.retain(|path| {
            path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
        });
        entries.sort();
        files.extend(entries);
    }
    let text = |path: PathBuf| Ok((path.clone(), fs::read_to_string(&path).map_err(failed(&path))?));
    files.into_iter().map(text).collect()
}

/// Applies manifests, and says how many objects they were.
pub async fn apply(server: &ApiServer, manifests: &[(PathBuf, String)]) -> Result<usize, Error> {
    let mut count = 0;
    for (path, text) in manifests {
        let applied = server.apply_yaml(text, "windlass-up").await;
        count += applied.map_err(|source| Error::Refused { path: path.clone(), source })?.len();
    }
    Ok(count)
}
