//! Service accounts and the certificate authority on a server in this process.

use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;
use windlass::Env;
use windlass_cluster::Controllers;
use windlass_cluster::controllers::{RootCa, Tokens};
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

#[tokio::test]
async fn a_secret_gets_a_token_that_the_server_knows_and_goes_with_its_account() {
    let cluster = TestCluster::builder().tokens(true).start().await;
    let issuer = cluster.tokens().unwrap();
    let tokens = Tokens::new(move |claims| issuer.sign(claims)).authority("PEM");
    let running = Controllers::none().with(tokens).start(cluster.client(), &Env::system());
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), "default");
    let secrets: Api<Secret> = Api::namespaced(cluster.client(), "default");
    let robot = serde_json::from_value(json!({"metadata": {"name": "robot"}})).unwrap();
    let robot = accounts.create(&PostParams::default(), &robot).await.unwrap();
    let secret = json!({
        "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token",
    });
    let secret = serde_json::from_value(secret).unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();

    let has = |field: &str| {
        let data = cluster.world().get::<Secret>("default", "t")?.data?;
        data.get(field).map(|bytes| String::from_utf8(bytes.0.clone()).unwrap())
    };
    eventually(&cluster, "it is filled", || has("token").is_some()).await;
    assert_eq!((has("ca.crt").as_deref(), has("namespace").as_deref()), (Some("PEM"), Some("default")));
    let review = json!({"metadata": {}, "spec": {"token": has("token")}});
    let review: TokenReview = serde_json::from_value(review).unwrap();
    let reviews: Api<TokenReview> = Api::all(cluster.client());
    let status = reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap();
    assert_eq!(status.authenticated, Some(true), "{:?}", status.error);
    let user = status.user.unwrap();
    assert_eq!(user.username.as_deref(), Some("system:serviceaccount:default:robot"));
    assert_eq!(user.uid, robot.metadata.uid);

    let before = has("token");
    let patch = Patch::Merge(json!({"data": {"token": null}}));
    secrets.patch("t", &PatchParams::default(), &patch).await.unwrap();
    eventually(&cluster, "it has a new one", || has("token").is_some_and(|token| Some(token) != before))
        .await;
    accounts.delete("robot", &DeleteParams::default()).await.unwrap();
    let gone = || cluster.world().get::<Secret>("default", "t").is_none();
    eventually(&cluster, "it goes with the account", gone).await;
    running.stop().await;
}
