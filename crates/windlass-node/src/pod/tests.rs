//! Whole pods on an API server, with programs that are only told of, in the time of the test.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt as _;
use windlass::Env;
use windlass::events::Recorder;
use windlass_testing::TestCluster;

use super::downward::Capacity;
use super::fake::{FakeNetwork, FakeRuntime};
use super::{Ground, Options, Pods};
use crate::image::Images;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

struct World {
    cluster: TestCluster,
    client: kube::Client,
    env: Env,
    folder: TempDir,
    runtime: Arc<FakeRuntime>,
    pods: Option<Pods>,
}

impl World {
    async fn new() -> World {
        let cluster = TestCluster::new().await;
        let env = Env::seeded(1, "2026-01-01T00:00:00Z".parse().unwrap());
        let folder = TempDir::new().unwrap();
        let runtime = FakeRuntime::new(&env);
        let client = issuing(&cluster, env.clone());
        let mut world = World { cluster, client, env, folder, runtime, pods: None };
        world.boot();
        world
    }

    /// A process begins to run the pods.
    fn boot(&mut self) {
        self.runtime = FakeRuntime::new(&self.env);
        let ground = Ground {
            runtime: self.runtime.clone(),
            network: Arc::new(FakeNetwork),
            images: Images::open("/nonexistent"),
            recorder: Recorder::off(),
        };
        let options = Options {
            node: "one".to_owned(),
            host_ips: vec!["10.243.0.10".to_owned()],
            folder: self.folder.path().to_owned(),
            capacity: Capacity::default(),
            cluster_domain: "cluster.local".to_owned(),
        };
        self.pods = Some(Pods::start(self.client.clone(), &self.env, options, ground));
    }

    fn api(&self) -> Api<Pod> {
        Api::default_namespaced(self.cluster.client())
    }

    async fn create(&self, name: &str, spec: Value) -> String {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
        pod["spec"]["nodeName"] = json!("one");
        let pod =
            self.api().create(&Default::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        pod.metadata.uid.unwrap()
    }

    /// The first container of a pod, when so much time has passed.
    async fn after(&self, seconds: u64, name: &str) -> ContainerStatus {
        self.env.sleep(Duration::from_secs(seconds)).await;
        let pod = self.api().get(name).await.unwrap();
        let statuses = pod.status.and_then(|status| status.container_statuses);
        statuses.unwrap_or_default().into_iter().next().unwrap_or_default()
    }

    fn starts(&self) -> Vec<i64> {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let started = self.runtime.started.lock().unwrap();
        started.iter().map(|(at, _)| at.duration_since(start).as_secs()).collect()
    }
}

/// A client of the cluster that is given tokens, which say when they were issued.
fn issuing(cluster: &TestCluster, env: Env) -> kube::Client {
    let server = cluster.server().service();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (server, env) = (server.clone(), env.clone());
        async move {
            if !request.uri().path().ends_with("/serviceaccounts/robot/token") {
                let answer = server.oneshot(request).await?;
                return Ok::<_, BoxError>(answer.map(|body| body.map_err(BoxError::from).boxed_unsync()));
            }
            let now = env.now();
            let ends = super::backoff::later(now, Duration::from_secs(3600));
            let issued = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {},
                "spec": {"audiences": []}, "status": {"token": now.to_string(), "expirationTimestamp": ends.to_string()}});
            let body = Full::from(issued.to_string()).map_err(BoxError::from).boxed_unsync();
            Ok(http::Response::builder().status(201).body(body).unwrap())
        }
    });
    kube::Client::new(service, "default")
}

fn one(command: &[&str]) -> Value {
    json!({"containers": [{"name": "a", "image": "busybox:1", "command": command}]})
}

fn running(status: &ContainerStatus) -> bool {
    status.ready && status.state.as_ref().is_some_and(|state| state.running.is_some())
}

