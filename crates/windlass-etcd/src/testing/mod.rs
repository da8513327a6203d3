//! Real etcd on loopback: for tests of the client and of operators, for bench and soak.
//!
//! ```no_run
//! # async fn sample() -> Result<(), windlass_etcd::testing::Failure> {
//! use windlass_etcd::testing::{Cluster, Release};
//! let mut cluster = Cluster::of(&Release::required("3.6"), 3).await?;
//! cluster[1].kill()?;
//! cluster[1].wipe()?;
//! # Ok(()) }
//! ```
//!
//! Programs are found where `tools/setup etcd-3.6` puts them. Every process has ports and a folder of its own, and ends with
//! its value; the folder goes with the [`Cluster`]. A test that is killed itself leaves its processes behind.

mod cluster;
mod ports;
mod process;
mod release;

pub use cluster::Cluster;
pub use process::{Process, Start};
pub use release::Release;

use std::time::{Duration, Instant};

/// Why real etcd did not do what was wanted of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A process or its folder could not be handled.
    #[error("could not {step} of {name}")]
    Process {
        /// What was tried.
        step: &'static str,
        /// The process.
        name: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// etcd refused.
    #[error("etcd refused")]
    Etcd(#[from] crate::Error),
    /// It did not happen in time.
    #[error("{what}: not within {within:?}; last: {last}")]
    Late {
        /// What was waited for.
        what: &'static str,
        /// How long.
        within: Duration,
        /// What was seen last.
        last: String,
    },
}

/// Asks until the answer is `Ok`, every 20 ms, for at most a minute: what is late by then does not come.
///
/// # Errors
/// [`Failure::Late`], with the last answer.
pub async fn eventually<T, E: std::fmt::Debug>(
    what: &'static str,
    mut ask: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T, Failure> {
    const WITHIN: Duration = Duration::from_secs(60);
    let started = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(last) if started.elapsed() > WITHIN => {
                return Err(Failure::Late { what, within: WITHIN, last: format!("{last:?}") });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}
