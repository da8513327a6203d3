//! From nothing to three etcd members that answer: what a hand-written script takes with the same binaries.
//!
//! The steps are those of every careful bootstrap: a seed, then twice a member that is added as a learner, started, and
//! promoted as soon as etcd lets it be. The script asks again every 20 ms, so what it takes is what etcd takes. Most of that is
//! etcd's own rule that all voters must have been connected for five seconds before the next member is added.

use std::time::Instant;

use anyhow::{Context as _, Result};
use tokio::runtime::Runtime;
use windlass_etcd::testing::{Cluster, Release, eventually};

use super::{least, median};
use crate::Numbers;

/// How often it is done; the one in the middle counts.
const TIMES: usize = 3;

/// Measures the script.
pub fn script(numbers: &mut Numbers) -> Result<()> {
    let release = Release::find("3.6").context("there is no etcd 3.6: tools/setup etcd-3.6 brings it")?;
    let runtime = Runtime::new()?;
    let times: Vec<f64> =
        (0..TIMES).map(|_| runtime.block_on(three_members(&release))).collect::<Result<_>>()?;
    numbers.insert("etcd ready best", least(&times));
    numbers.insert("etcd ready", median(times));
    Ok(())
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
