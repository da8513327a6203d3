//! The queue as one would explain it: every cause is kept as it came, and every question searches them all.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use windlass_core::queue::{Backoff, Priority, Verdict, Wake};
use windlass_core::{Cause, Moment, ObjectKey};

/// Something that is done to the queue.
#[derive(Clone, Debug)]
pub enum Step {
    Pass(Duration),
    Add(u8, Wake),
    Take,
    Done(Verdict),
    Disown(u8, u64),
    Forget(u8),
}

/// The cause of a wake-up by another object.
pub fn child(version: u64) -> Cause {
    Cause::Changed { kind: "ConfigMap".into(), object: ObjectKey::cluster("child"), version }
}

pub fn steps(count: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0u64..8).prop_map(|millis| Step::Pass(Duration::from_millis(millis))),
        6 => (0u8..4, wake()).prop_map(|(key, wake)| Step::Add(key, wake)),
        5 => Just(Step::Take),
        4 => verdict().prop_map(Step::Done),
        1 => (0u8..4, 0u64..5).prop_map(|(key, version)| Step::Disown(key, version)),
        1 => (0u8..4).prop_map(Step::Forget),
    ];
    prop::collection::vec(step, 1..count)
}

/// A cause says whether it is urgent, and of which generation it tells. With those of the queue itself there are no more
/// causes than it keeps.
fn wake() -> impl Strategy<Value = Wake> {
    let delay = prop_oneof![3 => Just(0u64), 1 => 1u64..10];
    let cause = prop_oneof![
        4 => (0u64..2).prop_map(|version| (child(version), None)),
        2 => (2u64..4).prop_map(|version| (child(version), Some(version as i64 - 1))),
        1 => Just((Cause::Requested, None)),
    ];
    (cause, -1i32..2, delay).prop_map(|((cause, generation), priority, delay)| Wake {
        urgent: cause == Cause::Requested,
        cause,
        priority: Priority(priority),
        delay: Duration::from_millis(delay),
        generation,
    })
}

fn verdict() -> impl Strategy<Value = Verdict> {
    let generation = || prop::option::weighted(0.9, 1i64..3);
    prop_oneof![
        3 => Just(Verdict::Settled),
        1 => Just(Verdict::Again),
        2 => (0u64..20).prop_map(|millis| Verdict::After(Duration::from_millis(millis))),
        3 => generation().prop_map(|generation| Verdict::Retry { generation }),
        1 => generation().prop_map(|generation| Verdict::Terminal { generation }),
    ]
}

/// All keys that were ever woken.
#[derive(Default)]
pub struct Model(BTreeMap<u8, Key>);

#[derive(Default)]
struct Key {
    /// With the moment from which on it counts.
    wakes: Vec<(Moment, Wake)>,
    /// The priority of the pass that is under way.
    running: Option<Priority>,
    forgotten: bool,
    /// The generation that failed, and until when that holds the key back.
    held: Option<(Option<i64>, Option<Moment>)>,
    failures: u32,
}

impl Model {
    pub fn add(&mut self, now: Moment, key: u8, wake: Wake) {
        let wakes = &mut self.0.entry(key).or_default().wakes;
        match wakes.iter_mut().find(|(_, known)| known.cause == wake.cause) {
            Some((due, known)) => {
                *due = (*due).min(now + wake.delay);
                known.priority = known.priority.max(wake.priority);
            }
            None => wakes.push((now + wake.delay, wake)),
        }
    }

    pub fn take(&mut self, now: Moment, key: u8) -> (Vec<Cause>, u32, Priority) {
        let key = self.0.get_mut(&key).expect("a key that was woken");
        if let Some((failed, _)) = key.held.take()
            && key.generation().is_some_and(|generation| Some(generation) != failed)
        {
            key.failures = 0;
        }
        let wakes = std::mem::take(&mut key.wakes);
        let priority = wakes.iter().map(|(_, wake)| wake.priority).max().expect("a reason to run");
        let is_cause = |due, cause: &Cause| due <= now || !matches!(cause, Cause::Timer | Cause::Retry);
        let causes = wakes.into_iter().filter(|(due, wake)| is_cause(*due, &wake.cause));
        let causes = causes.map(|(_, wake)| wake.cause).collect();
        key.running = Some(priority);
        (causes, key.failures + 1, priority)
    }

    pub fn done(&mut self, now: Moment, key: u8, verdict: Verdict) {
        let key = self.0.get_mut(&key).expect("a key that was taken");
        let priority = key.running.take().expect("a key that is running");
        if std::mem::take(&mut key.forgotten) {
            return;
        }
        let own = |cause, priority| Wake { priority, ..Wake::new(cause) };
        let failures = std::mem::take(&mut key.failures);
        match verdict {
            Verdict::Settled => {}
            Verdict::Again => key.wakes.push((now, own(Cause::Again, priority))),
            Verdict::After(delay) => key.wakes.push((now + delay, own(Cause::Timer, Priority::NORMAL))),
            Verdict::Retry { generation } => {
                key.failures = failures + 1;
                let until = now + Backoff::default().wait(key.failures, 0);
                key.wakes.push((until, own(Cause::Retry, priority)));
                key.held = Some((generation, Some(until)));
            }
            Verdict::Terminal { generation } => key.held = Some((generation, None)),
        }
    }

    pub fn disown(&mut self, key: u8, is_echo: impl Fn(&Cause) -> bool) {
        if let Some(key) = self.0.get_mut(&key) {
            key.wakes.retain(|(_, wake)| !is_echo(&wake.cause));
        }
    }

    pub fn forget(&mut self, key: u8) {
        if let Some(key) = self.0.get_mut(&key) {
            *key = Key { running: key.running, forgotten: key.running.is_some(), ..Key::default() };
        }
    }

    pub fn running(&self) -> impl Iterator<Item = u8> {
        self.0.iter().filter(|(_, key)| key.running.is_some()).map(|(name, _)| *name)
    }

    pub fn runnable(&self, now: Moment) -> impl Iterator<Item = u8> {
        let is_due = move |key: &Key| key.running.is_none() && key.due().is_some_and(|due| due <= now);
        self.0.iter().filter(move |(_, key)| is_due(key)).map(|(name, _)| *name)
    }

    pub fn next(&self, now: Moment) -> Option<Moment> {
        let idle = self.0.values().filter(|key| key.running.is_none());
        idle.filter_map(Key::due).filter(|due| *due > now).min()
    }

    pub fn waiting_and_parked(&self, now: Moment) -> (usize, usize) {
        let idle = || self.0.values().filter(|key| key.running.is_none());
        let waiting = idle().filter(|key| key.due().is_some_and(|due| due > now)).count();
        (waiting, idle().filter(|key| key.held.is_some() && key.due().is_none()).count())
    }
}

impl Key {
    /// When it may run.
    fn due(&self) -> Option<Moment> {
        let Some((failed, until)) = self.held else {
            return self.wakes.iter().map(|(due, _)| *due).min();
        };
        let current = self.generation();
        let ends_hold = |wake: &Wake| {
            wake.urgent || wake.generation.is_some() && wake.generation == current && current != failed
        };
        let woken = self.wakes.iter().filter(|(_, wake)| ends_hold(wake)).map(|(due, _)| *due).min();
        match (woken, until) {
            (Some(woken), Some(until)) => Some(woken.min(until)),
            (woken, until) => woken.or(until),
        }
    }

    /// The generation that the last event told of.
    fn generation(&self) -> Option<i64> {
        self.wakes.iter().rev().find_map(|(_, wake)| wake.generation)
    }
}
