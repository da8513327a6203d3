//! Folders of volumes on the objects of an API server.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Api, DeleteParams};
use windlass::Env;
use windlass::cache::Cache;
use windlass_node::folders::Folders;
use windlass_testing::TestCluster;

#[tokio::test]
async fn a_volume_goes_when_its_folder_has_gone() {
    let root = std::env::temp_dir().join(format!("windlass-folders-{}", std::process::id()));
    let folder = root.join("pvc-1");
    std::fs::create_dir_all(folder.join("deep")).unwrap();
    std::fs::write(folder.join("deep/file"), "data").unwrap();
    std::fs::create_dir_all(root.join("pvc-2")).unwrap();
    let cluster = TestCluster::new().await;
    cluster
        .apply_yaml(&format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: pvc-1, finalizers: [windlass.dev/folder]}}\n\
             spec: {{capacity: {{storage: 1Mi}}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Delete, hostPath: {{path: {}}}}}\n",
            folder.display()
        ))
        .await
        .unwrap();
    let (cache, env) = (Cache::new("test"), Env::system());
    let folders = Folders::declare(&cache, root.clone());
    let _watching = cache.start(cluster.client(), &env, Arc::new(()));
    let _running = env.spawn("folders", folders.run(cluster.client(), env.clone()));

    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    volumes.delete("pvc-1", &DeleteParams::default()).await.unwrap();
    // The server itself protects volumes; that controller is not here.
    let free = serde_json::json!({"metadata": {"finalizers": ["windlass.dev/folder"]}});
    volumes.patch("pvc-1", &Default::default(), &kube::api::Patch::Merge(&free)).await.unwrap();
    cluster.wait_gone::<PersistentVolume>("", "pvc-1").await.unwrap();
    assert!(!folder.exists());
    assert!(root.join("pvc-2").exists(), "only its own folder");
    std::fs::remove_dir_all(&root).unwrap();
}
