//! Volumes that are made for a claim: folders of this machine, where the class is ours.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PersistentVolume,
    PersistentVolumeClaim, PersistentVolumeSpec, VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ObjectMeta;
use windlass::events::Event;
use windlass_core::ObjectKey;

use super::claim::reference_to;
use super::{BOUND_BY_CONTROLLER, PROVISIONED_BY, annotate, class, class_of, note, size, units, wanted};
use crate::engine::{Turn, View};

/// The node that the pod of a claim goes to.
pub(super) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Who is to make the volume of a claim.
const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The same, as it was called before.
const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";

/// The provisioner of classes whose volumes are folders of this machine.
pub(crate) const PROVISIONER: &str = "windlass.dev/folder";
/// The finalizer by which a node holds a volume until its folder is gone.
pub(crate) const FINALIZER: &str = "windlass.dev/folder";
/// The parameter of a class with the folder of a volume: `{volume}`, `{namespace}`, `{claim}` and `{node}` in it are names.
const PATH: &str = "path";

/// Has a volume made for a claim.
pub(super) fn volume(turn: &mut Turn, view: &View<'_>, claim: &PersistentVolumeClaim) {
    let failed = |note: String| Event::warning("ProvisioningFailed", "Provision", note);
    let Some(class) = class(view, claim) else {
        let name = class_of(claim).unwrap_or_default();
        turn.event(claim, failed(format!("storageclass.storage.k8s.io {name:?} not found")));
        return;
    };
    let by = class.provisioner.as_str();
    if by.starts_with("kubernetes.io/") {
        turn.event(claim, failed(format!("no volume plugin matched name: {by}")));
        return;
    }
    let mut asked = claim.clone();
    annotate(&mut asked, STORAGE_PROVISIONER, by);
    annotate(&mut asked, BETA_STORAGE_PROVISIONER, by);
    if asked != *claim {
        turn.replace(&asked);
    }
    if by != PROVISIONER {
        let note = format!(
            "Waiting for a volume to be created either by the external provisioner '{by}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered."
        );
        turn.event(claim, Event::normal("ExternalProvisioning", "Provision", note));
        return;
    }
    if asked != *claim {
        return;
    }
    match folder(view, claim, &class) {
        Ok(volume) => {
            let note = format!("Successfully provisioned volume {{name}} using {by}");
            turn.create_and_tell(&volume, claim, Event::normal("ProvisioningSucceeded", "Provision", note));
        }
        Err(why) => {
            let name = class.metadata.name.as_deref().unwrap_or_default();
            turn.event(
                claim,
                failed(format!("Failed to provision volume with StorageClass {name:?}: {why}")),
            );
        }
    }
}

fn folder(
    view: &View<'_>,
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
) -> Result<PersistentVolume, String> {
    let spec = claim.spec.clone().unwrap_or_default();
    if spec.volume_mode.as_deref() == Some("Block") {
        return Err("a folder is no block device: use volumeMode Filesystem".into());
    }
    if spec.data_source.is_some() || spec.data_source_ref.is_some() {
        return Err("a folder is made empty: a claim with a dataSource needs another class".into());
    }
    let node = match note(claim, SELECTED_NODE) {
        None => None,
        Some(name) => match view.get::<Node>(&ObjectKey::cluster(name)) {
            Some(node) => Some(node),
            None => return Err(format!("node {name:?} not found")),
        },
    };
    let volume = format!("pvc-{}", claim.metadata.uid.as_deref().unwrap_or_default());
    let path = path(class, claim, node.as_deref(), &volume)?;
    let metadata = ObjectMeta {
        name: Some(volume),
        annotations: Some(BTreeMap::from([
            (BOUND_BY_CONTROLLER.to_owned(), "yes".to_owned()),
            (PROVISIONED_BY.to_owned(), PROVISIONER.to_owned()),
        ])),
        finalizers: Some(vec![FINALIZER.into()]),
        ..ObjectMeta::default()
    };
    let requests = spec.resources.and_then(|resources| resources.requests).unwrap_or_default();
    let storage = requests.get("storage").cloned().unwrap_or_default();
    let spec = PersistentVolumeSpec {
        access_modes: spec.access_modes,
        capacity: Some(BTreeMap::from([("storage".to_owned(), storage)])),
        claim_ref: Some(reference_to(claim)),
        host_path: Some(HostPathVolumeSource { path, type_: Some("DirectoryOrCreate".into()) }),
        mount_options: class.mount_options.clone(),
        node_affinity: node.as_deref().map(only_at),
        persistent_volume_reclaim_policy: class.reclaim_policy.clone().or(Some("Delete".into())),
        storage_class_name: class.metadata.name.clone(),
        volume_mode: Some("Filesystem".into()),
        ..PersistentVolumeSpec::default()
    };
    Ok(PersistentVolume { metadata, spec: Some(spec), status: None })
}

