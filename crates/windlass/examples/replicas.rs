//! Two replicas: one leads and writes, the other stands by with warm caches and takes over.
//!
//! ```console
//! $ cargo run -p windlass --example replicas
//! ```
//!
//! A program does this with `--leader-elect`. The lease is compatible with client-go's.

use std::error::Error;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::core::Outcome;
use windlass::{Controller, Env, Operator, Running, Settings, election};
use windlass_testing::TestCluster;

/// Starts one that says who looked at what.
async fn replica(
    cluster: &TestCluster,
    name: &'static str,
    seen: tokio::sync::mpsc::Sender<String>,
) -> Result<Running, Box<dyn Error>> {
    let controller = Controller::raw(move |ctx, _: Arc<ConfigMap>| {
        let seen = seen.clone();
        async move {
            if ctx.key().namespace() == Some("default") {
                seen.send(format!("{name} looked at {}", ctx.key())).await?;
            }
            Ok(Outcome::AwaitChange)
        }
    });
    let operator = Operator::new("looker", "0.1.0").controller(controller);
    let election = Some(election::Settings::new("default", "looker", name));
    let settings = Settings { election, ..Settings::for_tests(Env::system()) };
    Ok(operator.start(cluster.client(), settings).await?)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = TestCluster::new().await;
    cluster.apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}").await?;
    let (seen, mut looks) = tokio::sync::mpsc::channel(10);
    let first = replica(&cluster, "first", seen.clone()).await?;
    first.leadership().leading().await;
    let second = replica(&cluster, "second", seen).await?;
    let mut next = async || looks.recv().await.ok_or("somebody looks");
    assert_eq!(next().await?, "first looked at default/one");

    second.cache().synced().await;
    println!("the second knows {} ConfigMaps, and waits", second.cache().list::<ConfigMap>(None)?.len());
    assert!(!second.leadership().is_leader());
    first.stop().await?;
    assert_eq!(next().await?, "second looked at default/one");
    assert!(second.leadership().is_leader());
    println!("the first has stopped, and the second leads");
    second.stop().await?;
    Ok(())
}
