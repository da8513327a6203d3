//! Definitions and settings that cannot work: what those who made them are told.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use windlass::core::Outcome;
use windlass::operator::StartError;
use windlass::{Controller, Env, Error, Operator, Settings, election};
use windlass_testing::TestCluster;

use crate::support::Log;
use crate::widget::{Outside, Widget, base, controller};

fn nothing() -> Controller<ConfigMap> {
    Controller::raw(|_, _: Arc<ConfigMap>| async { Ok(Outcome::AwaitChange) })
}

async fn refused(operator: Operator, change: impl FnOnce(&mut Settings)) -> (String, StartError) {
    let cluster = TestCluster::new().await;
    let mut settings = Settings::for_tests(Env::system());
    change(&mut settings);
    let error = operator.start(cluster.client(), settings).await.unwrap_err();
    let requests = cluster.requests();
    assert!(requests.is_empty(), "nothing is asked of the server before it is sure to start: {requests:?}");
    let text = error.to_string();
    (text, error)
}

#[tokio::test]
async fn two_controllers_of_one_name() {
    let operator = base(&Outside::default()).crd::<Widget>().controller(controller(&Log::default()));
    let (text, _) = refused(operator.controller(nothing()).controller(nothing()), |_| ()).await;
    assert_eq!(text, "two controllers are named configmap: name one of them with `.named(…)`");
    let cluster = TestCluster::new().await;
    let operator =
        Operator::new("test-operator", "0.0.0").controller(nothing()).controller(nothing().named("other"));
    let running = operator.start(cluster.client(), Settings::for_tests(Env::system())).await.unwrap();
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_port_that_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let operator = || base(&Outside::default()).crd::<Widget>().controller(controller(&Log::default()));
    let (_, error) = refused(operator(), |settings| settings.health_address = address.clone()).await;
    let text = Error::from(error).to_string();
    let expected = format!(
        "no address to serve probes: choose another by --health-probe-bind-address: \
         cannot listen on \"{address}\" for probes: Address already in use"
    );
    assert!(text.starts_with(&expected), "{text}");
    let (_, error) = refused(operator(), |settings| settings.metrics_address = "8080".to_owned()).await;
    let text = Error::from(error).to_string();
    assert!(text.contains("--metrics-bind-address: cannot listen on \"8080\" for metrics: "), "{text}");
}

#[tokio::test]
async fn times_of_an_election_that_do_not_go_together() {
    let operator = base(&Outside::default()).crd::<Widget>().controller(controller(&Log::default()));
    let settings = election::Settings {
        lease_duration: Duration::from_secs(5),
        ..election::Settings::new("default", "test-operator", "me")
    };
    let (_, error) = refused(operator, |all| all.election = Some(settings)).await;
    let text = Error::from(error).to_string();
    let expected =
        "the leader election cannot work: the lease duration has to be longer than the renew deadline";
    assert_eq!(text, expected);
}

#[tokio::test]
async fn kinds_that_cannot_be_installed() {
    // A server that lets nobody do anything.
    let refusing = tower::service_fn(async |_: http::Request<Body>| {
        let status = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
            "message": "user cannot patch customresourcedefinitions",
        });
        http::Response::builder().status(403).body(Body::from(status.to_string().into_bytes()))
    });
    let operator = base(&Outside::default()).crd::<Widget>().controller(controller(&Log::default()));
    let client = kube::Client::new(refusing, "default");
    let error = operator.start(client, Settings::for_tests(Env::system())).await.unwrap_err();
    let text = Error::from(error).to_string();
    let expected =
        "cannot install the operator's kinds: cannot apply the definition widgets.test.example.com: ";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("user cannot patch customresourcedefinitions"), "{text}");
}
