//! What is of the user's own: state, metrics, HTTP routes, and what runs beside the controllers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use windlass::core::{ObjectKey, Outcome};
use windlass::metrics::prometheus_client::metrics::counter::Counter;
use windlass::operator::Ended;
use windlass::{Controller, Env, Error, Operator, Settings, election};
use windlass_testing::TestCluster;

use crate::support::{Log, config_map, start, until, until_told};

fn empty() -> Operator {
    Operator::new("test-operator", "0.0.0")
}

/// The body of one request over loopback.
async fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// How often the operator was greeted, as its own state, metric and route.
#[derive(Clone, Default)]
struct Greetings(Counter);

#[tokio::test]
async fn state_metrics_and_routes_are_of_one_piece() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let greetings = Greetings::default();
    let (counted, shown) = (greetings.0.clone(), greetings.0.clone());
    let controller = Controller::raw(|ctx, _: Arc<ConfigMap>| {
        if ctx.key().name() == "one" {
            ctx.state::<Greetings>().0.inc();
        }
        async { Ok(Outcome::AwaitChange) }
    });
    let operator = empty()
        .state(greetings.clone())
        .metrics(move |registry| registry.register("greetings", "How often it was greeted", counted))
        .routes(Router::new().route("/greetings", get(async move || shown.get().to_string())))
        .controller(controller);
    let addresses = ["127.0.0.1:0".to_owned(), "127.0.0.1:0".to_owned()];
    let [metrics_address, health_address] = addresses;
    let settings = Settings { metrics_address, health_address, ..Settings::for_tests(Env::system()) };
    let running = operator.start(cluster.client(), settings).await.unwrap();
    until(|| greetings.0.get() == 1).await;

    let (metrics, health) = (running.metrics_address().unwrap(), running.health_address().unwrap());
    assert_eq!(ask(metrics, "/greetings").await, "1");
    let text = ask(metrics, "/metrics").await;
    for line in [
        "greetings_total 1",
        "controller_runtime_max_concurrent_reconciles{controller=\"configmap\"} 4",
        "controller_runtime_reconcile_total{controller=\"configmap\",result=\"error\"} 0",
    ] {
        assert!(text.lines().any(|one| one == line), "no {line} in\n{text}");
    }
    for name in
        ["rest_client_requests_total{", "workqueue_adds_total{", "controller_runtime_reconcile_total{"]
    {
        assert!(text.contains(name), "no {name} in\n{text}");
    }
    assert_eq!(ask(health, "/healthz").await, "ok");
    assert_eq!(ask(health, "/readyz?verbose").await, "[+]ping ok\n[+]informers ok\nreadyz check passed\n");
    running.stop().await.unwrap();
    assert!(TcpStream::connect(metrics).await.is_err(), "the port is free again");
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_missing_names_the_line_to_add() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let controller = Controller::raw(|ctx, _: Arc<ConfigMap>| {
        ctx.state::<Log>();
        async { Ok(Outcome::AwaitChange) }
    });
    let running = start(&cluster, empty().controller(controller)).await;
    // A panic is of one pass: the object has an event that says so.
    let line = "add `.state::<operator::support::Log>(…)` to its definition";
    until_told(&cluster, |event| event.note.as_deref().is_some_and(|note| note.contains(line))).await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_runs_beside_runs_on_every_replica_or_on_the_one_that_leads() {
    let cluster = TestCluster::new().await;
    let (everywhere, leading) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let replica = |identity: &str| {
        let (everywhere, leading) = (everywhere.clone(), leading.clone());
        let until_told = |count: Arc<AtomicUsize>| {
            async move |beside: windlass::operator::Beside| {
                count.fetch_add(1, Ordering::SeqCst);
                beside.stopping.cancelled().await;
                Ok(())
            }
        };
        let operator = empty()
            .runs("everywhere", until_told(everywhere))
            .runs_when_leading("leading", until_told(leading));
        let election = Some(election::Settings::new("default", "test-operator", identity));
        operator.start(cluster.client(), Settings { election, ..Settings::for_tests(Env::system()) })
    };
    let first = replica("a").await.unwrap();
    first.leadership().leading().await;
    let second = replica("b").await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let counts = || (everywhere.load(Ordering::SeqCst), leading.load(Ordering::SeqCst));
    assert_eq!(counts(), (2, 1));
    first.stop().await.unwrap();
    second.leadership().leading().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(counts(), (2, 2));
    second.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_ends_early_fails_or_panics_ends_the_operator_by_its_name() {
    let cluster = TestCluster::new().await;
    let running = start(&cluster, empty().runs("poller", async |_| Ok(()))).await;
    let ended = running.wait().await.unwrap_err();
    assert!(matches!(ended, Ended::Early("poller")), "{ended}");
    assert_eq!(ended.to_string(), "poller ended before the operator was told to stop");

    let failing = async |beside: windlass::operator::Beside| {
        beside.env.sleep(Duration::from_secs(5)).await;
        Err(Error::retry("the pager is off"))
    };
    let running = start(&cluster, empty().runs("poller", failing)).await;
    assert_eq!(running.wait().await.unwrap_err().to_string(), "poller failed: the pager is off");

    // Before its first await: it is in its own task already.
    let panicking = |_| -> std::future::Ready<Result<(), Error>> { panic!("oh no") };
    let running = start(&cluster, empty().runs("poller", panicking)).await;
    assert_eq!(running.wait().await.unwrap_err().to_string(), "task poller panicked: oh no");
}

#[tokio::test(start_paused = true)]
async fn what_runs_beside_has_the_cache_the_state_and_a_channel() {
    // A poller that rings for one object every minute: the controller looks at it.
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let log = Log::default();
    let (sender, receiver) = tokio::sync::mpsc::channel(8);
    let controller = {
        let log = log.clone();
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            log.note(ctx.key());
            async { Ok(Outcome::AwaitChange) }
        })
    };
    let poller = async move |beside: windlass::operator::Beside| {
        beside.cache.synced().await;
        for _ in 0..3 {
            beside.env.sleep(Duration::from_secs(60)).await;
            for map in beside.cache.list::<ConfigMap>(None)? {
                beside
                    .state::<tokio::sync::mpsc::Sender<ObjectKey>>()
                    .send(ObjectKey::of(&map.metadata))
                    .await?;
            }
        }
        beside.stopping.cancelled().await;
        Ok(())
    };
    let operator =
        empty().state(sender).controller(controller.channel("poller", receiver)).runs("poller", poller);
    let running = start(&cluster, operator).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(log.count("default/one"), 4, "once at the start, and three times when it was rung for");
    running.stop().await.unwrap();
}
