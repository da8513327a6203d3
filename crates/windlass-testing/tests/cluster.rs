//! What a test does with a cluster.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, WatchParams};
use windlass_testing::{ApplyError, Clock, TestCluster};

fn config_map(name: &str, sky: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        data: Some([("sky".to_owned(), sky.to_owned())].into()),
        ..ConfigMap::default()
    }
}

async fn create(cluster: &TestCluster, name: &str) {
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    api.create(&PostParams::default(), &config_map(name, "blue")).await.unwrap();
}

#[tokio::test]
async fn kubes_client_speaks_to_it() {
    let cluster = TestCluster::new().await;
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let made = api.create(&PostParams::default(), &config_map("a", "blue")).await.unwrap();
    assert!(made.metadata.uid.is_some());
    let patch = Patch::Merge(serde_json::json!({"data": {"sky": "grey"}}));
    api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(api.get("a").await.unwrap().data.unwrap()["sky"], "grey");
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
    assert_eq!(cluster.count("create", "configmaps"), 1);
    assert_eq!(cluster.count("get", "configmaps"), 2);
    let last = cluster.requests().pop().unwrap();
    assert_eq!((last.verb, last.code, &*last.reason), ("get", 404, "NotFound"));
}

#[tokio::test]
async fn manifests_of_any_kind_are_applied_in_order() {
    let cluster = TestCluster::new().await;
    let text = "
# A kind of our own, and an object of it.
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Boat, plural: boats, singular: boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {oars: {type: integer}}}}}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: harbour}}
- {apiVersion: example.com/v1, kind: Boat, metadata: {name: argo, namespace: harbour}, spec: {oars: 50}}
---
# nothing
---
{apiVersion: v1, kind: ConfigMap, metadata: {generateName: any-}}
";
    let applied = cluster.apply_yaml(text).await.unwrap();
    let kinds: Vec<_> = applied.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["CustomResourceDefinition", "Namespace", "Boat", "ConfigMap"]);
    assert!(applied[3]["metadata"]["name"].as_str().unwrap().starts_with("any-"));
    cluster.apply_yaml(&text.replace("oars: 50", "oars: 49")).await.unwrap();
    assert!(cluster.dump().contains("# boats.example.com harbour/argo\n"));
    assert!(cluster.dump().contains("oars: 49"));

    let unknown = cluster.apply_yaml("{apiVersion: v1, kind: Ship, metadata: {name: a}}").await.unwrap_err();
    assert_eq!(unknown.to_string(), "document 1: the server has no kind \"Ship\" in \"v1\"");
    let invalid = "{apiVersion: v1, kind: Namespace, metadata: {name: A_A}}";
    let refused = cluster.apply_yaml(invalid).await.unwrap_err();
    assert!(matches!(&refused, ApplyError::Refused { code: 422, .. }), "{refused}");
}

#[tokio::test]
async fn a_wait_ends_when_the_world_is_as_expected() {
    let cluster = TestCluster::new().await;
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let waiting = tokio::spawn({
        let cluster = cluster.clone();
        async move {
            let grey = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["sky"] == "grey");
            cluster.wait_for("default", "a", "the sky is grey", grey).await
        }
    });
    create(&cluster, "a").await;
    let patch = Patch::Merge(serde_json::json!({"data": {"sky": "grey"}}));
    api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().data.unwrap()["sky"], "grey");
    api.delete("a", &DeleteParams::default()).await.unwrap();
    cluster.wait_gone::<ConfigMap>("default", "a").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_fails_says_what_the_world_is_instead() {
    let clock = Clock::runtime("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = TestCluster::builder().clock(clock).seed(1).start().await;
    let text = "
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {sky: blue}}
---
apiVersion: v1
kind: Event
metadata: {name: a.1}
involvedObject: {kind: ConfigMap, name: a, namespace: default}
type: Warning
reason: Cloudy
message: it will not be green
count: 3
";
    cluster.apply_yaml(text).await.unwrap();
    let green = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["sky"] == "green");
    let failure = cluster.wait_for("default", "a", "the sky is green", green).await.unwrap_err();
    let text = format!("{failure:?}");
    for part in [
        "v1 ConfigMap default/a: the sky is green (waited 10s)\n",
        "last state, after 0 changes:\n",
        "    sky: blue\n",
        "events about it:\n  Warning Cloudy: it will not be green (x3)",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    let cluster = cluster.with_timeout(Duration::from_secs(2));
    let failure =
        cluster.wait_for_condition::<Deployment>("default", "b", "Available", "True").await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "apps/v1 Deployment default/b: condition Available is True (waited 2s)\n\
         there is no such object\nno events about it"
    );
}

