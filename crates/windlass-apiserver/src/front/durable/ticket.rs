//! Waiting for a revision to be safe.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use thiserror::Error;

use super::shared::{Shared, State};

/// Becomes ready when every commit up to a revision is safe. It can be awaited on any runtime.
#[must_use = "a client may be answered only when the ticket is"]
pub struct Ticket {
    shared: Arc<Shared>,
    revision: u64,
    /// Which of the tickets of its revision it is, once it has a waker to keep.
    number: Option<u64>,
}

/// The commit may or may not be found when the folder is opened again.
#[derive(Clone, Debug, Error)]
#[error("the write could not be made safe")]
pub struct Lost(#[source] Arc<io::Error>);

impl Ticket {
    pub(super) fn new(shared: Arc<Shared>, revision: u64) -> Ticket {
        Ticket { shared, revision, number: None }
    }

    /// Blocks this thread until the commits are safe.
    pub fn wait(self) -> Result<(), Lost> {
        let mut state = self.shared.lock();
        loop {
            match self.answer(&state) {
                Some(answer) => return answer,
                None => state = self.shared.wait(state),
            }
        }
    }

    fn answer(&self, state: &State) -> Option<Result<(), Lost>> {
        if state.safe >= self.revision {
            return Some(Ok(()));
        }
        state.failed.clone().map(|error| Err(Lost(error)))
    }
}

impl Future for Ticket {
    type Output = Result<(), Lost>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        if let Some(answer) = self.answer(&state) {
            return Poll::Ready(answer);
        }
        let number = *self.number.get_or_insert_with(|| {
            state.tickets += 1;
            state.tickets
        });
        state.wakers.insert((self.revision, number), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.shared.lock().wakers.remove(&(self.revision, number));
        }
    }
}
