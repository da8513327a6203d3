//! The data folder: who has it, and what is where in it.
//!
//! ```text
//! lock         held while a cluster runs; says which process has it
//! state.json   where that cluster is reached
//! store/       the API server's objects
//! pki/         its certificate authority and keys
//! kubeconfig   the administrator's
//! node/NAME/   what a node's pods write
//! windlass.log what a detached cluster says
//! ```

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use windlass_apiserver::front::write_private;

use super::failure::Failure;

const LOCK: &str = "lock";
const STATE: &str = "state.json";

/// A data folder that is ours until it is dropped.
pub struct Folder {
    path: PathBuf,
    /// Released when this process ends, however it ends.
    _lock: Flock<File>,
}

/// Where a cluster is reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    /// The process.
    pub pid: u32,
    /// The API server.
    pub url: String,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// How many nodes there should be.
    pub nodes: usize,
    /// Whether it has done all that it was started with.
    pub ready: bool,
    /// What it waits for in order to end.
    #[serde(default)]
    pub stopping: Option<Stopping>,
}

/// A cluster that ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stopping {
    /// What it waits for, in a line.
    pub what: String,
    /// For how long at most.
    pub seconds: u64,
}

/// The folder of a user who names none.
pub fn default_path() -> PathBuf {
    let from = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || from("HOME").map(|home| home.join(".local/share"));
    from("XDG_DATA_HOME").or_else(home).unwrap_or_default().join("windlass")
}

impl Folder {
    /// Takes a folder, and makes it if it is not there.
    pub fn take(path: &Path) -> Result<Folder, Failure> {
        let failed = |source| Failure::Folder { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let file = open(&path).map_err(failed)?;
        let mut lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((mut file, nix::errno::Errno::EWOULDBLOCK)) => {
                let pid = read_pid(&mut file).map_err(failed)?;
                return Err(Failure::Busy { path, pid });
            }
            Err((_, error)) => return Err(failed(error.into())),
        };
        let note = |lock: &mut File| {
            lock.set_len(0)?;
            lock.rewind()?;
            writeln!(lock, "{}", std::process::id())
        };
        note(&mut lock).map_err(failed)?;
        let folder = Folder { path, _lock: lock };
        // One that an earlier cluster left behind when it was killed.
        folder.forget();
        Ok(folder)
    }

    /// Throws away everything in it.
    pub fn empty(&self) -> Result<(), Failure> {
        let failed = |source| Failure::Folder { path: self.path.clone(), source };
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_name() == LOCK {
                continue;
            }
            let is_folder = entry.file_type().map_err(failed)?.is_dir();
            let removed = if is_folder { remove_all(&entry.path()) } else { fs::remove_file(entry.path()) };
            removed.map_err(failed)?;
        }
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Something in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Notes where the cluster is reached.
    pub fn note(&self, state: &State) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(state).expect("a state is JSON");
        write_private(&self.join(STATE), &text)
            .map_err(|source| Failure::Folder { path: self.path.clone(), source })
    }

    /// The cluster is reached nowhere any more.
    pub fn forget(&self) {
        // There may be none.
        let _ = fs::remove_file(self.join(STATE));
    }
}

/// The process that has a folder; `None` where nobody does.
pub fn holder(path: &Path) -> io::Result<Option<u32>> {
    let file = match File::options().read(true).write(true).open(path.join(LOCK)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(_) => Ok(None),
        Err((mut file, nix::errno::Errno::EWOULDBLOCK)) => read_pid(&mut file),
        Err((_, error)) => Err(error.into()),
    }
}

/// Where the cluster of a folder is reached.
pub fn state(path: &Path) -> Option<State> {
    serde_json::from_slice(&fs::read(path.join(STATE)).ok()?).ok()
}

fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(path.join(LOCK))
}

fn read_pid(file: &mut File) -> io::Result<Option<u32>> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text.trim().parse().ok())
}

/// Containers may have made folders that even their owner may not look into.
fn remove_all(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            fs::remove_dir_all(path)
        }
        removed => removed,
    }
}

fn open_up(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_owner_and_says_who() {
        let path = std::env::temp_dir().join(format!("windlass-folder-{}", std::process::id()));
        assert_eq!(holder(&path).unwrap(), None);
        let folder = Folder::take(&path).unwrap();
        assert_eq!(holder(&path).unwrap(), Some(std::process::id()));
        let refused = Folder::take(&path).err().unwrap();
        assert!(matches!(refused, Failure::Busy { pid: Some(pid), .. } if pid == std::process::id()));

        fs::create_dir_all(folder.join("node/a/closed")).unwrap();
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o000);
        fs::set_permissions(folder.join("node/a/closed"), closed).unwrap();
        fs::write(folder.join("x"), "").unwrap();
        folder.empty().unwrap();
        let left: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [LOCK]);
        drop(folder);
        assert_eq!(holder(&path).unwrap(), None);
        fs::remove_dir_all(&path).unwrap();
    }
}
