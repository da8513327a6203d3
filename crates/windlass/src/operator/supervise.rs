//! The parts of an operator, from its start to its end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio_util::sync::CancellationToken;

use super::running::Ended;
use super::{Beside, Runnable};
use crate::context::Shared;
use crate::controller::Wired;
use crate::election::{Election, Leadership, Lost};
use crate::env::{Died, Env, Task};

/// Everything that has to run.
pub(super) struct Parts {
    pub shared: Arc<Shared>,
    pub controllers: Vec<Wired>,
    pub runnables: Vec<Runnable>,
    pub beside: Beside,
    pub election: Option<Election>,
    pub ground: Vec<Ground>,
    /// Tells the HTTP servers to stop: they answer until all else has ended.
    pub listening: CancellationToken,
    /// What sends events, and what tells it to stop: it outlasts everything that may have something to tell.
    pub events: (Task<()>, CancellationToken),
    pub shutdown_timeout: Duration,
}

/// What the others stand on: informers, HTTP servers. It ends after them, or all ends with it.
pub(super) struct Ground(BoxFuture<'static, Ended>);

impl Ground {
    pub fn new<T: Send + 'static>(name: &'static str, task: Task<T>) -> Ground {
        Ground(Box::pin(async move {
            match task.await {
                Ok(_) => Ended::Early(name),
                Err(died) => Ended::Died(died),
            }
        }))
    }
}

/// The parts that work: each with its name, and how it ended.
type Working = FuturesUnordered<Task<(&'static str, Result<(), crate::Error>)>>;

/// Runs all parts until the operator is told to stop, or one of them ends that should not; then ends them in order:
/// those that write, the lease that lets them, those that tell of it.
pub(super) async fn supervise(parts: Parts) -> Result<(), Ended> {
    let env = parts.shared.env.clone();
    let stop = parts.shared.shutdown.clone();
    let leadership = parts.election.as_ref().map_or_else(Leadership::always, Election::leadership);
    let mut is_leading = false;
    let mut lease = Lease::start(&env, parts.election);
    let mut ground: FuturesUnordered<_> = parts.ground.into_iter().map(|ground| ground.0).collect();
    let mut working: Working = FuturesUnordered::new();
    let (mut leading, always): (Vec<_>, Vec<_>) = parts.runnables.into_iter().partition(|one| one.leads);
    begin(&env, &mut working, always, &parts.beside);
    let mut controllers = parts.controllers;
    let ended = loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break Ok(()),
            lost = lease.lost() => break Err(lost),
            Some(ended) = ground.next() => break Err(ended),
            Some(ended) = working.next(), if !working.is_empty() => break Err(unexpected(ended)),
            () = leadership.leading(), if !is_leading => {
                is_leading = true;
                begin(&env, &mut working, std::mem::take(&mut leading), &parts.beside);
                for controller in controllers.drain(..) {
                    let run = controller.run.map(|()| ("controller", Ok(())));
                    working.push(env.spawn("controller", run));
                }
            }
        }
    };
    stop.cancel();
    // Who has lost the lease may not write any more: there is nothing to wait for.
    let drained = match &ended {
        Err(Ended::LostLeadership(_)) => Ok(()),
        _ => drain(&env, &mut working, parts.shutdown_timeout).await,
    };
    drop(working);
    match drained {
        // A write that was cut off may still arrive: the next leader waits until the lease has expired.
        Err(Ended::Unfinished) => drop(lease),
        _ => lease.release().await,
    }
    let (events, told) = parts.events;
    told.cancel();
    // Events are for people: the operator does not wait for them for long.
    let _sent = env.within(EVENTS_WITHIN, events).await;
    parts.listening.cancel();
    ended.and(drained)
}

/// How long the last events may take.
const EVENTS_WITHIN: Duration = Duration::from_secs(2);

fn begin(env: &Env, working: &mut Working, runnables: Vec<Runnable>, beside: &Beside) {
    for runnable in runnables {
        let Runnable { name, start, .. } = runnable;
        let beside = beside.clone();
        // It begins in its own task: a panic there is its own, too.
        working.push(env.spawn(name, async move { (name, start(beside).await) }));
    }
}

/// The lease, for those who need one.
struct Lease {
    election: Option<Task<Result<(), Lost>>>,
    given_back: CancellationToken,
}

impl Lease {
    fn start(env: &Env, election: Option<Election>) -> Lease {
        let given_back = CancellationToken::new();
        let election = election.map(|election| env.spawn("election", election.run(given_back.clone())));
        Lease { election, given_back }
    }

    /// Waits for the loss of the lease.
    async fn lost(&mut self) -> Ended {
        let Some(election) = &mut self.election else { return std::future::pending().await };
        let ended = election.await;
        self.election = None;
        match ended {
            Ok(Err(lost)) => Ended::LostLeadership(lost),
            Ok(Ok(())) => Ended::Early("election"),
            Err(died) => Ended::Died(died),
        }
    }

    /// Gives it back, after the last write.
    async fn release(self) {
        self.given_back.cancel();
        if let Some(election) = self.election
            && let Ok(Err(error)) = election.await
        {
            tracing::warn!(%error, "the lease was lost before it could be given back");
        }
    }
}

/// Waits for those that work to end, for so long.
async fn drain(env: &Env, working: &mut Working, limit: Duration) -> Result<(), Ended> {
    let all = async {
        let mut first = Ok(());
        while let Some(ended) = working.next().await {
            let ended = match ended {
                Ok((_, Ok(()))) => Ok(()),
                other => Err(unexpected(other)),
            };
            first = first.and(ended);
        }
        first
    };
    env.within(limit, all).await.unwrap_or(Err(Ended::Unfinished))
}

fn unexpected(ended: Result<(&'static str, Result<(), crate::Error>), Died>) -> Ended {
    match ended {
        Ok((name, Err(error))) => Ended::Failed { name, error },
        Ok((name, Ok(()))) => Ended::Early(name),
        Err(died) => Ended::Died(died),
    }
}
