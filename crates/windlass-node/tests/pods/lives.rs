//! How pods live and die.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;

use super::world::{Test, World, line};

pub const TESTS: &[Test] = &[
    ("a_pod_runs_and_goes", |world| Box::pin(a_pod_runs_and_goes(world))),
    ("a_pod_of_one_go_completes", |world| Box::pin(a_pod_of_one_go_completes(world))),
    ("a_program_that_crashes_waits", |world| Box::pin(a_program_that_crashes_waits(world))),
    ("a_program_that_is_not_there", |world| Box::pin(a_program_that_is_not_there(world))),
    ("init_containers_and_sidecars", |world| Box::pin(init_containers_and_sidecars(world))),
    ("a_deaf_program_is_killed", |world| Box::pin(a_deaf_program_is_killed(world))),
    ("probes_ask_the_pod", |world| Box::pin(probes_ask_the_pod(world))),
    ("a_missing_image_says_so", |world| Box::pin(a_missing_image_says_so(world))),
    ("an_image_changed_in_place", |world| Box::pin(an_image_changed_in_place(world))),
];

async fn a_pod_runs_and_goes(world: Arc<World>) {
    let spec = json!({"containers": [{"name": "a", "image": "busybox:1", "command": ["sleep", "1000"]}]});
    let pod = world.create("sleeper", spec).await;
    let status = world.until("sleeper", "running", |line| line == "Running | a running ready").await;
    assert!(status.pod_ip.as_deref().is_some_and(|ip| ip.starts_with("10.244.0.")), "{status:?}");
    assert_eq!(status.host_ip.as_deref(), Some("10.243.0.10"));
    let folder = world.folder.join("pods").join(pod.metadata.uid.as_deref().unwrap());
    assert!(folder.is_dir());
    world.delete("sleeper", 1).await;
    world.gone("sleeper").await;
    world.told("sleeper", &["Created", "Killing", "Pulled", "Started"]).await;
    world.soon("nothing of it stays", || !folder.exists()).await;
}

async fn a_pod_of_one_go_completes(world: Arc<World>) {
    let script = "echo one; echo two >&2; echo bye > /dev/termination-log; exit $CODE";
    let container = |name: &str, code: &str| {
        json!({"name": name, "image": "busybox", "command": ["sh", "-c", script],
            "env": [{"name": "CODE", "value": code}]})
    };
    let spec = json!({"restartPolicy": "Never", "containers": [container("a", "0")]});
    let pod = world.create("well", spec).await;
    let status = world.until("well", "done", |line| line == "Succeeded | a Completed(0)").await;
    let container_status = &status.container_statuses.unwrap()[0];
    let ended = container_status.state.as_ref().unwrap().terminated.clone().unwrap();
    assert_eq!(ended.message.as_deref(), Some("bye\n"));
    let log = world.log(&pod, container_status.container_id.as_deref().unwrap());
    let mut lines: Vec<_> = log.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["one", "two"]);

    let spec = json!({"restartPolicy": "Never", "containers": [container("a", "7")]});
    world.create("ill", spec).await;
    world.until("ill", "failed", |line| line == "Failed | a Error(7)").await;
}

async fn a_program_that_crashes_waits(world: Arc<World>) {
    let container = json!({"name": "a", "image": "busybox", "command": ["sh", "-c", "echo no way >&2; exit 3"],
        "terminationMessagePolicy": "FallbackToLogsOnError"});
    world.create("crashes", json!({"containers": [container]})).await;
    let waits = "Running | a CrashLoopBackOff restarts=1 last=Error(3)";
    let status = world.until("crashes", "waiting", |line| line == waits).await;
    let last = status.container_statuses.unwrap()[0].last_state.clone().unwrap().terminated.unwrap();
    assert_eq!(last.message.as_deref(), Some("no way\n"));
    world.told("crashes", &["BackOff", "Created", "Pulled", "Pulling", "Started"]).await;
    world.delete("crashes", 0).await;
    world.gone("crashes").await;
}

async fn a_program_that_is_not_there(world: Arc<World>) {
    let container = json!({"name": "a", "image": "busybox:1", "command": ["nosuchprogram"]});
    world.create("nothing", json!({"restartPolicy": "Never", "containers": [container]})).await;
    let status = world.until("nothing", "failed", |line| line == "Failed | a StartError(128)").await;
    let ended = status.container_statuses.unwrap()[0].state.clone().unwrap().terminated.unwrap();
    assert!(ended.message.unwrap().contains("executable file not found in $PATH"));
    world.told("nothing", &["Created", "Failed", "Pulled"]).await;
}

