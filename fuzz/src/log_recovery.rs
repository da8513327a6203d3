//! The files of a data folder: damaged ones are refused or cut, never half read.

use arbitrary::{Result, Unstructured};
use windlass_apiserver::store::log::{Recovered, Recovery, add_close, add_commits, new_log, write_snapshot};
use windlass_apiserver::store::{Change, Kind, Limits, Object, Offsets, Parts, Store};

/// Choices: the bytes as files, or files of a store with some damage done to them.
pub fn run(data: &[u8]) {
    raw(data);
    // Too few bytes to choose from: an end like any other.
    let _ = damaged(&mut Unstructured::new(data));
}

/// Anything at all as a snapshot and as a log.
fn raw(data: &[u8]) {
    let mut recovery = Recovery::new(Limits::default());
    if recovery.snapshot("s", data).is_ok() {
        round_trip(recovery.finish());
    }
    let mut recovery = Recovery::new(Limits::default());
    if recovery.log("l", data).is_ok() {
        round_trip(recovery.finish());
    }
}

/// A store that was read back can be written and read back again.
fn round_trip(recovered: std::result::Result<Recovered, impl std::fmt::Debug>) {
    let Ok(recovered) = recovered else { return };
    let again = read(&snapshot(&recovered.store), &[new_log(recovered.store.revision())]);
    let again = again.expect("our own snapshot reads");
    assert_eq!(snapshot(&again.store), snapshot(&recovered.store));
}

fn damaged(u: &mut Unstructured<'_>) -> Result<()> {
    let mut store = Store::default();
    store.keep_journal();
    let mut log = new_log(store.revision());
    // The revision that is safe after so many bytes of the log.
    let mut safe = vec![(log.len(), store.revision())];
    for _ in 0..u.int_in_range(0..=6)? {
        for _ in 0..u.int_in_range(1..=3)? {
            write(u, &mut store)?;
        }
        let records = store.take_records();
        if !records.is_empty() {
            add_commits(&mut log, &records);
            safe.push((log.len(), store.revision()));
        }
    }
    let whole = recover(&log).expect("an undamaged log reads");
    assert_eq!(snapshot(&whole.store), snapshot(&store));
    if u.arbitrary()? {
        return rotated(u, &store, log);
    }

    // A crash leaves a part of the last write: everything before it is there, and nothing else.
    let cut = u.int_in_range(safe.first().map_or(0, |first| first.0)..=log.len())?;
    let torn = recover(&log[..cut]).expect("a torn log reads");
    let kept = safe.iter().rev().find(|(len, _)| *len <= cut).expect("the header is there");
    assert_eq!(torn.store.revision(), kept.1);
    assert_eq!(torn.cut.is_some(), kept.0 < cut);

    // A flipped bit is found: the log is refused, or cut in its last frame.
    let mut flipped = log.clone();
    let at = u.choose_index(flipped.len())?;
    flipped[at] ^= 1 << u.int_in_range(0..=7)?;
    if let Some(found) = recover(&flipped) {
        let last = safe.len().saturating_sub(2);
        assert!(
            found.cut.is_some() && at >= safe[last].0,
            "a flipped bit at {at} of {} went unnoticed",
            log.len()
        );
        assert_eq!(found.store.revision(), safe[last].1);
    }
    Ok(())
}

/// A log that was closed needs its successor, and the snapshot stands for what was before.
fn rotated(u: &mut Unstructured<'_>, store: &Store, mut log: Vec<u8>) -> Result<()> {
    let revision = store.revision();
    add_close(&mut log, revision);
    assert!(recover(&log).is_none(), "a log that names a successor was read without it");
    let mut next = new_log(revision);
    let mut store = store.clone();
    store.keep_journal();
    write(u, &mut store)?;
    let records = store.take_records();
    if !records.is_empty() {
        add_commits(&mut next, &records);
    }
    let mut recovery = Recovery::new(Limits::default());
    recovery.log("1", &log).expect("it is whole");
    recovery.log("2", &next).expect("it follows");
    let both = recovery.finish().expect("nothing is missing");
    assert_eq!(snapshot(&both.store), snapshot(&store));
    Ok(())
}

fn write(u: &mut Unstructured<'_>, store: &mut Store) -> Result<()> {
    let kind = Kind::new("", u.choose(&["pods", "configmaps"])?);
    let name = *u.choose(&["a", "b", "c", "d"])?;
    let revision = store.next_revision();
    let current = store.get(&kind, "n", name).map(|object| object.revision());
    let padding = "x".repeat(u.int_in_range(0..=300)?);
    let change = match current {
        None => Change::Create(object(name, revision, &padding)),
        Some(expected) if u.arbitrary()? => Change::Delete { key: Store::key("n", name), expected },
        Some(expected) => Change::Update { object: object(name, revision, &padding), expected },
    };
    store.commit(&kind, change).expect("the state was just read");
    Ok(())
}

fn object(name: &str, revision: u64, padding: &str) -> Object {
    let prefix = r#"{"kind":"Pod","apiVersion":"v1","#;
    let metadata = format!(r#"{{"name":"{name}","namespace":"n","uid":"u","resourceVersion":"{revision}"}}"#);
    let body = format!(r#"{prefix}"metadata":{metadata},"data":"{padding}"}}"#);
    let start = prefix.len() + r#""metadata":"#.len();
    let digits = start + metadata.len() - 2 - revision.to_string().len();
    let parts = Parts {
        namespace: "n",
        name,
        uid: "u",
        labels: vec![("app", "web")],
        fields: vec![("metadata.name", name)],
        offsets: Offsets {
            prefix_len: prefix.len(),
            meta: start..start + metadata.len(),
            revision: digits..digits + revision.to_string().len(),
        },
        body: body.into_bytes(),
        filled: revision.is_multiple_of(2),
    };
    Object::new(parts).expect("the offsets are right")
}

fn recover(log: &[u8]) -> Option<Recovered> {
    let mut recovery = Recovery::new(Limits::default());
    recovery.log("l", log).ok()?;
    recovery.finish().ok()
}

fn read(snapshot: &[u8], logs: &[Vec<u8>]) -> Option<Recovered> {
    let mut recovery = Recovery::new(Limits::default());
    recovery.snapshot("s", snapshot).ok()?;
    for log in logs {
        recovery.log("l", log).ok()?;
    }
    recovery.finish().ok()
}

fn snapshot(store: &Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Ok(()) = write_snapshot(store, |piece| {
        bytes.extend_from_slice(piece);
        Ok::<(), std::convert::Infallible>(())
    });
    bytes
}
