//! Real files: opened again, locked, torn, rotated, and copied at every step of a rotation.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::{future::Future, pin::pin};

use super::*;
use crate::store::tests::{KINDS, kind, object};
use crate::store::{Change, Kind};

/// A folder that goes when the test does.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("windlass-durable-{}-{number}", std::process::id()));
        Scratch(path)
    }

    /// What the folder holds now, as a crash at this moment would leave it.
    fn copy(&self) -> Scratch {
        let copy = Scratch::new();
        fs::create_dir_all(&copy.0).unwrap();
        for entry in fs::read_dir(&self.0).unwrap() {
            let name = entry.unwrap().file_name();
            // A temporary file may have got its name meanwhile.
            if let Ok(bytes) = fs::read(self.0.join(&name)) {
                fs::write(copy.0.join(&name), bytes).unwrap();
            }
        }
        copy
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(folder: &Scratch) -> (Store, Durable, RecoveryReport) {
    Durable::open(&folder.0, Options::default()).unwrap()
}

/// Writes one of a few objects: creates it, or updates it, and now and then deletes it.
fn write(store: &mut Store, number: u64) {
    let kind = kind(number as usize % KINDS.len());
    let name = format!("n{}", number % 23);
    let current = store.get(&kind, "a", &name).map(|object| object.revision());
    let change = match current {
        None => Change::Create(object("a", &name, number as u32, &[("app", "x")])),
        Some(expected) if number.is_multiple_of(7) => {
            Change::Delete { key: Store::key("a", &name), expected }
        }
        Some(expected) => Change::Update { object: object("a", &name, number as u32, &[]), expected },
    };
    store.commit(&kind, change).unwrap();
}

fn assert_same(left: &Store, right: &Store) {
    assert_eq!(left.revision(), right.revision());
    for at in 0..KINDS.len() {
        let (left, right) = (left.list(&kind(at)), right.list(&kind(at)));
        assert!(left.range(None, None).eq(right.range(None, None)));
    }
}

#[test]
fn what_was_answered_is_there_again() {
    let folder = Scratch::new();
    let (mut store, durable, report) = open(&folder);
    assert_eq!(report, RecoveryReport { revision: 1, snapshot: None, commits: 0, cut: None });
    for number in 0..50 {
        write(&mut store, number);
        durable.append(&mut store).wait().unwrap();
        assert_eq!(durable.revision(), store.revision());
    }
    // As after kill -9: the files of this moment.
    let crashed = folder.copy();
    let (again, _durable, report) = open(&crashed);
    assert_eq!((report.commits, report.cut), (50, None));
    assert_same(&again, &store);
    drop(durable);
    let (mut again, durable, _) = open(&folder);
    assert_same(&again, &store);
    write(&mut again, 99);
    durable.append(&mut again).wait().unwrap();
    drop(durable);
    assert_same(&open(&folder).0, &again);
}

#[test]
fn a_folder_is_open_once() {
    let folder = Scratch::new();
    let first = open(&folder);
    let second = Durable::open(&folder.0, Options::default()).err().unwrap();
    assert!(matches!(second, Error::Locked(_)), "{second}");
    drop(first);
    open(&folder);
}

#[test]
fn a_torn_tail_is_cut_and_told() {
    let folder = Scratch::new();
    let (mut store, durable, _) = open(&folder);
    for number in 0..3 {
        write(&mut store, number);
        durable.append(&mut store).wait().unwrap();
    }
    drop(durable);
    let log = folder.0.join(folder::log_name(1));
    let len = fs::metadata(&log).unwrap().len();
    fs::File::options().write(true).open(&log).unwrap().set_len(len - 5).unwrap();
    let (mut again, durable, report) = open(&folder);
    assert_eq!((again.revision(), report.commits), (3, 2));
    let cut = report.cut.clone().unwrap();
    assert_eq!(fs::metadata(&log).unwrap().len(), cut.keep);
    assert_eq!(cut.keep + cut.drop, len - 5);
    assert!(report.to_string().ends_with(&format!("cut from {}", log.display())), "{report}");
    write(&mut again, 5);
    durable.append(&mut again).wait().unwrap();
    drop(durable);
    let (last, _durable, report) = open(&folder);
    assert_eq!(report.cut, None);
    assert_same(&last, &again);
}

#[test]
fn damage_is_refused_by_name() {
    let folder = Scratch::new();
    let (mut store, durable, _) = open(&folder);
    for number in 0..3 {
        write(&mut store, number);
        durable.append(&mut store).wait().unwrap();
    }
    drop(durable);
    let log = folder.0.join(folder::log_name(1));
    let mut bytes = fs::read(&log).unwrap();
    bytes[50] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let refused = Durable::open(&folder.0, Options::default()).err().unwrap().to_string();
    assert!(refused.starts_with(&format!("{} is damaged at byte 32", log.display())), "{refused}");
    // It was only looked at.
    assert_eq!(fs::read(&log).unwrap(), bytes);
    fs::rename(&log, folder.0.join(folder::log_name(2))).unwrap();
    let refused = Durable::open(&folder.0, Options::default()).err().unwrap();
    assert!(matches!(refused, Error::Damaged(Damaged { fault: Fault::Gap { .. }, .. })), "{refused}");
}

#[test]
fn a_crash_at_any_step_of_a_rotation_loses_nothing() {
    let folder = Arc::new(Scratch::new());
    let answered = Arc::new(AtomicU64::new(1));
    let copies = Arc::new(Mutex::new(Vec::new()));
    let observer = {
        let (folder, answered, copies) = (folder.clone(), answered.clone(), copies.clone());
        move |step: &Step| {
            let least = answered.load(Ordering::SeqCst);
            copies.lock().unwrap().push((format!("{step:?}"), least, folder.copy()));
        }
    };
    let options = Options { rotate_min: 4000, observer: Some(Arc::new(observer)), ..Options::default() };
    let (mut store, durable, _) = Durable::open(&folder.0, options).unwrap();
    for number in 0..400 {
        write(&mut store, number);
        durable.append(&mut store).wait().unwrap();
        answered.store(store.revision(), Ordering::SeqCst);
    }
    drop(durable);
    let names = folder.names();
    assert!(names.iter().any(|name| name.ends_with(".snapshot")), "{names:?}");
    let copies = std::mem::take(&mut *copies.lock().unwrap());
    for step in ["LogStarted", "LogClosed", "SnapshotWritten", "SnapshotNamed", "OldRemoved"] {
        let times = copies.iter().filter(|(told, ..)| told.starts_with(step)).count();
        assert!(times >= 2, "{step} was told {times} times");
    }
    assert_same(&open(&folder).0, &store);
    for (step, least, copy) in copies {
        let (mut crashed, durable, report) = open(&copy);
        assert!(crashed.revision() >= least, "{step}: {report}, but {least} was answered");
        let past = crashed.revision();
        for at in 0..KINDS.len() {
            let then = store.at(&kind(at), past).unwrap();
            assert!(crashed.list(&kind(at)).range(None, None).eq(then.range(None, None)), "{step}");
        }
        write(&mut crashed, 1000);
        durable.append(&mut crashed).wait().unwrap();
        drop(durable);
        assert_same(&open(&copy).0, &crashed);
        let left = copy.names();
        assert!(!left.iter().any(|name| name.ends_with(".tmp")), "{step}: {left:?}");
    }
}

#[test]
fn clients_share_a_write_and_each_hears_of_its_own() {
    let folder = Scratch::new();
    let (store, durable, _) = open(&folder);
    let server = Mutex::new(store);
    std::thread::scope(|scope| {
        for client in 0..8 {
            let (server, durable) = (&server, &durable);
            scope.spawn(move || {
                for number in 0..25 {
                    let (ticket, revision) = {
                        let mut store = server.lock().unwrap();
                        let name = format!("c{client}-{number}");
                        store
                            .commit(&Kind::new("", "pods"), Change::Create(object("a", &name, 1, &[])))
                            .unwrap();
                        (durable.append(&mut store), store.revision())
                    };
                    ticket.wait().unwrap();
                    assert!(durable.revision() >= revision);
                }
            });
        }
    });
    drop(durable);
    let store = server.into_inner().unwrap();
    assert_eq!(store.revision(), 201);
    assert_same(&open(&folder).0, &store);
}

#[test]
fn a_ticket_can_be_awaited_and_dropped() {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let folder = Scratch::new();
    let (mut store, durable, _) = open(&folder);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    {
        // Of a revision that will not come: it waits, and leaves nothing behind.
        let future = durable.ticket(1000);
        let mut future = pin!(future);
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert_eq!(durable.shared.lock().wakers.len(), 1);
    }
    assert_eq!(durable.shared.lock().wakers.len(), 0);
    for number in 0..20 {
        write(&mut store, number);
        let mut ticket = pin!(durable.append(&mut store));
        loop {
            match ticket.as_mut().poll(&mut context) {
                Poll::Ready(answer) => break answer.unwrap(),
                Poll::Pending => std::thread::park(),
            }
        }
        assert_eq!(durable.revision(), store.revision());
    }
    let late = durable.ticket(1000);
    drop(durable);
    assert_eq!(late.wait().unwrap_err().to_string(), "the write could not be made safe");
}

#[test]
fn a_store_that_was_replaced_is_noticed() {
    let folder = Scratch::new();
    let (mut store, durable, _) = open(&folder);
    write(&mut store, 1);
    durable.append(&mut store).wait().unwrap();
    let mut fork = store.clone();
    write(&mut fork, 2);
    assert!(durable.append(&mut fork).wait().is_err());
}
