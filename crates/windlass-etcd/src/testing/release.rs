//! Which etcds are on this machine.

use std::env;
use std::path::{Path, PathBuf};

/// A release of etcd whose programs are on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    version: &'static str,
    folder: PathBuf,
}

/// The releases that are tested, oldest first.
const VERSIONS: [&str; 3] = ["3.5", "3.6", "3.7"];

impl Release {
    /// The release, if `tools/setup etcd-<version>` has brought it.
    #[must_use]
    pub fn find(version: &'static str) -> Option<Self> {
        let folder = cache()?.join(format!("real/etcd-{version}"));
        folder.join("etcd").is_file().then_some(Self { version, folder })
    }

    /// The release that the test cannot do without.
    ///
    /// # Panics
    /// When it is not there, with the command that brings it.
    #[must_use]
    pub fn required(version: &'static str) -> Self {
        Self::find(version)
            .unwrap_or_else(|| panic!("there is no etcd {version}: run tools/setup etcd-{version}"))
    }

    /// All releases there are: 3.6 always, 3.5 and 3.7 where they have been brought; what is left out is said on stderr.
    ///
    /// # Panics
    /// When 3.6 is not there.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::required("3.6")];
        for version in VERSIONS.into_iter().filter(|version| *version != "3.6") {
            match Self::find(version) {
                Some(release) => all.push(release),
                None => eprintln!("not tested with etcd {version}: tools/setup etcd-{version} brings it"),
            }
        }
        all
    }

    /// Its version: major and minor.
    #[must_use]
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// One of its programs: `etcd`, `etcdctl`, `etcdutl`.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

fn cache() -> Option<PathBuf> {
    let of = |name| env::var_os(name).filter(|value| !value.is_empty());
    of("WINDLASS_CACHE").map(PathBuf::from).or_else(|| {
        let caches = of("XDG_CACHE_HOME").map(PathBuf::from);
        Some(caches.or_else(|| Some(Path::new(&of("HOME")?).join(".cache")))?.join("windlass"))
    })
}
