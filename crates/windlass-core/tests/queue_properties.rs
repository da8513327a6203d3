//! What holds for the queue whatever is done to it, against a model that orders nothing and searches.

mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;
use windlass_core::queue::{Config, Priority, Verdict, Wake};
use windlass_core::{Cause, Moment, Queue};

use crate::model::{Model, Step, child, steps};

const NOW: Moment = Moment::START;

fn millis(millis: u64) -> Moment {
    Moment::after_start(Duration::from_millis(millis))
}

fn every(turns: u32) -> Config {
    Config { oldest_every: NonZeroU32::new(turns).unwrap(), ..Config::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nothing is given out that should not be, nothing is held back that should not be, and in the end nothing is
    /// lost: the queue does what the model does.
    #[test]
    fn the_queue_does_what_the_model_does(steps in steps(60)) {
        let mut queue = Queue::new(Config::default());
        let mut model = Model::default();
        let mut now = NOW;
        for step in steps {
            match step {
                Step::Pass(time) => now = now + time,
                Step::Add(key, wake) => {
                    queue.add(now, &key, wake.clone());
                    model.add(now, key, wake);
                }
                Step::Take => {
                    let taken = queue.take(now);
                    prop_assert_eq!(taken.is_some(), model.runnable(now).next().is_some());
                    if let Some(taken) = taken {
                        prop_assert!(model.runnable(now).any(|key| key == taken.key), "{} may not run", taken.key);
                        let expected = model.take(now, taken.key);
                        let causes = taken.causes.first;
                        prop_assert_eq!((causes, taken.attempt, taken.priority), expected);
                    }
                }
                Step::Done(verdict) => {
                    let Some(key) = model.running().next() else { continue };
                    prop_assert!(queue.done(now, &key, verdict, 0).is_some());
                    model.done(now, key, verdict);
                }
                Step::Disown(key, version) => {
                    let is_echo = |cause: &Cause| *cause == child(version);
                    queue.disown(now, &key, is_echo);
                    model.disown(key, is_echo);
                }
                Step::Forget(key) => {
                    queue.forget(&key);
                    model.forget(key);
                }
            }
            let figures = queue.figures(now);
            let ready = figures.depth.iter().map(|(_, count)| count).sum::<usize>();
            prop_assert_eq!(ready, model.runnable(now).count());
            prop_assert_eq!(figures.running, model.running().count());
            prop_assert_eq!(queue.next(now), model.next(now));
            prop_assert_eq!((figures.waiting, figures.parked), model.waiting_and_parked(now));
        }
    }

    /// Keys are given out in their order: the same as by searching a list.
    #[test]
    fn keys_come_by_priority_and_inside_of_it_in_order(
        adds in prop::collection::vec((0u8..30, -2i32..3), 1..60),
        turns in 1u32..5,
    ) {
        let mut queue = Queue::new(every(turns));
        // The key, its priority, its age.
        let mut list: Vec<(u8, i32, usize)> = Vec::new();
        for (age, (key, priority)) in adds.into_iter().enumerate() {
            queue.add(NOW, &key, Wake { priority: Priority(priority), ..Wake::new(Cause::Initial) });
            match list.iter().position(|(known, _, _)| *known == key) {
                None => list.push((key, priority, age)),
                Some(at) if list[at].1 < priority => {
                    let (_, _, age) = list.remove(at);
                    list.push((key, priority, age));
                }
                Some(_) => {}
            }
        }
        for turn in 1.. {
            let by_age = list.iter().min_by_key(|(_, _, age)| *age);
            let by_rank = list.iter().max_by_key(|(_, priority, _)| *priority);
            let chosen = if turn % turns == 0 { by_age } else { by_rank }.map(|(_, priority, _)| *priority);
            let at = list.iter().position(|(_, priority, _)| Some(*priority) == chosen);
            let expected = at.map(|at| list.remove(at).0);
            prop_assert_eq!(queue.take(NOW).map(|taken| taken.key), expected);
            if expected.is_none() {
                break;
            }
        }
    }

    /// Keys that always want another turn, of any priorities, while others of the highest priority keep coming: each of
    /// them runs within the turns that it is promised.
    #[test]
    fn nothing_starves(priorities in prop::collection::vec(-3i32..4, 1..100), turns in 1u32..4) {
        let mut queue = Queue::new(every(turns));
        for (key, priority) in priorities.iter().enumerate() {
            queue.add(NOW, &key, Wake { priority: Priority(*priority), ..Wake::new(Cause::Initial) });
        }
        let mut ran = BTreeSet::new();
        for turn in 0..priorities.len() * turns as usize {
            let stranger = 1000 + turn;
            queue.add(NOW, &stranger, Wake { priority: Priority(10), ..Wake::new(Cause::Initial) });
            let taken = queue.take(NOW).unwrap();
            ran.insert(taken.key);
            let verdict = if taken.key < 1000 { Verdict::Again } else { Verdict::Settled };
            queue.done(NOW, &taken.key, verdict, 0);
        }
        prop_assert_eq!(ran.range(..1000).count(), priorities.len());
    }

    /// Whatever happens to a key that failed, short of another generation or something urgent, it runs when its wait is
    /// over, not earlier and not later, and knows of all that happened.
    #[test]
    fn events_do_not_cut_a_backoff_short(
        events in prop::collection::vec((0u64..20, 0u64..6, prop::option::of(Just(1i64))), 0..10),
        failures in 1u32..6,
        random: u64,
    ) {
        let mut queue = Queue::new(Config::default());
        let mut now = NOW;
        queue.add(now, &0, Wake::new(Cause::Initial));
        for _ in 0..failures {
            now = queue.next(now).unwrap_or(now);
            queue.take(now).unwrap();
            queue.done(now, &0, Verdict::Retry { generation: Some(1) }, random);
        }
        let until = now + Config::default().backoff.wait(failures, random);
        let mut expected = BTreeSet::from(["retry".to_owned()]);
        for (after, version, generation) in events {
            now = now + Duration::from_micros(after * 100);
            if now >= until {
                break;
            }
            queue.add(now, &0, Wake { generation, ..Wake::new(child(version)) });
            expected.insert(child(version).to_string());
            prop_assert_eq!(queue.take(now), None);
            prop_assert_eq!(queue.next(now), Some(until));
        }
        let taken = queue.take(until).unwrap();
        prop_assert_eq!(taken.attempt, failures + 1);
        let causes = taken.causes.first.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        prop_assert_eq!(causes, expected);
    }

    /// Own and foreign wake-ups in any number, before and during a pass; all own ones are taken back at any time: the
    /// key runs if there was a foreign one, and only then.
    #[test]
    fn taking_back_echoes_loses_no_foreign_wake_up(
        wakes in prop::collection::vec((prop::bool::weighted(0.85), 0u64..40, 0u64..3), 0..20),
        disown_at in prop::collection::vec(0usize..20, 0..4),
        running: bool,
    ) {
        let mut queue = Queue::new(Config::default());
        if running {
            queue.add(NOW, &0, Wake::new(Cause::Initial));
            queue.take(NOW).unwrap();
        }
        let is_own = |cause: &Cause| matches!(cause, Cause::Changed { version, .. } if version % 2 == 0);
        let (mut foreign, mut all) = (BTreeSet::new(), BTreeSet::new());
        for (at, (own, version, delay)) in wakes.iter().enumerate() {
            let version = version * 2 + u64::from(!own);
            let delay = Duration::from_millis(*delay);
            queue.add(NOW, &0, Wake { delay, ..Wake::new(child(version)) });
            all.insert(version);
            if !own {
                foreign.insert(version);
            }
            if disown_at.contains(&at) {
                queue.disown(NOW, &0, is_own);
            }
        }
        queue.disown(NOW, &0, is_own);
        if running {
            queue.done(NOW, &0, Verdict::Settled, 0);
        }
        let taken = queue.take(millis(10));
        if !foreign.is_empty() {
            prop_assert!(taken.is_some());
        }
        // Where more wake-ups came than are kept, some echoes are only counted, and one turn too many is the price.
        if all.len() <= 8 {
            let causes = taken.map(|taken| taken.causes.first).unwrap_or_default();
            prop_assert!(causes.iter().all(|cause| !is_own(cause)));
            prop_assert_eq!(causes.len(), foreign.len());
        }
    }
}

/// The measure that kube's own controller fails: 200 keys, one worker, and each pass asks for another.
#[test]
fn two_hundred_keys_that_always_requeue_all_run_within_four_hundred_turns() {
    let mut queue = Queue::new(Config::default());
    for key in 0..200 {
        let priority = if key % 3 == 0 { Priority::NORMAL } else { Priority::INITIAL };
        queue.add(NOW, &key, Wake { priority, ..Wake::new(Cause::Initial) });
    }
    let mut runs = BTreeMap::new();
    for _ in 0..400 {
        let taken = queue.take(NOW).unwrap();
        *runs.entry(taken.key).or_insert(0) += 1;
        queue.done(NOW, &taken.key, Verdict::Again, 0);
    }
    assert_eq!(runs.len(), 200);
}

/// At every turn there is another event of normal priority, more than the worker can do.
#[test]
fn the_initial_list_finishes_under_a_steady_stream_of_events() {
    let mut queue = Queue::new(Config::default());
    for key in 0..1000 {
        queue.add(NOW, &key, Wake { priority: Priority::INITIAL, ..Wake::new(Cause::Initial) });
    }
    let (mut initial, mut events) = (0, 0);
    for turn in 0..2000 {
        let now = millis(turn * 10);
        queue.add(now, &(1000 + turn), Wake::new(Cause::Requested));
        let taken = queue.take(now).unwrap();
        *if taken.key < 1000 { &mut initial } else { &mut events } += 1;
        queue.done(now, &taken.key, Verdict::Settled, 0);
    }
    assert_eq!((initial, events), (1000, 1000));
}