#[tokio::test(start_paused = true)]
async fn a_pod_runs_until_it_is_deleted_and_leaves_nothing() {
    let world = World::new().await;
    let uid = world.create("web", one(&["sleep", "100000"])).await;
    assert!(running(&world.after(5, "web").await));
    assert!(world.folder.path().join(&uid).is_dir());
    world.api().delete("web", &DeleteParams::default().grace_period(30)).await.unwrap();
    assert!(running(&world.after(29, "web").await), "it is deaf, and has thirty seconds");
    world.env.sleep(Duration::from_secs(2)).await;
    assert!(world.api().get_opt("web").await.unwrap().is_none());
    assert!(!world.folder.path().join(&uid).exists());
    assert_eq!(world.runtime.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_keeps_kubelets_time() {
    let world = World::new().await;
    world.create("web", one(&["exit", "1"])).await;
    let status = world.after(1000, "web").await;
    assert_eq!(world.starts(), [0, 0, 10, 30, 70, 150, 310, 610, 910]);
    assert_eq!(status.restart_count, 8);
    let waiting = status.state.and_then(|state| state.waiting).unwrap();
    assert_eq!(waiting.reason.as_deref(), Some("CrashLoopBackOff"));
}

#[tokio::test(start_paused = true)]
async fn the_next_process_takes_pods_up_and_removes_what_is_left_of_others() {
    let mut world = World::new().await;
    world.create("web", one(&["sleep", "100000"])).await;
    world
        .create(
            "job",
            json!({"restartPolicy": "Never", "containers": [
        {"name": "a", "image": "busybox:1", "command": ["sleep", "100000"]}]}),
        )
        .await;
    let gone = world.create("gone", one(&["sleep", "100000"])).await;
    assert!(running(&world.after(5, "web").await));

    drop(world.pods.take());
    world.api().delete("gone", &DeleteParams::default().grace_period(0)).await.unwrap();
    world.boot();
    let status = world.after(5, "web").await;
    assert!(running(&status), "{status:?}");
    assert_eq!(status.restart_count, 1);
    let last = status.last_state.and_then(|state| state.terminated).unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (255, Some("Unknown")));
    assert!(!world.folder.path().join(gone).exists());
    assert_eq!(world.api().get("job").await.unwrap().status.unwrap().phase.as_deref(), Some("Failed"));
    assert_eq!(world.runtime.count(), 1, "a pod of one go has had it");
}

#[tokio::test(start_paused = true)]
async fn a_panic_costs_one_pod_a_moment_and_the_others_nothing() {
    let world = World::new().await;
    world.create("well", one(&["sleep", "100000"])).await;
    world.create("ill", one(&["panic"])).await;
    assert!(!running(&world.after(1, "ill").await));
    assert!(running(&world.after(6, "ill").await));
    let well = world.after(0, "well").await;
    assert!(running(&well) && well.restart_count == 0);
}

#[tokio::test(start_paused = true)]
async fn a_pod_at_rest_asks_nothing_of_the_server() {
    let world = World::new().await;
    world.create("web", one(&["polite"])).await;
    assert!(running(&world.after(5, "web").await));
    let writes = world.cluster.count("patch", "pods/status");
    world.env.sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.cluster.count("patch", "pods/status"), writes);
    assert!(writes <= 3, "{writes} writes for one start");
}

#[tokio::test(start_paused = true)]
async fn probes_are_made_of_the_pods_address() {
    let world = World::new().await;
    let probe = json!({"tcpSocket": {"port": 80}, "periodSeconds": 2});
    let container =
        json!({"name": "a", "image": "busybox:1", "command": ["polite"], "readinessProbe": probe});
    world.create("web", json!({"containers": [container]})).await;
    assert!(!running(&world.after(7, "web").await));
    world.runtime.listening.lock().unwrap().insert("10.244.0.2:80".parse().unwrap());
    assert!(running(&world.after(3, "web").await));
    world.runtime.listening.lock().unwrap().clear();
    assert!(!running(&world.after(7, "web").await));
}

