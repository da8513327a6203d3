//! Who a pod of a StatefulSet is: its ordinal, and what follows from it.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};

use crate::controllers::pods;

/// The label with a pod's own name, by which a Service selects one pod.
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// The label with a pod's ordinal.
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";
/// The label with the revision that a pod was made from.
const REVISION: &str = "controller-revision-hash";

/// The parent and the ordinal that a pod's name tells.
pub(super) fn of_name(name: &str) -> Option<(&str, i32)> {
    let (parent, number) = name.rsplit_once('-')?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let ordinal = number.parse().ok().filter(|_| digits)?;
    Some((parent, ordinal))
}

/// The ordinal of a pod.
pub(super) fn ordinal(pod: &Pod) -> Option<i32> {
    of_name(name(pod)).map(|(_, ordinal)| ordinal)
}

/// The name of a pod.
pub(super) fn name(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap_or_default()
}

/// The name of a set.
pub(super) fn set_name(set: &StatefulSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// Whether a pod has the name of one of the set's.
pub(super) fn is_member(set: &StatefulSet, pod: &Pod) -> bool {
    of_name(name(pod)).is_some_and(|(parent, _)| parent == set_name(set))
}

/// The ordinals that a set should have.
pub(super) fn range(spec: &StatefulSetSpec) -> std::ops::Range<i32> {
    let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or_default();
    start..start.saturating_add(spec.replicas.unwrap_or(1))
}

/// The revision that a pod was made from.
pub(super) fn revision(pod: &Pod) -> &str {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get(REVISION)).map_or("", String::as_str)
}

/// A pod of this ordinal, from the template of a revision.
pub(super) fn make(set: &StatefulSet, template: &PodTemplateSpec, revision: &str, ordinal: i32) -> Pod {
    let mut pod = pods::from_template(template, set);
    pod.metadata.name = Some(format!("{}-{ordinal}", set_name(set)));
    identify(&mut pod);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(REVISION.into(), revision.to_owned());
    store(set, &mut pod);
    let service = set.spec.as_ref().and_then(|spec| spec.service_name.clone());
    let hostname = pod.metadata.name.clone();
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = hostname;
    spec.subdomain = service.filter(|name| !name.is_empty());
    pod
}

/// Whether a pod says who it is.
pub(super) fn is_identified(pod: &Pod) -> bool {
    pod.metadata.labels.as_ref().and_then(|labels| labels.get(POD_NAME)) == pod.metadata.name.as_ref()
}

/// Makes a pod say who it is.
pub(super) fn identify(pod: &mut Pod) {
    let (name, ordinal) = (name(pod).to_owned(), ordinal(pod).unwrap_or_default());
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME.into(), name);
    labels.insert(POD_INDEX.into(), ordinal.to_string());
}

/// Whether a pod has the volumes of its claims.
pub(super) fn is_stored(set: &StatefulSet, pod: &Pod) -> bool {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    volumes_of(set, pod).iter().all(|wanted| {
        let claim =
            |volume: &Volume| volume.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.clone());
        volumes.iter().any(|volume| volume.name == wanted.name && claim(volume) == claim(wanted))
    })
}

/// Gives a pod the volumes of its claims, in place of others of the same names.
pub(super) fn store(set: &StatefulSet, pod: &mut Pod) {
    let mut volumes = volumes_of(set, pod);
    let names: Vec<String> = volumes.iter().map(|volume| volume.name.clone()).collect();
    let spec = pod.spec.get_or_insert_default();
    volumes.extend(spec.volumes.take().into_iter().flatten().filter(|volume| !names.contains(&volume.name)));
    spec.volumes = Some(volumes).filter(|volumes| !volumes.is_empty());
}

fn volumes_of(set: &StatefulSet, pod: &Pod) -> Vec<Volume> {
    let Some(ordinal) = ordinal(pod) else { return Vec::new() };
    let volume = |template: &PersistentVolumeClaim| Volume {
        name: template.metadata.name.clone().unwrap_or_default(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim_name(set, template, ordinal),
            read_only: None,
        }),
        ..Volume::default()
    };
    templates(set).iter().map(volume).collect()
}

/// The claims that each pod of a set has.
pub(super) fn templates(set: &StatefulSet) -> &[PersistentVolumeClaim] {
    set.spec.as_ref().and_then(|spec| spec.volume_claim_templates.as_deref()).unwrap_or_default()
}

/// The name of the claim that the pod of an ordinal has by a template.
pub(super) fn claim_name(set: &StatefulSet, template: &PersistentVolumeClaim, ordinal: i32) -> String {
    format!("{}-{}-{ordinal}", template.metadata.name.as_deref().unwrap_or_default(), set_name(set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_parent_and_ordinal() {
        assert_eq!(of_name("web-0"), Some(("web", 0)));
        assert_eq!(of_name("a-b-12"), Some(("a-b", 12)));
        assert_eq!(of_name("web-"), None);
        assert_eq!(of_name("web"), None);
        assert_eq!(of_name("web-+1"), None);
        assert_eq!(of_name("web-99999999999"), None);
    }
}
