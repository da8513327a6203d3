//! Effects on what is outside of the API server: one at a time, under the finalizer, and crashes between them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::sync::Notify;
use windlass::core::ObjectKey;
use windlass::{Env, Settings};
use windlass_testing::TestCluster;

use crate::support::{Log, start, until};
use crate::widget::{Outside, apply, delete, get, is_ready, operator};

fn one() -> ObjectKey {
    ObjectKey::namespaced("default", "one")
}

#[tokio::test(start_paused = true)]
async fn effects_are_done_one_in_a_pass_under_the_finalizer_and_undone_before_it_goes() {
    let cluster = TestCluster::new().await;
    let (log, outside) = (Log::default(), Outside::default());
    let running = start(&cluster, operator(&log, &outside)).await;
    apply(&cluster, "default", "one", json!({"bells": ["a", "b", "c"]})).await;
    until(|| is_ready(&cluster, "default", "one")).await;
    assert_eq!(outside.ringing(&one()), ["a", "b", "c"]);
    assert_eq!(log.count("default/one"), 4, "one pass for each, and one that finds all done");
    delete(&cluster, "one").await;
    until(|| get(&cluster, "one").is_none()).await;
    let happened = outside.happened();
    let expected = ["ring a", "ring b", "ring c", "hush a", "hush b", "hush c"];
    assert_eq!(happened, expected.map(|what| format!("{what} for default/one, which is kept")));
    running.stop().await.unwrap();
}

/// The life of a widget with bells under an operator that dies at a crash point, and one that does not.
async fn life(dies_after: usize) -> (Vec<String>, usize) {
    let cluster = TestCluster::new().await;
    let outside = Outside::default();
    let (points, dead) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let env = {
        let (points, dead) = (points.clone(), dead.clone());
        Env::system().with_crash_points(move |_| {
            if points.fetch_add(1, Ordering::SeqCst) + 1 == dies_after {
                dead.notify_one();
            }
        })
    };
    let start = |env| operator(&Log::default(), &outside).start(cluster.client(), Settings::for_tests(env));
    let mut running = start(env).await.unwrap();
    let mut died = false;
    for stage in ["create", "delete"] {
        match stage {
            "create" => apply(&cluster, "default", "one", json!({"bells": ["a", "b"]})).await,
            _ => delete(&cluster, "one").await,
        }
        let rest = async || match stage {
            "create" => until(|| is_ready(&cluster, "default", "one")).await,
            _ => until(|| get(&cluster, "one").is_none()).await,
        };
        tokio::select! {
            biased;
            () = dead.notified(), if !died => {
                died = true;
                drop(running);
                running = start(Env::system()).await.unwrap();
                rest().await;
            }
            () = rest() => {}
        }
        match stage {
            "create" => assert_eq!(outside.ringing(&one()), ["a", "b"], "died after {dies_after}"),
            _ => assert_eq!(outside.ringing(&one()), [""; 0], "died after {dies_after}"),
        }
    }
    running.stop().await.unwrap();
    assert_eq!(died, dies_after != usize::MAX);
    (outside.happened(), points.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_any_write_or_effect_changes_nothing_but_time() {
    let (happened, points) = life(usize::MAX).await;
    assert_eq!(happened.len(), 4);
    assert!(points >= 9, "finalizer, child, four effects, status, delete, finalizer: {points}");
    for point in 1..=points {
        let (happened, _) = life(point).await;
        assert!(happened.iter().all(|what| what.ends_with("which is kept")), "{happened:?}");
        assert!(happened.len() >= 4, "died after {point}: {happened:?}");
    }
}
