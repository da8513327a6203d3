//! A cluster of one node for all tests. Each test has pods of its own.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Event, Pod, PodStatus};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use windlass::Env;
use windlass::env::Task;
use windlass::events::Recorder;
use windlass::metrics::Metrics;
use windlass_node::image::Images;
use windlass_node::network::Network;
use windlass_node::pod::downward::Capacity;
use windlass_node::pod::{Ground, Options, Pods};
use windlass_node::serve::Containers;
use windlass_sandbox::{Options as SandboxOptions, Sandbox};
use windlass_testing::TestCluster;

pub type Test = (&'static str, fn(Arc<World>) -> BoxFuture<'static, ()>);

/// What runs for the tests, and ends with them.
pub struct World {
    pub cluster: TestCluster,
    pub containers: Arc<dyn Containers>,
    pub env: Env,
    pub folder: PathBuf,
    sandbox: Sandbox,
    pods: Mutex<Option<Pods>>,
    events: Mutex<Option<Task<()>>>,
}

pub const NODE: &str = "one";

impl World {
    pub async fn start() -> Arc<World> {
        let folder = std::env::temp_dir().join(format!("windlass-pods-{}", std::process::id()));
        let sandbox =
            Sandbox::start(SandboxOptions::new(folder.join("sandbox"))).await.expect("the sandbox stands");
        let network = Network::start(sandbox.clone(), &[NODE.to_owned()]).await.expect("the network stands");
        let pod_network = network.pods(NODE, folder.join("leases.json")).expect("the node is there");
        let cluster = TestCluster::new().await.with_timeout(Duration::from_secs(60));
        let env = Env::system();
        let (recorder, events) = Recorder::start(
            cluster.client(),
            &env,
            &Metrics::new(),
            "kubelet",
            NODE,
            CancellationToken::new(),
        );
        let ground = Ground {
            runtime: Arc::new(sandbox.clone()),
            network: Arc::new(pod_network),
            images: Images::open(folder.join("images")),
            recorder,
        };
        let options = Options {
            node: NODE.to_owned(),
            host_ips: vec!["10.243.0.10".to_owned()],
            folder: folder.join("pods"),
            capacity: Capacity { cpu_millis: 2000, memory: 4 << 30, storage: 10 << 30 },
            cluster_domain: "cluster.local".to_owned(),
        };
        let pods = Pods::start(cluster.client(), &env, options, ground);
        let containers = pods.containers();
        let (pods, events) = (Mutex::new(Some(pods)), Mutex::new(Some(events)));
        Arc::new(World { cluster, containers, env, folder, sandbox, pods, events })
    }

    pub async fn stop(&self) {
        let pods = self.pods.lock().unwrap().take();
        if let Some(pods) = pods {
            pods.stop().await;
        }
        drop(self.events.lock().unwrap().take());
        self.sandbox.stop().await;
        windlass_sandbox::remove_tree(&self.folder).expect("nothing of the test stays");
    }

    /// Whether limits of memory are kept.
    pub fn limits(&self) -> bool {
        self.sandbox.about().limits
    }

    pub fn api(&self) -> Api<Pod> {
        Api::default_namespaced(self.cluster.client())
    }

    /// Creates a pod on the node. `spec` is all of it but that.
    pub async fn create(&self, name: &str, spec: Value) -> Pod {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
        pod["spec"]["nodeName"] = json!(NODE);
        let pod = serde_json::from_value(pod).expect("a pod");
        self.api().create(&Default::default(), &pod).await.expect("the pod is created")
    }

    /// Waits until the status of a pod, in a line, is as wanted.
    pub async fn until(&self, name: &str, what: &str, is: impl Fn(&str) -> bool + Send + Sync) -> PodStatus {
        let wait = self.cluster.wait_for("default", name, what, |pod: &Pod| {
            pod.status.as_ref().is_some_and(|status| is(&line(status)))
        });
        match wait.await {
            Ok(pod) => pod.status.clone().unwrap_or_default(),
            Err(error) => panic!("{name} is not {what}: {error}"),
        }
    }

    pub async fn delete(&self, name: &str, grace: u32) {
        let params = DeleteParams::default().grace_period(grace);
        self.api().delete(name, &params).await.expect("the pod is deleted");
    }

    /// Waits until a pod is gone.
    pub async fn gone(&self, name: &str) {
        for _ in 0..600 {
            if self.api().get_opt(name).await.expect("the server answers").is_none() {
                return;
            }
            self.env.sleep(Duration::from_millis(50)).await;
        }
        panic!("{name} is not gone");
    }

    /// Waits until something is so.
    pub async fn soon(&self, what: &str, is: impl Fn() -> bool) {
        for _ in 0..600 {
            if is() {
                return;
            }
            self.env.sleep(Duration::from_millis(50)).await;
        }
        panic!("it is not so that {what}");
    }

    /// Waits until the reasons of the events of a pod are these, each once, in the order of the alphabet.
    pub async fn told(&self, name: &str, wanted: &[&str]) {
        let events: Api<Event> = Api::default_namespaced(self.cluster.client());
        let mut reasons = Vec::new();
        for _ in 0..200 {
            let all = events.list(&Default::default()).await.expect("events");
            let own =
                all.items.into_iter().filter(|event| event.involved_object.name.as_deref() == Some(name));
            reasons = own.filter_map(|event| event.reason).collect();
            reasons.sort();
            reasons.dedup();
            if reasons == wanted {
                return;
            }
            // They are told on the way, and may be behind.
            self.env.sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(reasons, wanted, "events of {name}");
    }

    /// The log of the run of a container that a status names.
    pub fn log(&self, pod: &Pod, container_id: &str) -> String {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let log = self.containers.log(uid, container_id).expect("there is a log");
        let text = std::fs::read_to_string(log.path).expect("the log can be read");
        let lines = text.lines().map(|line| line.splitn(4, ' ').nth(3).unwrap_or_default());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// A status in a line.
pub fn line(status: &PodStatus) -> String {
    let init = status.init_container_statuses.iter().flatten();
    let all = init.chain(status.container_statuses.iter().flatten());
    let containers: Vec<String> = all.map(said).collect();
    format!("{} | {}", status.phase.as_deref().unwrap_or_default(), containers.join(", "))
}

fn said(status: &ContainerStatus) -> String {
    let of = |state: &Option<ContainerState>| {
        let state = state.clone().unwrap_or_default();
        if let Some(ended) = state.terminated {
            format!("{}({})", ended.reason.unwrap_or_default(), ended.exit_code)
        } else if state.running.is_some() {
            "running".to_owned()
        } else {
            state.waiting.and_then(|waiting| waiting.reason).unwrap_or_default()
        }
    };
    let mut text = format!("{} {}", status.name, of(&status.state));
    if status.ready {
        text.push_str(" ready");
    }
    if status.restart_count > 0 {
        text.push_str(&format!(" restarts={}", status.restart_count));
    }
    let last = of(&status.last_state);
    if !last.is_empty() {
        text.push_str(&format!(" last={last}"));
    }
    text
}
