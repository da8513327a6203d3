//! What pods find in their files and in their environment.

use std::sync::Arc;

use serde_json::json;

use super::world::{Test, World};

pub const TESTS: &[Test] = &[
    ("volumes_hold_what_they_should", |world| Box::pin(volumes_hold_what_they_should(world))),
    ("a_missing_object_is_waited_for", |world| Box::pin(a_missing_object_is_waited_for(world))),
    ("a_claim_keeps_what_is_written", |world| Box::pin(a_claim_keeps_what_is_written(world))),
    ("a_container_runs_as_it_says", |world| Box::pin(a_container_runs_as_it_says(world))),
    ("too_much_memory_is_the_end", |world| Box::pin(too_much_memory_is_the_end(world))),
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

/// Runs a script in a pod of one go, and gives back what it said.
async fn says(world: &World, name: &str, script: &str, mut spec: serde_json::Value) -> String {
    spec["restartPolicy"] = json!("Never");
    let container = &mut spec["containers"][0];
    container["name"] = json!("a");
    container["image"] = json!("busybox");
    container["command"] = json!(["sh", "-c", script]);
    let pod = world.create(name, spec).await;
    let done = |line: &str| line.starts_with("Succeeded") || line.starts_with("Failed");
    let status = world.until(name, "done", done).await;
    let id = status.container_statuses.unwrap()[0].container_id.clone().unwrap();
    world.log(&pod, &id)
}

async fn a_claim_keeps_what_is_written(world: Arc<World>) {
    let folder = world.folder.join("claimed");
    let objects = format!(
        "
apiVersion: v1
kind: PersistentVolume
metadata: {{name: disk}}
spec:
  capacity: {{storage: 1Gi}}
  accessModes: [ReadWriteOnce]
  hostPath: {{path: {}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data}}
spec: {{accessModes: [ReadWriteOnce], volumeName: disk, resources: {{requests: {{storage: 1Gi}}}}}}
",
        folder.display()
    );
    world.cluster.apply_yaml(&objects).await.unwrap();
    let spec = || {
        json!({
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "containers": [{"volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "part"}]}],
        })
    };
    assert_eq!(says(&world, "writer", "echo kept > /data/x; ls /data", spec()).await, "x");
    assert_eq!(says(&world, "reader", "cat /data/x", spec()).await, "kept");
    assert!(folder.join("part/x").is_file());
}

async fn a_container_runs_as_it_says(world: Arc<World>) {
    let spec = json!({
        "securityContext": {"runAsUser": 1000, "runAsGroup": 2000},
        "containers": [{"securityContext": {"readOnlyRootFilesystem": true}, "workingDir": "/tmp"}],
    });
    let script = "id -u; id -g; pwd; (echo x > /x) 2>/dev/null || echo refused";
    assert_eq!(says(&world, "somebody", script, spec).await, "1000\n2000\n/tmp\nrefused");
}

async fn too_much_memory_is_the_end(world: Arc<World>) {
    if !world.limits() {
        println!("limits are not kept here");
        return;
    }
    let spec = json!({
        "restartPolicy": "Never",
        "containers": [{"name": "a", "image": "debian", "command": ["python3", "-c", "x = 'x' * (256 << 20)"],
            "resources": {"limits": {"memory": "32Mi"}}}],
    });
    world.create("greedy", spec).await;
    world.until("greedy", "ended", |line| line == "Failed | a OOMKilled(137)").await;
}
