//! The volumes of a pod: folders of this machine that its containers see at places of their own.
//!
//! ```text
//! <pod's folder>/volumes/<kind>/<name>   emptyDir, configMap, secret, downwardAPI, projected
//! wherever they are                      hostPath, persistentVolumeClaim
//! ```

mod atomic;
mod host_path;
pub(crate) mod payload;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, PersistentVolume, Pod, Volume};

use super::member::Member;
use payload::{Payload, Sources};

/// A volume that is there.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    /// Where it is.
    pub path: PathBuf,
    /// Whether nobody may write to it.
    pub read_only: bool,
    /// What it holds, where it is made from objects.
    pub payload: Option<Payload>,
    /// Whether it is memory, mounted by the sandbox.
    pub memory: Option<Memory>,
}

/// Memory in place of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// How much there may be.
    pub bytes: Option<u64>,
}

/// The volumes of a pod by their names.
pub(crate) type Volumes = BTreeMap<String, Ready>;

/// Why a volume is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MountVolume.SetUp failed for volume \"{volume}\" : {why}")]
pub(crate) struct NotThere {
    pub volume: String,
    pub why: String,
}

/// Makes a volume, or makes it up to date. `claim` is the volume that its claim is bound to.
pub(crate) fn set_up(
    folder: &Path,
    volume: &Volume,
    claim: Option<&PersistentVolume>,
    from: Sources<'_>,
    there: Option<&Ready>,
    now: Timestamp,
    number: u64,
) -> Result<Ready, NotThere> {
    let failed = |why: String| NotThere { volume: volume.name.clone(), why };
    let of_disk = |error: io::Error| failed(error.to_string());
    let place = |kind: &str| folder.join("volumes").join(format!("kubernetes.io~{kind}")).join(&volume.name);
    let ready = |path: PathBuf| Ready { path, read_only: false, payload: None, memory: None };

    if let Some(payload) = payload::payload(volume, from).map_err(failed)? {
        let kind = match volume {
            Volume { config_map: Some(_), .. } => "configmap",
            Volume { secret: Some(_), .. } => "secret",
            Volume { downward_api: Some(_), .. } => "downward-api",
            _ => "projected",
        };
        let path = place(kind);
        if there.and_then(|there| there.payload.as_ref()) != Some(&payload) {
            atomic::write(&path, &payload, now, number).map_err(of_disk)?;
        }
        return Ok(Ready { read_only: true, payload: Some(payload), ..ready(path) });
    }
    if let Some(source) = &volume.empty_dir {
        let path = place("empty-dir");
        fs::create_dir_all(&path).map_err(of_disk)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).map_err(of_disk)?;
        let limit = source.size_limit.as_ref().and_then(crate::pod::quantity::whole);
        let bytes = limit.and_then(|bytes| u64::try_from(bytes).ok());
        let memory = (source.medium.as_deref() == Some("Memory")).then_some(Memory { bytes });
        return Ok(Ready { memory, ..ready(path) });
    }
    if let Some(source) = &volume.host_path {
        let path = PathBuf::from(&source.path);
        host_path::check(&path, source.type_.as_deref().unwrap_or_default()).map_err(failed)?;
        return Ok(ready(path));
    }
    if let Some(source) = &volume.persistent_volume_claim {
        let claimed = claim.and_then(|volume| volume.spec.as_ref());
        let path = claimed.and_then(|spec| {
            let local = spec.local.as_ref().map(|local| &local.path);
            local.or(spec.host_path.as_ref().map(|host| &host.path))
        });
        let name = &source.claim_name;
        let path = path.ok_or_else(|| {
            failed(format!("claim \"{name}\" is bound to a volume that is neither a hostPath nor local"))
        })?;
        let path = PathBuf::from(path);
        fs::create_dir_all(&path).map_err(of_disk)?;
        return Ok(Ready { read_only: source.read_only == Some(true), ..ready(path) });
    }
    Err(failed(
        "this kind of volume is not there on this node: use emptyDir, hostPath, a claim or objects"
            .to_owned(),
    ))
}

/// The volumes that a container of a pod sees. As with kubelet, nobody waits for the others.
pub(crate) fn wanted(pod: &Pod) -> impl Iterator<Item = &Volume> {
    let members = Member::all(pod);
    let mounts = members.iter().flat_map(|member| member.spec.volume_mounts.iter().flatten());
    let names: BTreeSet<String> = mounts.map(|mount| mount.name.clone()).collect();
    let all = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    all.filter(move |volume| names.contains(&volume.name))
}

/// Where a container sees a volume, and what it sees of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub source: PathBuf,
    pub target: PathBuf,
    pub read_only: bool,
}

