//! The operator ends between any two of its writes, and another goes on: the world comes out the same.

mod support;

use serde_json::{Value, json};
use support::World;
use windlass::{Env, Running, Settings};
use windlass_testing::{Mortal, TestCluster};

async fn start(mortal: &Mortal, cluster: &TestCluster) -> Running {
    let env = Env::system().with_crash_points(mortal.hook());
    let settings = Settings { install_crds: false, ..Settings::for_tests(env) };
    foobar_operator::operator().start(mortal.client(cluster), settings).await.unwrap()
}

/// The life of a FooBar under an operator that dies after so many writes, and one that does not; what the world was when
/// it came to rest, each time.
async fn life(base: &TestCluster, writes: usize) -> (Vec<Value>, usize) {
    let world = World::of(base.fork());
    let before = world.writes().len();
    let first = Mortal::after(writes);
    let mut running = start(&first, &world.cluster).await;
    let mut seen = Vec::new();
    let mut dead = false;
    for stage in ["create", "edit", "delete"] {
        match stage {
            "create" => world.create("one", "example.com").await,
            "edit" => world.apply("one", json!({"target": "example.org"})).await,
            _ => world.delete("one").await,
        }
        let rest = async || match stage {
            "delete" => world.until("it is gone", async || world.is_gone("one").await).await,
            _ => world.until_done("one").await,
        };
        tokio::select! {
            biased;
            () = first.dead(), if !dead => {
                // As a crash: nothing is told to stop, nothing is waited for.
                drop(running);
                dead = true;
                running = start(&Mortal::never(), &world.cluster).await;
                rest().await;
            }
            () = rest() => {}
        }
        seen.push(world.objects());
    }
    drop(running);
    assert_eq!(dead, writes != usize::MAX, "it dies when it should");
    let own = world.writes().len() - before - 3;
    (seen, own)
}

#[tokio::test(start_paused = true)]
async fn whichever_write_was_its_last() {
    let base = TestCluster::new().await;
    let settings = Settings::for_tests(Env::system());
    foobar_operator::operator().start(base.client(), settings).await.unwrap().stop().await.unwrap();
    let (expected, writes) = life(&base, usize::MAX).await;
    assert_eq!(expected.len(), 3);
    assert_eq!(expected[2], json!({"foobars": [], "maps": []}), "nothing is left");
    assert!(writes >= 8, "a life takes {writes} writes");
    for last in 1..=writes {
        let (seen, _) = life(&base, last).await;
        assert_eq!(seen, expected, "the operator died after its write {last} of {writes}");
    }
}
