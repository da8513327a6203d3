//! Following the server, whatever happens to the connection.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::cache::{Cache, Declared, ReadError, State, Synced};
use windlass::core::Moment;

use crate::faults::{Fault, Faults};
use crate::support::{
    MANAGER, Notes, Running, cluster, config_map, delete_config_map, key, run, settle, until,
};

fn is_watch_list(target: &str) -> bool {
    target.contains("sendInitialEvents=true")
}

fn is_watch(target: &str) -> bool {
    target.contains("watch=true") && !is_watch_list(target)
}

#[tokio::test(start_paused = true)]
async fn objects_are_there_changed_and_gone() {
    let cluster = cluster().await;
    config_map(&cluster, "one", "early").await;
    let cache = Cache::new(MANAGER);
    let informer = cache.declare(Declared::<ConfigMap>::typed());
    let notes = Arc::new(Notes::default());
    informer.subscribe(notes.clone());
    let unready = cache.get::<ConfigMap>(&key("one")).unwrap_err();
    assert!(matches!(unready, ReadError::NotSynced { .. }), "{unready}");

    let _task = run(&cache, cluster.client(), notes.clone());
    assert_eq!(informer.synced().await, Synced::Listed);
    let one = cache.get::<ConfigMap>(&key("one")).unwrap().unwrap();
    assert_eq!(one.data.as_ref().unwrap()["is"], "early");
    assert_eq!(one.metadata.managed_fields, None, "nobody reads them");

    config_map(&cluster, "one", "late").await;
    config_map(&cluster, "two", "new").await;
    delete_config_map(&cluster, "one").await;
    until("three events", || notes.len() == 4).await;
    assert_eq!(notes.take(), ["+one initial", "~one", "+two", "-one"]);
    assert_eq!(cache.list::<ConfigMap>(Some("default")).unwrap().len(), 1);
    assert_eq!(cluster.count("watch", "configmaps"), 1, "the watch began with the list");
    assert_eq!(cluster.count("list", "configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn two_who_want_the_same_share_one_watch() {
    let cluster = cluster().await;
    config_map(&cluster, "one", "x").await;
    let cache = Cache::new(MANAGER);
    let early = (cache.declare(Declared::<ConfigMap>::typed()), Arc::new(Notes::default()));
    early.0.subscribe(early.1.clone());
    let _task = run(&cache, cluster.client(), Arc::new(()));
    early.0.synced().await;
    config_map(&cluster, "two", "x").await;
    until("the event", || early.1.len() == 2).await;

    let late = (cache.declare(Declared::<ConfigMap>::typed()), Arc::new(Notes::default()));
    late.0.subscribe(late.1.clone());
    assert_eq!(late.1.take(), ["+one initial", "+two initial"], "it is told what is there");
    delete_config_map(&cluster, "one").await;
    settle().await;
    assert_eq!(early.1.take(), ["+one initial", "+two", "-one"]);
    assert_eq!(late.1.take(), ["-one"]);
    assert_eq!(cluster.count("watch", "configmaps"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_watch_list_is_read_page_by_page() {
    let cluster = cluster().await;
    for n in 0..1100 {
        config_map(&cluster, &format!("map-{n:04}"), "x").await;
    }
    let faults = Faults::default();
    faults.set(|target| is_watch_list(target).then_some(Fault::Status(422, "Invalid")));
    let running = Running::new(&cluster, faults, Declared::typed());
    assert_eq!(running.informer.synced().await, Synced::Listed);
    assert_eq!(running.names().len(), 1100);
    assert_eq!(cluster.count("list", "configmaps"), 3, "500 at a time");
    config_map(&cluster, "map-0000", "y").await;
    until("the event", || running.notes.len() == 1101).await;
    until("it is live", || running.state() == State::Live).await;
    assert!(running.notes.failures.lock().unwrap().is_empty(), "that is no failure");
}

#[tokio::test(start_paused = true)]
async fn pages_that_expire_are_followed_by_one_list_of_all() {
    let cluster = cluster().await;
    for n in 0..600 {
        config_map(&cluster, &format!("map-{n:04}"), "x").await;
    }
    let faults = Faults::default();
    faults.set(|target| match target {
        _ if is_watch_list(target) => Some(Fault::Status(422, "Invalid")),
        _ if target.contains("continue=") => Some(Fault::Status(410, "Expired")),
        _ => None,
    });
    let running = Running::new(&cluster, faults, Declared::typed());
    assert_eq!(running.informer.synced().await, Synced::Listed);
    assert_eq!(running.names().len(), 600);
    let lists: Vec<_> =
        running.faults.asked().into_iter().filter(|target| !target.contains("watch")).collect();
    assert_eq!(lists.len(), 3, "{lists:?}");
    assert!(!lists[2].contains("limit"), "{lists:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_know_the_question_is_noticed() {
    let cluster = cluster().await;
    config_map(&cluster, "one", "x").await;
    let faults = Faults::default();
    faults.set(|target| is_watch_list(target).then_some(Fault::Silent("")));
    let running = Running::new(&cluster, faults, Declared::typed());
    assert_eq!(running.informer.synced().await, Synced::Listed);
    assert_eq!(running.names(), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn what_went_while_nobody_looked_is_told_once() {
    let cluster = cluster().await;
    for name in ["one", "two", "three"] {
        config_map(&cluster, name, "x").await;
    }
    let running = Running::all(&cluster).await;
    running.notes.take();
    // While the connection is gone, the server forgets the version to go on from.
    running.faults.set(|target| is_watch(target).then_some(Fault::Status(410, "Expired")));
    running.faults.cut();
    delete_config_map(&cluster, "one").await;
    config_map(&cluster, "two", "y").await;
    config_map(&cluster, "four", "x").await;
    until("all is told", || running.notes.len() >= 3).await;
    settle().await;
    let mut told = running.notes.take();
    told.sort();
    assert_eq!(told, ["+four", "-one", "~two"]);
    assert_eq!(running.names(), ["four", "three", "two"]);
    assert!(running.notes.failures.lock().unwrap().is_empty(), "that is no failure");
}

#[tokio::test(start_paused = true)]
async fn an_error_on_the_stream_begins_again_or_goes_on() {
    let cluster = cluster().await;
    config_map(&cluster, "one", "x").await;
    let running = Running::all(&cluster).await;
    running.notes.take();
    running.faults.asked();
    const EXPIRED: &str =
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}\n";
    let mut first = true;
    running
        .faults
        .set(move |target| (is_watch(target) && std::mem::take(&mut first)).then_some(Fault::Ends(EXPIRED)));
    running.faults.cut();
    config_map(&cluster, "one", "y").await;
    until("the change", || running.notes.len() == 1).await;
    let asked = running.faults.asked();
    assert!(is_watch(&asked[0]) && is_watch_list(&asked[1]) && asked.len() == 2, "{asked:?}");

    const BROKEN: &str =
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":500,\"reason\":\"InternalError\"}}\n";
    let mut first = true;
    running
        .faults
        .set(move |target| (is_watch(target) && std::mem::take(&mut first)).then_some(Fault::Ends(BROKEN)));
    running.faults.cut();
    config_map(&cluster, "one", "z").await;
    until("the change", || running.notes.len() == 2).await;
    let asked = running.faults.asked();
    assert!(asked.iter().all(|target| is_watch(target)) && asked.len() == 2, "it goes on: {asked:?}");
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_go_on_from_the_last_bookmark() {
    let cluster = cluster().await;
    config_map(&cluster, "one", "x").await;
    let running = Running::all(&cluster).await;
    // Others write, so that the version of the server is far from that of any ConfigMap.
    for n in 0..20 {
        let yaml = format!("{{apiVersion: v1, kind: Secret, metadata: {{name: s{n}}}}}");
        cluster.apply_yaml(&yaml).await.unwrap();
    }
    let now = cluster.world().revision();
    tokio::time::sleep(Duration::from_secs(1000)).await;
    let asked = running.faults.asked();
    assert!((4..=6).contains(&asked.len()), "about one every four to five minutes: {asked:?}");
    assert!(asked[1..].iter().all(|target| target.contains(&format!("resourceVersion={now}&"))), "{asked:?}");
    assert_eq!(running.state(), State::Live);
    let heard = running.informer.health()[0].heard;
    assert!(heard > Moment::after_start(Duration::from_secs(900)), "a quiet watch is heard of: {heard:?}");
    assert_eq!(running.notes.take(), ["+one initial"]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_died_without_a_word_is_noticed() {
    let cluster = cluster().await;
    config_map(&cluster, "one", "x").await;
    let running = Running::all(&cluster).await;
    running.faults.set(|target| is_watch(target).then_some(Fault::Silent("")));
    running.faults.cut();
    config_map(&cluster, "one", "y").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(running.notes.take(), ["+one initial"]);
    running.faults.clear();
    tokio::time::sleep(Duration::from_secs(330)).await;
    assert_eq!(running.notes.take(), ["~one"]);
    assert_eq!(running.state(), State::Live);
}
