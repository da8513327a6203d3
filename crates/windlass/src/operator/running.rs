//! An operator at work.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use thiserror::Error;

use crate::cache::Cache;
use crate::context::Shared;
use crate::election::{Leadership, Lost};
use crate::env::{Died, Task};
use crate::health::Checks;
use crate::metrics::Metrics;

/// An operator that was [started](crate::Operator::start). Dropping it ends it at once, as a crash would;
/// [`stop`](Running::stop) lets it end well.
#[must_use = "dropping it ends the operator"]
pub struct Running {
    pub(super) shared: Arc<Shared>,
    pub(super) leadership: Leadership,
    pub(super) readiness: Checks,
    pub(super) supervisor: Task<Result<(), Ended>>,
    pub(super) health: Option<SocketAddr>,
    pub(super) metrics: Option<SocketAddr>,
}

/// Why an operator ended, when nobody told it to.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Ended {
    /// Another replica leads now, or the server could not be reached for so long that one may.
    #[error("lost the leadership")]
    LostLeadership(#[source] Lost),
    /// A part of it ended that should not.
    #[error("{0} ended before the operator was told to stop")]
    Early(&'static str),
    /// Something that runs beside the controllers failed.
    #[error("{name} failed: {error}")]
    Failed {
        /// Its name.
        name: &'static str,
        /// Why.
        error: crate::Error,
    },
    /// A part of it panicked.
    #[error(transparent)]
    Died(#[from] Died),
    /// Running passes, or what runs beside the controllers, did not end in time after it was told to stop. They were cut
    /// off, and the lease was not given back: what they wrote last may still arrive.
    #[error("some reconciles did not end within the graceful shutdown timeout")]
    Unfinished,
}

impl Running {
    /// Tells it to stop, and waits for it: passes that run may end, the lease is released, events are sent.
    ///
    /// # Errors
    /// When it had ended before, or did not end in time.
    pub async fn stop(self) -> Result<(), Ended> {
        self.shared.shutdown.cancel();
        self.wait().await
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it ends without having been told to, or not in time.
    pub async fn wait(self) -> Result<(), Ended> {
        self.supervisor.await?
    }

    /// Tells it to stop when a future ends, from where [`wait`](Running::wait) is awaited.
    pub(super) fn shutdown(&self) -> tokio_util::sync::CancellationToken {
        self.shared.shutdown.clone()
    }

    /// Whether it leads.
    pub fn leadership(&self) -> &Leadership {
        &self.leadership
    }

    /// Whether it is ready, as `/readyz` says it.
    pub fn readiness(&self) -> &Checks {
        &self.readiness
    }

    /// What it knows of the cluster.
    pub fn cache(&self) -> &Cache {
        &self.shared.cache
    }

    /// What it counts.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }
}

impl Running {
    /// Where it serves `/healthz` and `/readyz`.
    pub fn health_address(&self) -> Option<SocketAddr> {
        self.health
    }

    /// Where it serves `/metrics`.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("operator", &self.shared.operator).finish_non_exhaustive()
    }
}
