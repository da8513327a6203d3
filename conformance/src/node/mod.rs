//! Our node and all of our controllers on a real kube-apiserver: what `windlass up` is, with the real server in place of
//! ours.
//!
//! ```text
//! kube-apiserver + etcd ◀── HTTPS ──┬─ windlass-cluster: all controllers and the scheduler
//!        │                          └─ windlass-node: pods, network, DNS, volumes, heartbeat
//!        └─ logs, exec, port-forward ─▶ the node's endpoint, by a client certificate
//! ```
//!
//! Two things are played to it: the pods of [`crate::kubelet`], which have to become what a real kubelet makes of them, as
//! on our own server; and what people do with a cluster, by kubectl.

mod cluster;
mod workloads;

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::kubelet;
use cluster::Cluster;

/// Starts it all in a folder and plays what has `only` in its name; whether nothing is wrong.
///
/// # Errors
/// When the cluster does not start, or cannot be asked.
pub async fn run(only: &str, output: &Path) -> Result<bool> {
    let started = Instant::now();
    if !kubelet::has(only)? && !workloads::has(only) {
        bail!("there is neither a pod nor a workload {only:?}");
    }
    let folder = output.join("cluster");
    let cluster = Cluster::start(&folder).await?;
    println!("kube-apiserver with our controllers and our node is ready after {:.1} s", seconds(started));
    let good = play(&cluster, only, output).await;
    cluster.stop().await;
    println!("our node on a real kube-apiserver: {:.0} s, see {}", seconds(started), output.display());
    good
}

async fn play(cluster: &Cluster, only: &str, output: &Path) -> Result<bool> {
    let choice = kubelet::Choice { kubeconfig: cluster.kubeconfig().to_owned(), only: only.to_owned() };
    let pods = match kubelet::has(only)? {
        true => kubelet::compare(&choice, &output.join("differences.txt")).await?,
        false => true,
    };
    let (kubeconfig, home, only) = (choice.kubeconfig, output.join("home"), choice.only);
    // kubectl is waited for.
    let workloads = tokio::task::spawn_blocking(move || workloads::run(&kubeconfig, &home, &only)).await??;
    Ok(pods && workloads)
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}
