//! `cargo bench -p windlass-core`: rounds of add, take and done on one core, beside the plainest queue that
//! de-duplicates (a list, a set of what is dirty, a set of what is running: no causes, priorities, timers or limits).
//!
//! The plain one is there so that a number means something on another machine.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a measurement reads the clock")]

use std::collections::{HashSet, VecDeque};
use std::hint::black_box;
use std::time::{Duration, Instant};

use windlass_core::queue::{Config, Verdict, Wake};
use windlass_core::{Cause, Moment, ObjectKey, Queue};

const ROUNDS: u32 = 1_000_000;
const REPEATS: usize = 5;

fn main() {
    println!("millions of rounds per second, the median of {REPEATS} (best)");
    println!(
        "| keys | plain, woken one by one | woken one by one | all ready | always again | always failing |"
    );
    println!("|---|---|---|---|---|---|");
    for keys in [1_000, 10_000, 100_000] {
        let keys =
            (0..keys).map(|i| ObjectKey::namespaced("default", &format!("foobar-{i}"))).collect::<Vec<_>>();
        let figures =
            [plain, one_by_one, all_ready, always_again, always_failing].map(|run| rate(run, &keys));
        println!("| {} | {} |", keys.len(), figures.join(" | "));
    }
}

fn rate(run: fn(&[ObjectKey]) -> Duration, keys: &[ObjectKey]) -> String {
    let mut rates =
        (0..REPEATS).map(|_| f64::from(ROUNDS) / run(keys).as_secs_f64() / 1e6).collect::<Vec<_>>();
    rates.sort_by(f64::total_cmp);
    format!("{:.2} ({:.2})", rates[REPEATS / 2], rates[REPEATS - 1])
}

/// A key is woken, taken and done, then the next one.
fn one_by_one(keys: &[ObjectKey]) -> Duration {
    let mut queue = Queue::new(Config::default());
    rounds(keys, |now, key| {
        queue.add(now, key, changed(key, now));
        let taken = queue.take(now).expect("a key is ready");
        queue.done(now, &taken.key, Verdict::Settled, 0);
        black_box(taken);
    })
}

/// All keys are ready; the one that is done is woken again.
fn all_ready(keys: &[ObjectKey]) -> Duration {
    let mut queue = full(keys);
    rounds(keys, |now, _| {
        let taken = queue.take(now).expect("a key is ready");
        queue.done(now, &taken.key, Verdict::Settled, 0);
        queue.add(now, &taken.key, changed(&taken.key, now));
        black_box(taken);
    })
}

/// All keys are ready, and every pass asks for another one.
fn always_again(keys: &[ObjectKey]) -> Duration {
    let mut queue = full(keys);
    rounds(keys, |now, _| {
        let taken = queue.take(now).expect("a key is ready");
        queue.done(now, &taken.key, Verdict::Again, 0);
        black_box(taken);
    })
}

/// Every pass fails, and there is a key whose backoff is over.
fn always_failing(keys: &[ObjectKey]) -> Duration {
    let mut queue = full(keys);
    let mut now = Moment::START;
    rounds(keys, |_, _| {
        let taken = queue.take(now).unwrap_or_else(|| {
            now = queue.next(now).expect("a key waits");
            queue.take(now).expect("a key is due")
        });
        queue.done(now, &taken.key, Verdict::Retry { generation: Some(1) }, u64::from(taken.attempt));
        black_box(taken);
    })
}

/// What client-go's first queue was made of.
fn plain(keys: &[ObjectKey]) -> Duration {
    let (mut list, mut dirty, mut running) = (VecDeque::new(), HashSet::new(), HashSet::new());
    rounds(keys, |now, key| {
        black_box(changed(key, now));
        if dirty.insert(key.clone()) && !running.contains(key) {
            list.push_back(key.clone());
        }
        let taken: ObjectKey = list.pop_front().expect("a key is ready");
        running.insert(taken.clone());
        dirty.remove(&taken);
        running.remove(&taken);
        if dirty.contains(&taken) {
            list.push_back(taken.clone());
        }
        black_box(taken);
    })
}

fn full(keys: &[ObjectKey]) -> Queue<ObjectKey> {
    let mut queue = Queue::new(Config::default());
    for key in keys {
        queue.add(Moment::START, key, changed(key, Moment::START));
    }
    queue
}

fn changed(key: &ObjectKey, now: Moment) -> Wake {
    thread_local!(static KIND: std::sync::Arc<str> = "FooBar.test.example.com".into());
    let version = u64::from(now.since_start().subsec_nanos());
    Wake::new(Cause::Changed { kind: KIND.with(Clone::clone), object: key.clone(), version })
}

/// Times the rounds; each is a nanosecond later for the queue.
fn rounds(keys: &[ObjectKey], mut round: impl FnMut(Moment, &ObjectKey)) -> Duration {
    let start = Instant::now();
    for (i, key) in (0..ROUNDS).zip(keys.iter().cycle()) {
        round(Moment::after_start(Duration::from_nanos(u64::from(i))), key);
    }
    start.elapsed()
}
