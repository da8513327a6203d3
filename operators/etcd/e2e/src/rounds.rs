//! Round after round: every fault and every size, on an EtcdCluster of each round's own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;

use crate::etcd::{Etcd, Healing};
use crate::fault::Fault;
use crate::random::Random;
use crate::report::Tally;
use crate::trial::{Outcome, attempt, sizes};
use crate::world::World;

/// What is done.
#[derive(Clone, Debug)]
pub struct Rounds {
    /// How many rounds: each does everything once.
    pub rounds: u64,
    /// How many at the same time.
    pub lanes: u64,
    /// Decides who is hit, when, and in which order.
    pub seed: u64,
    /// Which faults.
    pub faults: Vec<Fault>,
    /// Whether sizes are changed, too.
    pub sizes: bool,
}

/// Plays rounds. What fails is written down, and the next round begins with a cluster of its own.
pub fn rounds(world: &World, options: &Rounds, tell: impl Fn(&str) + Sync) -> Tally {
    let (next, tally) = (AtomicU64::new(0), Mutex::new(Tally::new(options)));
    let lane = || loop {
        let number = next.fetch_add(1, Ordering::SeqCst);
        if number >= options.rounds {
            break;
        }
        let random = Random::new(options.seed).branch(number);
        let note = |outcome: Outcome| {
            tell(&format!("round {number}: {outcome}"));
            tally.lock().unwrap_or_else(PoisonError::into_inner).add(outcome);
        };
        if let Err(error) = round(world, options, number, random, note) {
            tell(&format!("round {number}, seed {}: {error:#}\n{}", options.seed, world.story()));
            let failure = format!("round {number}: {error:#}");
            tally.lock().unwrap_or_else(PoisonError::into_inner).fail(failure);
        }
    };
    std::thread::scope(|scope| (0..options.lanes).for_each(|_| drop(scope.spawn(lane))));
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn round(
    world: &World,
    options: &Rounds,
    number: u64,
    mut random: Random,
    note: impl Fn(Outcome),
) -> Result<()> {
    let mut left = options.faults.clone();
    if !left.is_empty() {
        let (etcd, _) = Etcd::ready(world, &format!("round-{number}"), 3, Healing::SHORT)?;
        while !left.is_empty() {
            let fault = left.remove(random.below(left.len()));
            note(exclusive(world, &etcd, fault, &mut random)?);
        }
        etcd.delete()?;
    }
    if options.sizes {
        let _calm = world.calm.read().unwrap_or_else(PoisonError::into_inner);
        sizes(world, &format!("sizes-{number}"), &mut random)?.into_iter().for_each(note);
    }
    Ok(())
}

/// A fault that concerns all clusters waits until nothing else is broken, and keeps others from breaking anything. A node is
/// cut off under a cluster that was made for it, with a member on each node: others may have got two on one.
fn exclusive(world: &World, etcd: &Etcd, fault: Fault, random: &mut Random) -> Result<Outcome> {
    if fault.is_of_all() {
        let _calm = world.calm.write().unwrap_or_else(PoisonError::into_inner);
        if fault != Fault::NodeCut {
            return attempt(world, etcd, fault, random);
        }
        let (cut, _) = Etcd::ready(world, &format!("{}-cut", etcd.name), 3, Healing::SHORT)?;
        let outcome = attempt(world, &cut, fault, random)?;
        cut.delete()?;
        Ok(outcome)
    } else {
        let _calm = world.calm.read().unwrap_or_else(PoisonError::into_inner);
        attempt(world, etcd, fault, random)
    }
}
