//! Logs and snapshots that were cut, flipped and mixed up.

use proptest::prelude::*;

use super::*;
use crate::store::tests::{KINDS, Step, change, kind, steps};
use crate::store::{Limits, Object};

/// A store with what a log of it looks like.
struct Written {
    store: Store,
    log: Vec<u8>,
    /// Where each frame ends, and the revision that is reached there.
    ends: Vec<(usize, u64)>,
}

/// Runs the steps, and writes a frame after every few of them.
fn written(mut store: Store, steps: &[Step], batch: usize) -> Written {
    store.keep_journal();
    let mut log = new_log(store.revision());
    let mut ends = vec![(log.len(), store.revision())];
    for steps in steps.chunks(batch) {
        for step in steps {
            if let Some((kind, change)) = change(&store, step) {
                store.commit(&kind, change).expect("the change fits");
            }
        }
        let records = store.take_records();
        if !records.is_empty() {
            assert_eq!(add_commits(&mut log, &records), records.len());
            ends.push((log.len(), store.revision()));
        }
    }
    Written { store, log, ends }
}

fn recover(snapshot: Option<&[u8]>, logs: &[&[u8]]) -> Result<Recovered, Damaged> {
    let mut recovery = Recovery::new(Limits::default());
    if let Some(bytes) = snapshot {
        recovery.snapshot("snapshot", bytes)?;
    }
    for (at, bytes) in logs.iter().enumerate() {
        recovery.log(&format!("log {at}"), bytes)?;
    }
    recovery.finish()
}

fn snapshot(store: &Store) -> Vec<u8> {
    let mut out = Vec::new();
    write_snapshot(store, |piece| {
        out.extend_from_slice(piece);
        Ok::<(), ()>(())
    })
    .expect("a vector takes all");
    out
}

