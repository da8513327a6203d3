//! A value that many wait for.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A value, and those who wait until it is as they want it.
///
/// They are woken in the order in which they began to wait. tokio's own `watch` channel wakes its receivers in an order
/// that is drawn at random, and then the same seed does not give the same requests.
pub(super) struct Signal<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Copy> Signal<T> {
    pub fn new(value: T) -> Signal<T> {
        Signal { value: Mutex::new(value), changed: Notify::new() }
    }

    /// The value now.
    pub fn get(&self) -> T {
        *self.lock()
    }

    /// Changes the value, and wakes everyone.
    pub fn change(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.lock());
        self.changed.notify_waiters();
    }

    /// Resolves to the value once it is as wanted.
    pub async fn wait_for(&self, mut wanted: impl FnMut(&T) -> bool) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // From here on no change is missed, and then it is looked whether it is needed at all.
            changed.as_mut().enable();
            let value = self.get();
            if wanted(&value) {
                return value;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn those_who_wait_are_woken_in_their_order_and_nobody_too_late() {
        let signal = Arc::new(Signal::new(0));
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..20)
            .map(|number| {
                let (signal, order) = (signal.clone(), order.clone());
                tokio::spawn(async move {
                    signal.wait_for(|value| *value == 1).await;
                    order.lock().unwrap().push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        signal.change(|value| *value = 1);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
        assert_eq!(signal.wait_for(|value| *value == 1).await, 1, "what is so already is not waited for");
    }
}
