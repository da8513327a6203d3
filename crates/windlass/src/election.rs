//! One replica writes: leader election on a `Lease`, compatible with client-go's.
//!
//! # Expected flow
//! 1. Every replica reads the lease. One whose holder does not renew it for its duration, *by the clock of whoever looks*,
//!    is taken by an update that names the version it was read at, so that one of many gets it.
//! 2. The holder renews it every retry period.
//! 3. A holder that did not manage to renew it for the renew deadline has lost, and its process ends.
//! 4. A process that ends well gives the lease back, after its last write.
//!
//! # Guarantees
//! - Clocks of machines are never compared. What counts is for how long a record did not change, by the local clock that
//!   only goes forward.
//! - [`Leadership`] is a [`Fence`]: it holds from the start of the last renewal that succeeded for the renew deadline, which
//!   is shorter than the lease. A process that was stopped and goes on finds itself without it, before its first write.
//!
//! # Assumptions
//! - The clocks of machines run at about the same speed: five seconds in fifteen are more than any drift.
//! - A write that was sent arrives within the difference between lease duration and renew deadline. No client can rule out
//!   that a network keeps one for longer.
//!
//! # Caveats
//! - Deleting the lease of a leader lets a replica that starts at that moment lead beside it, until the leader's next
//!   renewal.

mod elector;
mod record;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use thiserror::Error;
use tokio_util::sync::CancellationToken;
use windlass_core::Moment;

use crate::client::Fence;
use crate::env::Env;
use crate::events::Recorder;
use crate::metrics::Metrics;
use elector::Elector;

/// Which lease, who asks for it, and how long things take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespace of the lease.
    pub namespace: String,
    /// The name of the lease.
    pub name: String,
    /// Who asks: different for every process. See [`identity`].
    pub identity: String,
    /// How long a replica waits for a holder that does not renew; whole seconds.
    pub lease_duration: Duration,
    /// After this long without a renewal the holder has lost.
    pub renew_deadline: Duration,
    /// How often the holder renews. The others look a little more often, so that one of them leads soon after the lease
    /// has expired.
    pub retry_period: Duration,
}

impl Settings {
    /// Client-go's usual times: 15, 10 and 2 seconds.
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        identity: impl Into<String>,
    ) -> Settings {
        Settings {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// Whether the times go together.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        if self.identity.is_empty() || self.name.is_empty() || self.namespace.is_empty() {
            return Err(Invalid::NoName);
        }
        if self.lease_duration <= self.renew_deadline {
            return Err(Invalid::LeaseDuration);
        }
        if self.lease_duration.subsec_nanos() != 0 {
            return Err(Invalid::WholeSeconds);
        }
        if self.retry_period.is_zero() || self.renew_deadline <= self.retry_period.mul_f64(1.2) {
            return Err(Invalid::RenewDeadline);
        }
        Ok(())
    }
}

/// Times that do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Invalid {
    /// The lease, its namespace or the identity has no name.
    #[error("the lease, its namespace and the identity need a name")]
    NoName,
    /// The lease has to outlast the deadline.
    #[error("the lease duration has to be longer than the renew deadline")]
    LeaseDuration,
    /// A lease counts in seconds.
    #[error("the lease duration has to be whole seconds")]
    WholeSeconds,
    /// The deadline has to leave time to try again.
    #[error(
        "the renew deadline has to be longer than 1.2 retry periods, and the retry period more than nothing"
    )]
    RenewDeadline,
}

/// A process that led and must not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Lost {
    /// Another holds the lease.
    #[error("the lease is held by {by}")]
    Taken {
        /// Who.
        by: String,
    },
    /// It was not renewed in time.
    #[error("the lease was not renewed for {} s", .within.as_secs_f64())]
    Deadline {
        /// The renew deadline.
        within: Duration,
        /// What the last attempt came to, if it came to anything.
        source: Option<kube::Error>,
    },
}

