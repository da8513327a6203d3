//! Whom a container runs as, and what it may do.

use std::path::Path;

use k8s_openapi::api::core::v1::{Container, ContainerUser, LinuxContainerUser, Pod};
use windlass_sandbox::{Capabilities, User};

use crate::image::{Image, Root};

/// Whom a container runs as.
///
/// # Errors
/// When it must not run as who it would run as, in kubelet's words.
pub(crate) fn user(pod: &Pod, container: &Container, image: &Image) -> Result<User, String> {
    let own = container.security_context.as_ref();
    let common = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let uid = own.and_then(|own| own.run_as_user).or(common.and_then(|common| common.run_as_user));
    let gid = own.and_then(|own| own.run_as_group).or(common.and_then(|common| common.run_as_group));
    let non_root =
        own.and_then(|own| own.run_as_non_root).or(common.and_then(|common| common.run_as_non_root));
    let of_image = ImageUser::of(image);
    if non_root == Some(true) {
        check_non_root(pod, container, uid, &of_image)?;
    }
    let narrow = |id: i64| u32::try_from(id).map_err(|_| format!("{id} is no id of a user or a group"));
    let (uid, from_image) = match uid {
        Some(uid) => (narrow(uid)?, false),
        None => (of_image.uid, true),
    };
    let gid = match gid {
        Some(gid) => narrow(gid)?,
        None if from_image => of_image.gid,
        None => passwd(image, |entry| entry.uid == uid).map_or(0, |entry| entry.gid),
    };
    let mut groups = Vec::new();
    for group in common
        .into_iter()
        .flat_map(|common| common.supplemental_groups.iter().flatten().copied().chain(common.fs_group))
    {
        let group = narrow(group)?;
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    Ok(User { uid, gid, groups })
}

/// As statuses tell it.
pub(crate) fn told(user: &User) -> ContainerUser {
    let mut groups: Vec<i64> = vec![i64::from(user.gid)];
    groups.extend(
        user.groups.iter().map(|&group| i64::from(group)).filter(|&group| group != i64::from(user.gid)),
    );
    groups.sort_unstable();
    let linux = LinuxContainerUser {
        uid: i64::from(user.uid),
        gid: i64::from(user.gid),
        supplemental_groups: Some(groups),
    };
    ContainerUser { linux: Some(linux) }
}

/// What of root's powers a container has.
pub(crate) fn capabilities(container: &Container) -> Capabilities {
    let context = container.security_context.as_ref();
    if context.is_some_and(|context| context.privileged == Some(true)) {
        return Capabilities { add: vec!["ALL".to_owned()], drop: Vec::new() };
    }
    let said = context.and_then(|context| context.capabilities.as_ref());
    Capabilities {
        add: said.and_then(|said| said.add.clone()).unwrap_or_default(),
        drop: said.and_then(|said| said.drop.clone()).unwrap_or_default(),
    }
}

/// Whom an image says that it runs as.
struct ImageUser {
    uid: u32,
    gid: u32,
    /// Its name, where that is not a number.
    name: Option<String>,
}

impl ImageUser {
    fn of(image: &Image) -> ImageUser {
        let (user, group) = image.user.split_once(':').map_or((&*image.user, None), |(a, b)| (a, Some(b)));
        let group = group.map(|group| group.parse().ok().or_else(|| group_id(image, group)).unwrap_or(0));
        if user.is_empty() {
            return ImageUser { uid: 0, gid: group.unwrap_or(0), name: None };
        }
        let entry = match user.parse::<u32>() {
            Ok(uid) => {
                return ImageUser {
                    uid,
                    gid: group
                        .or(passwd(image, |entry| entry.uid == uid).map(|entry| entry.gid))
                        .unwrap_or(0),
                    name: None,
                };
            }
            Err(_) => passwd(image, |entry| entry.name == user),
        };
        let (uid, gid) = entry.map_or((0, 0), |entry| (entry.uid, entry.gid));
        ImageUser { uid, gid: group.unwrap_or(gid), name: Some(user.to_owned()) }
    }
}

fn check_non_root(
    pod: &Pod,
    container: &Container,
    uid: Option<i64>,
    image: &ImageUser,
) -> Result<(), String> {
    let of = |text: &Option<String>| text.clone().unwrap_or_default();
    let meta = &pod.metadata;
    let which = format!(
        "(pod: \"{}_{}({})\", container: {})",
        of(&meta.name),
        of(&meta.namespace),
        of(&meta.uid),
        container.name
    );
    match (uid, &image.name) {
        (Some(0), _) => Err(format!("container's runAsUser breaks non-root policy {which}")),
        (Some(_), _) => Ok(()),
        (None, Some(name)) => Err(format!(
            "container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is non-root {which}"
        )),
        (None, None) if image.uid == 0 => {
            Err(format!("container has runAsNonRoot and image will run as root {which}"))
        }
        (None, None) => Ok(()),
    }
}

/// A line of `/etc/passwd`.
struct Entry {
    name: String,
    uid: u32,
    gid: u32,
}

fn passwd(image: &Image, wanted: impl Fn(&Entry) -> bool) -> Option<Entry> {
    let text = read(image, "etc/passwd")?;
    let entries = text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        Some(Entry { name, uid: fields.nth(1)?.parse().ok()?, gid: fields.next()?.parse().ok()? })
    });
    let mut entries = entries.filter(wanted);
    entries.next()
}

