//! Deployments, replica sets, stateful sets, daemon sets.

use serde_json::Value;

use super::core::storage;
use super::generation::Generation;
use super::pod::defaults;
use super::tree::{each, existing, fill, fill_zero, same, set, sub, text};
use super::{Context, Hooks};

/// The hooks of an apps kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    Some(match kind {
        "Deployment" => &DEPLOYMENT,
        "ReplicaSet" => &REPLICA_SET,
        "StatefulSet" => &STATEFUL_SET,
        "DaemonSet" => &DAEMON_SET,
        _ => return None,
    })
}

const DEPLOYMENT: Hooks = Hooks {
    default: default_deployment,
    // Annotations count too: they are copied to the replica sets.
    generation: Generation { born: true, grows_on: &["/spec", "/metadata/annotations"] },
    ..Hooks::NONE
};

const REPLICA_SET: Hooks = Hooks {
    default: |object| {
        let spec = sub(object, "spec");
        fill(spec, "replicas", 1);
        defaults::template(spec, "template");
    },
    generation: Generation::SPEC,
    ..Hooks::NONE
};

const STATEFUL_SET: Hooks =
    Hooks { default: default_stateful_set, generation: Generation::SPEC, ..Hooks::NONE };

const DAEMON_SET: Hooks = Hooks {
    default: default_daemon_set,
    generation: Generation::SPEC,
    prepare_create: |object, _| count_templates(object, None),
    prepare_update: |new, old, _: &Context<'_>| count_templates(new, Some(old)),
    ..Hooks::NONE
};

fn default_deployment(object: &mut Value) {
    let spec = sub(object, "spec");
    fill(spec, "replicas", 1);
    let strategy = sub(spec, "strategy");
    fill_zero(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = sub(strategy, "rollingUpdate");
        fill(rolling, "maxUnavailable", "25%");
        fill(rolling, "maxSurge", "25%");
    }
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    defaults::template(spec, "template");
}

fn default_daemon_set(object: &mut Value) {
    let spec = sub(object, "spec");
    let strategy = sub(spec, "updateStrategy");
    fill_zero(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = sub(strategy, "rollingUpdate");
        fill(rolling, "maxUnavailable", 1);
        fill(rolling, "maxSurge", 0);
    }
    fill(spec, "revisionHistoryLimit", 10);
    defaults::template(spec, "template");
}

fn default_stateful_set(object: &mut Value) {
    let spec = sub(object, "spec");
    fill_zero(spec, "podManagementPolicy", "OrderedReady");
    let strategy = sub(spec, "updateStrategy");
    if text(strategy, "type").is_empty() {
        set(strategy, "type", "RollingUpdate");
        sub(strategy, "rollingUpdate");
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = existing(strategy, "rollingUpdate")
    {
        fill(rolling, "partition", 0);
    }
    let retention = sub(spec, "persistentVolumeClaimRetentionPolicy");
    fill_zero(retention, "whenDeleted", "Retain");
    fill_zero(retention, "whenScaled", "Retain");
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    each(spec, "volumeClaimTemplates", |claim| {
        set(claim, "apiVersion", "v1");
        set(claim, "kind", "PersistentVolumeClaim");
        storage::default_claim(claim);
    });
    defaults::template(spec, "template");
}

/// apps/v1 keeps the old template generation in an annotation.
fn count_templates(new: &mut Value, old: Option<&Value>) {
    const KEY: &str = "deprecated.daemonset.template.generation";
    let count = |object: &Value| {
        let annotations = object.pointer("/metadata/annotations");
        annotations.and_then(|all| text(all, KEY).parse::<i64>().ok())
    };
    let generation = match old {
        None => count(new).unwrap_or(0).max(1),
        Some(old) => {
            let changed = !same(old.pointer("/spec/template"), new.pointer("/spec/template"));
            count(old).unwrap_or(0) + i64::from(changed)
        }
    };
    let annotations = sub(sub(new, "metadata"), "annotations");
    set(annotations, KEY, generation.to_string());
    if let Some(map) = annotations.as_object_mut() {
        map.sort_keys();
    }
}
