//! The client against real etcd: 3.6 always, 3.5 and 3.7 where they are.

mod data;
mod membership;
mod quorum;
mod refusals;
mod tls;

use windlass_etcd::testing::Release;

/// Runs a test with every release there is, and says with which one it failed.
async fn with_all(test: impl AsyncFn(&Release)) {
    for release in Release::all() {
        eprintln!("with etcd {}", release.version());
        test(&release).await;
    }
}
