//! A watch that the server always refuses: the rest goes on as if nothing were, and people can see what is wrong.

mod support;

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::client::Body;
use serde_json::json;
use support::{Log, config_map};
use tower::{BoxError, ServiceExt as _};
use windlass::core::Outcome;
use windlass::metrics::Format;
use windlass::{Controller, Env, Operator, Settings};
use windlass_testing::TestCluster;

/// A client of someone who may not read Secrets.
fn without_secrets(cluster: &TestCluster) -> kube::Client {
    let service = cluster.server().service();
    let refusing = tower::service_fn(move |request: Request<Body>| {
        let service = service.clone();
        async move {
            if request.uri().path().ends_with("/secrets") {
                let message = "secrets is forbidden: User \"operator\" cannot list resource \"secrets\"";
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message,
                    "reason": "Forbidden", "code": 403});
                let body = Full::from(status.to_string()).map_err(BoxError::from).boxed_unsync();
                return Ok(Response::builder()
                    .status(403)
                    .header("Content-Type", "application/json")
                    .body(body)?);
            }
            let response = service.oneshot(request).await.map_err(BoxError::from)?;
            Ok::<_, BoxError>(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        }
    });
    kube::Client::new(refusing, "default")
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How often a ConfigMap is looked at in five minutes, and what was logged and counted meanwhile.
async fn five_minutes(client: kube::Client, log: &Log) -> (usize, String, String) {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let noted = log.clone();
    let controller = Controller::raw(move |ctx, _: Arc<ConfigMap>| {
        noted.note(ctx.key());
        async { Ok(Outcome::After(Duration::from_secs(1))) }
    });
    let operator =
        Operator::new("test-operator", "0").controller(controller.watches::<Secret>(|_, _| Vec::new()));
    let running = operator.start(client, Settings::for_tests(Env::system())).await.unwrap();
    tokio::time::sleep(Duration::from_secs(300)).await;
    let metrics = running.metrics().render(Format::Text);
    running.stop().await.unwrap();
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    (log.count("default/one"), text, metrics)
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_always_refused_leaves_the_others_alone() {
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let (undisturbed, _, _) = five_minutes(cluster.client(), &Log::default()).await;
    let (disturbed, text, metrics) = five_minutes(without_secrets(&cluster), &Log::default()).await;
    assert!(undisturbed >= 295, "{undisturbed}");
    assert!(
        undisturbed.abs_diff(disturbed) <= 2,
        "{undisturbed} looks without, {disturbed} with a watch that fails"
    );
    let said: Vec<_> = text.lines().filter(|line| line.contains("Secret")).collect();
    assert_eq!(said.len(), 1, "it is said once:\n{}", said.join("\n"));
    assert!(said[0].contains("secrets is forbidden"), "{}", said[0]);
    let failing = "windlass_informer_state{kind=\"Secret\",scope=\"\",state=\"failing\"} 1";
    assert!(metrics.contains(failing), "{metrics}");
}