async fn init_containers_and_sidecars(world: Arc<World>) {
    let scratch = json!([{"name": "scratch", "mountPath": "/scratch"}]);
    let says = |name: &str, text: &str| json!({"name": name, "image": "busybox", "command": ["sh", "-c", text], "volumeMounts": scratch});
    let mut sidecar = says(
        "sidecar",
        "echo sidecar >> /scratch/order; trap 'echo last >> /scratch/order; exit 0' TERM; while :; do sleep 0.1; done",
    );
    sidecar["restartPolicy"] = json!("Always");
    let spec = json!({
        "restartPolicy": "Never",
        "volumes": [{"name": "scratch", "hostPath": {"path": world.folder.join("order"), "type": "DirectoryOrCreate"}}],
        "initContainers": [says("init", "echo init >> /scratch/order"), sidecar],
        "containers": [says("main", "sleep 0.3; echo main >> /scratch/order")],
    });
    world.create("ordered", spec).await;
    let done = "Succeeded | init Completed(0) ready, sidecar Completed(0), main Completed(0)";
    world.until("ordered", "done", |line| line == done).await;
    let order = std::fs::read_to_string(world.folder.join("order/order")).unwrap();
    assert_eq!(order, "init\nsidecar\nmain\nlast\n");
}

async fn a_deaf_program_is_killed(world: Arc<World>) {
    let hook = json!({"preStop": {"exec": {"command": ["sh", "-c", "echo stopping > /proc/1/fd/1"]}}});
    let container = json!({"name": "a", "image": "busybox", "command": ["sleep", "1000"], "lifecycle": hook});
    world.create("deaf", json!({"terminationGracePeriodSeconds": 3, "containers": [container]})).await;
    world.until("deaf", "running", |line| line == "Running | a running ready").await;
    let begun = Instant::now();
    world.delete("deaf", 3).await;
    world.gone("deaf").await;
    let took = begun.elapsed();
    assert!((Duration::from_millis(2500)..Duration::from_secs(8)).contains(&took), "{took:?}");
}

async fn probes_ask_the_pod(world: Arc<World>) {
    let server = "import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == '/ok' else 503); self.end_headers()
    def log_message(self, *a): pass
open('/tmp/alive', 'w').close()
http.server.HTTPServer(('0.0.0.0', 8080), H).serve_forever()";
    let container = json!({
        "name": "a", "image": "debian", "command": ["python3", "-c", server],
        "ports": [{"name": "http", "containerPort": 8080}],
        "startupProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 1, "failureThreshold": 30},
        "readinessProbe": {"httpGet": {"path": "/ok", "port": 8080}, "periodSeconds": 1},
        "livenessProbe": {"exec": {"command": ["cat", "/tmp/alive"]}, "periodSeconds": 1, "failureThreshold": 2,
            "terminationGracePeriodSeconds": 1},
    });
    world.create("probed", json!({"containers": [container]})).await;
    let status = world.until("probed", "ready", |line| line == "Running | a running ready").await;
    let pod = world.api().get("probed").await.unwrap();
    let uid = pod.metadata.uid.as_deref().unwrap();
    let exec = windlass_node::serve::Exec {
        command: vec!["rm".to_owned(), "/tmp/alive".to_owned()],
        ..Default::default()
    };
    let process = world.containers.exec(uid, "a", exec).await.unwrap();
    assert_eq!(process.exit.await.unwrap(), 0, "{}", line(&status));
    world
        .until("probed", "started again", |line| line.contains("running ready restarts=1 last=Error(1"))
        .await;
    world.told("probed", &["Created", "Killing", "Pulled", "Pulling", "Started", "Unhealthy"]).await;
    world.delete("probed", 0).await;
}

async fn a_missing_image_says_so(world: Arc<World>) {
    world.create("imageless", json!({"containers": [{"name": "a", "image": "nosuch:1"}]})).await;
    let status = world.until("imageless", "waiting", |line| line == "Pending | a ImagePullBackOff").await;
    let message =
        status.container_statuses.unwrap()[0].state.clone().unwrap().waiting.unwrap().message.unwrap();
    assert!(message.starts_with("Back-off pulling image \"nosuch:1\": ErrImagePull: "), "{message}");
    world.told("imageless", &["BackOff", "Failed", "Pulling"]).await;
    world.delete("imageless", 30).await;
    world.gone("imageless").await;
}

async fn an_image_changed_in_place(world: Arc<World>) {
    let container = |name: &str| {
        let trap = "trap 'exit 0' TERM; while :; do sleep 0.1; done";
        json!({"name": name, "image": "busybox:1", "command": ["sh", "-c", trap]})
    };
    world.create("changed", json!({"containers": [container("a"), container("b")]})).await;
    world.until("changed", "running", |line| line == "Running | a running ready, b running ready").await;
    let patch = json!({"spec": {"containers": [{"name": "a", "image": "busybox:2"}]}});
    let params = Default::default();
    world.api().patch("changed", &params, &kube::api::Patch::Strategic(patch)).await.unwrap();
    let again = "Running | a running ready restarts=1 last=Completed(0), b running ready";
    let status = world.until("changed", "started again", |line| line == again).await;
    assert_eq!(status.container_statuses.unwrap()[0].image, "docker.io/library/busybox:2");
    assert_eq!(status.observed_generation, Some(2));
    world.delete("changed", 1).await;
}