/// Asserts that a store is what another was at the store's revision.
fn assert_is_past(recovered: &Store, of: &mut Store) {
    for at in 0..KINDS.len() {
        let (now, then) = (recovered.list(&kind(at)), of.at(&kind(at), recovered.revision()).unwrap());
        assert!(now.range(None, None).eq(then.range(None, None)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn a_log_cut_anywhere_gives_every_complete_frame(steps in steps(24), batch in 1usize..6) {
        let Written { mut store, log, ends } = written(Store::default(), &steps, batch);
        for len in ends[0].0..=log.len() {
            let (end, revision) = *ends.iter().rev().find(|(end, _)| *end <= len).unwrap();
            let recovered = recover(None, &[&log[..len]]).unwrap();
            prop_assert_eq!(recovered.store.revision(), revision);
            assert_is_past(&recovered.store, &mut store);
            let cut = recovered.cut.map(|cut| (cut.keep as usize, cut.drop as usize));
            prop_assert_eq!(cut, (end < len).then_some((end, len - end)));
            // A crash may also leave the file at its new length, with zeros where pages were not written.
            if len % frame::ALIGNED > 0 {
                continue;
            }
            let mut zeroed = log[..len].to_vec();
            let frame_end = ends.iter().map(|(end, _)| *end).find(|end| *end >= len).unwrap();
            zeroed.resize(frame_end, 0);
            let recovered = recover(None, &[&zeroed]).unwrap();
            prop_assert!(recovered.store.revision() >= revision);
            assert_is_past(&recovered.store, &mut store);
        }
        for len in 0..ends[0].0 {
            prop_assert_eq!(recover(None, &[&log[..len]]).err().unwrap().fault, Fault::Header);
        }
    }

    #[test]
    fn a_flipped_bit_is_refused_or_cuts_only_the_tail(steps in steps(24), batch in 1usize..6, bit in 0u8..8) {
        let Written { mut store, mut log, ends } = written(Store::default(), &steps, batch);
        prop_assume!(ends.len() > 1);
        let (last, revision) = ends[ends.len() - 2];
        for at in 0..log.len() {
            log[at] ^= 1 << bit;
            match recover(None, &[&log]) {
                Ok(recovered) => {
                    prop_assert!(at >= last, "a flip at {at} went unnoticed");
                    prop_assert_eq!(recovered.store.revision(), revision);
                    prop_assert_eq!(recovered.cut.map(|cut| cut.keep as usize), Some(last));
                    assert_is_past(&recovered.store, &mut store);
                }
                Err(damaged) => prop_assert!(damaged.offset as usize <= at),
            }
            log[at] ^= 1 << bit;
        }
    }

    #[test]
    fn a_snapshot_and_its_log_give_the_store_back(
        before in steps(80), after in steps(80), batch in 1usize..6, at in any::<prop::sample::Index>(),
    ) {
        let first = written(Store::default(), &before, batch).store;
        let taken = snapshot(&first);
        let Written { mut store, log, .. } = written(first, &after, batch);
        let recovered = recover(Some(&taken), &[&log]).unwrap();
        prop_assert_eq!(recovered.store.revision(), store.revision());
        assert_is_past(&recovered.store, &mut store);
        prop_assert!(recovered.store.clone().at(&kind(0), recovered.store.oldest(&kind(0))).is_ok());

        let at = at.index(taken.len());
        prop_assert!(recover(Some(&taken[..at]), &[&log]).is_err());
        let mut flipped = taken.clone();
        flipped[at] ^= 0x10;
        prop_assert!(recover(Some(&flipped), &[&log]).is_err());
    }

    #[test]
    fn content_that_was_forged_is_refused_or_fits(
        steps in steps(12), at in any::<prop::sample::Index>(), byte in any::<u8>(), len in any::<prop::sample::Index>(),
    ) {
        let Written { store, log, ends } = written(Store::default(), &steps, 100);
        prop_assume!(ends.len() > 1);
        let frame::Found::Frame(payload, _) = frame::read_frame(&log, ends[0].0) else { panic!("it is whole") };
        let mut changed = payload.to_vec();
        changed[at.index(payload.len())] = byte;
        for forged in [&changed[..], &payload[..len.index(payload.len())]] {
            let mut log = new_log(1);
            frame(&mut log, |out| out.extend_from_slice(forged));
            // The checksum is right, so it is no torn tail, whatever else it is.
            if let Ok(recovered) = recover(None, &[&log]) {
                prop_assert_eq!(recovered.cut, None);
                prop_assert!(recovered.store.revision() <= store.revision());
            }
        }
        let taken = snapshot(&store);
        let frame::Found::Frame(payload, end) = frame::read_frame(&taken, ends[0].0) else { panic!("it is whole") };
        let mut changed = payload.to_vec();
        changed[at.index(payload.len())] = byte;
        let mut forged = taken[..ends[0].0].to_vec();
        frame(&mut forged, |out| out.extend_from_slice(&changed));
        forged.extend_from_slice(&taken[end..]);
        if let Ok(recovered) = recover(Some(&forged), &[&new_log(store.revision())]) {
            let count = |store: &Store| store.kinds().map(|kind| store.list(kind).len()).sum::<usize>();
            prop_assert_eq!(count(&recovered.store), count(&store));
        }
    }

    #[test]
    fn bytes_that_mean_nothing_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(recover(Some(&bytes), &[]).is_err());
        prop_assert!(recover(None, &[&bytes]).is_err());
        // A good header does not make the rest better: it is a torn tail, or it is refused.
        let log = [new_log(1), bytes].concat();
        if let Ok(recovered) = recover(None, &[&log]) {
            prop_assert_eq!(recovered.store.revision(), 1);
            prop_assert_eq!(recovered.cut.map_or(0, |cut| cut.drop as usize), log.len() - new_log(1).len());
        }
    }
}

/// Three logs of two commits each; the last is still open.
fn three_logs() -> [Vec<u8>; 3] {
    let step = |name| Step::Write { kind: 0, namespace: 0, name, content: 7, delete: false };
    let mut store = Store::default();
    [0, 1, 2].map(|part| {
        let mut written = written(store.clone(), &[step(part * 2), step(part * 2 + 1)], 1);
        if part < 2 {
            add_close(&mut written.log, written.store.revision());
        }
        store = written.store;
        written.log
    })
}

#[test]
fn logs_follow_one_another() {
    let [first, second, third] = three_logs();
    let recovered = recover(None, &[&first, &second, &third]).unwrap();
    assert_eq!((recovered.store.revision(), recovered.commits, recovered.cut), (7, 6, None));

    let fault = |logs: &[&[u8]]| recover(None, logs).err().unwrap();
    assert_eq!(fault(&[&first, &third]).fault, Fault::Gap { expected: 3, found: 5 });
    assert_eq!(fault(&[&second, &third]).fault, Fault::Gap { expected: 1, found: 3 });
    assert_eq!(fault(&[&first, &second]).fault, Fault::Missing { next: 5 });
    let more = [first.clone(), vec![0; 3]].concat();
    assert!(matches!(fault(&[&more, &second, &third]).fault, Fault::Content(_)));
}

#[test]
fn only_a_log_that_nothing_follows_may_be_torn() {
    let [first, second, third] = three_logs();
    // The crash came while the second log was being closed: the third was there already, and empty.
    let torn = &second[..second.len() - 1];
    let recovered = recover(None, &[&first, torn, &new_log(5)]).unwrap();
    assert_eq!(recovered.store.revision(), 5);
    assert_eq!(recovered.cut.unwrap().file, "log 1");
    // A commit in the third shows that the close was whole once.
    let damaged = recover(None, &[&first, torn, &third]).err().unwrap();
    assert_eq!((damaged.file.as_str(), damaged.fault), ("log 1", Fault::Checksum));
}

#[test]
fn a_refusal_says_where_and_what_to_do() {
    let [first, _, _] = three_logs();
    let mut newer = first.clone();
    newer[8] = 3;
    assert_eq!(
        recover(None, &[&newer]).err().unwrap().to_string(),
        "log 0 is damaged at byte 0: it has format version 3, and this program knows version 2; open it with the \
         version of windlass that wrote it"
    );
    let mut flipped = first.clone();
    flipped[64] ^= 1;
    assert_eq!(
        recover(None, &[&flipped]).err().unwrap().to_string(),
        "log 0 is damaged at byte 32: the checksum does not match, and it is not the torn end of a last write; \
         restore the data folder from a backup; to give up every write after this point instead, remove any later \
         logs and run `truncate -s 32 log 0`"
    );
}

#[test]
fn many_commits_take_several_frames() {
    let mut store = Store::default();
    store.keep_journal();
    let filler = "x".repeat(1 << 20);
    for number in 0..10 {
        let small = crate::store::tests::object("a", &format!("n{number}"), 1, &[]);
        let mut body = small.body()[..small.body().len() - 1].to_vec();
        body.extend(format!(r#","filler":"{filler}"}}"#).bytes());
        let name = small.name().to_owned();
        let object = Object::new(crate::store::Parts {
            namespace: "a",
            name: &name,
            uid: small.uid(),
            labels: vec![],
            fields: vec![],
            body,
            offsets: small.offsets(),
            filled: small.filled(),
        });
        store.commit(&kind(0), crate::store::Change::Create(object.unwrap())).unwrap();
    }
    let records = store.take_records();
    let mut log = new_log(1);
    let (mut rest, mut frames) = (&records[..], 0);
    while !rest.is_empty() {
        rest = &rest[add_commits(&mut log, rest)..];
        frames += 1;
    }
    assert_eq!(frames, 3);
    let recovered = recover(None, &[&log]).unwrap().store;
    assert_is_past(&recovered, &mut store);
    let taken = snapshot(&store);
    assert_is_past(&recover(Some(&taken), &[&new_log(11)]).unwrap().store, &mut store);
}
