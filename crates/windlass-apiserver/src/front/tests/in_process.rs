use super::*;
use crate::api::Piece;
use crate::front::Clock;
use crate::front::body::Remote;
use crate::front::durable::{self, Durable};
use serde_json::json;

#[tokio::test]
async fn what_is_created_is_there() {
    let server = server();
    let (code, made) = ask(&server, "POST", CONFIG_MAPS, &config_map("a")).await;
    assert_eq!((code, &made["metadata"]["name"]), (201, &json!("a")));
    assert_eq!(ask(&server, "GET", &format!("{CONFIG_MAPS}/a"), "").await, (200, made));
}

#[tokio::test]
async fn a_fork_goes_its_own_way() {
    let server = server();
    ask(&server, "POST", CONFIG_MAPS, &config_map("both")).await;
    let fork = server.fork();
    ask(&fork, "POST", CONFIG_MAPS, &config_map("fork")).await;
    ask(&server, "DELETE", &format!("{CONFIG_MAPS}/both"), "").await;
    let (_, of_fork) = ask(&fork, "GET", CONFIG_MAPS, "").await;
    let (_, of_server) = ask(&server, "GET", CONFIG_MAPS, "").await;
    let names = |list: &Value| {
        list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["metadata"]["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&of_fork), ["both", "fork"]);
    assert_eq!(names(&of_server), Vec::<Value>::new());
    assert_eq!(fork.inspect(|server| server.audit().total()), 2, "a fork starts with no requests");
}

#[tokio::test]
async fn the_same_seed_gives_the_same_uids() {
    let uid = async || {
        let (_, made) = ask(&server(), "POST", CONFIG_MAPS, &config_map("a")).await;
        made["metadata"]["uid"].clone()
    };
    assert_eq!(uid().await, uid().await);
}

#[tokio::test]
async fn every_answer_has_an_audit_id() {
    let server = server();
    let first = open(&server, "GET", "/api", "").await.headers()["audit-id"].clone();
    let second = open(&server, "GET", "/nothing", "").await.headers()["audit-id"].clone();
    assert_ne!(first, second);
    assert_eq!(first.len(), 36);
    let mut request = request("GET", "/api", "");
    request.headers_mut().insert("audit-id", "mine".parse().unwrap());
    let response = tower::ServiceExt::oneshot(server.service(), request).await.unwrap();
    assert_eq!(response.headers()["audit-id"], "mine");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_one_below_is_read() {
    let server = server();
    let large = "x".repeat((3 << 20) + 1);
    let (code, status) = ask(&server, "POST", CONFIG_MAPS, &large).await;
    assert_eq!((code, &status["reason"]), (413, &json!("RequestEntityTooLarge")));
    let value = "x".repeat(1_000_000);
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"key": value}});
    assert_eq!(ask(&server, "POST", CONFIG_MAPS, &body.to_string()).await.0, 201);
}

