//! A pod's place: its folder, its volumes, its network; and how all of it goes again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount, Volume};
use kube::Api;
use kube::api::PostParams;

use super::Unprepared;
use crate::pod::backoff::later;
use crate::pod::hosts;
use crate::pod::launch::Place;
use crate::pod::node::Node;
use crate::pod::volume::payload::{Sources, TokenNeed, tokens};
use crate::pod::volume::{self, NotThere, Ready};

/// When a token that could not be renewed is asked for again.
const RENEW_AGAIN: Duration = Duration::from_secs(30);

/// A place, and the tokens in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Prepared {
    pub place: Place,
    pub tokens: Tokens,
}

/// The tokens of a pod, by volume and path.
#[derive(Clone, Debug, Default)]
pub(super) struct Tokens(BTreeMap<(String, String), Token>);

#[derive(Clone, Debug)]
struct Token {
    text: String,
    renew_at: Timestamp,
}

impl Tokens {
    /// When the next one has to be renewed.
    pub fn renew_at(&self) -> Option<Timestamp> {
        self.0.values().map(|token| token.renew_at).min()
    }

    fn of_volume(&self, volume: &str) -> BTreeMap<String, String> {
        let own = self.0.iter().filter(|((of, _), _)| of == volume);
        own.map(|((_, path), token)| (path.clone(), token.text.clone())).collect()
    }
}

/// Gives a pod its place. What an earlier try has made is used.
pub(super) async fn prepare(node: Arc<Node>, pod: Arc<Pod>, had: Prepared) -> Result<Prepared, Unprepared> {
    let mut prepared = had;
    let failed =
        |prepared: Prepared, reason: &'static str, note: String| Unprepared { reason, note, prepared };
    if let Err(error) = make_folders(&prepared.place.folder) {
        let note = format!("error making pod data directories: {error}");
        return Err(failed(prepared, "Failed", note));
    }
    prepared.place.facts.host_ips.clone_from(&node.host_ips);
    prepared.place.facts.capacity = node.capacity;
    for volume in volume::wanted(&pod) {
        if let Err(error) = make_volume(&node, &pod, volume, &mut prepared).await {
            return Err(failed(prepared, "FailedMount", error.to_string()));
        }
    }
    let (hostname, _) = hosts::hostname(&pod, &node.cluster_domain);
    let net = match node.network.attach(&pod, &hostname).await {
        Ok(net) => net,
        Err(error) => {
            let note = format!("Failed to create pod sandbox: {error}");
            return Err(failed(prepared, "FailedCreatePodSandBox", note));
        }
    };
    let place = &mut prepared.place;
    place.net = net.name;
    place.hostname = hostname;
    place.facts.pod_ips = net.ips;
    if let Err(error) = write_etc(&node, &pod, place) {
        let note = format!("Failed to create pod sandbox: {error}");
        return Err(failed(prepared, "FailedCreatePodSandBox", note));
    }
    Ok(prepared)
}

/// Makes volumes of objects hold what the objects say now, and those that only a later container wants. What cannot be had
/// stays as it is.
pub(super) async fn refresh(node: Arc<Node>, pod: Arc<Pod>, had: Prepared) -> Prepared {
    let mut prepared = had;
    for volume in volume::wanted(&pod) {
        let there = prepared.place.volumes.get(&volume.name);
        if there.is_some_and(|ready| ready.payload.is_none()) {
            continue;
        }
        if let Err(error) = make_volume(&node, &pod, volume, &mut prepared).await {
            tracing::debug!(pod = pod.metadata.name, error = %error, "volume stays as it is");
        }
    }
    prepared
}

/// Takes the network and the volumes of a pod away. Its logs stay.
pub(super) async fn release(node: Arc<Node>, uid: String, place: Arc<Place>) {
    node.network.detach(&uid).await;
    for volume in place.volumes.values().filter(|volume| volume.memory.is_some()) {
        node.runtime.unmount_memory(&volume.path).await;
    }
    for folder in ["volumes", "containers"] {
        remove(&place.folder.join(folder));
    }
}

/// Removes a file or a folder with all that is in it.
pub(crate) fn remove(path: &Path) {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|there| there.is_dir());
    let removed = if is_folder { windlass_sandbox::remove_tree(path) } else { fs::remove_file(path) };
    if let Err(error) = removed
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "cannot be removed");
    }
}

fn make_folders(folder: &Path) -> io::Result<()> {
    for part in ["volumes", "containers", "logs", "etc"] {
        fs::create_dir_all(folder.join(part))?;
    }
    Ok(())
}

