//! The operator ends between any two of its writes, and another goes on: nobody is added twice, and nobody is without a pod.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use etcd_operator::operator_with;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;
use support::World;
use windlass::{Env, Running, Settings};
use windlass_testing::Mortal;

async fn start(mortal: &Mortal, world: &World) -> Running {
    let env = Env::seeded(1, "2026-01-01T00:00:00Z".parse().unwrap()).with_crash_points(mortal.hook());
    let settings = Settings { install_crds: false, ..Settings::for_tests(env) };
    let operator = operator_with(Arc::new(world.etcd.clone()));
    operator.start(mortal.client(&world.cluster), settings).await.unwrap()
}

/// A way that a cluster can go, from some size to another.
#[derive(Clone, Copy, Debug)]
struct Way {
    from: Option<i32>,
    to: i32,
    /// Whether a member is replaced on it.
    replaces: bool,
    /// How many are added, promoted and removed on it.
    changes: (usize, usize, usize),
}

/// Goes a way under an operator that dies after so many writes, and one that does not. Gives how many writes it took.
async fn go(base: &World, way: Way, writes: usize) -> usize {
    let world = base.fork();
    world.etcd.with(|state| state.changes.clear());
    let before = world.names().await;
    let first = Mortal::after(writes);
    let mut running = start(&first, &world).await;
    let is_there = async || !way.replaces || world.names().await != before;
    if way.replaces {
        world.members.delete(&before[0], &DeleteParams::default()).await.unwrap();
    } else {
        world.apply("db", json!({"size": way.to})).await.unwrap();
    }
    let rest = async || {
        world.until("it is on its way", is_there).await;
        world.until_done("db").await;
    };
    let mut dead = false;
    tokio::select! {
        biased;
        () = first.dead() => {
            // As a crash: nothing is told to stop, nothing is waited for.
            drop(running);
            dead = true;
            running = start(&Mortal::never(), &world).await;
            rest().await;
        }
        () = rest() => {}
    }
    check(&world, way).await;
    drop(running);
    assert_eq!(dead, writes != usize::MAX, "it dies when it should");
    first.writes()
}

/// Every member has its pod and its volume and is the one that etcd has, and nobody was added in vain.
async fn check(world: &World, way: Way) {
    let names: BTreeSet<String> = world.names().await.into_iter().collect();
    let pods = world.pods.list(&Default::default()).await.unwrap().items;
    assert_eq!(pods.iter().map(|pod| pod.name_any()).collect::<BTreeSet<_>>(), names, "{way:?}");
    assert_eq!(world.volumes.list(&Default::default()).await.unwrap().items.len(), names.len(), "{way:?}");
    let (known, changes) = world.etcd.with(|state| {
        let known: BTreeSet<String> = state.members.iter().map(|member| member.name.clone()).collect();
        (known, state.changes.clone())
    });
    assert_eq!(known, names, "{way:?}");
    let count = |what: &str| changes.iter().filter(|change| *change == what).count();
    assert_eq!((count("add"), count("promote"), count("remove")), way.changes, "{way:?}: {changes:?}");
}

/// Goes a way once for each of its writes, and dies after it.
async fn all(way: Way) {
    let (base, running) = World::start().await;
    if let Some(size) = way.from {
        base.apply("db", json!({"size": size})).await.unwrap();
        base.until_done("db").await;
    }
    running.stop().await.unwrap();
    let writes = go(&base, way, usize::MAX).await;
    assert!(writes > 10, "it takes {writes} writes");
    for last in 1..=writes {
        go(&base, way, last).await;
    }
    println!("{way:?}: {writes} times");
}

#[tokio::test(start_paused = true)]
async fn at_the_beginning() {
    all(Way { from: None, to: 1, replaces: false, changes: (0, 0, 0) }).await;
}

#[tokio::test(start_paused = true)]
async fn while_it_grows() {
    all(Way { from: Some(1), to: 3, replaces: false, changes: (2, 2, 0) }).await;
}

#[tokio::test(start_paused = true)]
async fn while_it_shrinks() {
    all(Way { from: Some(3), to: 1, replaces: false, changes: (0, 0, 2) }).await;
}

#[tokio::test(start_paused = true)]
async fn while_a_member_is_replaced() {
    all(Way { from: Some(1), to: 1, replaces: true, changes: (1, 1, 1) }).await;
}
