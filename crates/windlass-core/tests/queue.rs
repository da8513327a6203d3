//! What the queue promises, one story each.

use std::time::Duration;

use windlass_core::queue::{Bucket, Causes, Config, Priority, Taken, Verdict, Wake};
use windlass_core::{Cause, Moment, ObjectKey, Queue};

const RETRY: Verdict = Verdict::Retry { generation: Some(1) };
const TERMINAL: Verdict = Verdict::Terminal { generation: Some(1) };

fn at(millis: u64) -> Moment {
    Moment::after_start(Duration::from_millis(millis))
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn queue() -> Queue<&'static str> {
    Queue::new(Config::default())
}

/// The object's own event.
fn changed(version: u64, generation: i64) -> Wake {
    Wake { generation: Some(generation), ..child(version) }
}

/// The event of another object, which leads to this one.
fn child(version: u64) -> Wake {
    Wake::new(cause(version))
}

fn cause(version: u64) -> Cause {
    Cause::Changed { kind: "ConfigMap".into(), object: ObjectKey::namespaced("default", "one"), version }
}

fn keys(queue: &mut Queue<&'static str>, now: Moment) -> Vec<&'static str> {
    std::iter::from_fn(|| queue.take(now)).map(|taken| taken.key).collect()
}

/// Takes the only key that can be taken.
fn take(queue: &mut Queue<&'static str>, now: Moment) -> Taken<&'static str> {
    let taken = queue.take(now).expect("a key is ready");
    assert_eq!(queue.take(now), None);
    taken
}

#[test]
fn wake_ups_of_a_key_become_one() {
    let mut queue = queue();
    queue.add(at(0), &"a", Wake { priority: Priority::INITIAL, ..Wake::new(Cause::Initial) });
    queue.add(at(1), &"a", child(7));
    queue.add(at(2), &"a", child(7));
    let taken = take(&mut queue, at(10));
    assert_eq!(taken.causes, Causes { first: vec![Cause::Initial, cause(7)], more: 0 });
    assert_eq!((taken.priority, taken.attempt, taken.waited), (Priority::NORMAL, 1, millis(10)));
    assert_eq!(taken.causes.to_string(), "initial list, ConfigMap default/one changed at 7");
}

#[test]
fn causes_are_bounded() {
    let mut queue = queue();
    for version in 0..100 {
        queue.add(at(0), &"a", child(version));
    }
    let taken = take(&mut queue, at(0));
    assert_eq!(taken.causes, Causes { first: (0..8).map(cause).collect(), more: 92 });
    assert!(taken.causes.to_string().ends_with("changed at 7 and 92 more"), "{}", taken.causes);
}

#[test]
fn a_key_that_is_woken_while_it_runs_runs_again_after() {
    let mut queue = queue();
    queue.add(at(0), &"a", child(1));
    take(&mut queue, at(0));
    queue.add(at(5), &"a", child(2));
    assert_eq!(queue.take(at(5)), None);
    assert_eq!(queue.done(at(8), &"a", Verdict::Settled, 0), Some(millis(8)));
    let taken = take(&mut queue, at(9));
    assert_eq!((taken.causes.first, taken.waited), (vec![cause(2)], millis(1)));
    assert_eq!(queue.done(at(9), &"a", Verdict::Settled, 0), Some(Duration::ZERO));
    assert_eq!(queue.done(at(9), &"a", Verdict::Settled, 0), None);
    assert_eq!(queue.take(at(9)), None);
}

#[test]
fn the_higher_priority_goes_first_and_the_oldest_every_second_turn() {
    let mut queue = queue();
    for key in ["a", "b", "c"] {
        queue.add(at(0), &key, Wake { priority: Priority::INITIAL, ..Wake::new(Cause::Initial) });
    }
    for key in ["x", "y", "z"] {
        queue.add(at(1), &key, child(1));
    }
    assert_eq!(keys(&mut queue, at(1)), ["x", "a", "y", "b", "z", "c"]);
}

#[test]
fn a_delayed_key_comes_in_its_time() {
    let mut queue = queue();
    queue.add(at(0), &"late", Wake { delay: millis(20), ..child(1) });
    queue.add(at(0), &"early", Wake { delay: millis(10), ..child(1) });
    assert_eq!((queue.take(at(9)), queue.next(at(9))), (None, Some(at(10))));
    queue.add(at(15), &"now", child(1));
    // A key that came due before another was added is before it.
    assert_eq!(keys(&mut queue, at(30)), ["early", "now", "late"]);
    assert_eq!(queue.next(at(30)), None);
}

#[test]
fn the_earlier_of_two_delays_counts() {
    let mut queue = queue();
    queue.add(at(0), &"a", Wake { delay: millis(10), ..child(1) });
    queue.add(at(0), &"a", Wake { delay: millis(50), ..child(2) });
    assert_eq!(queue.next(at(0)), Some(at(10)));
    queue.add(at(1), &"a", Wake { delay: millis(5), ..child(3) });
    assert_eq!(queue.next(at(1)), Some(at(6)));
    assert_eq!(take(&mut queue, at(6)).causes.first, [cause(1), cause(2), cause(3)]);
}

#[test]
fn an_event_comes_before_a_timer_and_the_next_pass_says_anew() {
    let mut queue = queue();
    queue.add(at(0), &"a", Wake { priority: Priority::INITIAL, ..child(1) });
    take(&mut queue, at(0));
    queue.done(at(0), &"a", Verdict::After(millis(100)), 0);
    queue.add(at(50), &"a", child(2));
    let taken = take(&mut queue, at(50));
    assert_eq!(taken.causes.first, [cause(2)]);
    queue.done(at(50), &"a", Verdict::After(millis(100)), 0);
    assert_eq!((queue.take(at(149)), queue.next(at(149))), (None, Some(at(150))));
    let taken = take(&mut queue, at(150));
    assert_eq!((taken.causes.first, taken.priority), (vec![Cause::Timer], Priority::NORMAL));
    queue.done(at(150), &"a", Verdict::Settled, 0);
    assert_eq!(queue.next(at(150)), None);
}

#[test]
fn again_is_behind_the_others_of_its_priority() {
    let mut queue = queue();
    for key in ["a", "b"] {
        queue.add(at(0), &key, Wake { priority: Priority::INITIAL, ..child(1) });
    }
    assert_eq!(queue.take(at(0)).unwrap().key, "a");
    queue.done(at(0), &"a", Verdict::Again, 0);
    assert_eq!(queue.take(at(0)).unwrap().key, "b");
    let taken = take(&mut queue, at(0));
    assert_eq!((taken.key, taken.priority), ("a", Priority::INITIAL));
    assert_eq!(taken.causes.first, [Cause::Again]);
}

#[test]
fn failures_wait_longer_each_time_until_one_pass_succeeds() {
    let mut queue = queue();
    queue.add(at(0), &"a", changed(1, 1));
    let mut now = at(0);
    for (attempt, wait) in [(1, 5), (2, 10), (3, 20)] {
        assert_eq!(take(&mut queue, now).attempt, attempt);
        queue.done(now, &"a", RETRY, 0);
        assert_eq!(queue.next(now), Some(now + millis(wait)));
        now = now + millis(wait);
    }
    let taken = take(&mut queue, now);
    assert_eq!((taken.attempt, taken.causes.first), (4, vec![Cause::Retry]));
    queue.done(now, &"a", Verdict::Settled, 0);
    queue.add(now, &"a", changed(2, 1));
    assert_eq!(take(&mut queue, now).attempt, 1);
    assert_eq!(queue.figures(now).retries, 3);
}

/// A queue whose only key has failed at 0 and waits until 5 ms.
fn failed() -> Queue<&'static str> {
    let mut queue = queue();
    queue.add(at(0), &"a", changed(1, 1));
    take(&mut queue, at(0));
    queue.done(at(0), &"a", RETRY, 0);
    queue
}

#[test]
fn an_event_does_not_cut_a_backoff_short() {
    let mut queue = failed();
    queue.add(at(1), &"a", child(2));
    queue.add(at(2), &"a", changed(3, 1));
    assert_eq!((queue.take(at(4)), queue.next(at(4))), (None, Some(at(5))));
    let taken = take(&mut queue, at(5));
    assert_eq!(taken.causes.first, [Cause::Retry, cause(2), cause(3)]);
    assert_eq!(taken.attempt, 2);
}

#[test]
fn an_event_that_came_while_the_pass_failed_does_not_either() {
    let mut queue = queue();
    queue.add(at(0), &"a", changed(1, 1));
    take(&mut queue, at(0));
    queue.add(at(0), &"a", changed(2, 1));
    queue.done(at(0), &"a", RETRY, 0);
    assert_eq!((queue.take(at(4)), queue.next(at(4))), (None, Some(at(5))));
    assert_eq!(take(&mut queue, at(5)).causes.first, [cause(2), Cause::Retry]);
}

#[test]
fn another_generation_ends_a_backoff_and_begins_anew() {
    let mut queue = failed();
    queue.add(at(1), &"a", changed(2, 2));
    let taken = take(&mut queue, at(1));
    assert_eq!((taken.attempt, taken.causes.first), (1, vec![cause(2)]));
    // A spec that was changed while the old one failed.
    queue.add(at(1), &"a", changed(3, 3));
    queue.done(at(2), &"a", Verdict::Retry { generation: Some(2) }, 0);
    assert_eq!(take(&mut queue, at(2)).attempt, 1);
}

#[test]
fn the_pass_may_have_seen_a_later_generation_than_the_event_that_woke_it() {
    let mut queue = queue();
    queue.add(at(0), &"a", changed(1, 1));
    take(&mut queue, at(0));
    queue.add(at(0), &"a", changed(2, 2));
    queue.add(at(0), &"a", changed(3, 3));
    queue.done(at(0), &"a", Verdict::Retry { generation: Some(3) }, 0);
    assert_eq!(queue.next(at(0)), Some(at(5)));
}

#[test]
fn something_urgent_ends_a_backoff_but_not_the_count() {
    let mut queue = failed();
    queue.add(at(1), &"a", Wake { urgent: true, ..Wake::new(Cause::Requested) });
    let taken = take(&mut queue, at(1));
    assert_eq!((taken.attempt, taken.causes.first), (2, vec![Cause::Requested]));
    queue.done(at(1), &"a", RETRY, 0);
    assert_eq!(queue.next(at(1)), Some(at(11)));
}

#[test]
fn a_terminal_key_waits_for_another_generation_or_for_something_urgent() {
    for (wake, runs) in [
        (child(2), false),
        (changed(2, 1), false),
        (changed(2, 2), true),
        (Wake { urgent: true, ..Wake::new(Cause::Requested) }, true),
    ] {
        let mut queue = queue();
        queue.add(at(0), &"a", changed(1, 1));
        take(&mut queue, at(0));
        queue.done(at(0), &"a", TERMINAL, 0);
        assert_eq!((queue.next(at(0)), queue.figures(at(0)).parked), (None, 1));
        queue.add(at(1), &"a", wake.clone());
        assert_eq!(queue.take(at(1)).is_some(), runs, "{wake:?}");
    }
}

#[test]
fn what_is_forgotten_begins_anew() {
    for verdict in [RETRY, TERMINAL, Verdict::After(millis(10))] {
        let mut queue = queue();
        queue.add(at(0), &"a", changed(1, 1));
        take(&mut queue, at(0));
        queue.done(at(0), &"a", verdict, 0);
        queue.forget(&"a");
        let figures = queue.figures(at(0));
        assert_eq!((figures.waiting, figures.parked, queue.next(at(0))), (0, 0, None));
        // Another object of that name, whose generation is 1 as well.
        queue.add(at(1), &"a", changed(2, 1));
        assert_eq!(take(&mut queue, at(1)).attempt, 1);
    }
}

#[test]
fn a_key_that_is_forgotten_while_it_runs_does_not_come_back_by_itself() {
    for verdict in [RETRY, TERMINAL, Verdict::Again, Verdict::After(millis(10)), Verdict::Settled] {
        let mut queue = queue();
        queue.add(at(0), &"a", changed(1, 1));
        take(&mut queue, at(0));
        queue.add(at(0), &"a", changed(2, 1));
        queue.forget(&"a");
        queue.done(at(1), &"a", verdict, 0);
        let figures = queue.figures(at(1));
        assert_eq!((queue.take(at(1)), figures.waiting, figures.parked), (None, 0, 0), "{verdict:?}");

        // It fails once, is deleted during the retry, and another object of that name comes.
        queue.add(at(2), &"a", changed(3, 1));
        take(&mut queue, at(2));
        queue.done(at(2), &"a", RETRY, 0);
        assert_eq!(take(&mut queue, at(7)).attempt, 2);
        queue.forget(&"a");
        queue.add(at(7), &"a", changed(4, 1));
        queue.done(at(8), &"a", verdict, 0);
        let taken = take(&mut queue, at(8));
        assert_eq!((taken.causes.first, taken.attempt), (vec![cause(4)], 1), "{verdict:?}");
    }
}

#[test]
fn an_echo_is_taken_back() {
    let mut queue = queue();
    let is_echo = |echo: &Cause| *echo == cause(2);
    // While it waits for its turn.
    queue.add(at(0), &"a", child(2));
    queue.disown(at(0), &"a", is_echo);
    assert_eq!(queue.take(at(0)), None);
    // While it runs.
    queue.add(at(0), &"a", child(1));
    take(&mut queue, at(0));
    queue.add(at(0), &"a", child(2));
    queue.disown(at(0), &"a", is_echo);
    queue.done(at(0), &"a", Verdict::Settled, 0);
    assert_eq!(queue.take(at(0)), None);
    let figures = queue.figures(at(0));
    assert_eq!((figures.waiting, figures.running, figures.parked), (0, 0, 0));
}

#[test]
fn an_echo_takes_nothing_else_with_it() {
    let is_echo = |echo: &Cause| *echo == cause(2);
    // Another wake-up, with its own priority.
    let mut queue = queue();
    queue.add(at(0), &"a", Wake { priority: Priority::INITIAL, ..child(1) });
    queue.add(at(0), &"a", child(2));
    queue.disown(at(0), &"a", is_echo);
    let taken = take(&mut queue, at(0));
    assert_eq!((taken.causes.first, taken.priority), (vec![cause(1)], Priority::INITIAL));
    // A timer.
    queue.done(at(0), &"a", Verdict::After(millis(10)), 0);
    queue.add(at(1), &"a", child(2));
    queue.disown(at(1), &"a", is_echo);
    assert_eq!((queue.take(at(1)), queue.next(at(1))), (None, Some(at(10))));
    // A retry.
    take(&mut queue, at(10));
    queue.done(at(10), &"a", RETRY, 0);
    queue.add(at(11), &"a", Wake { generation: Some(2), ..child(2) });
    queue.disown(at(11), &"a", is_echo);
    assert_eq!((queue.take(at(11)), queue.next(at(11))), (None, Some(at(15))));
    queue.forget(&"a");
    // What was only counted.
    for version in 10..19 {
        queue.add(at(20), &"a", child(version));
    }
    queue.disown(at(20), &"a", |_| true);
    assert_eq!(take(&mut queue, at(20)).causes, Causes { first: vec![], more: 1 });
}

#[test]
fn a_bucket_spreads_what_is_given_out() {
    let bucket = Some(Bucket::per_second(100.0, 2));
    let mut queue = Queue::new(Config { bucket, ..Config::default() });
    for key in ["a", "b", "c", "d"] {
        queue.add(at(0), &key, child(1));
    }
    assert_eq!(keys(&mut queue, at(0)), ["a", "b"]);
    assert_eq!(queue.next(at(0)), Some(at(10)));
    assert_eq!(keys(&mut queue, at(10)), ["c"]);
    assert_eq!(keys(&mut queue, at(20)), ["d"]);
    queue.add(at(21), &"e", Wake { delay: millis(1), ..child(1) });
    assert_eq!(queue.next(at(21)), Some(at(30)));
}

#[test]
fn figures_follow() {
    let mut queue = queue();
    queue.add(at(0), &"a", child(1));
    queue.add(at(0), &"b", Wake { priority: Priority::INITIAL, ..child(1) });
    queue.add(at(0), &"c", Wake { priority: Priority::INITIAL, ..child(1) });
    queue.add(at(0), &"d", Wake { delay: millis(100), ..child(1) });
    queue.take(at(0));
    queue.take(at(10));
    let figures = queue.figures(at(30));
    assert_eq!(figures.depth, [(Priority::INITIAL, 1)]);
    assert_eq!((figures.waiting, figures.running, figures.parked), (1, 2, 0));
    assert_eq!((figures.unfinished, figures.longest), (millis(50), millis(30)));
    assert_eq!((figures.adds, figures.retries), (3, 0));
    // The numbers are of the moment that is asked for.
    assert_eq!(queue.figures(at(100)).depth, [(Priority::NORMAL, 1), (Priority::INITIAL, 1)]);
}
