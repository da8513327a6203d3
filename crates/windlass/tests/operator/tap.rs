//! A client whose requests are noted, and whose answers can be held back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::client::Body;
use tokio::time::Instant;
use tower::ServiceExt as _;
use windlass_testing::TestCluster;

/// One process' connection to the server. Clones are the same.
#[derive(Clone, Default)]
pub struct Tap(Arc<Mutex<Vec<Asked>>>);

/// A request that was sent.
#[derive(Clone, Debug)]
pub struct Asked {
    pub at: Instant,
    pub method: Method,
    pub path: String,
}

impl Asked {
    /// Whether it changes something, other than a lease or an event.
    pub fn writes(&self) -> bool {
        self.method != Method::GET && !self.path.contains("/leases") && !self.path.contains("/events")
    }

    /// Whether it asks for all objects of a kind, by a list or at the begin of a watch.
    pub fn lists(&self) -> bool {
        let watches = self.path.contains("watch=true") && !self.path.contains("sendInitialEvents=true");
        self.method == Method::GET && self.path.contains('?') && !watches
    }
}

impl Tap {
    /// A client of the cluster that goes through this.
    pub fn client(&self, cluster: &TestCluster) -> kube::Client {
        self.client_with(cluster, Duration::ZERO)
    }

    /// The same, where answers to writes take so long to come back: their events are there first.
    pub fn client_with(&self, cluster: &TestCluster, delay: Duration) -> kube::Client {
        let (tap, service) = (self.clone(), cluster.server().service());
        let tapped = tower::service_fn(move |request: Request<Body>| {
            let (tap, service) = (tap.clone(), service.clone());
            async move {
                let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
                let asked = Asked { at: Instant::now(), method: request.method().clone(), path };
                let slow = asked.writes() && !delay.is_zero();
                tap.0.lock().unwrap().push(asked);
                let answer: Result<Response<_>, _> = service.oneshot(request).await;
                if slow {
                    tokio::time::sleep(delay).await;
                }
                answer
            }
        });
        kube::Client::new(tapped, "default")
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.0.lock().unwrap().clone()
    }
}
