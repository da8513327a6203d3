//! The life of a FooBar, on the in-process server.

mod support;

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use support::World;
use windlass::{Env, Running, Settings};
use windlass_testing::TestCluster;

async fn start() -> (World, Running) {
    let cluster = TestCluster::new().await;
    let settings = Settings::for_tests(Env::system());
    let running = foobar_operator::operator().start(cluster.client(), settings).await.unwrap();
    (World::of(cluster), running)
}

#[tokio::test(start_paused = true)]
async fn a_child_follows_its_spec_and_the_status_says_so() {
    let (world, running) = start().await;
    world.create("one", "example.com").await;
    world.until_done("one").await;
    let foobar = world.foobars.get("one").await.unwrap();
    assert_eq!(foobar.metadata.finalizers.as_deref(), Some(&["test.example.com/cleanup".to_owned()][..]));
    let status = foobar.status.unwrap();
    assert_eq!((status.observed_generation, status.config_map.as_deref()), (Some(1), Some("one-foobar")));

    world.apply("one", json!({"target": "example.org"})).await;
    world.until_done("one").await;
    let data = world.child("one").await.unwrap().data.unwrap();
    assert_eq!(data.into_iter().collect::<Vec<_>>(), [("target".to_owned(), "example.org".to_owned())]);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_bad_object_is_refused_before_it_is_stored() {
    let (world, running) = start().await;
    let foobar = json!({"apiVersion": "test.example.com/v1", "kind": "FooBar", "metadata": {"name": "bad"}, "spec": {}});
    let refused = world.foobars.patch("bad", &PatchParams::apply("user"), &Patch::Apply(&foobar)).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("spec.target: Required value"), "{error}");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_others_break_is_mended() {
    let (world, running) = start().await;
    world.create("one", "example.com").await;
    world.until_done("one").await;

    world.maps.delete("one-foobar", &DeleteParams::default()).await.unwrap();
    world.until("the child is back", async || world.is_done("one").await).await;

    let edit = json!({"data": {"target": "elsewhere"}});
    world.maps.patch("one-foobar", &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    world.until("the child is as planned", async || world.is_done("one").await).await;

    let lie = json!({"status": {"configMap": "another", "conditions": []}});
    world.foobars.patch_status("one", &PatchParams::default(), &Patch::Merge(&lie)).await.unwrap();
    world
        .until("the status is true", async || {
            let status = world.foobars.get("one").await.unwrap().status.unwrap();
            world.is_done("one").await && status.config_map.as_deref() == Some("one-foobar")
        })
        .await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn deletion_completes_and_leaves_nothing() {
    let (world, running) = start().await;
    world.create("one", "example.com").await;
    world.until_done("one").await;
    world.delete("one").await;
    world.until("it is gone", async || world.is_gone("one").await).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn at_rest_there_is_no_write() {
    let (world, running) = start().await;
    for name in ["one", "two", "three"] {
        world.create(name, "example.com").await;
        world.until_done(name).await;
    }
    let before = world.writes();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.writes(), before, "an hour of rest");
    running.stop().await.unwrap();
    // Another process finds everything as it should be.
    let settings = Settings { install_crds: false, ..Settings::for_tests(Env::system()) };
    let running = foobar_operator::operator().start(world.cluster.client(), settings).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.writes(), before, "a restart");
    let metrics = running.metrics().render(windlass::metrics::Format::Text);
    let passes = "controller_runtime_reconcile_total{controller=\"foobar\",result=\"success\"} 3";
    assert!(metrics.contains(passes), "{metrics}");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_life_is_these_writes_and_no_others() {
    let (world, running) = start().await;
    let before = world.writes().len();
    world.create("one", "example.com").await;
    world.until_done("one").await;
    world.delete("one").await;
    world.until("it is gone", async || world.is_gone("one").await).await;
    running.stop().await.unwrap();
    insta::assert_snapshot!(world.writes()[before..].join("\n"));
}
