//! The checker itself is proved: it takes every life that etcd may lead, and finds each fault that is planted into one.

use std::collections::BTreeMap;

use etcd_ledger::{Change, History, Key, Ledger, Outcome, Violation, Write, check};
use proptest::prelude::*;

/// The history that these writes make, one revision each, in this order.
fn history(done: &[(Key, u64)]) -> History {
    let mut history = History::default();
    let mut versions: BTreeMap<Key, i64> = BTreeMap::new();
    for (at, (key, number)) in done.iter().enumerate() {
        let revision = i64::try_from(at).unwrap() + 2;
        let version = versions.entry(*key).or_default();
        *version += 1;
        history.changes.push(Change { key: Some(*key), number: Some(*number), revision, version: *version });
        history.state.insert(*key, (*number, revision));
    }
    history
}

/// A life: what the writers wrote down, and what etcd did, in its order.
#[derive(Clone, Debug)]
struct Life {
    ledger: Ledger,
    done: Vec<(Key, u64)>,
}

/// Plays writers, each with one write under way at most, and an etcd that does a write somewhere between its sending and its
/// acknowledgement, and one that was given up at any time after its sending, or never.
fn play(choices: &[u8]) -> Life {
    const WRITERS: usize = 3;
    #[derive(Clone, Copy)]
    struct UnderWay {
        at: usize,
        done: Option<i64>,
    }
    let mut under_way: [Option<UnderWay>; WRITERS] = [None; WRITERS];
    let mut given_up: Vec<usize> = Vec::new();
    let mut writes: Vec<Write> = Vec::new();
    let mut done = Vec::new();
    let mut tick = 0;
    let mut next = || {
        tick += 1;
        tick
    };
    for choice in choices.iter().copied() {
        let writer = usize::from(choice) % WRITERS;
        let act = choice / 3 % 8;
        let mut apply = |write: &Write| {
            done.push((write.key, write.number));
            i64::try_from(done.len()).unwrap() + 1
        };
        match under_way[writer] {
            None => {
                let number = writes.len() as u64;
                let key = u32::try_from(writer).unwrap() * 2 + u32::from(act % 2);
                under_way[writer] = Some(UnderWay { at: writes.len(), done: None });
                writes.push(Write { number, key, sent: next(), outcome: Outcome::Maybe });
            }
            Some(UnderWay { at, done: None }) => match act {
                // etcd does it; the answer comes later, if it comes.
                0..=4 => under_way[writer] = Some(UnderWay { at, done: Some(apply(&writes[at])) }),
                5 => {
                    writes[at].outcome = Outcome::Refused;
                    under_way[writer] = None;
                }
                _ => {
                    given_up.push(at);
                    under_way[writer] = None;
                }
            },
            Some(UnderWay { at, done: Some(revision) }) => {
                if act < 6 {
                    writes[at].outcome = Outcome::Acknowledged { revision, at: next() };
                }
                under_way[writer] = None;
            }
        }
        if act == 7 && !given_up.is_empty() {
            let late = given_up.swap_remove(usize::from(choice) % given_up.len());
            apply(&writes[late]);
        }
    }
    Life { ledger: Ledger { writes }, done }
}

fn lives() -> impl Strategy<Value = Life> {
    proptest::collection::vec(any::<u8>(), 30..300).prop_map(|choices| play(&choices))
}

impl Life {
    /// The acknowledged writes.
    fn acknowledged(&self) -> Vec<Write> {
        let is = |write: &&Write| matches!(write.outcome, Outcome::Acknowledged { .. });
        self.ledger.writes.iter().filter(is).copied().collect()
    }

    /// Two acknowledged writes of which the first was acknowledged before the second was sent.
    fn in_order(&self) -> Vec<(Write, Write)> {
        let all = self.acknowledged();
        let pairs = all.iter().flat_map(|first| all.iter().map(move |second| (*first, *second)));
        pairs.filter(|(first, second)| acknowledged_at(first) < second.sent).collect()
    }

    fn violations(&self) -> Vec<Violation> {
        check(&self.ledger, &history(&self.done)).violations
    }
}

fn acknowledged_at(write: &Write) -> u64 {
    match write.outcome {
        Outcome::Acknowledged { at, .. } => at,
        Outcome::Maybe | Outcome::Refused => u64::MAX,
    }
}

