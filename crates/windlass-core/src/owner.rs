//! Who an object belongs to.
//!
//! ```
//! use k8s_openapi::api::apps::v1::Deployment;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
//! use windlass_core::owner;
//!
//! let uid = "6e4c1f04-6c21-4b8e-9d5a-0a7d5f1c2b3a";
//! let parent = Deployment {
//!     metadata: ObjectMeta { name: Some("web".into()), uid: Some(uid.into()), ..ObjectMeta::default() },
//!     ..Deployment::default()
//! };
//! let mut child = ConfigMap::default();
//! child.metadata.owner_references = owner::reference_to(&parent).map(|reference| vec![reference]);
//!
//! assert!(owner::is_controlled_by(&child.metadata, uid));
//! assert_eq!(owner::controller_of(&child.metadata).unwrap().name, "web");
//! ```

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube_core::Resource;

use crate::{Kind, ObjectKey};

/// The reference that makes an object the child of a parent, which is its controller: the garbage collector deletes the
/// child after the parent, and no other controller takes it. `None` where the parent is not in the API server yet, so
/// that it has no uid.
pub fn reference_to<K>(parent: &K) -> Option<OwnerReference>
where
    K: Resource<DynamicType = ()>,
    K::Scope: 'static,
{
    let metadata = parent.meta();
    Some(reference(&Kind::of::<K>(), metadata.name.as_deref()?, metadata.uid.as_deref()?))
}

/// As [`reference_to`], from the parts of the parent.
pub fn reference(kind: &Kind, name: &str, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: kind.resource.api_version.clone(),
        // Who deletes the parent in the foreground waits for the child, as with every built-in controller.
        block_owner_deletion: Some(true),
        controller: Some(true),
        kind: kind.resource.kind.clone(),
        name: name.to_owned(),
        uid: uid.to_owned(),
    }
}

/// The reference to the one owner that is the object's controller.
pub fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.as_deref()?.iter().find(|reference| reference.controller == Some(true))
}

/// Whether the object of this uid is the controller. Names do not count: another object may have had the name before.
pub fn is_controlled_by(metadata: &ObjectMeta, uid: &str) -> bool {
    !uid.is_empty() && controller_of(metadata).is_some_and(|reference| reference.uid == uid)
}

/// Whether an object here may belong to a parent there. An owner is of the cluster or of the same namespace. With an owner
/// in another namespace the garbage collector deletes the child as an orphan, and a child of the cluster with an owner in a
/// namespace it never deletes.
///
/// ```
/// use windlass_core::{ObjectKey, owner};
///
/// let parent = ObjectKey::namespaced("team-a", "web");
/// assert!(owner::can_own(&parent, &ObjectKey::namespaced("team-a", "web-config")));
/// assert!(!owner::can_own(&parent, &ObjectKey::namespaced("team-b", "web-config")));
/// assert!(!owner::can_own(&parent, &ObjectKey::cluster("web-role")));
/// assert!(owner::can_own(&ObjectKey::cluster("tenant"), &parent));
/// ```
pub fn can_own(parent: &ObjectKey, child: &ObjectKey) -> bool {
    parent.namespace().is_none_or(|namespace| child.namespace() == Some(namespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;

    fn owned_by(references: &[(&str, Option<bool>)]) -> ObjectMeta {
        let reference = |(uid, controller): &(&str, Option<bool>)| OwnerReference {
            uid: (*uid).to_owned(),
            controller: *controller,
            ..OwnerReference::default()
        };
        ObjectMeta {
            owner_references: Some(references.iter().map(reference).collect()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn one_owner_is_the_controller() {
        let metadata = owned_by(&[("a", None), ("b", Some(false)), ("c", Some(true))]);
        assert_eq!(controller_of(&metadata).unwrap().uid, "c");
        assert_eq!(
            ["a", "b", "c", ""].map(|uid| is_controlled_by(&metadata, uid)),
            [false, false, true, false]
        );
        assert_eq!(controller_of(&ObjectMeta::default()), None);
        // What has no uid owns nothing, not even what has no owner's uid either.
        assert!(!is_controlled_by(&owned_by(&[("", Some(true))]), ""));
    }

    #[test]
    fn a_parent_without_uid_cannot_be_referred_to() {
        let mut parent = Deployment::default();
        parent.metadata.name = Some("web".into());
        assert_eq!(reference_to(&parent), None);
        parent.metadata.uid = Some("u".into());
        let expected = OwnerReference {
            api_version: "apps/v1".into(),
            block_owner_deletion: Some(true),
            controller: Some(true),
            kind: "Deployment".into(),
            name: "web".into(),
            uid: "u".into(),
        };
        assert_eq!(reference_to(&parent), Some(expected));
    }
}
