//! A kind that may be missing: the controller waits for its definition, stops when it goes, and starts again.
//!
//! ```console
//! $ cargo run -p windlass --example optional
//! ```
//!
//! Without `.optional()` it does the same, and `/readyz` says that the kind is missing.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, PostParams};
use kube::{CustomResource, CustomResourceExt as _, KubeSchema, ResourceExt as _};
use serde::{Deserialize, Serialize};
use windlass::cache::State;
use windlass::core::Outcome;
use windlass::events::Event;
use windlass::{Controller, Env, Operator, Settings};
use windlass_testing::TestCluster;

/// Comes with another product.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "elsewhere.example.com", version = "v1", kind = "Certificate", namespaced)]
pub struct CertificateSpec {
    /// For whom.
    pub host: String,
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = TestCluster::new().await;
    let (seen, mut looks) = tokio::sync::mpsc::channel(10);
    let controller = Controller::raw(move |ctx, certificate: Arc<Certificate>| {
        let seen = seen.clone();
        async move {
            ctx.event(&*certificate, Event::normal("Seen", "Look", "it is there"));
            seen.send(certificate.spec.host.clone()).await?;
            Ok(Outcome::AwaitChange)
        }
    });
    let controller = controller.declared(|certificates| certificates.optional());
    let operator = Operator::new("watcher", "0.1.0").controller(controller);
    let running = operator.start(cluster.client(), Settings::for_tests(Env::system())).await?;
    running.cache().synced().await;

    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let certificates: Api<Certificate> = Api::default_namespaced(cluster.client());
    for host in ["a.example.com", "b.example.com"] {
        while running.cache().health().iter().any(|informer| informer.state != State::Absent) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        println!(
            "the kind is missing, and all is well: {}",
            running.readiness().report("readyz", &[]).passed
        );
        definitions.create(&PostParams::default(), &Certificate::crd()).await?;
        let certificate = Certificate::new("one", CertificateSpec { host: host.to_owned() });
        certificates.create(&PostParams::default(), &certificate).await?;
        assert_eq!(looks.recv().await.as_deref(), Some(host));
        println!("the kind is there, and {host} was looked at");
        definitions.delete(&Certificate::crd().name_any(), &DeleteParams::default()).await?;
    }
    running.stop().await?;
    Ok(())
}