fn revision_of(ledger: &mut Ledger, number: u64) -> &mut i64 {
    let write = ledger.writes.iter_mut().find(|write| write.number == number).unwrap();
    match &mut write.outcome {
        Outcome::Acknowledged { revision, .. } => revision,
        Outcome::Maybe | Outcome::Refused => panic!("write {number} is not acknowledged"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_etcd_may_do_is_no_violation(life in lives()) {
        prop_assert_eq!(life.violations(), vec![]);
    }

    /// The history is whole in itself, as if the write had never been; only the ledger knows of it.
    #[test]
    fn a_lost_write_is_found(life in lives(), pick in any::<prop::sample::Index>()) {
        let acknowledged = life.acknowledged();
        prop_assume!(!acknowledged.is_empty());
        let lost = acknowledged[pick.index(acknowledged.len())];
        let mut life = life;
        life.done.retain(|(_, number)| *number != lost.number);
        let found = life.violations();
        prop_assert!(found.iter().any(|v| matches!(v, Violation::Lost { number, .. } if *number == lost.number)), "{:?}", found);
    }

    /// etcd did two writes in the wrong order, and said so in its answers: history and acknowledgements agree.
    #[test]
    fn a_reorder_is_found(life in lives(), pick in any::<prop::sample::Index>()) {
        let pairs = life.in_order();
        prop_assume!(!pairs.is_empty());
        let (first, second) = pairs[pick.index(pairs.len())];
        let mut life = life;
        let at = |life: &Life, number| life.done.iter().position(|(_, done)| *done == number).unwrap();
        let (a, b) = (at(&life, first.number), at(&life, second.number));
        life.done.swap(a, b);
        let earlier = std::mem::replace(revision_of(&mut life.ledger, first.number), i64::try_from(b).unwrap() + 2);
        *revision_of(&mut life.ledger, second.number) = earlier;
        let found = life.violations();
        prop_assert!(found.iter().any(|v| matches!(v, Violation::Reordered { .. })), "{:?}", found);
        prop_assert!(found.iter().all(|v| matches!(v, Violation::Reordered { .. })), "{:?}", found);
    }

    #[test]
    fn a_write_that_is_done_twice_is_found(life in lives(), pick in any::<prop::sample::Index>()) {
        prop_assume!(!life.done.is_empty());
        let mut life = life;
        let twice = life.done[pick.index(life.done.len())];
        life.done.push(twice);
        let found = life.violations();
        prop_assert!(found.iter().any(|v| matches!(v, Violation::Twice { number, .. } if *number == twice.1)), "{:?}", found);
    }

    #[test]
    fn a_refused_write_that_is_done_is_found(life in lives()) {
        let refused = life.ledger.writes.iter().find(|write| write.outcome == Outcome::Refused).copied();
        prop_assume!(refused.is_some());
        let refused = refused.unwrap();
        let mut life = life;
        life.done.push((refused.key, refused.number));
        let revision = i64::try_from(life.done.len()).unwrap() + 1;
        let expected = Violation::RefusedAndDone { number: refused.number, revision };
        prop_assert!(life.violations().contains(&expected));
    }
}

/// Writes of one key, one after the other: number, and the revision of its acknowledgement.
fn acknowledged(writes: &[(u64, i64)]) -> Ledger {
    let write = |(number, revision): &(u64, i64)| Write {
        number: *number,
        key: 0,
        sent: number * 2,
        outcome: Outcome::Acknowledged { revision: *revision, at: number * 2 + 1 },
    };
    Ledger { writes: writes.iter().map(write).collect() }
}

#[test]
fn an_empty_history_has_lost_everything() {
    let ledger = acknowledged(&[(0, 2), (1, 3)]);
    let lost = [
        Violation::Lost { number: 0, key: 0, revision: 2 },
        Violation::Lost { number: 1, key: 0, revision: 3 },
    ];
    assert_eq!(check(&ledger, &History::default()).violations, lost);
    assert!(check(&Ledger::default(), &History::default()).holds());
}

#[test]
fn a_write_at_another_revision_has_moved() {
    let ledger = acknowledged(&[(0, 7)]);
    let moved = Violation::Moved { number: 0, acknowledged: 7, found: 2 };
    assert_eq!(check(&ledger, &history(&[(0, 0)])).violations, [moved]);
}

#[test]
fn the_order_holds_across_keys() {
    let mut ledger = acknowledged(&[(0, 3), (1, 2)]);
    ledger.writes[1].key = 1;
    let reordered = Violation::Reordered { first: (0, 3), second: (1, 2) };
    assert_eq!(check(&ledger, &history(&[(1, 1), (0, 0)])).violations, [reordered]);
}

#[test]
fn a_write_without_an_answer_is_not_before_what_was_acknowledged_before_it() {
    let mut ledger = acknowledged(&[(0, 3), (1, 2)]);
    ledger.writes[1].outcome = Outcome::Maybe;
    let reordered = Violation::Reordered { first: (0, 3), second: (1, 2) };
    assert_eq!(check(&ledger, &history(&[(0, 1), (0, 0)])).violations, [reordered]);
}

#[test]
fn deletions_strange_values_and_gaps_are_found() {
    let ledger = acknowledged(&[(0, 2), (1, 3)]);
    let whole = history(&[(0, 0), (0, 1)]);

    let mut deleted = whole.clone();
    let deletion = Change { key: Some(0), number: None, revision: 4, version: 0 };
    deleted.changes.push(deletion);
    deleted.state.clear();
    assert_eq!(check(&ledger, &deleted).violations, [Violation::Foreign(deletion)]);

    let mut strange = whole.clone();
    let other = Change { key: None, number: Some(0), revision: 4, version: 1 };
    strange.changes.push(other);
    assert_eq!(check(&ledger, &strange).violations, [Violation::Foreign(other)]);

    let mut gap = whole.clone();
    gap.changes[1].version = 3;
    assert_eq!(check(&ledger, &gap).violations, [Violation::Broken { change: gap.changes[1], expected: 2 }]);
}

#[test]
fn a_state_that_is_not_the_end_of_the_history_is_found() {
    let ledger = acknowledged(&[(0, 2), (1, 3)]);
    let mut stale = history(&[(0, 0), (0, 1)]);
    stale.state.insert(0, (0, 2));
    let expected = Violation::State { key: 0, last: Some((1, 3)), found: Some((0, 2)) };
    assert_eq!(check(&ledger, &stale).violations, [expected]);
}

#[test]
fn members_with_different_data_are_found() {
    let mut history = history(&[(0, 0)]);
    let ledger = acknowledged(&[(0, 2)]);
    history.hashes = [("a", 1), ("b", 1)].map(|(name, hash)| (name.to_owned(), hash)).into();
    assert!(check(&ledger, &history).holds());
    history.hashes.insert("c".to_owned(), 2);
    assert!(matches!(check(&ledger, &history).violations[..], [Violation::Diverged { .. }]));
}