/// The folder of a volume. No two volumes have the same one: whoever removes it removes no other's data.
fn path(
    class: &StorageClass,
    claim: &PersistentVolumeClaim,
    node: Option<&Node>,
    volume: &str,
) -> Result<String, String> {
    let given = class.parameters.as_ref().and_then(|parameters| parameters.get(PATH));
    let Some(given) = given.filter(|path| path.starts_with('/')) else {
        return Err(format!("the class has no parameter {PATH:?} with an absolute folder"));
    };
    let template = if given.contains("{volume}") { given.clone() } else { format!("{given}/{{volume}}") };
    let node = node.and_then(|node| node.metadata.name.as_deref()).unwrap_or("any");
    let path = template
        .replace("{volume}", volume)
        .replace("{namespace}", claim.metadata.namespace.as_deref().unwrap_or_default())
        .replace("{claim}", claim.metadata.name.as_deref().unwrap_or_default())
        .replace("{node}", node);
    if path.split('/').any(|part| part == "..") {
        return Err(format!("the parameter {PATH:?} of the class must not contain \"..\""));
    }
    Ok(path)
}

fn only_at(node: &Node) -> VolumeNodeAffinity {
    const HOSTNAME: &str = "kubernetes.io/hostname";
    let label = node.metadata.labels.as_ref().and_then(|labels| labels.get(HOSTNAME));
    let value = label.or(node.metadata.name.as_ref()).cloned().unwrap_or_default();
    let here =
        NodeSelectorRequirement { key: HOSTNAME.into(), operator: "In".into(), values: Some(vec![value]) };
    let term = NodeSelectorTerm { match_expressions: Some(vec![here]), match_fields: None };
    VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: vec![term] }) }
}

/// A claim that wants more has it, where the class allows it: folders have no size of their own.
pub(super) fn grow(
    turn: &mut Turn,
    view: &View<'_>,
    volume: &Arc<PersistentVolume>,
    claim: &PersistentVolumeClaim,
) {
    let has = claim.status.as_ref().and_then(|status| status.capacity.as_ref()?.get("storage")).map(units);
    let allowed = class(view, claim).is_some_and(|class| class.allow_volume_expansion == Some(true));
    let ours = note(&**volume, PROVISIONED_BY) == Some(PROVISIONER);
    if !ours || !allowed || has.is_none_or(|has| has >= wanted(claim)) {
        return;
    }
    let requests = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.clone());
    let Some(storage) = requests.and_then(|requests| requests.get("storage").cloned()) else { return };
    if size(volume) < wanted(claim) {
        let mut larger = PersistentVolume::clone(volume);
        let capacity = larger.spec.get_or_insert_default().capacity.get_or_insert_default();
        capacity.insert("storage".into(), storage);
        turn.replace(&larger);
        return;
    }
    let mut larger = claim.clone();
    let capacity = larger.status.get_or_insert_default().capacity.get_or_insert_default();
    capacity.insert("storage".into(), storage);
    turn.status(&larger);
    turn.event(claim, Event::normal("VolumeResizeSuccessful", "Resize", "Resize volume succeeded"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of(template: &str) -> Result<String, String> {
        let parameters = Some(BTreeMap::from([(PATH.to_owned(), template.to_owned())]));
        let class = StorageClass { parameters, ..StorageClass::default() };
        let mut claim = PersistentVolumeClaim::default();
        claim.metadata.namespace = Some("default".into());
        claim.metadata.name = Some("data-web-0".into());
        path(&class, &claim, None, "pvc-1")
    }

    #[test]
    fn every_volume_has_a_folder_of_its_own() {
        assert_eq!(
            folder_of("/data/{namespace}/{claim}-{volume}").unwrap(),
            "/data/default/data-web-0-pvc-1"
        );
        assert_eq!(folder_of("/data").unwrap(), "/data/pvc-1");
        assert!(folder_of("data").is_err());
        assert!(folder_of("/data/../{volume}").is_err());
    }
}
