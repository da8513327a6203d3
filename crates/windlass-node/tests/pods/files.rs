//! What pods find in their files and in their environment.

use std::sync::Arc;

use serde_json::json;

use super::world::{Test, World};

pub const TESTS: &[Test] = &[
    ("volumes_hold_what_they_should", |world| Box::pin(volumes_hold_what_they_should(world))),
    ("a_missing_object_is_waited_for", |world| Box::pin(a_missing_object_is_waited_for(world))),
];

async fn volumes_hold_what_they_should(world: Arc<World>) {
    world
        .cluster
        .apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}, data: {colour: blue}}")
        .await
        .unwrap();
    let script = "set -e
echo colour=$(cat /etc/conf/colour) env=$COLOUR name=$(cat /etc/info/name) host=$(hostname) again=$(cat /etc/hostname)
grep -q \"$(hostname)\" /etc/hosts
grep -q '^nameserver 10.0.0.10' /etc/resolv.conf
echo x > /memory/x; echo x > /scratch/x; test \"$(stat -f -c %T /memory)\" = tmpfs
if (echo x > /etc/conf/y) 2>/dev/null; then echo writable; fi
echo $KUBERNETES_SERVICE_HOST | grep -q .
until grep -q green /etc/conf/colour; do sleep 0.1; done
echo changed";
    let spec = json!({
        "restartPolicy": "Never",
        "volumes": [
            {"name": "conf", "configMap": {"name": "conf"}},
            {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {"name": "scratch", "emptyDir": {}},
            {"name": "info", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        ],
        "containers": [{
            "name": "a", "image": "busybox", "command": ["sh", "-c", script],
            "env": [{"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "colour"}}}],
            "volumeMounts": [
                {"name": "conf", "mountPath": "/etc/conf"}, {"name": "memory", "mountPath": "/memory"},
                {"name": "scratch", "mountPath": "/scratch"}, {"name": "info", "mountPath": "/etc/info"},
            ],
        }],
    });
    let pod = world.create("files", spec).await;
    let status = world
        .until("files", "running", |line| line.starts_with("Running") || line.starts_with("Failed"))
        .await;
    let id = status.container_statuses.unwrap()[0].container_id.clone().unwrap();
    world
        .cluster
        .apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}, data: {colour: green}}")
        .await
        .unwrap();
    world.until("files", "done", |line| line.starts_with("Succeeded") || line.starts_with("Failed")).await;
    let log = world.log(&pod, &id);
    assert_eq!(log, "colour=blue env=blue name=files host=files again=files\nchanged");
}

async fn a_missing_object_is_waited_for(world: Arc<World>) {
    let spec = json!({
        "restartPolicy": "Never",
        "containers": [{
            "name": "a", "image": "busybox", "command": ["true"],
            "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "late", "key": "x"}}}],
        }],
    });
    world.create("waits", spec).await;
    world.until("waits", "waiting", |line| line == "Pending | a CreateContainerConfigError").await;
    world
        .cluster
        .apply_yaml("{apiVersion: v1, kind: Secret, metadata: {name: late}, stringData: {x: yes-it-is}}")
        .await
        .unwrap();
    world.until("waits", "done", |line| line == "Succeeded | a Completed(0)").await;
}