/// A candidate for a lease.
#[derive(Debug)]
pub struct Election {
    elector: Elector,
    leadership: Leadership,
}

impl Election {
    /// A candidate. The client must not have a fence: the lease is what the fence stands on. Nor should it try again by
    /// itself.
    ///
    /// # Errors
    /// When the times do not go together.
    pub fn new(
        client: kube::Client,
        settings: Settings,
        env: &Env,
        metrics: &Metrics,
        recorder: Recorder,
    ) -> Result<Election, Invalid> {
        settings.check()?;
        let state = Arc::new(State {
            until: AtomicU64::new(0),
            led: CancellationToken::new(),
            given_back: AtomicBool::new(false),
        });
        let leadership = Leadership { by_lease: Some((env.clone(), state.clone())) };
        let metrics = metrics.election(&settings.name);
        metrics.leading(false);
        Ok(Election {
            elector: Elector::new(client, settings, env.clone(), metrics, recorder, state),
            leadership,
        })
    }

    /// What others ask whether this process leads.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Asks for the lease and keeps it, until `stop` comes, and gives it back then. So `stop` has to come after the last
    /// write is answered.
    ///
    /// # Errors
    /// When the lease was held and is lost. The process has to end: whatever it began, another goes on with.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Lost> {
        self.elector.run(stop).await
    }
}

/// Whether this process leads. Clones are the same.
#[derive(Clone)]
pub struct Leadership {
    /// `None` for a process that leads without a lease.
    by_lease: Option<(Env, Arc<State>)>,
}

struct State {
    /// Until when this process may write, in nanoseconds of its environment's time; 0 for not at all.
    until: AtomicU64,
    /// Cancelled once this process leads. It does not come back: one that has lost ends.
    led: CancellationToken,
    /// Whether it stopped to lead of its own will.
    given_back: AtomicBool,
}

impl Leadership {
    /// The leadership of an operator that runs once, and needs no lease.
    pub fn always() -> Leadership {
        Leadership { by_lease: None }
    }

    /// Whether this process leads at this moment.
    pub fn is_leader(&self) -> bool {
        match &self.by_lease {
            None => true,
            Some((env, state)) => env.moment() < state.until(),
        }
    }

    /// Whether this process led and lost it: whatever it believes is old, and it sends nothing any more, not even Events.
    pub fn has_lost(&self) -> bool {
        self.by_lease.as_ref().is_some_and(|(_, state)| {
            state.led.is_cancelled() && !self.is_leader() && !state.given_back.load(Ordering::SeqCst)
        })
    }

    /// Waits until this process leads.
    pub async fn leading(&self) {
        if let Some((_, state)) = &self.by_lease {
            state.led.cancelled().await;
        }
    }
}

impl Fence for Leadership {
    fn may_write(&self) -> bool {
        self.is_leader()
    }
}

/// The fence of what is only told, such as Events: those who stand by and those who gave the lease back may tell, one who
/// [has lost](Leadership::has_lost) may not. Empty until the leadership is known.
#[derive(Debug, Default)]
pub(crate) struct Telling(pub OnceLock<Leadership>);

impl Fence for Telling {
    fn may_write(&self) -> bool {
        self.0.get().is_none_or(|leadership| !leadership.has_lost())
    }
}

impl State {
    fn until(&self) -> Moment {
        Moment::after_start(Duration::from_nanos(self.until.load(Ordering::SeqCst)))
    }

    fn lead_until(&self, moment: Moment) {
        let nanos = u64::try_from(moment.since_start().as_nanos()).unwrap_or(u64::MAX);
        self.until.store(nanos, Ordering::SeqCst);
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership").field("is_leader", &self.is_leader()).finish()
    }
}

/// Who a process is: the host's name, which in a pod is the pod's, and a number, so that a process that starts anew is
/// another one.
pub fn identity(env: &Env) -> String {
    format!("{}_{:016x}", hostname(), env.random())
}

fn hostname() -> String {
    let of_kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = of_kernel.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}
