//! What the server's side and the writing threads share.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::store::Store;
use crate::store::log::Record;

/// How many commits may be queued. Each holds a reference to an object that is in the store anyway, about 100 bytes:
/// 6 MiB. A disk that makes a hundred frames a second safe takes far more than this each second.
const QUEUE_MAX: usize = 1 << 16;

/// The state, and who waits for it to change.
pub struct Shared {
    state: Mutex<State>,
    /// There is work for the writer.
    work: Condvar,
    /// The writer has taken the queue, made something safe, or ended.
    progress: Condvar,
}

/// The state.
pub struct State {
    /// What is to be written, in order.
    pub queue: Vec<Record>,
    /// The revision of the last commit that was queued.
    queued: u64,
    /// The newest revision that is safe.
    pub safe: u64,
    pub rotation: Rotation,
    /// No more is coming.
    closed: bool,
    /// Why nothing is made safe any more.
    pub failed: Option<Arc<io::Error>>,
    /// Who is to be woken when which revision is safe.
    pub wakers: BTreeMap<(u64, u64), Waker>,
    /// How many tickets were given, to tell them apart.
    pub tickets: u64,
}

/// How far a rotation is.
pub enum Rotation {
    /// The log is short.
    Idle,
    /// The log is long: the state of the store is wanted, which only the server's side can give.
    Wanted,
    /// This state is to be the next snapshot.
    Given(Box<Store>),
    /// The snapshot is being written.
    Running,
}

/// What the writer is to do next.
pub struct Work {
    pub records: Vec<Record>,
    /// Rotate when everything up to this store's revision is written.
    pub rotate: Option<Box<Store>>,
}

impl Shared {
    pub fn new(revision: u64) -> Shared {
        let state = State {
            queue: Vec::new(),
            queued: revision,
            safe: revision,
            rotation: Rotation::Idle,
            closed: false,
            failed: None,
            wakers: BTreeMap::new(),
            tickets: 0,
        };
        Shared { state: Mutex::new(state), work: Condvar::new(), progress: Condvar::new() }
    }

    /// The state. A panic elsewhere leaves it as it was: every change below is a few assignments.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues what was committed to a store since the last call.
    pub fn append(&self, store: &mut Store) {
        let records = store.take_records();
        let mut state = self.lock();
        while state.queue.len() >= QUEUE_MAX && state.failed.is_none() {
            state = self.wait(state);
        }
        state.queued += records.len() as u64;
        state.queue.extend(records);
        if state.queued != store.revision() {
            // A store that was put in the place of the one that was opened keeps no journal: its commits would be
            // answered for, and never written.
            let queued = state.queued;
            let message = format!("the store is at revision {}, its log at {queued}", store.revision());
            state.failed.get_or_insert_with(|| Arc::new(io::Error::other(message)));
            self.wake(state);
            return;
        }
        if matches!(state.rotation, Rotation::Wanted) && !state.queue.is_empty() {
            state.rotation = Rotation::Given(Box::new(store.clone()));
        }
        if !state.queue.is_empty() {
            self.work.notify_one();
        }
    }

    /// No more is coming.
    pub fn close(&self) {
        self.lock().closed = true;
        self.work.notify_one();
    }

    /// Waits for something to do; `None` when all is done and no more is coming.
    pub fn take(&self) -> Option<Work> {
        let mut state = self.lock();
        while state.queue.is_empty() && !state.closed && state.failed.is_none() {
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.queue.is_empty() || state.failed.is_some() {
            return None;
        }
        let records = std::mem::take(&mut state.queue);
        let rotate = match std::mem::replace(&mut state.rotation, Rotation::Running) {
            Rotation::Given(store) => Some(store),
            other => {
                state.rotation = other;
                None
            }
        };
        self.progress.notify_all();
        Some(Work { records, rotate })
    }

    /// Answers everyone who waits for a revision up to this one.
    pub fn made_safe(&self, revision: u64) {
        let mut state = self.lock();
        state.safe = revision;
        self.wake(state);
    }

    /// Answers everyone: nothing more is made safe.
    pub fn fail(&self, error: io::Error) {
        let mut state = self.lock();
        state.failed.get_or_insert_with(|| Arc::new(error));
        self.wake(state);
    }

    /// Blocks until something changes.
    pub fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.progress.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let waiting = match state.failed {
            Some(_) => BTreeMap::new(),
            None => {
                let safe = state.safe;
                state.wakers.split_off(&(safe + 1, 0))
            }
        };
        let ready = std::mem::replace(&mut state.wakers, waiting);
        drop(state);
        self.progress.notify_all();
        self.work.notify_one();
        // Not under the lock: what is woken may ask at once.
        ready.into_values().for_each(Waker::wake);
    }
}