#[tokio::test]
async fn a_fork_goes_its_own_way() {
    let cluster = TestCluster::new().await;
    create(&cluster, "both").await;
    let fork = cluster.fork();
    create(&fork, "fork").await;
    assert_eq!(fork.count("create", "configmaps"), 1);
    assert!(cluster.world().get::<ConfigMap>("default", "fork").is_none());
    assert!(fork.world().get::<ConfigMap>("default", "both").is_some());
}

#[tokio::test]
async fn every_test_starts_with_a_world_of_its_own() {
    for _ in 0..2 {
        let cluster = TestCluster::new().await;
        create(&cluster, "same").await;
        assert!(cluster.requests().len() == 1);
        assert!(cluster.world().get::<Namespace>("", "default").is_some());
    }
}

#[tokio::test]
async fn the_past_can_be_read() {
    let cluster = TestCluster::new().await;
    let empty = cluster.world();
    create(&cluster, "a").await;
    let with_a = cluster.world().revision();
    Api::<ConfigMap>::default_namespaced(cluster.client())
        .delete("a", &DeleteParams::default())
        .await
        .unwrap();
    create(&cluster, "b").await;

    let names =
        |maps: Vec<ConfigMap>| maps.into_iter().filter_map(|map| map.metadata.name).collect::<Vec<_>>();
    assert_eq!(names(cluster.world_at(with_a).unwrap().list(Some("default"))), ["a"]);
    assert_eq!(names(cluster.world().list(Some("default"))), ["b"]);
    assert_eq!(cluster.world_at(empty.revision()).unwrap().dump(), empty.dump());
    assert!(cluster.world_at(with_a + 100).is_err());
    let made = cluster.world().dump_after(empty.revision());
    assert!(made.starts_with("# configmaps default/b\napiVersion: v1\n"), "{made}");
}

#[tokio::test]
async fn checked_watches_are_counted_and_right() {
    let cluster = TestCluster::builder().self_check(true).start().await;
    let api: Api<ConfigMap> = Api::default_namespaced(cluster.client());
    let all = api.watch(&WatchParams::default(), "0").await.unwrap();
    let some = api.watch(&WatchParams::default().labels("colour=red"), "0").await.unwrap();
    for name in ["a", "b"] {
        create(&cluster, name).await;
    }
    let red = Patch::Merge(serde_json::json!({"metadata": {"labels": {"colour": "red"}}}));
    api.patch("a", &PatchParams::default(), &red).await.unwrap();
    let blue = Patch::Merge(serde_json::json!({"metadata": {"labels": {"colour": "blue"}}}));
    api.patch("a", &PatchParams::default(), &blue).await.unwrap();
    api.delete("b", &DeleteParams::default()).await.unwrap();
    read(all, 5).await;
    read(some, 2).await;
    let report = cluster.check_watches().unwrap();
    assert_eq!((report.checked, report.unchecked), (2, 0));
    assert!(report.events >= 7, "{report}");
    assert!(report.violations.is_empty(), "{report}");
}

/// Reads events of a watch until so many have come.
async fn read<K: std::fmt::Debug>(
    watch: impl futures_core::Stream<Item = kube::Result<kube::api::WatchEvent<K>>>,
    count: usize,
) {
    let mut watch = std::pin::pin!(watch);
    for n in 0..count {
        let next = std::future::poll_fn(|context| watch.as_mut().poll_next(context));
        let event = tokio::time::timeout(Duration::from_secs(10), next).await;
        event.unwrap_or_else(|_| panic!("event {n} did not come")).expect("the watch ended").unwrap();
    }
}

#[tokio::test]
async fn clusters_are_cheap() {
    let first = TestCluster::new().await;
    let _: Option<Event> = first.world().get("default", "none");
    let best = |what: &dyn Fn() -> TestCluster| {
        let runs = (0..50).map(|_| {
            let start = Instant::now();
            drop(what());
            start.elapsed()
        });
        runs.min().unwrap()
    };
    let fork = best(&|| first.fork());
    assert!(fork < Duration::from_millis(1), "a fork takes {fork:?}");
    // The best of some: whatever else the machine does takes its time, too.
    let mut new = Duration::MAX;
    for _ in 0..50 {
        let start = Instant::now();
        drop(TestCluster::new().await);
        new = new.min(start.elapsed());
    }
    assert!(new < Duration::from_millis(5), "a new cluster takes {new:?}");
}
