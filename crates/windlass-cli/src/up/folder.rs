//! The data folder of a cluster: who runs in it, and where its parts are.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use windlass_apiserver::front::write_private;

/// A cluster that runs, as `windlass down` and `windlass status` find it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Cluster {
    /// Its process.
    pub pid: u32,
    /// Its API.
    pub url: String,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// Whether all that was asked for at its start is there.
    pub ready: bool,
}

/// Why a data folder is of no use.
#[derive(Debug, Error)]
pub enum Error {
    /// A cluster runs in it.
    #[error(
        "a cluster runs in {} already{}: `windlass down{}` ends it, --data-dir chooses another folder",
        .path.display(), who(.cluster), at(.path)
    )]
    Taken {
        /// The folder.
        path: PathBuf,
        /// The cluster, where it says so.
        cluster: Option<Box<Cluster>>,
    },
    /// A file of it could not be used.
    #[error("cannot use {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is nowhere to put it.
    #[error("there is no home folder for the cluster's data: name one with --data-dir")]
    Homeless,
}

fn who(cluster: &Option<Box<Cluster>>) -> String {
    cluster.as_ref().map(|cluster| format!(" (process {}, {})", cluster.pid, cluster.url)).unwrap_or_default()
}

fn at(path: &Path) -> String {
    match default_folder() {
        Ok(default) if default == path => String::new(),
        _ => format!(" --data-dir {}", crate::api::quoted(path)),
    }
}

/// Where a cluster is kept that is told nothing else.
pub fn default_folder() -> Result<PathBuf, Error> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = named("XDG_DATA_HOME").or_else(|| Some(named("HOME")?.join(".local/share")));
    data.map(|data| data.join("windlass")).ok_or(Error::Homeless)
}

/// The data folder of the cluster that this process is, or asks about.
pub struct Folder {
    path: PathBuf,
}

/// The right to run a cluster in a folder. It goes with the process, however that ends.
pub struct Claim {
    _lock: File,
}

impl Folder {
    /// The folder that was named, or the default one.
    pub fn at(named: Option<&Path>) -> Result<Folder, Error> {
        let path = named.map_or_else(default_folder, |path| Ok(path.to_owned()))?;
        let path = std::path::absolute(&path).map_err(|source| Error::Io { path, source })?;
        Ok(Folder { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The API server's part.
    pub fn api(&self) -> PathBuf {
        self.path.join("api")
    }

    /// The nodes' part.
    pub fn nodes(&self) -> PathBuf {
        self.path.join("node")
    }

    /// Where the volumes of claims are.
    pub fn volumes(&self) -> PathBuf {
        self.path.join("volumes")
    }

    /// What a cluster in the background says.
    pub fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// The kubeconfig, where nobody chose another place.
    pub fn kubeconfig(&self) -> PathBuf {
        self.path.join("kubeconfig")
    }

    fn record(&self) -> PathBuf {
        self.path.join("cluster.json")
    }

    /// Takes the folder for this process.
    pub fn claim(&self) -> Result<Claim, Error> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Io { path, source }
        };
        fs::create_dir_all(&self.path).map_err(failed(&self.path))?;
        let file = self.path.join("lock");
        let lock = OpenOptions::new().create(true).write(true).truncate(false).open(&file);
        let lock = lock.map_err(failed(&file))?;
        match lock.try_lock() {
            Ok(()) => Ok(Claim { _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                Err(Error::Taken { path: self.path.clone(), cluster: self.cluster().map(Box::new) })
            }
            Err(TryLockError::Error(source)) => Err(failed(&file)(source)),
        }
    }

    /// Whether a cluster runs in it.
    pub fn is_taken(&self) -> bool {
        self.path.exists() && matches!(self.claim(), Err(Error::Taken { .. }))
    }

    /// Throws away what clusters keep here, and nothing else that somebody may have put beside it.
    pub fn empty(&self, _: &Claim) -> Result<(), Error> {
        for path in [self.api(), self.nodes(), self.volumes(), self.log(), self.kubeconfig(), self.record()] {
            let removed = match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error),
                Ok(found) if found.is_dir() => fs::remove_dir_all(&path),
                Ok(_) => fs::remove_file(&path),
            };
            removed.map_err(|source| Error::Io { path, source })?;
        }
        Ok(())
    }

    /// The cluster that runs here, or the last that did.
    pub fn cluster(&self) -> Option<Cluster> {
        serde_json::from_slice(&fs::read(self.record()).ok()?).ok()
    }

    /// Says who runs here.
    pub fn set_cluster(&self, cluster: &Cluster) -> Result<(), Error> {
        let path = self.record();
        let text = serde_json::to_vec_pretty(cluster).expect("a cluster is JSON");
        write_private(&path, &text).map_err(|source| Error::Io { path, source })
    }

    /// Nobody runs here any more.
    pub fn clear_cluster(&self) {
        // It is only information: the lock says who runs.
        let _ = fs::remove_file(self.record());
    }
}
