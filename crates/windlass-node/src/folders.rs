//! The folders of volumes that were made for claims: removed when their volume goes.
//!
//! A PersistentVolume of ours is held by a finalizer until its folder is gone, so that no data is left behind that nobody
//! knows of; unless its reclaim policy is another than Delete: then the volume goes and its data stays, as on every cluster.
//! What is not below the folder of all volumes is never touched, whatever an object says.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::sync::Notify;
use windlass::Env;
use windlass::cache::{Cache, Declared, Delta, Informer, Subscriber};

/// Who makes such volumes: the `provisioner` of their class.
pub const PROVISIONER: &str = "windlass.dev/folder";

/// The finalizer that holds a volume until its folder is gone.
const FINALIZER: &str = "windlass.dev/folder";

/// After a folder that could not be removed, or a server that did not hear of it.
const RETRY: Duration = Duration::from_secs(5);

/// Makes the class of such volumes, below this folder: that of claims which name none. One that is there stays as it is.
///
/// # Errors
/// When the API server refuses, or cannot be reached.
pub async fn ensure_class(client: &kube::Client, root: &Path) -> Result<(), kube::Error> {
    let class = json!({
        "metadata": {
            "name": "standard",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": PROVISIONER,
        "parameters": {"path": root.join("{volume}")},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    });
    let class: StorageClass = serde_json::from_value(class).map_err(kube::Error::SerdeError)?;
    let classes: Api<StorageClass> = Api::all(client.clone());
    match classes.create(&PostParams::default(), &class).await {
        Err(kube::Error::Api(refused)) if refused.is_already_exists() => Ok(()),
        made => made.map(|_| ()),
    }
}

/// The folders of volumes of one machine.
#[derive(Debug)]
pub struct Folders {
    volumes: Informer<PersistentVolume>,
    root: PathBuf,
}

impl Folders {
    /// Those below this folder.
    pub fn declare(cache: &Cache, root: PathBuf) -> Folders {
        Folders { volumes: cache.declare(Declared::typed()), root }
    }

    /// Removes folders as their volumes go, until it is dropped.
    pub async fn run(self, client: kube::Client, env: Env) {
        let wake = Arc::new(Wake::default());
        self.volumes.subscribe(wake.clone());
        loop {
            let mut failed = false;
            for volume in self.volumes.list(None) {
                let Some(fate) = fate(&volume, &self.root) else { continue };
                if let Err(error) = carry_out(&client, &volume, &fate).await {
                    tracing::warn!(?fate, %error, "a volume stays for now");
                    failed = true;
                }
            }
            tokio::select! {
                biased;
                () = wake.0.notified() => {}
                () = env.sleep(RETRY), if failed => {}
            }
        }
    }
}

/// What becomes of the folder of a volume that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// It goes first.
    Removed(PathBuf),
    /// Its data is to be retained.
    Kept,
}

/// What has to happen before a volume can go; nothing while it stays, or is held by somebody else, or is none of ours.
fn fate(volume: &PersistentVolume, root: &Path) -> Option<Fate> {
    volume.metadata.deletion_timestamp.as_ref()?;
    let held = volume.metadata.finalizers.iter().flatten();
    // Whoever else holds it still wants something of it.
    if held.clone().count() != 1 || held.into_iter().any(|name| name != FINALIZER) {
        return None;
    }
    let spec = volume.spec.as_ref()?;
    if spec.persistent_volume_reclaim_policy.as_deref() != Some("Delete") {
        return Some(Fate::Kept);
    }
    let path = PathBuf::from(&spec.host_path.as_ref()?.path);
    let inside = path.strip_prefix(root).ok()?;
    let plain = inside.components().all(|part| matches!(part, Component::Normal(_)));
    (plain && inside.components().next().is_some()).then_some(Fate::Removed(path))
}

async fn carry_out(client: &kube::Client, volume: &PersistentVolume, fate: &Fate) -> Result<(), Error> {
    if let Fate::Removed(folder) = fate {
        match tokio::fs::remove_dir_all(folder).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::Folder(error)),
            _ => {}
        }
    }
    let Some(name) = &volume.metadata.name else { return Ok(()) };
    let patch = json!({"metadata": {
        "uid": volume.metadata.uid, "resourceVersion": volume.metadata.resource_version, "finalizers": null,
    }});
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    match volumes.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await {
        // It changed, and the change wakes us; or it is gone.
        Err(kube::Error::Api(refused)) if refused.is_conflict() || refused.is_not_found() => Ok(()),
        released => released.map(|_| ()).map_err(Error::Release),
    }
}

/// Why a volume is still there.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("its files cannot be removed: {0}")]
    Folder(io::Error),
    #[error("it is not released: {0}")]
    Release(kube::Error),
}

#[derive(Debug, Default)]
struct Wake(Notify);

impl Subscriber<PersistentVolume> for Wake {
    fn changed(&self, _: &Delta<PersistentVolume>) {
        self.0.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(deleted: bool, finalizers: &[&str], path: &str) -> PersistentVolume {
        let mut volume = json!({
            "metadata": {"name": "pvc-1", "finalizers": finalizers},
            "spec": {"hostPath": {"path": path}, "persistentVolumeReclaimPolicy": "Delete"},
        });
        if deleted {
            volume["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        serde_json::from_value(volume).unwrap()
    }

    #[test]
    fn a_folder_goes_with_its_volume_and_nothing_else_does() {
        let root = Path::new("/data/volumes");
        let check = |deleted, finalizers: &[&str], path| fate(&volume(deleted, finalizers, path), root);
        let gone = Some(Fate::Removed("/data/volumes/pvc-1".into()));
        assert_eq!(check(true, &[FINALIZER], "/data/volumes/pvc-1"), gone);
        assert_eq!(check(false, &[FINALIZER], "/data/volumes/pvc-1"), None);
        assert_eq!(check(true, &[], "/data/volumes/pvc-1"), None);
        assert_eq!(check(true, &[FINALIZER, "kubernetes.io/pv-protection"], "/data/volumes/pvc-1"), None);
        for path in ["/data/volumes", "/data", "/etc", "/data/volumes/../store", "volumes/pvc-1"] {
            assert_eq!(check(true, &[FINALIZER], path), None, "{path}");
        }
    }

    /// A volume that was set to Retain and then deleted had taken its data with it.
    #[test]
    fn what_is_to_be_retained_stays_when_its_volume_goes() {
        let root = Path::new("/data/volumes");
        for policy in [Some("Retain"), Some("Recycle"), None] {
            let mut volume = volume(true, &[FINALIZER], "/data/volumes/pvc-1");
            volume.spec.as_mut().unwrap().persistent_volume_reclaim_policy = policy.map(str::to_owned);
            assert_eq!(fate(&volume, root), Some(Fate::Kept), "{policy:?}");
        }
    }
}
