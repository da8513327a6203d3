//! Service accounts and the certificate authority on a server in this process.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass::Env;
use windlass_cluster::Controllers;
use windlass_cluster::controllers::RootCa;
use windlass_testing::TestCluster;

use crate::world::eventually;

#[tokio::test]
async fn every_namespace_has_its_account_and_the_authority() {
    let cluster = TestCluster::new().await;
    let controllers = Controllers::named(["serviceaccount", "root-ca-certificate-publisher"])
        .unwrap()
        .with(RootCa::new("PEM"));
    let running = controllers.start(cluster.client(), &Env::system());
    let team = Namespace {
        metadata: ObjectMeta { name: Some("team".into()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    Api::all(cluster.client()).create(&PostParams::default(), &team).await.unwrap();
    let has = |namespace: &str| {
        let world = cluster.world();
        let map = world.get::<ConfigMap>(namespace, "kube-root-ca.crt");
        let authority = map.and_then(|map| map.data?.get("ca.crt").cloned());
        world.get::<ServiceAccount>(namespace, "default").is_some() && authority.as_deref() == Some("PEM")
    };
    let all = ["default", "kube-system", "kube-public", "kube-node-lease", "team"];
    eventually(&cluster, "all have both", || all.into_iter().all(has)).await;

    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), "team");
    accounts.delete("default", &DeleteParams::default()).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client(), "team");
    let patch = Patch::Merge(json!({"data": {"ca.crt": "other", "more": "x"}}));
    maps.patch("kube-root-ca.crt", &PatchParams::default(), &patch).await.unwrap();
    let mended = || {
        let map = cluster.world().get::<ConfigMap>("team", "kube-root-ca.crt").unwrap();
        has("team") && map.data.unwrap().len() == 1
    };
    eventually(&cluster, "mended", mended).await;
    running.stop().await;
}
