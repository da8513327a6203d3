//! The load and its check on real etcd: what holds is found to hold, and what is broken behind its back is found.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use etcd_ledger::{Ended, Load, Options, Report, Violation, check, read};
use windlass_etcd::testing::{Cluster, Release, eventually};

const WRITERS: u32 = 8;

fn start(cluster: &Cluster) -> Load {
    Load::start(Options { writers: WRITERS, ..Options::new(cluster.endpoints(), "ledger") }).unwrap()
}

async fn violations(ended: &Ended) -> Vec<Violation> {
    let history = read::history(&ended.options, &ended.endpoints).await.unwrap();
    check(&ended.ledger, &history).violations
}

#[tokio::test]
async fn nothing_is_lost_while_the_cluster_grows_loses_its_leader_and_shrinks() {
    let mut cluster = Cluster::of(&Release::required("3.6"), 1).await.unwrap();
    let started = Instant::now();
    let load = start(&cluster);
    load.acknowledged(100).await;
    cluster.grow_to(3).await.unwrap();

    // Killed, it comes back with its data.
    let leader = cluster.leader_at().await.unwrap();
    cluster[leader].kill().unwrap();
    load.acknowledged(100).await;
    cluster[leader].start().unwrap();
    eventually("it is back", async || cluster[leader].client()?.get("a").await).await.unwrap();

    // Hung, it comes back and finds another leader.
    let leader = cluster.leader_at().await.unwrap();
    cluster[leader].pause().unwrap();
    load.acknowledged(100).await;
    cluster[leader].resume().unwrap();

    // The member that the load began with goes for good: the load has followed the others.
    let first = cluster[0].client().unwrap().status().await.unwrap().header.member_id;
    let other = cluster[1].client().unwrap();
    eventually("the first member is removed", async || other.member_remove(first).await).await.unwrap();
    cluster.discard(0);
    load.acknowledged(100).await;

    let ended = load.stop().await;
    let report = Report::of(&ended, started.elapsed()).await.unwrap();
    println!("{report}");
    assert!(report.holds, "{report}");
    assert!(report.acknowledged >= 400, "{report}");
    assert_eq!(report.members, 2, "both members that are left have the same data: {report}");
}

#[tokio::test]
async fn a_key_that_is_deleted_and_written_again_behind_its_back_is_found() {
    let cluster = Cluster::of(&Release::required("3.6"), 1).await.unwrap();
    let client = cluster[0].client().unwrap();
    let load = start(&cluster);
    load.acknowledged(100).await;
    let ended = load.stop().await;
    assert_eq!(violations(&ended).await, []);
    // The key has its last value again, so a look at the keys alone would find nothing.
    let kv = client.get("ledger/k0").await.unwrap().unwrap();
    client.delete("ledger/k0", "").await.unwrap();
    client.put("ledger/k0", kv.value).await.unwrap();
    let found = violations(&ended).await;
    assert!(found.iter().any(|violation| matches!(violation, Violation::Foreign(_))), "{found:?}");
    assert!(found.iter().any(|violation| matches!(violation, Violation::Twice { .. })), "{found:?}");
}

#[tokio::test]
async fn an_old_data_folder_has_lost_what_was_acknowledged_since() {
    let mut cluster = Cluster::of(&Release::required("3.6"), 1).await.unwrap();
    let load = start(&cluster);
    load.acknowledged(60).await;
    cluster[0].terminate().unwrap();
    let old = cluster.folder().join("old");
    copy(&cluster[0].data(), &old);
    cluster[0].start().unwrap();
    // Nobody read while it was terminated: of each writer one answer may be heard only now that it gave before.
    load.acknowledged(100 + u64::from(WRITERS)).await;
    let ended = load.stop().await;
    assert_eq!(violations(&ended).await, []);

    cluster[0].kill().unwrap();
    cluster[0].wipe().unwrap();
    copy(&old, &cluster[0].data());
    cluster[0].start().unwrap();
    let found = violations(&ended).await;
    let lost = found.iter().filter(|violation| matches!(violation, Violation::Lost { .. })).count();
    assert!(
        (100..=ended.ledger.acknowledged() - 60).contains(&lost),
        "{lost} of {}",
        ended.ledger.acknowledged()
    );
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

#[tokio::test]
async fn a_compacted_history_proves_nothing() {
    let cluster = Cluster::of(&Release::required("3.6"), 1).await.unwrap();
    let client = cluster[0].client().unwrap();
    let load = start(&cluster);
    load.acknowledged(50).await;
    let ended = load.stop().await;
    let revision = client.status().await.unwrap().header.revision;
    client.compact(revision).await.unwrap();
    let error = read::history(&ended.options, &ended.endpoints).await.unwrap_err();
    assert!(error.to_string().contains("compacted"), "{error}");
}

#[tokio::test]
async fn the_program_runs_reports_and_says_by_its_exit_code() {
    let mut cluster = Cluster::of(&Release::required("3.6"), 1).await.unwrap();
    let file = cluster.folder().join("report.json");
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_etcd-ledger"));
        command.args(["run", "--rate", "200", "--endpoints"]).arg(cluster.endpoints().join(",")).args(more);
        command.arg("--report").arg(&file);
        command
    };
    let report =
        || -> serde_json::Value { serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap() };
    let started = Instant::now();
    let done = run(&["--seconds", "3"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(String::from_utf8_lossy(&done.stdout).contains("none lost, none reordered"));
    assert!(started.elapsed() >= Duration::from_secs(3));
    assert_eq!(report()["holds"], true);
    let acknowledged = report()["acknowledged"].as_u64().unwrap();
    assert!((1..=620).contains(&acknowledged), "200 a second for three seconds: {}", report());

    // Without an end, until it is told.
    let started = Instant::now();
    let mut told = run(&[]).spawn().unwrap();
    written(&cluster, 300).await;
    terminate(&told);
    assert_eq!(told.wait().unwrap().code(), Some(0));
    assert!(started.elapsed() >= Duration::from_millis(1400), "never more than 200 a second");
    let acknowledged = report()["acknowledged"].as_u64().unwrap();
    assert!(acknowledged >= 300 - u64::from(WRITERS), "those under way may have no answer: {}", report());

    let mut lost = run(&[]).spawn().unwrap();
    written(&cluster, 100).await;
    cluster[0].kill().unwrap();
    cluster[0].wipe().unwrap();
    cluster[0].start().unwrap();
    terminate(&lost);
    assert_eq!(lost.wait().unwrap().code(), Some(1), "a wiped member has lost what it acknowledged");
    assert_eq!(report()["holds"], false);
}

/// Waits until a cluster of one has so many revisions more.
async fn written(cluster: &Cluster, more: i64) {
    let client = cluster[0].client().unwrap();
    let revision = async || client.status().await.unwrap().header.revision;
    let goal = revision().await + more;
    while revision().await < goal {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn terminate(child: &Child) {
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
}
