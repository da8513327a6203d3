//! Where an operator works: in some namespaces, and in others from now on.
//!
//! ```console
//! $ cargo run -p windlass --example namespaces
//! ```
//!
//! A program takes them from `--watch-namespaces`. What it leaves is forgotten, as if it were deleted.

use std::error::Error;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::cache::Namespaces;
use windlass::core::Outcome;
use windlass::{Controller, Env, Operator, Settings};
use windlass_testing::TestCluster;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = TestCluster::new().await;
    for name in ["red", "green", "blue"] {
        cluster
            .apply_yaml(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}"))
            .await?;
        let map = format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: map, namespace: {name}}}}}");
        cluster.apply_yaml(&map).await?;
    }

    let (seen, mut looks) = tokio::sync::mpsc::channel(100);
    let controller = Controller::raw(move |ctx, _: Arc<ConfigMap>| {
        let seen = seen.clone();
        async move {
            seen.send(ctx.key().to_string()).await?;
            Ok(Outcome::AwaitChange)
        }
    });
    let operator = Operator::new("painter", "0.1.0").controller(controller);
    let settings = Settings { namespaces: vec!["red".to_owned()], ..Settings::for_tests(Env::system()) };
    let running = operator.start(cluster.client(), settings).await?;
    assert_eq!(looks.recv().await.as_deref(), Some("red/map"));

    running.cache().set_namespaces(Namespaces::only(["green", "blue"]));
    let mut two = [looks.recv().await, looks.recv().await].map(Option::unwrap_or_default);
    two.sort();
    println!("first red/map, then {two:?}");
    assert_eq!(two, ["blue/map", "green/map"]);
    running.stop().await?;
    Ok(())
}