fn write_etc(node: &Node, pod: &Pod, place: &Place) -> io::Result<()> {
    let machine = fs::read_to_string("/etc/hosts").unwrap_or_default();
    let files = [
        ("hosts", hosts::hosts(pod, &place.facts.pod_ips, &node.cluster_domain, &machine)),
        ("hostname", format!("{}\n", place.hostname)),
        ("resolv.conf", node.network.resolv_conf(pod)),
    ];
    for (name, text) in files {
        let path = place.etc(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

async fn make_volume(
    node: &Node,
    pod: &Pod,
    volume: &Volume,
    prepared: &mut Prepared,
) -> Result<(), NotThere> {
    let failed = |why: String| NotThere { volume: volume.name.clone(), why };
    for need in tokens(volume) {
        issue(node, pod, &volume.name, &need, &mut prepared.tokens).await.map_err(failed)?;
    }
    let claim = match &volume.persistent_volume_claim {
        Some(source) => Some(claimed(node, pod, &source.claim_name).await.map_err(failed)?),
        None => None,
    };
    let place = &mut prepared.place;
    let own = prepared.tokens.of_volume(&volume.name);
    let from = Sources { pod, library: &*node.library, facts: &place.facts, tokens: &own };
    let there = place.volumes.get(&volume.name);
    let had = there.cloned();
    let (now, number) = (node.env.now(), node.env.random());
    let ready = volume::set_up(&place.folder, volume, claim.as_ref(), from, there, now, number)?;
    if let (Some(memory), None) = (ready.memory, &had) {
        node.runtime.mount_memory(&ready.path, memory.bytes).await.map_err(failed)?;
    }
    let changed = had.is_none_or(|had| had.payload != ready.payload);
    if changed && volume.host_path.is_none() {
        give_to_group(pod, &ready).map_err(|error| failed(error.to_string()))?;
    }
    place.volumes.insert(volume.name.clone(), ready);
    Ok(())
}

/// The volume that a claim is bound to.
async fn claimed(node: &Node, pod: &Pod, name: &str) -> Result<PersistentVolume, String> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(node.client.clone(), namespace);
    let claim = claims.get(name).await.map_err(|error| said(&error))?;
    let bound = claim.spec.and_then(|spec| spec.volume_name).filter(|name| !name.is_empty());
    let bound = bound.ok_or_else(|| format!("persistentvolumeclaim \"{name}\" is not bound"))?;
    Api::all(node.client.clone()).get(&bound).await.map_err(|error| said(&error))
}

/// What the server said, or why it could not be asked.
fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Sees to it that there is a token that lasts for a while.
async fn issue(
    node: &Node,
    pod: &Pod,
    volume: &str,
    need: &TokenNeed,
    tokens: &mut Tokens,
) -> Result<(), String> {
    let key = (volume.to_owned(), need.path.clone());
    let now = node.env.now();
    if tokens.0.get(&key).is_some_and(|token| now < token.renew_at) {
        return Ok(());
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
    let account = account.filter(|name| !name.is_empty()).unwrap_or("default");
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: Some(need.audience.clone())
                .filter(|audience| !audience.is_empty())
                .map(|one| vec![one]),
            expiration_seconds: Some(need.expiration_seconds),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: pod.metadata.name.clone(),
                uid: pod.metadata.uid.clone(),
            }),
        }),
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(node.client.clone(), namespace);
    let issued = accounts.create_token_request(account, &PostParams::default(), &request).await;
    let issued = issued.map_err(|error| format!("failed to fetch token: {}", said(&error)));
    let issued = issued
        .and_then(|issued| issued.status.ok_or("failed to fetch token: the answer has none".to_owned()));
    let status = match issued {
        Ok(status) => status,
        // The old one lasts for a while yet.
        Err(error) => {
            if let Some(token) = tokens.0.get_mut(&key) {
                token.renew_at = later(now, RENEW_AGAIN);
            }
            return Err(error);
        }
    };
    let ends = status.expiration_timestamp.map_or(now, |ends| ends.0);
    let lasts = Duration::try_from(ends.duration_since(now)).unwrap_or_default();
    // kubelet renews at four fifths of the time, and daily.
    let wait = lasts.mul_f64(0.8).min(Duration::from_secs(24 * 3600)).max(Duration::from_secs(10));
    tokens.0.insert(key, Token { text: status.token.unwrap_or_default(), renew_at: later(now, wait) });
    Ok(())
}

/// Files of a volume belong to the group that the pod says, as far as we may give them away.
fn give_to_group(pod: &Pod, ready: &Ready) -> io::Result<()> {
    let context = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let Some(group) = context.and_then(|context| context.fs_group).and_then(|id| u32::try_from(id).ok())
    else {
        return Ok(());
    };
    if !nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    give(&ready.path, group, if ready.read_only { 0o440 } else { 0o660 })
}

fn give(path: &Path, group: u32, mode: u32) -> io::Result<()> {
    let there = fs::symlink_metadata(path)?;
    std::os::unix::fs::lchown(path, None, Some(group))?;
    if there.is_symlink() {
        return Ok(());
    }
    let more = if there.is_dir() { mode | 0o2110 } else { mode };
    let old = there.permissions().mode() & 0o7777;
    fs::set_permissions(path, fs::Permissions::from_mode(old | more))?;
    if there.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), group, mode)?;
        }
    }
    Ok(())
}
