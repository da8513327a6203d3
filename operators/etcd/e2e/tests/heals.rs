//! On a cluster of processes with the operator in it as a pod: every fault once, at a random moment under 200 writes a
//! second, and every change of size; then an operator that is killed after each of its writes. `make soak` does the first
//! part twenty times.

use std::sync::PoisonError;

use etcd_e2e::{Etcd, Fault, Healing, Random, World, attempt, doomed, sizes};
use windlass_testing::up::{Folder, program};

/// Decides who is hit and when: set `ETCD_E2E_SEED` to another number to try another course.
fn seed() -> u64 {
    std::env::var("ETCD_E2E_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(6)
}

/// One EtcdCluster of three, and these faults one after the other.
fn broken(world: &World, name: &str, faults: &[Fault], mut random: Random) -> anyhow::Result<()> {
    let (etcd, took) = Etcd::ready(world, name, 3, Healing::SHORT)?;
    println!("{name}: three members after {:.1} s", took.as_secs_f64());
    for fault in faults {
        println!("{name}: {}", attempt(world, &etcd, *fault, &mut random)?);
    }
    etcd.delete()
}

#[test]
fn everything_heals_and_nothing_is_lost() {
    let folder = Folder::new("etcd-heals");
    program("etcd-operator", "etcd-operator");
    let (windlass, ledger) = (program("windlass-cli", "windlass"), program("etcd-ledger", "etcd-ledger"));
    let world = World::up(&windlass, &ledger, folder.path()).unwrap_or_else(|error| panic!("{error:#}"));
    let seed = seed();
    println!("seed {seed}");
    let random = Random::new(seed);
    let check = |lane: &str, done: anyhow::Result<()>| {
        done.unwrap_or_else(|error| panic!("{lane}, seed {seed}: {error:#}\n{}", world.story()));
    };
    // Three EtcdClusters at the same time: each has one fault at a time.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use Fault::{DataWiped, OldestWiped, PodDeleted, ProcessHung, ProcessKilled};
            // The first is that of the member that the cluster began with, before anything else has happened to it.
            let faults = [OldestWiped, PodDeleted, ProcessKilled, DataWiped, ProcessHung];
            check("process", broken(&world, "process", &faults, random.branch(1)));
        });
        scope.spawn(|| {
            use Fault::{LearnerStuck, MemberRemoved, OperatorKilled, VolumeLost};
            let faults = [VolumeLost, MemberRemoved, LearnerStuck, OperatorKilled];
            check("member", broken(&world, "member", &faults, random.branch(2)));
        });
        scope.spawn(|| {
            let done = sizes(&world, "sizes", &mut random.branch(3));
            check(
                "sizes",
                done.map(|outcomes| outcomes.iter().for_each(|outcome| println!("sizes: {outcome}"))),
            );
        });
    });
    // A node that is cut off concerns everybody: nothing else is broken meanwhile.
    let calm = world.calm.write().unwrap_or_else(PoisonError::into_inner);
    check("node", broken(&world, "node", &[Fault::NodeCut], random.branch(4)));
    drop(calm);
    let done = doomed(&world, "doomed");
    check("doomed", done.map(|told| told.iter().for_each(|line| println!("doomed: {line}"))));
}
