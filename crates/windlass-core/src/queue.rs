//! Which key is looked at next: the work queue, as a state machine that is told the time.
//!
//! ```text
//!            ┌───────────── woken ────────────┐
//!            │                                ▼        take             done
//!  nothing ──┤           ┌─ due ──────────► ready ──────────► running ───────┬─► nothing (settled)
//!            └─ delayed ─┴ waiting ◄──────────────────────────────────────── ┼── after, retry
//!                          parked ◄──────────────────────────────────────────┘   terminal
//! ```
//!
//! A key is in one of these places at a time. What wakes it while it is running is kept, and has it run again after.

mod config;
mod limit;
mod ready;
mod reasons;
mod slots;
mod wake;

pub use config::{Backoff, Bucket, Config};
pub use wake::{Causes, Priority, Taken, Verdict, Wake};

use std::collections::BTreeSet;
use std::hash::Hash;
use std::time::Duration;

use self::limit::Limit;
use self::ready::Ready;
use self::reasons::{Hold, Reason, Reasons};
use self::slots::Slots;
use crate::{Cause, Moment};

/// A work queue over keys that are cheap to clone.
///
/// # Guarantees
/// - A key that was woken is taken, if somebody takes often enough: no wake-up is lost, none starves.
/// - A key that is taken is not given out again before it is done.
/// - Wake-ups of a key that was not taken yet become one: of the highest priority, at the earliest time.
/// - Inside of a priority, keys are given out in the order in which they came to it.
/// - After a failure a key waits. Only another generation or something urgent ends the wait.
///
/// Every call costs time in the logarithm of the number of keys that wait for their time. The same calls give the same
/// answers.
///
/// # Assumptions
/// `now` does not go back between calls.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use windlass_core::queue::{Config, Verdict, Wake};
/// use windlass_core::{Cause, Moment, ObjectKey, Queue};
///
/// let mut queue = Queue::new(Config::default());
/// let key = ObjectKey::namespaced("default", "web");
/// let start = Moment::START;
/// queue.add(start, &key, Wake::new(Cause::Initial));
/// queue.add(start, &key, Wake::new(Cause::Requested));
///
/// let taken = queue.take(start).unwrap();
/// assert_eq!(taken.causes.to_string(), "initial list, reconcile-now");
/// assert!(queue.take(start).is_none());
///
/// // The pass failed. Its backoff is 5 ms; of the random number 0 none of it is left out.
/// queue.done(start, &key, Verdict::Retry { generation: Some(1) }, 0);
/// let later = queue.next(start).unwrap();
/// assert_eq!(later - start, Duration::from_millis(5));
/// assert_eq!(queue.take(later).unwrap().attempt, 2);
/// ```
#[derive(Clone, Debug)]
pub struct Queue<K> {
    backoff: Backoff,
    limit: Option<Limit>,
    slots: Slots<K, Item<K>>,
    ready: Ready,
    /// When, in which order, which.
    waiting: BTreeSet<(Moment, u64, u32)>,
    /// Since when, which.
    running: BTreeSet<(Moment, u32)>,
    /// How many keys began to wait for their time: the order of those with the same time.
    waited: u64,
    adds: u64,
    retries: u64,
}

/// What is known of a key. A key of which nothing is known has none.
#[derive(Clone, Debug)]
struct Item<K> {
    key: K,
    place: Place,
    reasons: Reasons,
    hold: Option<Hold>,
    /// Failures in a row.
    failures: u32,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// Taken.
    Running(Run),
    /// Its turn can come.
    Ready { since: Moment },
    /// Its time has not come.
    Waiting(Moment, u64),
    /// It waits for no time: it has no wake-up, or none that ends its hold.
    Parked,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    since: Moment,
    priority: Priority,
    /// Whether the object was deleted meanwhile, so that what the pass says of it is about nothing.
    forgotten: bool,
}