fn group_id(image: &Image, name: &str) -> Option<u32> {
    let text = read(image, "etc/group")?;
    let mut lines = text.lines().map(|line| line.split(':'));
    lines.find_map(|mut fields| if fields.next()? == name { fields.nth(1)?.parse().ok() } else { None })
}

fn read(image: &Image, path: &str) -> Option<String> {
    let root = match &image.root {
        Root::Host => Path::new("/"),
        Root::Folder(folder) => folder,
    };
    std::fs::read_to_string(root.join(path)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(user_of_image: &str, pod_context: Value, context: Value) -> Result<User, String> {
        let pod = json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
            "spec": {"securityContext": pod_context, "containers": []},
        });
        let container = json!({"name": "c", "securityContext": context});
        let image = Image {
            id: String::new(),
            name: String::new(),
            root: Root::Host,
            binds: Vec::new(),
            entrypoint: Vec::new(),
            cmd: Vec::new(),
            env: Vec::new(),
            cwd: "/".to_owned(),
            user: user_of_image.to_owned(),
            stop_signal: String::new(),
        };
        user(&serde_json::from_value(pod).unwrap(), &serde_json::from_value(container).unwrap(), &image)
    }

    #[test]
    fn a_container_runs_as_it_says_or_its_pod_or_its_image() {
        let user = |uid, gid, groups: &[u32]| Ok(User { uid, gid, groups: groups.to_vec() });
        assert_eq!(of("", json!({}), json!({})), user(0, 0, &[]));
        assert_eq!(of("7:8", json!({}), json!({})), user(7, 8, &[]));
        assert_eq!(of("7:8", json!({"runAsUser": 4_000_000}), json!({})), user(4_000_000, 0, &[]));
        let common = json!({"runAsUser": 9, "runAsGroup": 10, "fsGroup": 5, "supplementalGroups": [4, 5]});
        assert_eq!(of("", common, json!({"runAsUser": 11})), user(11, 10, &[4, 5]));
    }

    #[test]
    fn whoever_must_not_be_root_is_not() {
        let non_root = || json!({"runAsNonRoot": true});
        assert_eq!(
            of("", json!({}), non_root()).unwrap_err(),
            "container has runAsNonRoot and image will run as root (pod: \"web_shop(u)\", container: c)"
        );
        assert_eq!(
            of("", json!({"runAsUser": 0}), non_root()).unwrap_err(),
            "container's runAsUser breaks non-root policy (pod: \"web_shop(u)\", container: c)"
        );
        assert_eq!(
            of("daemon", non_root(), json!({})).unwrap_err(),
            "container has runAsNonRoot and image has non-numeric user (daemon), cannot verify user is non-root \
             (pod: \"web_shop(u)\", container: c)"
        );
        assert!(of("", json!({"runAsUser": 5}), non_root()).is_ok());
        assert!(of("5", non_root(), json!({})).is_ok());
    }
}
