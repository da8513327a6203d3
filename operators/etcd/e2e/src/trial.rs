//! One trial: load, fault, healing, verdict.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::etcd::{Etcd, Healing};
use crate::fault::Fault;
use crate::load::{Load, Verdict};
use crate::random::Random;
use crate::real;
use crate::world::World;

/// How long after the start of the load something may happen, in milliseconds.
const MOMENT: usize = 4000;
/// The load goes on for a while when all is well again.
const AFTER: Duration = Duration::from_secs(1);

/// What is tried.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trial {
    /// A fault of a cluster of three.
    Fault(Fault),
    /// A change of size.
    Size(usize, usize),
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was tried.
    pub trial: Trial,
    /// How long it took until all was well.
    pub took: Duration,
    /// Whether the member was replaced by another one.
    pub replaced: bool,
    /// What the ledger's checker says. Changes of size in one course share one load: only the last of them has it.
    pub verdict: Option<Verdict>,
}

/// Inflicts a fault on a healthy cluster of three at a random moment under load, waits until it is healed, and checks the
/// ledger.
///
/// # Errors
/// It does not heal, or something is lost.
pub fn attempt(world: &World, etcd: &Etcd, fault: Fault, random: &mut Random) -> Result<Outcome> {
    let tried = || format!("{}: {fault}", etcd.name);
    let load = Load::start(world, etcd, &label(fault))?;
    std::thread::sleep(Duration::from_secs(1) + random.milliseconds(MOMENT));
    let wound = fault.inflict(world, etcd, random).with_context(tried)?;
    let took = wound.heal(world, etcd).with_context(tried)?;
    std::thread::sleep(AFTER);
    let verdict = load.end().with_context(tried)?;
    let replaced = etcd.members()?.iter().all(|member| member.name != wound.member.name);
    if fault == Fault::LearnerStuck {
        etcd.scale(3)?;
        etcd.until_healthy(3).with_context(tried)?;
    }
    Ok(Outcome { trial: Trial::Fault(fault), took, replaced, verdict: Some(verdict) })
}

/// The sample as it is, from nothing to three members; how long that took.
///
/// # Errors
/// It does not become well.
pub fn sample(world: &World) -> Result<Duration> {
    let started = Instant::now();
    let file = real::file("samples/operators/etcdcluster.yaml");
    world.kubectl.run(&["apply", "-f", &file.display().to_string()])?;
    let etcd = Etcd::there(world, "example-etcd-cluster", Healing::DEFAULT)?;
    etcd.until_healthy(3)?;
    let took = started.elapsed();
    etcd.delete()?;
    Ok(took)
}

/// 1 → 3 → 5 → 3 → 1 under one load.
///
/// # Errors
/// A size is not reached, or something is lost.
pub fn sizes(world: &World, name: &str, random: &mut Random) -> Result<Vec<Outcome>> {
    let (etcd, _) = Etcd::ready(world, name, 1, Healing::SHORT)?;
    let load = Load::start(world, &etcd, "sizes")?;
    let mut outcomes = Vec::new();
    for (from, to) in [(1, 3), (3, 5), (5, 3), (3, 1)] {
        std::thread::sleep(random.milliseconds(MOMENT / 4));
        let started = Instant::now();
        etcd.scale(to)?;
        etcd.until_healthy(to).with_context(|| format!("{name}: {from} → {to}"))?;
        let (trial, took) = (Trial::Size(from, to), started.elapsed());
        outcomes.push(Outcome { trial, took, replaced: false, verdict: None });
    }
    std::thread::sleep(AFTER);
    let verdict = load.end().with_context(|| format!("{name}: 1 → 3 → 5 → 3 → 1"))?;
    if let Some(last) = outcomes.last_mut() {
        last.verdict = Some(verdict);
    }
    etcd.delete()?;
    Ok(outcomes)
}

/// What a pod's name can have in it.
fn label(fault: Fault) -> String {
    format!("{fault:?}").to_lowercase()
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trial::Fault(fault) => fault.fmt(f),
            Trial::Size(from, to) => write!(f, "size {from} → {to}"),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: healthy after {:.1} s", self.trial, self.took.as_secs_f64())?;
        if self.replaced {
            f.write_str(", by another member")?;
        }
        if let Some(verdict) = &self.verdict {
            let Verdict { acknowledged, longest_pause_seconds, .. } = verdict;
            write!(
                f,
                "; {acknowledged} writes, none lost, none reordered, longest pause {longest_pause_seconds:.1} s"
            )?;
        }
        Ok(())
    }
}