#[tokio::test(start_paused = true)]
async fn hooks_run_in_the_container() {
    let world = World::new().await;
    let hooks =
        json!({"postStart": {"exec": {"command": ["sleep", "3"]}}, "preStop": {"sleep": {"seconds": 5}}});
    let container = json!({"name": "a", "image": "busybox:1", "command": ["polite"], "lifecycle": hooks});
    world.create("web", json!({"containers": [container]})).await;
    assert!(!running(&world.after(2, "web").await), "it does not run before its hook has");
    assert!(running(&world.after(2, "web").await));
    world.api().delete("web", &DeleteParams::default().grace_period(30)).await.unwrap();
    assert!(running(&world.after(4, "web").await));
    world.env.sleep(Duration::from_secs(2)).await;
    assert!(world.api().get_opt("web").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn tokens_are_renewed_before_they_end() {
    let world = World::new().await;
    let sources = json!([{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]);
    let uid = world
        .create(
            "web",
            json!({
                "serviceAccountName": "robot",
                "volumes": [{"name": "tokens", "projected": {"sources": sources}}],
                "containers": [{"name": "a", "image": "busybox:1", "command": ["polite"],
                    "volumeMounts": [{"name": "tokens", "mountPath": "/mnt"}]}],
            }),
        )
        .await;
    assert!(running(&world.after(5, "web").await));
    let file = world.folder.path().join(uid).join("volumes/kubernetes.io~projected/tokens/token");
    let token = || std::fs::read_to_string(&file).unwrap();
    let first = token();
    world.env.sleep(Duration::from_secs(2800)).await;
    assert_eq!(token(), first, "it lasts for most of its hour");
    world.env.sleep(Duration::from_secs(200)).await;
    assert_ne!(token(), first);
}

#[tokio::test(start_paused = true)]
async fn files_follow_their_objects() {
    let world = World::new().await;
    let conf = |text: &str| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: conf}}, data: {{a: {text}}}}}")
    };
    let uid = world
        .create(
            "web",
            json!({
                "volumes": [{"name": "conf", "configMap": {"name": "conf"}}],
                "containers": [{"name": "a", "image": "busybox:1", "command": ["polite"],
                    "volumeMounts": [{"name": "conf", "mountPath": "/mnt"}]}],
            }),
        )
        .await;
    assert!(!running(&world.after(3, "web").await), "it waits for its files");
    world.cluster.apply_yaml(&conf("one")).await.unwrap();
    assert!(running(&world.after(1, "web").await), "and does not wait for long");
    let file = world.folder.path().join(uid).join("volumes/kubernetes.io~configmap/conf/a");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
    world.cluster.apply_yaml(&conf("two")).await.unwrap();
    world.env.sleep(Duration::from_secs(1)).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_grace_says_nothing_and_starts_pods_again() {
    let mut world = World::new().await;
    let deaf = json!({"terminationGracePeriodSeconds": 20,
        "containers": [{"name": "a", "image": "busybox:1", "command": ["sleep", "100000"]}]});
    world.create("deaf", deaf).await;
    world.create("polite", one(&["polite"])).await;
    assert!(running(&world.after(5, "polite").await));
    let pods = world.pods.take().unwrap();
    let waited: Vec<_> = pods.running().into_iter().map(|(_, patience)| patience.as_secs()).collect();
    assert_eq!(waited.iter().max(), Some(&30), "that is how long the pod has which says nothing of it");
    let asked = world.env.now();
    pods.shut_down().await;
    assert_eq!(
        world.env.now().duration_since(asked).as_secs(),
        20,
        "the deaf one has its grace, and no more"
    );
    assert_eq!(world.runtime.count(), 0);
    for name in ["deaf", "polite"] {
        let status = world.after(0, name).await;
        assert!(running(&status) && status.restart_count == 0, "nobody was told: {status:?}");
    }
    world.boot();
    for name in ["deaf", "polite"] {
        let status = world.after(5, name).await;
        assert!(running(&status) && status.restart_count == 1, "{status:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_happened_before_a_shutdown_is_said() {
    let mut world = World::new().await;
    let mut once = one(&["sleep", "7"]);
    once["restartPolicy"] = json!("Never");
    world.create("once", once).await;
    world.create("deaf", one(&["sleep", "100000"])).await;
    world.after(5, "once").await;
    world.env.sleep(Duration::from_secs(2)).await;
    world.pods.take().unwrap().shut_down().await;
    let phase = world.api().get("once").await.unwrap().status.unwrap().phase;
    assert_eq!(phase.as_deref(), Some("Succeeded"));
}
