//! Events reach the cluster, few for many, and never stop who publishes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event as Stored;
use kube::Api;
use kube::api::ListParams;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, ServiceExt as _};
use windlass::Env;
use windlass::env::Task;
use windlass::events::{Event, Recorder};
use windlass::metrics::{Format, Metrics};
use windlass_testing::TestCluster;

struct World {
    cluster: TestCluster,
    env: Env,
    metrics: Metrics,
    recorder: Recorder,
    task: Task<()>,
    stop: CancellationToken,
}

impl World {
    async fn new() -> World {
        let cluster = TestCluster::builder().seed(1).start().await;
        let client = cluster.client();
        World::with(cluster, client)
    }

    fn with(cluster: TestCluster, client: kube::Client) -> World {
        let env = Env::seeded(7, "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
        let metrics = Metrics::new();
        let stop = CancellationToken::new();
        let (recorder, task) =
            Recorder::start(client, &env, &metrics, "foobar-operator", "foobar-operator-0", stop.clone());
        World { cluster, env, metrics, recorder, task, stop }
    }

    /// What people see, in the order of names.
    async fn seen(&self) -> Vec<Stored> {
        let events: Api<Stored> = Api::all(self.cluster.client());
        events.list(&ListParams::default()).await.unwrap().items
    }

    fn counted(&self, result: &str) -> u64 {
        let text = self.metrics.render(Format::Text);
        let series = format!("windlass_events_total{{result=\"{result}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
    }

    async fn seconds(&self, seconds: u64) {
        self.env.sleep(Duration::from_secs(seconds)).await;
    }
}

fn object(namespace: Option<&str>, name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("test.example.com/v1".to_owned()),
        kind: Some("FooBar".to_owned()),
        namespace: namespace.map(str::to_owned),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_what_kubectl_describe_wants() {
    let world = World::new().await;
    world
        .recorder
        .publish(&object(Some("default"), "one"), Event::normal("Created", "Create", "made a ConfigMap"));
    world.recorder.publish(&object(None, "cluster-wide"), Event::warning("Broken", "", "x".repeat(5000)));
    world.seconds(1).await;
    let seen = world.seen().await;
    assert_eq!(seen.len(), 2);
    let (whole, one) = (&seen[0], &seen[1]);
    assert!(one.metadata.name.as_deref().unwrap().starts_with("one."));
    assert_eq!(one.metadata.namespace.as_deref(), Some("default"));
    assert_eq!(one.type_.as_deref(), Some("Normal"));
    assert_eq!(one.reason.as_deref(), Some("Created"));
    assert_eq!(one.action.as_deref(), Some("Create"));
    assert_eq!(one.note.as_deref(), Some("made a ConfigMap"));
    assert_eq!(one.reporting_controller.as_deref(), Some("foobar-operator"));
    assert_eq!(one.reporting_instance.as_deref(), Some("foobar-operator-0"));
    assert_eq!(one.event_time.as_ref().unwrap().0.to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(one.regarding.as_ref().unwrap().name.as_deref(), Some("one"));
    assert_eq!(one.series, None);
    assert_eq!(whole.metadata.namespace.as_deref(), Some("default"), "objects of the cluster");
    assert_eq!(whole.action.as_deref(), Some("Broken"));
    assert_eq!(whole.note.as_ref().unwrap().len(), 1024);
    assert_eq!(world.counted("sent"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_of_the_same_are_one_event_with_a_count() {
    let world = World::new().await;
    for _ in 0..1000 {
        world.recorder.publish(&object(Some("default"), "one"), Event::warning("Failing", "Reconcile", "no"));
        world.env.sleep(Duration::from_millis(100)).await;
    }
    let series = |seen: Vec<Stored>| seen.into_iter().map(|e| e.series.unwrap().count).collect::<Vec<_>>();
    assert_eq!(series(world.seen().await), [512]);
    world.seconds(361).await;
    assert_eq!(series(world.seen().await), [1000], "the last count is told when the series has ended");
    assert_eq!(world.cluster.count("create", "events"), 1);
    assert_eq!(world.cluster.count("patch", "events"), 10);
}

#[tokio::test(start_paused = true)]
async fn a_series_outlives_its_event() {
    let world = World::new().await;
    let publish = || world.recorder.publish(&object(Some("default"), "one"), Event::warning("A", "B", "c"));
    publish();
    world.seconds(1).await;
    let events: Api<Stored> = Api::namespaced(world.cluster.client(), "default");
    let name = world.seen().await[0].metadata.name.clone().unwrap();
    events.delete(&name, &Default::default()).await.unwrap();
    publish();
    world.seconds(1).await;
    assert_eq!(world.seen().await[0].series.as_ref().unwrap().count, 2);
}

#[tokio::test(start_paused = true)]
async fn one_object_cannot_flood_the_cluster() {
    let world = World::new().await;
    for number in 0..100 {
        let note = format!("number {number}");
        world.recorder.publish(&object(Some("default"), "loud"), Event::normal("A", "B", note));
    }
    world.recorder.publish(&object(Some("default"), "quiet"), Event::normal("A", "B", "c"));
    world.seconds(1).await;
    assert_eq!(world.seen().await.len(), 26);
    assert_eq!(world.counted("rate_limit"), 75);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_loses_no_event_that_fits_and_stops_nobody() {
    let cluster = TestCluster::new().await;
    let away = Arc::new(AtomicBool::new(true));
    let tried = Arc::new(AtomicUsize::new(0));
    let (inner, is_away, tries) = (cluster.client(), away.clone(), tried.clone());
    let service = tower::service_fn(move |request| {
        let (inner, away) = (inner.clone(), is_away.load(Ordering::SeqCst));
        tries.fetch_add(1, Ordering::SeqCst);
        async move { if away { Err(BoxError::from("no route to host")) } else { Ok(inner.send(request).await?) } }
    });
    let client = kube::Client::new(service.boxed_clone(), "default");
    let world = World::with(cluster, client);
    for number in 0..2000 {
        let object = object(Some("default"), &format!("o{number}"));
        world.recorder.publish(&object, Event::normal("A", "B", "c"));
    }
    assert_eq!(world.counted("overflow"), 1000);
    world.seconds(60).await;
    assert_eq!(world.seen().await.len(), 0);
    assert!((5..8).contains(&tried.load(Ordering::SeqCst)), "{tried:?} requests in a minute");
    away.store(false, Ordering::SeqCst);
    world.seconds(60).await;
    assert_eq!(world.seen().await.len(), 1000);
}

#[tokio::test(start_paused = true)]
async fn what_the_server_refuses_is_dropped_and_the_next_goes_out() {
    let world = World::new().await;
    world.recorder.publish(&object(Some("no-such-namespace"), "one"), Event::normal("A", "B", "c"));
    world.recorder.publish(&object(Some("default"), "two"), Event::normal("A", "B", "c"));
    world.seconds(1).await;
    assert_eq!(world.seen().await.len(), 1);
    assert_eq!((world.counted("failed"), world.counted("sent")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_end_tells_what_is_left_and_comes() {
    let world = World::new().await;
    for _ in 0..3 {
        world.recorder.publish(&object(Some("default"), "one"), Event::normal("A", "B", "c"));
    }
    world.stop.cancel();
    let World { task, cluster, .. } = world;
    task.await.unwrap();
    let events: Api<Stored> = Api::all(cluster.client());
    let seen = events.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(seen.iter().map(|e| e.series.as_ref().unwrap().count).collect::<Vec<_>>(), [3]);
}
