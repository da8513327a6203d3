//! The client against real etcd: 3.6 always, 3.5 and 3.7 where they are.

mod data;
mod membership;
mod quorum;
mod refusals;
mod sight;
mod tls;

use windlass_etcd::testing::{Release, eventually};
use windlass_etcd::{Client, Status};

/// Nobody is there, and nobody else will take it: below what the kernel gives away, and reserved.
const NOBODY: &str = "http://127.0.0.1:2";

/// Runs a test with every release there is, and says with which one it failed.
async fn with_all(test: impl AsyncFn(&Release)) {
    for release in Release::all() {
        eprintln!("with etcd {}", release.version());
        test(&release).await;
    }
}

/// Waits until the storage has the version of the release, which etcd has since 3.6.
///
/// A new member begins with the storage of 3.5. It writes the version when that of the cluster is decided; when it was
/// not listening at that moment it looks again after four seconds, long after it has a leader.
async fn storage_is_of(release: &Release, client: &Client) {
    let version = format!("{}.0", release.version());
    eventually("the storage has the version of the release", async || match client.status().await {
        Ok(Status { storage_version, .. }) if storage_version == version => Ok(()),
        other => Err(other),
    })
    .await
    .unwrap();
}
