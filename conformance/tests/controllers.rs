//! Every scenario on our own server with our controllers, against what kube-controller-manager left.
//!
//! Time is virtual: what takes a CronJob two minutes takes no time here.

use std::fmt::Write as _;
use std::sync::Mutex;

use windlass_conformance::controllers::play::play;
use windlass_conformance::controllers::recorded;
use windlass_conformance::controllers::run::against;
use windlass_conformance::controllers::scenario::{self, Group, Scenario};
use windlass_conformance::controllers::side::Side;

/// Only scenarios whose name contains this.
const ONLY: &str = "SCENARIO";

#[test]
fn replicaset() {
    replay("replicaset");
}

#[test]
fn resourcequota() {
    replay("resourcequota");
}

#[test]
fn deployment() {
    replay("deployment");
}

#[test]
fn statefulset() {
    replay("statefulset");
}

#[test]
fn daemonset() {
    replay("daemonset");
}

#[test]
fn job() {
    replay("job");
}

#[test]
fn cronjob() {
    replay("cronjob");
}

#[test]
fn ttl() {
    replay("ttl");
}

#[test]
fn garbagecollector() {
    replay("garbagecollector");
}

#[test]
fn namespace() {
    replay("namespace");
}

#[test]
fn endpoints() {
    replay("endpoints");
}

#[test]
fn volumes() {
    replay("volumes");
}

#[test]
fn disruption() {
    replay("disruption");
}

#[test]
fn serviceaccount() {
    replay("serviceaccount");
}

#[test]
fn node() {
    replay("node");
}

#[test]
fn scheduler() {
    replay("scheduler");
}

/// Plays all scenarios of a group, each on a cluster and a runtime of its own.
fn replay(name: &str) {
    let groups = scenario::groups().unwrap();
    let group = groups.iter().find(|group| group.name == name).expect("a group of groups.yaml");
    let only = std::env::var(ONLY).unwrap_or_default();
    let scenarios = scenario::of_group(name).unwrap();
    let mut waiting: Vec<&Scenario> = scenarios.iter().filter(|one| one.name.contains(&only)).collect();
    // The last one is taken first.
    waiting.reverse();
    let (count, waiting) = (waiting.len(), Mutex::new(waiting));
    let different = Mutex::new((0, String::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = waiting.lock().unwrap().pop() else { return };
                    let lines = play_one(group, scenario);
                    if !lines.is_empty() {
                        let mut different = different.lock().unwrap();
                        different.0 += 1;
                        writeln!(
                            different.1,
                            "## {}: {}\n{}",
                            scenario.full_name(),
                            scenario.about,
                            lines.join("\n")
                        )
                        .unwrap();
                    }
                }
            });
        }
    });
    let (failed, report) = different.into_inner().unwrap();
    assert!(failed == 0, "{failed} of {count} scenarios of {name} differ from what is recorded:\n{report}");
}

fn play_one(group: &Group, scenario: &Scenario) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let side = Side::embedded(group).await.unwrap();
        let played = play(&side.stage, scenario).await;
        side.stop().await;
        match (played, recorded::read(scenario)) {
            (Ok(played), Ok(recorded)) => against(&recorded.pictures, &played),
            (Err(error), _) | (_, Err(error)) => vec![format!("! {error:#}")],
        }
    })
}
