//! The raw form: a function that acts as it decides, for those who come from elsewhere.
//!
//! ```console
//! $ cargo run -p windlass --example raw
//! ```
//!
//! What it writes has to be permitted. Through the context's writer, it is in the cache at once and wakes nobody; through
//! the plain client, neither. A planner says the same in fewer lines, and can be asked what it would do.

use std::error::Error;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use windlass::core::{Child, ObjectKey, Outcome};
use windlass::write::Mode;
use windlass::{Context, Controller, Env, Operator, Settings};
use windlass_testing::TestCluster;

/// Every namespace has a ConfigMap that says its name.
async fn reconcile(ctx: Context, namespace: Arc<Namespace>) -> Result<Outcome, windlass::Error> {
    let name = namespace.name_any();
    let key = ObjectKey::namespaced(&name, "hello");
    if ctx.get::<ConfigMap>(&key)?.is_some() {
        return Ok(Outcome::AwaitChange);
    }
    let hello = ConfigMap {
        metadata: ObjectMeta {
            name: Some("hello".to_owned()),
            namespace: Some(name.clone()),
            ..ObjectMeta::default()
        },
        data: Some([("namespace".to_owned(), name)].into()),
        ..ConfigMap::default()
    };
    ctx.writer().apply(&Child::new(hello), Mode::Create, ctx.origin()).await?;
    // It can be read at once, before any event has come.
    assert!(ctx.get::<ConfigMap>(&key)?.is_some());
    Ok(Outcome::AwaitChange)
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = TestCluster::new().await;
    let operator = Operator::new("greeter", "0.1.0")
        .controller(Controller::raw(reconcile).reads::<ConfigMap>())
        .permits("", "configmaps", &["create", "patch"]);
    let running = operator.start(cluster.client(), Settings::for_tests(Env::system())).await?;
    cluster.apply_yaml("{apiVersion: v1, kind: Namespace, metadata: {name: harbour}}").await?;
    let says = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["namespace"] == "harbour");
    cluster.wait_for("harbour", "hello", "it says the name", says).await?;
    println!("the new namespace is greeted");
    running.stop().await?;
    Ok(())
}
