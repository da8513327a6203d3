//! Whose turn it is: one value that many requests work on, one at a time, and no thread that waits for another.
//!
//! A thread that finds the value taken leaves its work with whoever has it, and goes on with its other connections; who
//! has the value does the work of all who wait before it lets go. A plain lock would put threads to sleep and wake them
//! for every few requests, and move the value from core to core: with two threads that cost more than the work itself.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A value, and those who wait for it.
pub(super) struct Turns<T> {
    value: Mutex<T>,
    waiting: Mutex<VecDeque<Work<T>>>,
}

type Work<T> = Box<dyn FnOnce(&mut T) + Send>;

/// How much work of others is done before one's own answer goes out.
const HELP_MAX: usize = 32;

impl<T: Send + 'static> Turns<T> {
    pub fn new(value: T) -> Arc<Turns<T>> {
        Arc::new(Turns { value: Mutex::new(value), waiting: Mutex::default() })
    }

    /// Works on the value, as soon as nobody else does. The work is done even if nobody waits for it any more.
    /// It must not panic.
    pub async fn take<R: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> R {
        if let Some(mut value) = self.try_lock() {
            return work(&mut value);
        }
        let (tell, told) = oneshot::channel();
        // Nobody may want to know any more.
        let work: Work<T> = Box::new(move |value| drop(tell.send(work(value))));
        self.waiting().push_back(work);
        self.help();
        told.await.expect("work that waits is done")
    }

    /// The value, for a thread that has nothing else to do.
    pub fn lock(self: &Arc<Self>) -> Turn<'_, T> {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        Turn { turns: self, value: Some(value) }
    }

    fn try_lock(self: &Arc<Self>) -> Option<Turn<'_, T>> {
        Some(Turn { turns: self, value: Some(self.try_value()?) })
    }

    fn try_value(&self) -> Option<MutexGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(value) => Some(value),
            // Somebody who only looked at the value panicked.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Work<T>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the work that waits, unless somebody has the value: whoever it is looks here after letting go.
    fn help(self: &Arc<Self>) {
        while !self.waiting().is_empty() {
            let Some(mut value) = self.try_value() else { return };
            for _ in 0..HELP_MAX {
                let Some(work) = self.waiting().pop_front() else { break };
                work(&mut value);
            }
            drop(value);
            // There is always more on a busy server, and the helper's own answer has to go out too.
            if !self.waiting().is_empty()
                && let Ok(runtime) = Handle::try_current()
            {
                let turns = self.clone();
                runtime.spawn(async move { turns.help() });
                return;
            }
        }
    }
}

/// The value, until this is dropped.
pub(super) struct Turn<'a, T: Send + 'static> {
    turns: &'a Arc<Turns<T>>,
    /// There until it is dropped.
    value: Option<MutexGuard<'a, T>>,
}

impl<T: Send + 'static> Deref for Turn<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is not dropped")
    }
}

impl<T: Send + 'static> DerefMut for Turn<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("it is not dropped")
    }
}

impl<T: Send + 'static> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        self.turns.help();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many threads, each of which works, looks and gives up at times: nothing is lost, done twice or left waiting.
    #[test]
    fn all_work_is_done_once_whoever_does_it() {
        const TASKS: u64 = 64;
        const ROUNDS: u64 = 500;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
        let turns = Turns::new((0, 0));
        runtime.block_on(async {
            let tasks: Vec<_> = (0..TASKS)
                .map(|task| {
                    let turns = turns.clone();
                    tokio::spawn(async move {
                        for round in 0..ROUNDS {
                            let work = move |value: &mut (u64, u64)| {
                                value.0 += 1;
                                value.1 += task;
                                value.0
                            };
                            if (task + round) % 16 == 0 {
                                assert!(turns.lock().0 <= TASKS * ROUNDS);
                            }
                            assert!(turns.take(work).await > 0);
                        }
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        assert_eq!(*turns.lock(), (TASKS * ROUNDS, ROUNDS * (0..TASKS).sum::<u64>()));
    }

    #[tokio::test]
    async fn work_is_done_even_if_nobody_waits_for_it() {
        let turns = Turns::new(0);
        let held = turns.lock();
        let mut given_up = Box::pin(turns.take(|value| *value += 1));
        let mut nobody = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(given_up.as_mut().poll(&mut nobody).is_pending());
        drop(given_up);
        drop(held);
        assert_eq!(*turns.lock(), 1);
    }
}
