//! The raw form: a function that acts as it decides, with the framework's own writer.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use windlass::core::{Child, Kind, ObjectKey, Outcome};
use windlass::write::{Deleted, Mode, Propagation};
use windlass::{Context, Controller, Error, Operator};
use windlass_testing::TestCluster;

use crate::support::{Log, config_map, start, until};

fn secret(of: &ConfigMap) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(format!("{}-secret", of.name_any())),
            namespace: of.namespace(),
            ..ObjectMeta::default()
        },
        string_data: of.data.clone(),
        ..Secret::default()
    }
}

/// Every ConfigMap has a Secret, as long as its value is not `none`.
async fn reconcile(ctx: Context, map: Arc<ConfigMap>) -> Result<Outcome, Error> {
    let wanted = secret(&map);
    let key = ObjectKey::of(&wanted.metadata);
    let there = ctx.get::<Secret>(&key)?;
    let is_wanted = map.data.as_ref().is_some_and(|data| data["value"] != "none");
    match (there, is_wanted) {
        (None, true) => {
            ctx.writer().apply(&Child::new(wanted), Mode::Create, ctx.origin()).await?;
            assert!(ctx.get::<Secret>(&key)?.is_some(), "what was written is there to be read");
        }
        (Some(there), true) => {
            let mode = Mode::Update { uid: there.metadata.uid.as_deref().unwrap_or_default() };
            ctx.writer().apply(&Child::new(wanted), mode, ctx.origin()).await?;
        }
        (Some(there), false) => {
            let uid = there.metadata.uid.clone().unwrap_or_default();
            let (kind, how) = (Kind::of::<Secret>(), Propagation::Background);
            let deleted = ctx.writer().delete(&kind, &key, &uid, None, how, ctx.origin()).await?;
            assert_eq!(deleted, Deleted::Gone);
            assert!(ctx.get::<Secret>(&key)?.is_none(), "and what was deleted is not");
        }
        (None, false) => {}
    }
    Ok(Outcome::AwaitChange)
}

#[tokio::test(start_paused = true)]
async fn it_reads_its_own_writes_and_does_not_wake_itself() {
    let cluster = TestCluster::new().await;
    let log = Log::default();
    let noted = log.clone();
    let controller = Controller::raw(move |ctx, map| {
        noted.note(ctx.key());
        reconcile(ctx, map)
    });
    let to_map = |delta: &windlass::cache::Delta<Secret>, _: &windlass::cache::Cache| {
        let name = delta.key.name().strip_suffix("-secret");
        name.map(|name| ObjectKey::new(delta.key.namespace(), name)).into_iter().collect()
    };
    let operator = Operator::new("test-operator", "0.0.0")
        .permits("", "secrets", &["create", "patch", "delete"])
        .controller(controller.watches::<Secret>(to_map));
    let running = start(&cluster, operator).await;
    let said = || {
        let secret: Option<Secret> = cluster.world().get("default", "one-secret");
        secret.map(|secret| String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap())
    };
    config_map(&cluster, "one", "1").await;
    until(|| said().as_deref() == Some("1")).await;
    config_map(&cluster, "one", "2").await;
    until(|| said().as_deref() == Some("2")).await;
    config_map(&cluster, "one", "none").await;
    until(|| said().is_none()).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(log.count("default/one"), 3, "one pass for each change, and none for what it wrote itself");
    running.stop().await.unwrap();
}
