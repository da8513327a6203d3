//! What wakes a controller: other kinds through a mapper, of which it may keep only metadata; an index to find its own
//! objects by; a predicate for what does not matter; events from outside of the cluster.
//!
//! ```console
//! $ cargo run -p windlass --example watches
//! ```

use std::error::Error;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use tokio::sync::mpsc;
use windlass::cache::{Cache, Delta, Index};
use windlass::core::{ObjectKey, Outcome};
use windlass::kube::api::PartialObjectMeta;
use windlass::{Context, Controller, Env, Operator, Settings};
use windlass_testing::TestCluster;

/// The Secret that a ConfigMap names in its data.
fn named(map: &ConfigMap) -> Option<String> {
    map.data.as_ref()?.get("secret").cloned()
}

/// A change of a Secret leads to all ConfigMaps that name it: the index finds them.
fn to_maps(delta: &Delta<PartialObjectMeta<Secret>>, cache: &Cache) -> Vec<ObjectKey> {
    let maps = cache.by_index::<ConfigMap>("secret", delta.key.name()).unwrap_or_default();
    maps.iter().map(|map| ObjectKey::of(&map.metadata)).collect()
}

/// Says what it looks at, and why.
async fn look(ctx: Context, seen: mpsc::Sender<String>) -> Result<Outcome, windlass::Error> {
    seen.send(format!("{} because of: {}", ctx.key(), ctx.causes())).await?;
    Ok(Outcome::AwaitChange)
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = TestCluster::new().await;
    let map = |of: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: map, labels: {{of: {of}}}}}, data: {{secret: s}}}}"
        )
    };
    cluster.apply_yaml(&map("nobody")).await?;

    let (seen, mut looks) = mpsc::channel(100);
    let (doorbell, rings) = mpsc::channel(1);
    let controller = Controller::raw(move |ctx, _: Arc<ConfigMap>| look(ctx, seen.clone()))
        .declared(|maps| maps.index(Index::new("secret", |map: &ConfigMap| named(map).into_iter().collect())))
        .predicate(|delta| {
            // Labels do not matter.
            let data = |map: &Option<Arc<ConfigMap>>| map.as_ref().map(|map| map.data.clone());
            delta.new.as_ref().is_some_and(|map| named(map).is_some()) && data(&delta.old) != data(&delta.new)
        })
        .watches_metadata::<Secret>(to_maps)
        .channel("doorbell", rings);
    let operator = Operator::new("looker", "0.1.0").controller(controller);
    let running = operator.start(cluster.client(), Settings::for_tests(Env::system())).await?;
    let mut next = async || looks.recv().await.ok_or("the operator has ended");

    let first = next().await?;
    println!("{first}");
    assert_eq!(first, "default/map because of: initial list");

    cluster.apply_yaml(&map("somebody")).await?;
    cluster.apply_yaml("{apiVersion: v1, kind: Secret, metadata: {name: s}}").await?;
    let second = next().await?;
    println!("{second}");
    assert!(
        second.starts_with("default/map because of: Secret default/s changed at "),
        "the label was no reason"
    );

    doorbell.send(ObjectKey::namespaced("default", "map")).await?;
    let third = next().await?;
    println!("{third}");
    assert_eq!(third, "default/map because of: doorbell");
    running.stop().await?;
    Ok(())
}