/// The state of a queue in numbers, for metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Keys that could run, by priority, the highest first.
    pub depth: Vec<(Priority, usize)>,
    /// Keys whose time has not come.
    pub waiting: usize,
    /// Keys that are taken.
    pub running: usize,
    /// Keys that no time will wake.
    pub parked: usize,
    /// How often a key became ready.
    pub adds: u64,
    /// How often a pass asked for a retry.
    pub retries: u64,
    /// How long those that are running have been at it, together.
    pub unfinished: Duration,
    /// How long the one that has been running the longest has been at it.
    pub longest: Duration,
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue.
    pub fn new(config: Config) -> Queue<K> {
        Queue {
            backoff: config.backoff,
            limit: config.bucket.map(Limit::new),
            slots: Slots::new(),
            ready: Ready::new(config.oldest_every),
            waiting: BTreeSet::new(),
            running: BTreeSet::new(),
            waited: 0,
            adds: 0,
            retries: 0,
        }
    }

    /// Wakes a key.
    pub fn add(&mut self, now: Moment, key: &K, wake: Wake) {
        self.promote(now);
        let Wake { cause, priority, delay, generation, urgent } = wake;
        let reason = Reason { due: now + delay, priority, generation, urgent };
        let slot =
            self.slots.find(key).unwrap_or_else(|| self.slots.insert(key.clone(), Item::new(key.clone())));
        self.slots[slot].reasons.add(cause, reason);
        self.place(now, slot);
    }

    /// Takes the key whose turn it is. It has to be [done](Queue::done) at some time.
    pub fn take(&mut self, now: Moment) -> Option<Taken<K>> {
        self.promote(now);
        if self.limit.as_ref().is_some_and(|limit| limit.when(now) > now) {
            return None;
        }
        let (slot, priority) = self.ready.take()?;
        if let Some(limit) = &mut self.limit {
            limit.spend(now);
        }
        self.running.insert((now, slot));
        let item = &mut self.slots[slot];
        let waited = match item.place {
            Place::Ready { since } => now - since,
            _ => Duration::ZERO,
        };
        item.place = Place::Running(Run { since: now, priority, forgotten: false });
        let reasons = std::mem::take(&mut item.reasons);
        // Another spec begins anew.
        if item.hold.take().is_some_and(|hold| reasons.is_new_to(hold)) {
            item.failures = 0;
        }
        Some(Taken {
            key: item.key.clone(),
            causes: reasons.into_causes(now),
            attempt: item.failures.saturating_add(1),
            waited,
            priority,
        })
    }

    /// Gives back a key that was taken, and says what comes next for it; `random` is any number. How long the pass
    /// took, or `None` if the key was not taken.
    pub fn done(&mut self, now: Moment, key: &K, verdict: Verdict, random: u64) -> Option<Duration> {
        self.promote(now);
        let slot = self.slots.find(key)?;
        let item = &mut self.slots[slot];
        let Place::Running(run) = item.place else { return None };
        self.running.remove(&(run.since, slot));
        item.place = Place::Parked;
        if !run.forgotten {
            self.retries += u64::from(matches!(verdict, Verdict::Retry { .. }));
            item.judge(now, run.priority, verdict, |failures| self.backoff.wait(failures, random));
        }
        self.place(now, slot);
        self.drop_if_unknown(key, slot);
        Some(now - run.since)
    }

    /// Takes back wake-ups that turned out to be echoes of the operator's own writes: of those by a changed or deleted
    /// object, the ones that `is_echo` names. The key stays where it is as far as anything else woke it.
    pub fn disown(&mut self, now: Moment, key: &K, is_echo: impl FnMut(&Cause) -> bool) {
        self.promote(now);
        let Some(slot) = self.slots.find(key) else { return };
        self.slots[slot].reasons.drop_echoes(is_echo);
        self.place(now, slot);
        self.drop_if_unknown(key, slot);
    }

    /// The object is gone: what was known of its key is dropped. A pass that is under way changes nothing by its
    /// verdict, and what wakes the key from now on is about another object of that name.
    pub fn forget(&mut self, key: &K) {
        let Some(slot) = self.slots.find(key) else { return };
        let item = &mut self.slots[slot];
        item.reasons = Reasons::default();
        item.hold = None;
        item.failures = 0;
        if let Place::Running(run) = &mut item.place {
            run.forgotten = true;
        } else {
            self.leave(slot);
            self.drop_if_unknown(key, slot);
        }
    }

    /// When [`take`](Queue::take) will give something that it does not give now, if nothing else happens.
    pub fn next(&self, now: Moment) -> Option<Moment> {
        let token = self.limit.as_ref().map_or(now, |limit| limit.when(now));
        let is_due = |(due, _, _): &(Moment, u64, u32)| *due <= now;
        if token > now && (self.ready.len() > 0 || self.waiting.first().is_some_and(is_due)) {
            return Some(token);
        }
        let (due, _, _) = self.waiting.range((now, u64::MAX, u32::MAX)..).next()?;
        Some(token.max(*due))
    }

    /// The queue in numbers.
    pub fn figures(&mut self, now: Moment) -> Figures {
        self.promote(now);
        let (waiting, running) = (self.waiting.len(), self.running.len());
        let times = || self.running.iter().map(|(since, _)| now - *since);
        Figures {
            depth: self.ready.depth().collect(),
            waiting,
            running,
            parked: self.slots.len() - self.ready.len() - waiting - running,
            adds: self.adds,
            retries: self.retries,
            unfinished: times().sum(),
            longest: times().max().unwrap_or_default(),
        }
    }

    /// Makes those ready whose time has come, in its order.
    fn promote(&mut self, now: Moment) {
        while let Some(&(due, _, slot)) = self.waiting.first()
            && due <= now
        {
            self.place(now, slot);
        }
    }

    /// Puts a key where its wake-ups say that it belongs. One that is running stays where it is.
    fn place(&mut self, now: Moment, slot: u32) {
        let item = &mut self.slots[slot];
        if matches!(item.place, Place::Running(_)) {
            return;
        }
        match item.reasons.due(item.hold) {
            Some(due) if due <= now => {
                let priority = item.reasons.priority();
                match item.place {
                    Place::Ready { .. } => self.ready.shift(slot, priority),
                    _ => {
                        // A key that was running has been ready since it was done.
                        let since = if matches!(item.place, Place::Waiting(..)) { due } else { now };
                        self.leave(slot);
                        self.slots[slot].place = Place::Ready { since };
                        self.ready.push(slot, priority);
                        self.adds += 1;
                    }
                }
            }
            Some(due) if matches!(item.place, Place::Waiting(known, _) if known == due) => {}
            Some(due) => {
                self.leave(slot);
                self.waited += 1;
                self.slots[slot].place = Place::Waiting(due, self.waited);
                self.waiting.insert((due, self.waited, slot));
            }
            None => self.leave(slot),
        }
    }

    /// Takes a key that is not running from where it is.
    fn leave(&mut self, slot: u32) {
        match std::mem::replace(&mut self.slots[slot].place, Place::Parked) {
            Place::Ready { .. } => self.ready.remove(slot),
            Place::Waiting(due, order) => {
                self.waiting.remove(&(due, order, slot));
            }
            Place::Running(_) | Place::Parked => {}
        }
    }

    fn drop_if_unknown(&mut self, key: &K, slot: u32) {
        let item = &self.slots[slot];
        if matches!(item.place, Place::Parked) && item.hold.is_none() && item.reasons.is_empty() {
            self.slots.remove(key);
        }
    }
}

