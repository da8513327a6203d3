//! Where an informer looks, and what it holds.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::core::PartialObjectMeta;
use windlass::cache::{Cache, Declared, Index, Namespaces, ReadError, Scope};
use windlass::core::ObjectKey;
use windlass::core::select::{FieldSelector, LabelSelector};
use windlass_testing::TestCluster;

use crate::support::{MANAGER, Notes, cluster, config_map, config_map_in, key, run, settle, until};

async fn namespaces(cluster: &TestCluster, names: &[&str]) {
    for name in names {
        let yaml = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}");
        cluster.apply_yaml(&yaml).await.unwrap();
        config_map_in(cluster, name, &format!("in-{name}"), "x").await;
    }
}

#[tokio::test(start_paused = true)]
async fn namespaces_change_at_run_time() {
    let cluster = cluster().await;
    namespaces(&cluster, &["a", "b", "c"]).await;
    let cache = Cache::new(MANAGER);
    let maps = cache.declare(Declared::<ConfigMap>::typed());
    let fixed = Scope::Fixed(Namespaces::only(["c"]));
    let in_c = cache.declare(Declared::<ConfigMap>::typed().scope(fixed));
    let spaces = cache.declare(Declared::<Namespace>::typed());
    let notes = Arc::new(Notes::default());
    maps.subscribe(notes.clone());
    cache.set_namespaces(Namespaces::only(["a"]));
    let _task = run(&cache, cluster.client(), notes.clone());
    cache.synced().await;
    assert_eq!(notes.take(), ["+in-a initial"]);
    let out = cache.get::<ConfigMap>(&ObjectKey::namespaced("b", "in-b")).unwrap_err();
    assert!(matches!(out, ReadError::OutOfScope { .. }), "{out}");
    assert_eq!(in_c.list(None).len(), 1, "a scope of its own");
    assert!(spaces.get(&ObjectKey::cluster("b")).is_some(), "what lives in no namespace is everywhere");

    cache.set_namespaces(Namespaces::only(["a", "b"]));
    until("the second", || notes.len() == 1).await;
    assert_eq!(notes.take(), ["+in-b initial"]);
    config_map_in(&cluster, "b", "in-b", "y").await;
    config_map_in(&cluster, "c", "in-c", "y").await;
    until("its change", || notes.len() == 1).await;
    assert_eq!(notes.take(), ["~in-b"]);

    cache.set_namespaces(Namespaces::only(["b"]));
    until("the first goes", || notes.len() == 1).await;
    assert_eq!(notes.take(), ["-in-a"]);
    config_map_in(&cluster, "a", "in-a", "y").await;
    settle().await;
    assert_eq!(notes.take(), [] as [&str; 0], "nobody looks there");

    cache.set_namespaces(Namespaces::All);
    until("all are there", || notes.len() >= 2 && maps.is_synced()).await;
    settle().await;
    assert_eq!(notes.take(), ["+in-a initial", "+in-c initial"], "what was there stays");
    cache.set_namespaces(Namespaces::only(["c"]));
    until("two go", || notes.len() == 2).await;
    settle().await;
    assert_eq!(notes.take(), ["-in-a", "-in-b"], "what is still there stays");
    assert_eq!(maps.health().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_asked_for_and_kept() {
    let cluster = cluster().await;
    config_map(&cluster, "one", "x").await;
    let cache = Cache::new(MANAGER);
    let metadata = cache.declare(Declared::<PartialObjectMeta<ConfigMap>>::typed());
    let notes = Arc::new(Notes::default());
    metadata.subscribe(notes.clone());
    let _task = run(&cache, cluster.client(), notes.clone());
    metadata.synced().await;
    let one = cache.get::<PartialObjectMeta<ConfigMap>>(&key("one")).unwrap().unwrap();
    assert!(one.metadata.uid.is_some());
    let unread = cache.get::<ConfigMap>(&key("one")).unwrap_err();
    assert!(unread.to_string().contains("`.reads::<ConfigMap>()`"), "{unread}");
    config_map(&cluster, "one", "y").await;
    until("the change", || notes.len() == 2).await;
    assert_eq!(notes.take(), ["+one initial", "~one"]);
}

#[tokio::test(start_paused = true)]
async fn objects_are_selected_and_found() {
    let cluster = cluster().await;
    for (name, app) in [("one", "web"), ("two", "web"), ("three", "db")] {
        let metadata = format!("{{name: {name}, labels: {{app: {app}}}}}");
        let yaml = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {metadata}}}");
        cluster.apply_yaml(&yaml).await.unwrap();
    }
    let by_app = Index::new("app", |map: &ConfigMap| {
        map.metadata
            .labels
            .iter()
            .flatten()
            .filter(|(key, _)| *key == "app")
            .map(|(_, app)| app.clone())
            .collect()
    });
    let cache = Cache::new(MANAGER);
    cache.declare(
        Declared::<ConfigMap>::typed()
            .fields(FieldSelector::parse("metadata.namespace=default").unwrap())
            .index(by_app),
    );
    let web = cache.declare(Declared::<ConfigMap>::typed().labels(LabelSelector::parse("app=web").unwrap()));
    let _task = run(&cache, cluster.client(), Arc::new(()));
    cache.synced().await;
    let names = |maps: Vec<Arc<ConfigMap>>| -> Vec<String> {
        maps.iter().map(|map| map.metadata.name.clone().unwrap()).collect()
    };
    assert_eq!(names(web.list(None)), ["one", "two"]);
    assert_eq!(names(cache.by_index::<ConfigMap>("app", "db").unwrap()), ["three"]);
    assert_eq!(names(cache.by_index::<ConfigMap>("app", "web").unwrap()), ["one", "two"]);
    let unknown = cache.by_index::<ConfigMap>("colour", "web").unwrap_err();
    assert!(matches!(unknown, ReadError::NoSuchIndex { .. }), "{unknown}");
    assert_eq!(names(cache.list::<ConfigMap>(None).unwrap()), ["one", "three", "two"], "each once");
}
