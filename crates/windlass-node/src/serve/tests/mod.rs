//! The endpoint over real sockets, with programs of this machine as containers.

mod client;
mod machine;
mod sessions;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use client::{get, send, text};
use http_body_util::BodyExt as _;
use machine::{Machine, serve};

#[tokio::test]
async fn only_those_with_the_token_may_ask() {
    let (address, _serving) = serve(Arc::new(Machine::new())).await;
    let nobody = http::Request::get("/healthz").header("host", "node");
    assert_eq!(text(address, nobody).await.0, 401);
    let wrong = http::Request::get("/pods").header("host", "node").header("authorization", "Bearer x");
    assert_eq!(text(address, wrong).await.0, 401);
    assert_eq!(text(address, get("/healthz")).await, (200, "ok".to_owned()));
    let (status, pods) = text(address, get("/pods")).await;
    let pods: serde_json::Value = serde_json::from_str(&pods).unwrap();
    assert_eq!(
        (status, &pods["kind"], &pods["items"][0]["metadata"]["name"]),
        (200, &"PodList".into(), &"p".into())
    );
}

#[tokio::test]
async fn logs_are_told_in_kubelets_words() {
    let (address, _serving) = serve(Arc::new(Machine::new())).await;
    for (path, status, answer) in [
        ("/containerLogs/ns/p/c", 200, "one\ntwo\n"),
        ("/containerLogs/ns/p/c?tailLines=1", 200, "two\n"),
        ("/containerLogs/ns/p/c?limitBytes=2", 200, "on"),
        ("/containerLogs/ns/p/c?timestamps=true&tailLines=1", 200, "2026-01-02T03:04:06Z two\n"),
        ("/containerLogs/ns/p/x", 404, r#"container "x" not found in pod "p""#),
        ("/containerLogs/ns/q/c", 404, r#"pod "q" does not exist"#),
        (
            "/containerLogs/ns/p/slow",
            400,
            r#"container "slow" in pod "p" is waiting to start: ContainerCreating"#,
        ),
        (
            "/containerLogs/ns/p/c?previous=true",
            400,
            r#"previous terminated container "c" in pod "p" not found"#,
        ),
        ("/nothing", 404, "404 page not found\n"),
    ] {
        assert_eq!(text(address, get(path)).await, (status, answer.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn a_followed_log_goes_on_until_its_container_ends() {
    let machine = Arc::new(Machine::new());
    let (address, _serving) = serve(machine.clone()).await;
    let mut body = send(address, get("/containerLogs/ns/p/c?follow=true&tailLines=0")).await.into_body();
    let mut file = std::fs::OpenOptions::new().append(true).open(&machine.log).unwrap();
    for number in 0..3 {
        writeln!(file, "2026-01-02T03:04:07Z stdout F more {number}").unwrap();
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), format!("more {number}\n"));
    }
    writeln!(file, "2026-01-02T03:04:08Z stdout F last").unwrap();
    machine.ended.send_replace(true);
    let rest = tokio::time::timeout(Duration::from_secs(10), body.collect()).await.unwrap().unwrap();
    assert_eq!(rest.to_bytes(), "last\n");
}