impl<K> Item<K> {
    fn new(key: K) -> Item<K> {
        Item { key, place: Place::Parked, reasons: Reasons::default(), hold: None, failures: 0 }
    }

    /// Does what a pass of that priority said about what comes next.
    fn judge(
        &mut self,
        now: Moment,
        priority: Priority,
        verdict: Verdict,
        backoff: impl FnOnce(u32) -> Duration,
    ) {
        if !matches!(verdict, Verdict::Retry { .. }) {
            self.failures = 0;
        }
        let reason = |due, priority| Reason { due, priority, generation: None, urgent: false };
        match verdict {
            Verdict::Settled => {}
            Verdict::Again => self.reasons.add(Cause::Again, reason(now, priority)),
            // A time that comes is an event like others, whatever the first pass was woken by.
            Verdict::After(delay) => self.reasons.add(Cause::Timer, reason(now + delay, Priority::NORMAL)),
            Verdict::Retry { generation } => {
                self.failures = self.failures.saturating_add(1);
                let until = now + backoff(self.failures);
                self.reasons.add(Cause::Retry, reason(until, priority));
                self.hold = Some(Hold { until: Some(until), generation });
            }
            Verdict::Terminal { generation } => self.hold = Some(Hold { until: None, generation }),
        }
    }
}
