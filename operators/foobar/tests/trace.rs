//! The same seed gives the same requests in the same order: twice in a process, and in another process.

mod support;

use std::process::Command;

use support::World;
use windlass::jiff::Timestamp;
use windlass::{Env, Settings};
use windlass_testing::{Clock, TestCluster};

/// Every request of the life of six FooBars, with its time and what came of it.
fn trace() -> String {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let cluster = TestCluster::builder().seed(7).clock(Clock::runtime(now)).start().await;
        let settings = Settings::for_tests(Env::seeded(7, now));
        let running = foobar_operator::operator().start(cluster.client(), settings).await.unwrap();
        let world = World::of(cluster);
        let names = ["a", "b", "c", "d", "e", "f"];
        for name in names {
            world.create(name, "example.com").await;
        }
        for name in names {
            world.until_done(name).await;
        }
        for name in names {
            world.delete(name).await;
        }
        for name in names {
            world.until("it is gone", async || world.is_gone(name).await).await;
        }
        running.stop().await.unwrap();
        world.cluster.requests().iter().map(|request| format!("{request:?}\n")).collect()
    })
}

#[test]
fn the_same_seed_gives_the_same_requests() {
    let first = trace();
    assert!(first.lines().count() > 60, "{first}");
    similar(&first, &trace(), "the second time in this process");
    for _ in 0..2 {
        let program = std::env::current_exe().unwrap();
        let output = Command::new(program)
            .args(["--ignored", "--exact", "for_another_process", "--nocapture"])
            .output();
        let output = String::from_utf8(output.unwrap().stdout).unwrap();
        let (_, rest) = output.split_once("BEGIN\n").expect("the trace begins");
        let (other, _) = rest.split_once("END\n").expect("the trace ends");
        similar(&first, other, "another process");
    }
}

#[test]
#[ignore = "prints the trace for the test above, which runs it in a process of its own"]
fn for_another_process() {
    println!("BEGIN\n{}END", trace());
}

fn similar(one: &str, other: &str, when: &str) {
    for (number, (one, other)) in one.lines().zip(other.lines()).enumerate() {
        assert_eq!(one, other, "request {number} differs: {when}");
    }
    assert_eq!(one.lines().count(), other.lines().count(), "{when}");
}
