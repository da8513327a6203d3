//! OwnerReferencesPermissionEnforcement: whoever says whose an object is may delete it, and may keep its owner from going.

use serde_json::Value;

use super::{Admission, Operation};
use crate::api::authorize::Attributes;
use crate::api::registry::split_api_version;
use crate::kinds::tree::{flag, list, text};
use crate::status::Result;

pub(super) fn validate(object: &Value, admission: &mut Admission<'_>) -> Result<()> {
    let context = &admission.context;
    if admission.is_in("", "pods") && context.subresource == "status" {
        return Ok(());
    }
    let (new, old) = (owners(object), admission.old.map_or(&[][..], owners));
    if new == old {
        return Ok(());
    }
    // Whoever makes something could as well not have made it.
    if admission.operation != Operation::Create {
        let asked = Attributes::resource("delete", context.group, context.resource);
        let asked = asked.below(context.subresource).named(admission.name).within(admission.namespace);
        admission.judge.may(&asked).map_err(|reason| {
            let why = format!("cannot set an ownerRef on a resource you can't delete: {reason}, <nil>");
            admission.refuse(object, &why)
        })?;
    }
    let blocks = |owner: &&Value| flag(owner, "blockOwnerDeletion");
    let is_new = |owner: &&Value| {
        let mut before = old.iter().filter(|other| text(other, "uid") == text(owner, "uid"));
        !before.any(|other| flag(other, "blockOwnerDeletion"))
    };
    let blocking: Vec<&Value> = new.iter().filter(blocks).filter(is_new).collect();
    let anything = Attributes::resource("update", "*", "*").below("finalizers").named("*");
    if blocking.is_empty() || admission.judge.may(&anything).is_ok() {
        return Ok(());
    }
    blocking.into_iter().try_for_each(|owner| may_block(owner, object, admission))
}

fn owners(object: &Value) -> &[Value] {
    object.get("metadata").map_or(&[], |metadata| list(metadata, "ownerReferences"))
}

/// Whether the user may set finalizers of an owner.
fn may_block(owner: &Value, object: &Value, admission: &Admission<'_>) -> Result<()> {
    let (api_version, kind) = (text(owner, "apiVersion"), text(owner, "kind"));
    let (group, version) = split_api_version(api_version);
    let resources = admission.judge.resources(group, version, kind);
    if resources.is_empty() {
        let why = format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} Kind {kind}: no matches for kind {kind:?} in version {api_version:?}"
        );
        return Err(admission.refuse(object, &why));
    }
    for (resource, namespaced) in resources {
        let asked = Attributes::resource("update", group, &resource).below("finalizers");
        let namespace = if namespaced { admission.namespace } else { "" };
        let asked = asked.named(text(owner, "name")).within(namespace);
        admission.judge.may(&asked).map_err(|reason| {
            let why = format!(
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {reason}, <nil>"
            );
            admission.refuse(object, &why)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::admission::testing::{Allowed, admit};

    fn owned(blocks: bool) -> Value {
        let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "1", "blockOwnerDeletion": blocks});
        json!({"metadata": {"name": "a", "ownerReferences": [owner]}})
    }

    #[test]
    fn whoever_blocks_the_end_of_an_owner_may_set_its_finalizers() {
        let allowed = Allowed(&["update deployments/finalizers"]);
        assert_eq!(admit(None, &owned(true), &allowed, validate), Ok(()));
        assert_eq!(admit(None, &owned(false), &Allowed(&[]), validate), Ok(()));
        let refused = admit(None, &owned(true), &Allowed(&[]), validate).unwrap_err();
        assert!(refused.message.contains("you can't set finalizers on: , <nil>"), "{}", refused.message);
    }

    #[test]
    fn whoever_gives_an_object_to_an_owner_may_delete_it() {
        let old = json!({"metadata": {"name": "a"}});
        assert_eq!(admit(Some(&old), &owned(false), &Allowed(&["delete configmaps"]), validate), Ok(()));
        let refused = admit(Some(&old), &owned(false), &Allowed(&[]), validate).unwrap_err();
        assert!(refused.message.contains("on a resource you can't delete"), "{}", refused.message);
        let same = owned(true);
        assert_eq!(admit(Some(&same), &same, &Allowed(&[]), validate), Ok(()));
    }
}