#[tokio::test]
async fn an_answer_to_head_has_no_body() {
    use http_body_util::BodyExt as _;
    let server = server();
    let answer = open(&server, "HEAD", "/openapi/v3", "").await;
    assert_eq!(answer.status(), 200);
    assert!(answer.into_body().collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn a_panic_is_one_requests_answer() {
    let server = server();
    let (code, status) = ask(&server, "GET", "/panic", "").await;
    assert_eq!((code, &status["reason"]), (500, &json!("InternalError")));
    assert_eq!(ask(&server, "POST", CONFIG_MAPS, &config_map("after")).await.0, 201);
}

#[tokio::test]
async fn a_watch_sees_what_happens_while_it_is_read() {
    let server = server();
    let mut watch = open(&server, "GET", &format!("{CONFIG_MAPS}?watch=1"), "").await.into_body();
    ask(&server, "POST", CONFIG_MAPS, &config_map("a")).await;
    let added = event(&mut watch).await;
    assert_eq!((&added["type"], &added["object"]["metadata"]["name"]), (&json!("ADDED"), &json!("a")));
    let reader = tokio::spawn(async move { event(&mut watch).await });
    tokio::task::yield_now().await;
    ask(&server, "DELETE", &format!("{CONFIG_MAPS}/a"), "").await;
    let deleted = reader.await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
}

/// As over the network: the first event goes at once, what is committed while the watch rests goes together.
#[tokio::test(start_paused = true)]
async fn a_watch_that_is_paced_gathers_what_is_committed_while_it_rests() {
    let server = server();
    let body = open(&server, "GET", &format!("{CONFIG_MAPS}?watch=1"), "").await.into_body();
    let mut watch = Remote::from(body).map_frame(|frame| frame.map_data(Piece::into_bytes));
    ask(&server, "POST", CONFIG_MAPS, &config_map("a")).await;
    let before = tokio::time::Instant::now();
    assert_eq!(event(&mut watch).await["object"]["metadata"]["name"], "a");
    assert_eq!(before.elapsed(), Duration::ZERO);

    let reader = tokio::spawn(async move { watch.frame().await.unwrap().unwrap().into_data().unwrap() });
    tokio::task::yield_now().await;
    for name in ["b", "c"] {
        ask(&server, "POST", CONFIG_MAPS, &config_map(name)).await;
        tokio::task::yield_now().await;
    }
    let piece = reader.await.unwrap();
    assert_eq!(piece.iter().filter(|byte| **byte == b'\n').count(), 2);
    assert!(before.elapsed() <= Duration::from_millis(2), "{:?}", before.elapsed());
}

#[tokio::test]
async fn closing_the_server_ends_its_watches() {
    let server = server();
    let mut watch = open(&server, "GET", &format!("{CONFIG_MAPS}?watch=1"), "").await.into_body();
    let reader = tokio::spawn(async move { watch.frame().await.is_none() });
    tokio::task::yield_now().await;
    server.close();
    assert!(tokio::time::timeout(Duration::from_secs(5), reader).await.unwrap().unwrap());
}

/// On a paused runtime hours pass at once: bookmarks and the end of a watch come by the server's clock.
#[tokio::test(start_paused = true)]
async fn a_quiet_watch_gets_bookmarks_and_ends_at_its_time() {
    let clock = Clock::runtime("2026-01-01T00:00:00Z".parse().unwrap());
    let server = ApiServer::start(Options { clock, random: Random::from_seed(1), ..Options::default() });
    let path = format!("{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=150");
    let mut watch = open(&server, "GET", &path, "").await.into_body();
    let mut bookmarks = 0;
    while let Some(frame) = watch.frame().await {
        let event: Value = serde_json::from_slice(&frame.unwrap().into_data().unwrap()).unwrap();
        assert_eq!(event["type"], "BOOKMARK");
        bookmarks += 1;
    }
    assert_eq!(bookmarks, 4, "one for the initial state, two by the minute, one before the end");
    assert_eq!(server.now().to_string(), "2026-01-01T00:02:30Z");
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_is_not_there_yet_is_waited_for() {
    let clock = Clock::runtime("2026-01-01T00:00:00Z".parse().unwrap());
    let server = ApiServer::start(Options { clock, random: Random::from_seed(1), ..Options::default() });
    let next = server.inspect(|server| server.store().next_revision());
    let path = format!("{CONFIG_MAPS}?resourceVersion={next}&resourceVersionMatch=NotOlderThan");

    let reader = tokio::spawn({
        let (server, path) = (server.clone(), path.clone());
        async move { ask(&server, "GET", &path, "").await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!reader.is_finished());
    ask(&server, "POST", CONFIG_MAPS, &config_map("a")).await;
    let (code, list) = reader.await.unwrap();
    let names = list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]);
    assert_eq!((code, names.filter(|name| *name == "a").count()), (200, 1));

    let path = path.replace(&next.to_string(), &(next + 100).to_string());
    let before = server.now();
    let (code, status) = ask(&server, "GET", &path, "").await;
    assert_eq!((code, &status["reason"]), (504, &json!("Timeout")));
    assert_eq!(server.now().duration_since(before).as_secs(), 3);
}

#[tokio::test]
async fn a_data_folder_brings_everything_back() {
    let folder = std::env::temp_dir().join(format!("windlass-front-{}", std::process::id()));
    let start = || {
        let (store, durable, report) = Durable::open(&folder, durable::Options::default()).unwrap();
        (ApiServer::start(Options { durable: Some((store, durable)), ..Options::default() }), report)
    };
    let (first, _) = start();
    let mut watch = open(&first, "GET", &format!("{CONFIG_MAPS}?watch=1"), "").await.into_body();
    let (_, made) = ask(&first, "POST", CONFIG_MAPS, &config_map("a")).await;
    assert_eq!(event(&mut watch).await["object"], made, "what is safe is seen");
    let (_, everything) = ask(&first, "GET", "/api/v1/namespaces", "").await;
    drop((first, watch));
    let (second, report) = start();
    assert!(report.commits > 1);
    assert_eq!(ask(&second, "GET", &format!("{CONFIG_MAPS}/a"), "").await, (200, made));
    assert_eq!(
        ask(&second, "GET", "/api/v1/namespaces", "").await,
        (200, everything),
        "it is made only once"
    );
    drop(second);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_long_list_comes_in_pieces_and_a_short_one_says_its_length() {
    let server = server();
    let value = "x".repeat(20_000);
    for i in 0..30 {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{i}")}, "data": {"key": value}});
        assert_eq!(ask(&server, "POST", CONFIG_MAPS, &body.to_string()).await.0, 201);
    }
    let long = open(&server, "GET", CONFIG_MAPS, "").await.into_body();
    assert_eq!(http_body::Body::size_hint(&long).exact(), None);
    let bytes = long.collect().await.unwrap().to_bytes();
    let list: Value = serde_json::from_slice(&bytes).unwrap();
    assert!(list["items"].as_array().unwrap().len() >= 30);
    let short = open(&server, "GET", &format!("{CONFIG_MAPS}?limit=1"), "").await.into_body();
    assert!(http_body::Body::size_hint(&short).exact().is_some());
}
