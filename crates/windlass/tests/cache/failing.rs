//! What fails, and what does not fail with it.

use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::CustomResource;
use kube::core::{DynamicObject, PartialObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::Env;
use windlass::cache::{Cache, Declared, Delta, ReadError, Reporter, State, Subscriber, Synced};
use windlass::core::{Kind, ObjectKey};
use windlass::events::Recorder;
use windlass::metrics::{Format, Metrics};
use windlass_testing::TestCluster;

use crate::faults::{Fault, Faults};
use crate::support::{MANAGER, Notes, Running, cluster, config_map, key, run, settle, until};

thread_local! {
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Each test has a thread of its own, and so has its log. One subscriber for all: what is enabled is remembered for the
/// whole process by the place in the code.
fn log() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing_subscriber::fmt().with_ansi(false).with_writer(|| Log).init());
}

fn logged() -> Vec<String> {
    let log = LOG.with_borrow(Clone::clone);
    String::from_utf8(log).unwrap().lines().map(str::to_owned).collect()
}

struct Log;

impl io::Write for Log {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.extend_from_slice(text));
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_denied_says_so_once_and_leaves_the_others_alone() {
    log();
    let cluster = cluster().await;
    let faults = Faults::default();
    faults.set(|target| target.contains("secrets").then_some(Fault::Status(403, "Forbidden")));
    let cache = Cache::new(MANAGER);
    let (maps, secrets) =
        (cache.declare(Declared::<ConfigMap>::typed()), cache.declare(Declared::<Secret>::typed()));
    let notes = Arc::new(Notes::default());
    maps.subscribe(notes.clone());
    let _task = run(&cache, faults.client(&cluster), notes.clone());
    assert_eq!(maps.synced().await, Synced::Listed);
    let Synced::Failing(error) = secrets.synced().await else { panic!("it is denied") };
    assert!(error.contains("403 Forbidden"), "{error}");

    for n in 0..300 {
        config_map(&cluster, "one", &n.to_string()).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(notes.len(), n + 1, "each change is told at once");
    }
    let denied = faults.asked().into_iter().filter(|target| target.contains("secrets")).count();
    assert!((9..=16).contains(&denied), "it is tried again, less and less often: {denied} times");
    assert_eq!(notes.failures.lock().unwrap().len(), denied, "each one is counted");
    assert_eq!(logged().len(), 1, "{:?}", logged());
    assert!(logged()[0].contains("WARN") && logged()[0].contains("Secret"), "{:?}", logged());
    let unread = cache.list::<Secret>(None).unwrap_err();
    assert!(matches!(&unread, ReadError::NotSynced { why, .. } if why.contains("403")), "{unread}");

    faults.clear();
    until("it is live", || secrets.health()[0].state == State::Live).await;
    assert_eq!(logged().len(), 2, "{:?}", logged());
    assert!(logged()[1].contains("well again"), "{:?}", logged());
    assert!(cache.list::<Secret>(None).is_ok());
    let mut states = notes.states.lock().unwrap().clone();
    states.retain(|state| state.starts_with("Secret"));
    assert_eq!(states, ["Secret syncing", "Secret failing", "Secret live"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_can_be_read_while_the_server_is_down() {
    let cluster = cluster().await;
    config_map(&cluster, "one", "x").await;
    let running = Running::all(&cluster).await;
    running.faults.set(|_| Some(Fault::Status(503, "ServiceUnavailable")));
    running.faults.cut();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let State::Failing { since, .. } = running.state() else { panic!("the server is down") };
    assert!(since.since_start() < Duration::from_secs(1), "{since:?}");
    assert!(running.cache.get::<ConfigMap>(&key("one")).unwrap().is_some());
    running.faults.clear();
    config_map(&cluster, "one", "y").await;
    until("the change", || running.notes.len() == 2).await;
    assert_eq!(running.notes.take(), ["+one initial", "~one"]);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_makes_the_same_requests_at_the_same_times() {
    async fn trace(seed: u64) -> Vec<String> {
        let cluster = cluster().await;
        let faults = Faults::default();
        let start = tokio::time::Instant::now();
        let times = Arc::new(Mutex::new(Vec::new()));
        let noted = times.clone();
        faults.set(move |target| {
            noted.lock().unwrap().push(format!("{:?} {target}", start.elapsed()));
            target.contains("secrets").then_some(Fault::Status(500, "InternalError"))
        });
        let cache = Cache::new(MANAGER);
        cache.declare(Declared::<ConfigMap>::typed());
        cache.declare(Declared::<Secret>::typed());
        cache.declare(Declared::<PartialObjectMeta<ConfigMap>>::typed());
        let env = Env::seeded(seed, "2026-01-01T00:00:00Z".parse().unwrap());
        let _task = cache.start(faults.client(&cluster), &env, Arc::new(()));
        tokio::time::sleep(Duration::from_secs(900)).await;
        std::mem::take(&mut *times.lock().unwrap())
    }
    let first = trace(1).await;
    assert!(first.len() > 20, "{first:?}");
    assert_eq!(first, trace(1).await);
    assert_ne!(first, trace(2).await, "jitter comes from the seed");
}

#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, JsonSchema)]
#[kube(group = "test.example.com", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    size: u32,
}

/// The server takes any size; the Rust type does not.
async fn install(cluster: &TestCluster) {
    let crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.test.example.com}, \
        spec: {group: test.example.com, scope: Namespaced, names: {plural: widgets, kind: Widget}, versions: [{name: v1, \
        served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, \
        x-kubernetes-preserve-unknown-fields: true}}}}}]}}";
    cluster.apply_yaml(crd).await.unwrap();
    for _ in 0..100 {
        if widget(cluster, "probe", "1").await {
            let api: kube::Api<Widget> = kube::Api::default_namespaced(cluster.client());
            api.delete("probe", &Default::default()).await.unwrap();
            return;
        }
        settle().await;
    }
    panic!("the CRD is never served");
}

