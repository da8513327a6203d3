//! StorageObjectInUseProtection and PersistentVolumeClaimResize: what is in use does not go away, and grows only where it can.

use serde_json::{Value, json};
use windlass_core::quota::claim_class;

use super::Admission;
use crate::kinds::check::quantity;
use crate::kinds::tree::{flag, list, set, sub, text_at};
use crate::status::Result;

/// What is protected, and by which finalizer.
const PROTECTED: [(&str, &str, &str); 3] = [
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
];

pub(super) fn protect(object: &mut Value, admission: &mut Admission<'_>) -> Result<()> {
    let found = PROTECTED.iter().find(|(group, resource, _)| admission.is_of(group, resource));
    let Some((.., finalizer)) = found else { return Ok(()) };
    let metadata = sub(object, "metadata");
    let mut finalizers = list(metadata, "finalizers").to_vec();
    if !finalizers.iter().any(|present| present == finalizer) {
        finalizers.push(json!(finalizer));
        set(metadata, "finalizers", finalizers);
    }
    Ok(())
}

/// A claim grows only when it is bound, and if its class says that it can.
pub(super) fn allow_growth(claim: &Value, admission: &mut Admission<'_>) -> Result<()> {
    let Some(old) = admission.old.filter(|_| admission.is_of("", "persistentvolumeclaims")) else {
        return Ok(());
    };
    let size = |claim: &Value| claim.pointer("/spec/resources/requests/storage").and_then(quantity);
    if size(claim) <= size(old) {
        return Ok(());
    }
    if text_at(old, &["status", "phase"]) != "Bound" {
        return Err(admission.refuse(claim, "Only bound persistent volume claims can be expanded"));
    }
    let class = claim_class(claim);
    let found = admission.context.world.get("storage.k8s.io", "StorageClass", "", class);
    if !class.is_empty()
        && class == claim_class(old)
        && found.is_some_and(|class| flag(&class, "allowVolumeExpansion"))
    {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
               support resize";
    Err(admission.refuse(claim, why))
}
