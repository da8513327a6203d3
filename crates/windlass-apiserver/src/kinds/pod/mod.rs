//! Pods, and the pod templates inside other kinds.

pub(crate) mod affinity;
pub(crate) mod annotations;
pub(crate) mod conditions;
mod containers;
pub(crate) mod defaults;
mod env;
pub(crate) mod features;
mod mounts;
mod probes;
mod projected;
mod resize;
mod resources;
pub(super) mod security;
pub(super) mod status;
pub(crate) mod update;
pub(crate) mod validate;
mod volumes;
pub(crate) mod warnings;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field::Path;
use crate::kinds::Context;
use crate::kinds::tree::{get, int, list, text};

pub(crate) use resources::{container_resource_name, overcommits, overhead, resource_name, value_of};

/// What the checks of a pod's parts must know of the whole.
struct Scene<'a> {
    /// Whether it is a pod, and not a template of one.
    is_pod: bool,
    /// The name of the pod; empty for a template.
    name: &'a str,
    /// Whether the pod mirrors one that a node runs by itself.
    is_mirror: bool,
    /// How long a pod may take to end.
    grace: i64,
    /// When containers are started again.
    restart_policy: &'a str,
    /// Whether users are those of the host.
    host_users: bool,
    /// The names of the pod's claims of resources.
    claims: BTreeSet<&'a str>,
    /// What volumes may be labelled by. The feature for more is off, so that only pods that had a way may get another.
    label_policies: &'static [&'static str],
    /// Whether there are groups, but none: of the canonical form it could not be told.
    empty_groups: bool,
}

impl<'a> Scene<'a> {
    fn of_pod(pod: &'a Value, context: &Context<'_>) -> Scene<'a> {
        let metadata = &pod["metadata"];
        let is_mirror = annotations::is_mirror(metadata);
        let name = text(metadata, "name");
        Scene { is_pod: true, name, is_mirror, ..Scene::of_template(&pod["spec"], context) }
    }

    fn of_template(spec: &'a Value, context: &Context<'_>) -> Scene<'a> {
        let before = context.old.and_then(|old| features::spec_of(context.kind, old));
        let had_policy =
            before.is_some_and(|spec| spec.pointer("/securityContext/seLinuxChangePolicy").is_some());
        let claims = list(spec, "resourceClaims").iter().map(|claim| text(claim, "name"));
        Scene {
            is_pod: false,
            name: "",
            is_mirror: false,
            grace: int(spec, "terminationGracePeriodSeconds").unwrap_or(0),
            restart_policy: text(spec, "restartPolicy"),
            host_users: get(spec, "hostUsers") != Some(&json!(false)),
            claims: claims.filter(|name| !name.is_empty()).collect(),
            label_policies: if had_policy { &["MountOption", "Recursive"] } else { &["Recursive"] },
            empty_groups: context.noted.empty_groups && context.subresource.is_empty(),
        }
    }
}

/// All containers with their paths, in the order in which the real server visits them.
fn each_container(spec: &Value, path: &Path<'_>, mut visit: impl FnMut(&Value, &Path<'_>)) {
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.child(field);
        for (index, container) in list(spec, field).iter().enumerate() {
            visit(container, &path.index(index));
        }
    }
}
