//! DefaultStorageClass and DefaultIngressClass: who names no class gets the one that is marked as default.

use serde_json::Value;

use super::Admission;
use crate::kinds::tree::{at, set, sub, text_at};
use crate::status::Result;

const CLAIM_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

pub(super) fn storage_class(claim: &mut Value, admission: &mut Admission<'_>) -> Result<()> {
    const MARKS: [&str; 2] =
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    if admission.is_of("", "persistentvolumeclaims")
        && !names_class(claim, "storageClassName", CLAIM_CLASS)
        && let Some(class) = newest(admission, "storage.k8s.io", "StorageClass", &MARKS)
    {
        set(sub(claim, "spec"), "storageClassName", class);
    }
    Ok(())
}

pub(super) fn ingress_class(ingress: &mut Value, admission: &mut Admission<'_>) -> Result<()> {
    const MARKS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];
    if admission.is_of("networking.k8s.io", "ingresses")
        && !names_class(ingress, "ingressClassName", INGRESS_CLASS)
        && let Some(class) = newest(admission, "networking.k8s.io", "IngressClass", &MARKS)
    {
        set(sub(ingress, "spec"), "ingressClassName", class);
    }
    Ok(())
}

/// Whether an object names its class, in its spec or the old way.
fn names_class(object: &Value, field: &str, annotation: &str) -> bool {
    at(object, &["spec", field]).is_some() || at(object, &["metadata", "annotations", annotation]).is_some()
}

/// The newest of the classes that are marked; of the same second the first by name.
fn newest(admission: &Admission<'_>, group: &str, kind: &str, marks: &[&str]) -> Option<String> {
    let mut classes = admission.context.world.list_with(group, kind, "is-default-class");
    classes.retain(|class| {
        marks.iter().any(|mark| text_at(class, &["metadata", "annotations", mark]) == "true")
    });
    classes.sort_by(|a, b| {
        let of = |class: &Value, field: &str| text_at(class, &["metadata", field]).to_owned();
        of(b, "creationTimestamp").cmp(&of(a, "creationTimestamp")).then(of(a, "name").cmp(&of(b, "name")))
    });
    classes.first().map(|class| text_at(class, &["metadata", "name"]).to_owned())
}
