//! From nothing to three etcd members that answer: what the operator takes, and a hand-written script with the same binaries.
//!
//! The operator runs as a pod of a cluster of processes, with three nodes. Its time is from `kubectl apply` until its status says
//! that all members are well and all their pods are ready, with what kubectl itself takes.
//!
//! The steps are those of every careful bootstrap: a seed, then twice a member that is added as a learner, started, and
//! promoted as soon as etcd lets it be. The script asks again every 20 ms, so what it takes is what etcd takes. Most of that is
//! etcd's own rule that all voters must have been connected for five seconds before the next member is added.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use tokio::runtime::Runtime;
use windlass_etcd::testing::{Cluster, Release, eventually};
use windlass_testing::up;

use super::{least, median};
use crate::Numbers;
use crate::server::Programs;

/// How often it is done; the one in the middle counts.
const TIMES: usize = 3;

/// What is applied: nothing but the size, so that the version is the one that the operator is shipped for.
const MANIFEST: &str = "
apiVersion: etcd.cloud.io/v1
kind: EtcdCluster
metadata: {name: bench}
spec: {size: 3}
";

/// Measures the operator.
pub fn operator(programs: &Programs, numbers: &mut Numbers) -> Result<()> {
    let folder = up::Folder::new("bench-etcd");
    std::fs::write(folder.path().join("etcd.yaml"), MANIFEST)?;
    let arguments = ["--operators", "etcd", "--nodes", "3"];
    let cluster = up::Cluster::up(&programs.windlass, &arguments, folder.path());
    let times: Vec<f64> = (0..TIMES).map(|_| three_ready(&cluster)).collect::<Result<_>>()?;
    note(numbers, times);
    Ok(())
}

/// One EtcdCluster from its `apply` until it is ready; in seconds.
fn three_ready(cluster: &up::Cluster) -> Result<f64> {
    let run = |arguments: &str| {
        let (done, said) = cluster.try_kubectl(arguments);
        ensure!(done, "kubectl {arguments}: {said}");
        Ok(())
    };
    let started = Instant::now();
    run("apply -f etcd.yaml")?;
    run("wait etcd/bench --for=jsonpath={.status.summary}=3/3 --timeout=120s")?;
    run("wait pods -l etcd.cloud.io/cluster=bench --for=condition=Ready --timeout=60s")?;
    let took = started.elapsed().as_secs_f64();
    run("delete etcd/bench")?;
    Ok(took)
}

/// Measures the script.
pub fn script(numbers: &mut Numbers) -> Result<()> {
    let release = Release::find("3.7").context("there is no etcd 3.7: tools/setup etcd-3.7 brings it")?;
    let runtime = Runtime::new()?;
    let times: Vec<f64> =
        (0..TIMES).map(|_| runtime.block_on(three_members(&release))).collect::<Result<_>>()?;
    note(numbers, times);
    Ok(())
}

fn note(numbers: &mut Numbers, times: Vec<f64>) {
    numbers.insert("etcd ready best", least(&times));
    numbers.insert("etcd ready", median(times));
}

/// The script, once; in seconds.
async fn three_members(release: &Release) -> Result<f64> {
    // As in production, members wait for the disk.
    let mut cluster = Cluster::new(release)?.durable();
    let started = Instant::now();
    cluster.grow_to(3).await?;
    for at in 0..cluster.len() {
        let client = cluster[at].client()?;
        eventually("the member answers a linearizable read", async || client.get("ready").await).await?;
    }
    Ok(started.elapsed().as_secs_f64())
}
