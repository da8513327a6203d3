//! Own writes: the next pass sees them, and their echo wakes nobody.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use windlass::core::{Child, Outcome};
use windlass::write::Mode;
use windlass::{Controller, Env, Operator, Settings};
use windlass_testing::TestCluster;

use crate::support::{Log, config_map, start, until};
use crate::tap::Tap;
use crate::widget::{Outside, apply, delete, get, is_ready, operator, writes};

/// The life of a widget takes so many passes and these writes, whichever comes first: the answer or the event.
async fn life(delay: Duration) {
    let cluster = TestCluster::new().await;
    let log = Log::default();
    let client = Tap::default().client_with(&cluster, delay);
    let settings = Settings::for_tests(Env::system());
    let running = operator(&log, &Outside::default()).start(client, settings).await.unwrap();
    let installed = writes(&cluster).len();

    apply(&cluster, "default", "one", json!({"size": 1})).await;
    until(|| is_ready(&cluster, "default", "one")).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    // One pass makes the child, one sees it there. Finalizer, child and both statuses wake nobody.
    assert_eq!(log.count("default/one"), 2);
    let made = ["patch widgets/ one", "patch widgets/ one", "patch configmaps/ one-box"];
    let told = ["patch widgets/status one", "patch widgets/status one"];
    assert_eq!(writes(&cluster)[installed..], [&made[..], &told[..]].concat(), "the user's write, and four");

    apply(&cluster, "default", "one", json!({"size": 2})).await;
    until(|| is_ready(&cluster, "default", "one")).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(log.count("default/one"), 4, "a change takes two passes as well");

    delete(&cluster, "one").await;
    until(|| get(&cluster, "one").is_none()).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(log.count("default/one"), 6, "one removes the child, one lets it go");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_life_takes_no_pass_too_many_where_answers_come_first() {
    life(Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn a_life_takes_no_pass_too_many_where_events_come_first() {
    life(Duration::from_millis(50)).await;
}

#[tokio::test(start_paused = true)]
async fn what_others_write_wakes_as_always() {
    // Two controllers of one kind: what the one writes is news to the other, and only to the other.
    let cluster = TestCluster::new().await;
    config_map(&cluster, "one", "1").await;
    let (writer, reader) = (Log::default(), Log::default());
    let marks = {
        let log = writer.clone();
        Controller::raw(move |ctx, map: Arc<ConfigMap>| {
            log.note(ctx.key());
            async move {
                let uid = map.metadata.uid.clone().unwrap_or_default();
                let mut mark = ConfigMap::default();
                mark.metadata.name = map.metadata.name.clone();
                mark.metadata.namespace = map.metadata.namespace.clone();
                mark.metadata.labels = Some([("marked".to_owned(), "yes".to_owned())].into());
                ctx.writer().apply(&Child::new(mark), Mode::Update { uid: &uid }, ctx.origin()).await?;
                Ok(Outcome::AwaitChange)
            }
        })
    };
    let looks = {
        let log = reader.clone();
        Controller::raw(move |ctx, _: Arc<ConfigMap>| {
            log.note(ctx.key());
            async { Ok(Outcome::AwaitChange) }
        })
    };
    let operator = Operator::new("test-operator", "0.0.0")
        .permits("", "configmaps", &["patch"])
        .controller(marks.named("marks"))
        .controller(looks.named("looks"));
    let running = start(&cluster, operator).await;
    until(|| reader.count("default/one") == 2).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!((writer.count("default/one"), reader.count("default/one")), (1, 2));
    running.stop().await.unwrap();
}
