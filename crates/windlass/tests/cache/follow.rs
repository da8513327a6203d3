//! Following the server.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::cache::{Cache, Declared, ReadError, Synced};
use windlass_testing::TestCluster;

use crate::support::{MANAGER, Notes, config_map, delete_config_map, key, start, until};

#[tokio::test(start_paused = true)]
async fn objects_are_there_changed_and_gone() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "early").await;
    let cache = Cache::new(MANAGER);
    let informer = cache.declare(Declared::<ConfigMap>::typed());
    let notes = Arc::new(Notes::default());
    informer.subscribe(notes.clone());
    let unready = cache.get::<ConfigMap>(&key("one")).unwrap_err();
    assert!(matches!(unready, ReadError::NotSynced { .. }), "{unready}");

    let _task = start(&cache, &cluster);
    assert_eq!(informer.synced().await, Synced::Listed);
    let one = cache.get::<ConfigMap>(&key("one")).unwrap().unwrap();
    assert_eq!(one.data.as_ref().unwrap()["is"], "early");
    assert_eq!(one.metadata.managed_fields, None, "nobody reads them");

    config_map(&cluster, "one", "late").await;
    config_map(&cluster, "two", "new").await;
    delete_config_map(&cluster, "one").await;
    until("three events", || notes.len() == 4).await;
    assert_eq!(notes.take(), ["+one initial", "~one", "+two", "-one"]);
    assert_eq!(cache.list::<ConfigMap>(Some("default")).unwrap().len(), 1);
    assert_eq!(cluster.count("watch", "configmaps"), 1, "the watch began with the list");
    assert_eq!(cluster.count("list", "configmaps"), 0);
}