/// What a container sees of the volumes of its pod.
///
/// # Errors
/// When it wants a part of one that is not to be had, in words for people.
pub(crate) fn seen(
    container: &Container,
    volumes: &Volumes,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<Seen>, String> {
    let mut all = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let volume = volumes.get(&mount.name).ok_or_else(|| {
            format!("cannot find volume \"{}\" to mount into container \"{}\"", mount.name, container.name)
        })?;
        let part = match &mount.sub_path_expr {
            Some(text) => super::expand::expand(text, |name| variables.get(name).cloned()),
            None => mount.sub_path.clone().unwrap_or_default(),
        };
        let mut source = volume.path.clone();
        if !part.is_empty() {
            let inside = !part.starts_with('/') && part.split('/').all(|part| part != "..");
            if !inside {
                return Err(format!(
                    "unable to provision SubPath `{part}`: it must not lead out of the volume"
                ));
            }
            source.push(&part);
            if fs::symlink_metadata(&source).is_err() {
                let mode = fs::metadata(&volume.path).map(|there| there.permissions());
                let made =
                    fs::create_dir_all(&source).and(mode).and_then(|mode| fs::set_permissions(&source, mode));
                made.map_err(|error| {
                    format!("failed to create subPath directory for volumeMount \"{}\" of container \"{}\": {error}", mount.name, container.name)
                })?;
            }
            // The link of a file would still lead there after the files have changed.
            source = fs::canonicalize(&source).map_err(|error| format!("{}: {error}", source.display()))?;
        }
        let read_only = volume.read_only || mount.read_only == Some(true);
        let target = Path::new("/").join(&mount.mount_path);
        all.push(Seen { source, target, read_only });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::downward::Facts;
    use crate::pod::library::tests::Shelf;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn make(
        folder: &Path,
        volume: Value,
        shelf: &Shelf,
        there: Option<&Ready>,
        number: u64,
    ) -> Result<Ready, NotThere> {
        let pod = serde_json::from_value(json!({"metadata": {"name": "web", "namespace": "shop"}})).unwrap();
        let (facts, tokens) = (Facts::default(), BTreeMap::new());
        let from = Sources { pod: &pod, library: shelf, facts: &facts, tokens: &tokens };
        let volume = serde_json::from_value(volume).unwrap();
        set_up(folder, &volume, None, from, there, Timestamp::UNIX_EPOCH, number)
    }

    #[test]
    fn volumes_are_made_and_follow_their_objects() {
        let folder = std::env::temp_dir().join(format!("windlass-volumes-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let shelf = |text: &str| Shelf {
            config_maps: vec![Arc::new(
                serde_json::from_value(json!({"metadata": {"name": "conf"}, "data": {"a": text}})).unwrap(),
            )],
            ..Shelf::default()
        };
        let conf = json!({"name": "conf", "configMap": {"name": "conf"}});
        let ready = make(&folder, conf.clone(), &shelf("1"), None, 1).unwrap();
        let ready = make(&folder, conf.clone(), &shelf("1"), Some(&ready), 2).unwrap();
        assert_eq!(
            fs::read_link(ready.path.join("..data")).unwrap().extension().unwrap(),
            "1",
            "not made again"
        );
        let ready = make(&folder, conf.clone(), &shelf("2"), Some(&ready), 3).unwrap();
        assert_eq!(fs::read_to_string(ready.path.join("a")).unwrap(), "2");
        let missing = make(&folder, conf, &Shelf::default(), None, 4).unwrap_err().to_string();
        assert_eq!(missing, "MountVolume.SetUp failed for volume \"conf\" : configmap \"conf\" not found");

        let scratch = make(&folder, json!({"name": "tmp", "emptyDir": {}}), &shelf(""), None, 5).unwrap();
        let volumes = Volumes::from([("tmp".to_owned(), scratch.clone()), ("conf".to_owned(), ready)]);
        let container: Container = serde_json::from_value(json!({"name": "web", "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp/x", "subPathExpr": "of/$(WHO)"},
            {"name": "conf", "mountPath": "/etc/conf"},
        ]}))
        .unwrap();
        let variables = BTreeMap::from([("WHO".to_owned(), "me".to_owned())]);
        let seen = seen(&container, &volumes, &variables).unwrap();
        assert_eq!(seen[0].source, scratch.path.join("of/me").canonicalize().unwrap());
        assert!(!seen[0].read_only && seen[1].read_only);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_volume_that_nobody_mounts_is_not_wanted() {
        let mounts = |name: &str| json!({"name": name, "volumeMounts": [{"name": name, "mountPath": "/x"}]});
        let pod: Pod = serde_json::from_value(json!({"spec": {
            "initContainers": [mounts("first")], "containers": [mounts("main")],
            "ephemeralContainers": [mounts("debug")],
            "volumes": [{"name": "main"}, {"name": "unused"}, {"name": "debug"}, {"name": "first"}],
        }}))
        .unwrap();
        let names: Vec<_> = wanted(&pod).map(|volume| volume.name.as_str()).collect();
        assert_eq!(names, ["main", "debug", "first"]);
    }

    #[test]
    fn a_part_of_a_volume_is_inside_of_it() {
        let there = Ready { path: "/tmp".into(), read_only: false, payload: None, memory: None };
        let volumes = Volumes::from([("tmp".to_owned(), there)]);
        let of = |mount: Value| {
            let container = json!({"name": "web", "volumeMounts": [mount]});
            seen(&serde_json::from_value(container).unwrap(), &volumes, &BTreeMap::new())
        };
        assert!(of(json!({"name": "tmp", "mountPath": "/a", "subPath": "../etc"})).is_err());
        assert!(of(json!({"name": "none", "mountPath": "/a"})).is_err());
    }
}
