//! Tasks that have an owner.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::{JoinError, JoinHandle};

/// A running task. Dropping it ends it: nothing runs that nobody waits for.
#[derive(Debug)]
#[must_use = "dropping a task ends it"]
pub struct Task<T> {
    name: &'static str,
    handle: JoinHandle<T>,
}

/// A task that did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task {name} {how}")]
pub struct Died {
    /// Which one.
    pub name: &'static str,
    how: String,
}

impl<T> Task<T> {
    pub(super) fn new(name: &'static str, handle: JoinHandle<T>) -> Task<T> {
        Task { name, handle }
    }

    /// Ends the task at its next await.
    pub fn abort(&self) {
        self.handle.abort();
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, Died>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let name = self.name;
        Pin::new(&mut self.handle).poll(cx).map_err(|error| Died { name, how: how(error) })
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

fn how(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => format!("panicked: {}", panic_message(&*panic)),
        Err(_) => "was ended".to_owned(),
    }
}

/// What a panic said.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    if let Some(text) = panic.downcast_ref::<&str>() {
        text
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text
    } else {
        "(no message)"
    }
}
