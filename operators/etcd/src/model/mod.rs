//! A world in which decisions are played: Kubernetes and etcd as they are, an operator that looks at them through an old
//! cache and dies between any two of its steps, users who change their minds, and faults.
//!
//! Each rule of [`goal`](crate::goal) has an oracle here that looks at the truth, not at what the operator saw. For each
//! rule there is a mutant, which decides without it, and has to be caught.

mod etcd;
mod faults;
mod kube;
mod operator;
mod oracle;
mod world;

use std::collections::BTreeMap;

use world::{Ending, World};

use crate::goal::{RULES, Rule, Rules};

/// What came of one schedule.
struct Played {
    ending: Result<Ending, String>,
    trace: Vec<String>,
}

fn play(seed: u64, rules: Rules, traced: bool) -> Played {
    let mut world = World::new(seed, rules, traced);
    let ending = world.live();
    Played { ending, trace: world.trace }
}

/// Plays some schedules on all cores, and gives how they ended; the first that went wrong is told in full.
fn campaign(seeds: std::ops::Range<u64>) -> BTreeMap<Ending, u64> {
    let workers = std::thread::available_parallelism().map_or(2, |cores| cores.get() as u64);
    let share = |worker| {
        let mut endings = BTreeMap::new();
        for seed in seeds.clone().skip(worker as usize).step_by(workers as usize) {
            match play(seed, Rules::ALL, false).ending {
                Ok(ending) => *endings.entry(ending).or_insert(0) += 1,
                Err(wrong) => {
                    let told = play(seed, Rules::ALL, true).trace;
                    let from = told.len().saturating_sub(200);
                    let end = told.iter().position(|line| line.ends_with("faults end")).unwrap_or(0);
                    let from = from.min(end.saturating_sub(60));
                    panic!("seed {seed}: {wrong}\n{}", told[from..told.len().min(from + 200)].join("\n"));
                }
            }
        }
        endings
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|worker| scope.spawn(move || share(worker))).collect();
        let mut all = BTreeMap::new();
        for one in running {
            let endings = one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            endings.into_iter().for_each(|(ending, count)| *all.entry(ending).or_insert(0) += count);
        }
        all
    })
}

/// How many schedules are played.
const SCHEDULES: u64 = 100_000;

#[test]
fn no_schedule_breaks_a_rule_and_all_end_well() {
    let from = std::env::var("WINDLASS_MODEL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let schedules = std::env::var("WINDLASS_MODEL_SCHEDULES").ok().and_then(|n| n.parse().ok());
    let endings = campaign(from..from + schedules.unwrap_or(SCHEDULES));
    let total: u64 = endings.values().sum();
    println!("{total} schedules: {endings:?}");
    // A world in which most clusters die would say little about those that live.
    assert!(endings.get(&Ending::Healthy).copied().unwrap_or(0) * 10 > total * 7, "{endings:?}");
    if total >= 1000 {
        assert!(
            endings.contains_key(&Ending::Recovered) && endings.contains_key(&Ending::Lost),
            "{endings:?}"
        );
    }
}

/// A decision without a rule breaks it, sooner or later, and the oracle of that rule sees it.
#[test]
fn each_rule_bites() {
    let bites = |rule: &Rule| {
        let caught = (0..30_000).find_map(|seed| {
            let wrong = play(seed, Rules::without(rule.number), false).ending.err()?;
            wrong.starts_with(&format!("rule {}:", rule.number)).then_some((seed, wrong))
        });
        match caught {
            Some((seed, wrong)) => println!("rule {} ({}): seed {seed}: {wrong}", rule.number, rule.name),
            None => panic!("nobody misses {rule:?}"),
        }
    };
    let (first, second) = RULES.split_at(RULES.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| first.iter().for_each(bites));
        second.iter().for_each(bites);
    });
}

/// One life, told in full: `WINDLASS_MODEL_TELL=7 cargo test -p etcd-operator --lib tell_one_life -- --nocapture`.
#[test]
fn tell_one_life() {
    let seed = std::env::var("WINDLASS_MODEL_TELL").ok().and_then(|seed| seed.parse().ok());
    let played = play(seed.unwrap_or(0), Rules::ALL, true);
    assert!(!played.trace.is_empty());
    if seed.is_some() {
        println!("{}\n{:?}", played.trace.join("\n"), played.ending);
    }
}

/// The same seed is the same life.
#[test]
fn a_seed_is_a_life() {
    for seed in 0..20 {
        assert_eq!(play(seed, Rules::ALL, true).trace, play(seed, Rules::ALL, true).trace);
    }
}

/// A process that was told to begin the cluster, or whom to join, and is started again in its pod with the same arguments
/// does so on a volume that was emptied. That such a member does not start was believed here once, and etcd showed otherwise:
/// it formed a cluster of its own and acknowledged writes that nobody else ever saw.
#[test]
fn a_first_start_in_place_is_a_second_cluster() {
    let caught = |seed| {
        let mut world = World::new(seed, Rules::ALL, false);
        world.restarts_in_place = |_| true;
        world.live().err().filter(|wrong| wrong.starts_with("rule 8:") || wrong.starts_with("rule 7:"))
    };
    let wrong: Vec<String> = (0..2000).filter_map(caught).collect();
    assert!(wrong.iter().any(|wrong| wrong.starts_with("rule 8:")), "{wrong:?}");
    assert!(wrong.iter().any(|wrong| wrong.starts_with("rule 7:")), "{wrong:?}");
}
