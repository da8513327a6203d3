//! What `docs/testing.md` tells, as a program.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use windlass_testing::TestCluster;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = TestCluster::new().await;
    cluster
        .apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: colours}, data: {sky: grey}}")
        .await?;
    let before = cluster.world().revision();

    // Two worlds from here on: what happens in one never happened in the other.
    let other = cluster.fork();
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let blue = serde_json::json!({"data": {"sky": "blue"}});
    maps.patch("colours", &PatchParams::default(), &Patch::Merge(blue)).await?;

    let sky = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("sky").cloned());
    let is_blue = |map: &ConfigMap| sky(map).as_deref() == Some("blue");
    cluster.wait_for("default", "colours", "the sky is blue", is_blue).await?;

    let now: ConfigMap = cluster.world().get("default", "colours").ok_or("it is there")?;
    let then: ConfigMap = cluster.world_at(before)?.get("default", "colours").ok_or("it was there")?;
    let elsewhere: ConfigMap = other.world().get("default", "colours").ok_or("it is there too")?;
    println!("now {:?}, then {:?}, elsewhere {:?}", sky(&now), sky(&then), sky(&elsewhere));
    println!("{} patches were sent to this world", cluster.count("patch", "configmaps"));
    Ok(())
}
