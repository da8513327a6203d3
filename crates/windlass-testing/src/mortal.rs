//! Processes that end between any two of their writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Request;
use kube::client::Body;
use tokio::sync::Notify;
use tower::ServiceExt as _;

use crate::TestCluster;

/// A process that ends after so many writes. What it would do afterwards, nobody hears.
///
/// Give its [`hook`](Mortal::hook) to the environment of an operator (`env.with_crash_points(mortal.hook())`) and its
/// [`client`](Mortal::client) to the operator; when it is [dead](Mortal::dead), drop the operator and start another one.
/// Clones are the same process.
#[derive(Clone, Debug)]
pub struct Mortal {
    limit: usize,
    writes: Arc<AtomicUsize>,
    dead: Arc<Notify>,
}

impl Mortal {
    /// It ends after so many writes.
    pub fn after(writes: usize) -> Mortal {
        Mortal { limit: writes, writes: Arc::default(), dead: Arc::default() }
    }

    /// It never ends.
    pub fn never() -> Mortal {
        Mortal::after(usize::MAX)
    }

    /// What is to be called after each write.
    pub fn hook(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let mortal = self.clone();
        move |_| {
            if mortal.writes.fetch_add(1, Ordering::SeqCst) + 1 == mortal.limit {
                mortal.dead.notify_one();
            }
        }
    }

    /// A client whose requests arrive only while the process lives.
    pub fn client(&self, cluster: &TestCluster) -> kube::Client {
        let (mortal, service) = (self.clone(), cluster.server().service());
        let cut = tower::service_fn(move |request: Request<Body>| {
            let (mortal, service) = (mortal.clone(), service.clone());
            async move {
                if mortal.writes() >= mortal.limit {
                    std::future::pending::<()>().await;
                }
                service.oneshot(request).await
            }
        });
        kube::Client::new(cut, "default")
    }

    /// Waits for its end.
    pub async fn dead(&self) {
        self.dead.notified().await;
    }

    /// How many writes it made.
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }
}