async fn widget(cluster: &TestCluster, name: &str, size: &str) -> bool {
    let yaml = format!(
        "{{apiVersion: test.example.com/v1, kind: Widget, metadata: {{name: {name}}}, spec: {{size: {size}}}}}"
    );
    cluster.apply_yaml(&yaml).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_is_skipped() {
    let cluster = cluster().await;
    install(&cluster).await;
    for (name, size) in [("good", "1"), ("bad", "large"), ("fine", "3")] {
        assert!(widget(&cluster, name, size).await);
    }
    let cache = Cache::new(MANAGER);
    let widgets = cache.declare(Declared::<Widget>::typed());
    let dynamic = cache.declare(Declared::<DynamicObject>::of(Kind::of::<Widget>()));
    let notes = Arc::new(Notes::default());
    widgets.subscribe(notes.clone());
    let faults = Faults::default();
    let _task = run(&cache, faults.client(&cluster), notes.clone());
    assert_eq!(widgets.synced().await, Synced::Listed);
    assert_eq!(notes.take(), ["+fine initial", "+good initial"]);
    let undecodable = notes.undecodable.lock().unwrap().clone();
    assert_eq!(undecodable.len(), 1, "{undecodable:?}");
    assert!(
        undecodable[0].starts_with("Widget.test.example.com bad: it does not fit the type"),
        "{undecodable:?}"
    );
    assert_eq!((widgets.health()[0].objects, widgets.health()[0].undecodable), (2, 1));

    // It goes bad, and good again. What was known of it stays meanwhile, also across a new list.
    assert!(widget(&cluster, "good", "huge").await);
    assert!(widget(&cluster, "fine", "4").await);
    until("the change", || notes.len() == 1).await;
    faults.set(|target| target.contains("resourceVersion=").then_some(Fault::Status(410, "Expired")));
    faults.cut();
    settle().await;
    assert_eq!(widgets.get(&key("good")).unwrap().spec.size, 1);
    faults.clear();
    assert!(widget(&cluster, "good", "5").await);
    until("the change", || notes.len() == 2).await;
    assert_eq!(notes.take(), ["~fine", "~good"]);
    assert_eq!(widgets.get(&key("good")).unwrap().spec.size, 5);

    dynamic.synced().await;
    let all = cache.list_of::<DynamicObject>(&Kind::of::<Widget>(), Some("default")).unwrap();
    assert_eq!(all.len(), 3, "without a type all of them fit");
    assert!(all.iter().all(|object| object.types.as_ref().is_some_and(|types| types.kind == "Widget")));
}

#[tokio::test(start_paused = true)]
async fn a_kind_comes_and_goes() {
    let cluster = cluster().await;
    let cache = Cache::new(MANAGER);
    let widgets = cache.declare(Declared::<Widget>::typed().optional());
    let notes = Arc::new(Notes::default());
    widgets.subscribe(notes.clone());
    let _task = run(&cache, cluster.client(), notes.clone());
    assert_eq!(widgets.synced().await, Synced::Absent);
    assert!(cache.list::<Widget>(None).unwrap().is_empty(), "there are none");
    tokio::time::sleep(Duration::from_secs(120)).await;

    install(&cluster).await;
    widget(&cluster, "one", "1").await;
    until("it appears", || notes.len() == 1).await;
    let crds: kube::Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = kube::Api::all(cluster.client());
    crds.delete("widgets.test.example.com", &Default::default()).await.unwrap();
    // At the latest when the watch that is open ends.
    until("it goes", || widgets.health()[0].state == State::Absent).await;
    assert!(cache.list::<Widget>(None).unwrap().is_empty());

    install(&cluster).await;
    widget(&cluster, "two", "2").await;
    until("it comes back", || notes.len() == 3).await;
    assert_eq!(notes.take(), ["+one initial", "-one", "+two"]);
    let name = "Widget.test.example.com";
    let states = ["syncing", "absent", "live", "absent", "live"].map(|state| format!("{name} {state}"));
    assert_eq!(*notes.states.lock().unwrap(), states);
    assert!(notes.failures.lock().unwrap().is_empty(), "that is no failure");
}

#[tokio::test(start_paused = true)]
async fn not_found_by_a_server_that_has_the_kind_is_a_failure() {
    let cluster = cluster().await;
    config_map(&cluster, "one", "x").await;
    let running = Running::all(&cluster).await;
    // A server that is starting may not find what it has.
    running.faults.set(|target| target.contains("configmaps").then_some(Fault::Status(404, "NotFound")));
    running.faults.cut();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(matches!(running.state(), State::Failing { .. }), "{:?}", running.state());
    assert_eq!(running.names(), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn what_users_bring_may_panic() {
    struct Panics;
    impl Subscriber<ConfigMap> for Panics {
        fn changed(&self, _: &Delta<ConfigMap>) {
            panic!("what a panic in a subscriber looks like");
        }
    }
    let cluster = cluster().await;
    config_map(&cluster, "bad", "x").await;
    config_map(&cluster, "good", "x").await;
    let declared = Declared::<ConfigMap>::typed().transform(|map| {
        assert_ne!(map.metadata.name.as_deref(), Some("bad"), "what a panic in a transform looks like");
        map.data = None;
    });
    let cache = Cache::new(MANAGER);
    let maps = cache.declare(declared);
    let notes = Arc::new(Notes::default());
    maps.subscribe(Arc::new(Panics));
    maps.subscribe(notes.clone());
    let _task = run(&cache, cluster.client(), notes.clone());
    maps.synced().await;
    assert_eq!(notes.take(), ["+good initial"], "one that panics takes nothing from the other");
    assert_eq!(notes.undecodable.lock().unwrap().len(), 1);
    assert_eq!(maps.get(&ObjectKey::namespaced("default", "good")).unwrap().data, None, "it was transformed");
}

#[tokio::test(start_paused = true)]
async fn metrics_show_how_informers_are_doing() {
    let cluster = cluster().await;
    config_map(&cluster, "one", "x").await;
    let faults = Faults::default();
    faults.set(|target| target.contains("secrets").then_some(Fault::Status(403, "Forbidden")));
    let cache = Cache::new(MANAGER);
    let labels = windlass::core::select::LabelSelector::parse("app=web").unwrap();
    cache.declare(Declared::<ConfigMap>::typed());
    cache.declare(Declared::<ConfigMap>::typed().labels(labels));
    cache.declare(Declared::<Secret>::typed());
    let metrics = Metrics::new();
    let reporter = Reporter::new(&cache, &metrics, Recorder::off());
    let _task = run(&cache, faults.client(&cluster), Arc::new(reporter));
    cache.synced().await;
    let shown = metrics.render(Format::Text);
    let shown: Vec<_> = shown.lines().filter(|line| line.starts_with("windlass_informer")).collect();
    let has = |line: &str| assert!(shown.contains(&line), "{line}\n\n{}", shown.join("\n"));
    has(r#"windlass_informer_state{kind="ConfigMap",scope="",state="live"} 1"#);
    has(r#"windlass_informer_state{kind="Secret",scope="",state="failing"} 1"#);
    has(r#"windlass_informer_watch_errors_total{kind="Secret",scope=""} 1"#);
    has(r#"windlass_informer_objects{kind="ConfigMap",scope="app=web"} 0"#);
    let all = cache.list::<ConfigMap>(None).unwrap().len();
    has(&format!(r#"windlass_informer_objects{{kind="ConfigMap",scope=""}} {all}"#));
}
