//! Events from a revision on.

use std::collections::VecDeque;

use tonic::Streaming;

use crate::kv::prefix_bounds;
use crate::proto::kv::{Event, WatchAnswer, WatchCreateRequest, WatchRequest};
use crate::{Client, Error};

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    key: Vec<u8>,
    range_end: Vec<u8>,
    from: i64,
}

impl Watch {
    /// All keys that begin with `prefix`, from a revision on (1: all history that is not compacted).
    #[must_use]
    pub fn prefix(prefix: impl Into<Vec<u8>>, from: i64) -> Self {
        let (key, range_end) = prefix_bounds(prefix.into());
        Self { key, range_end, from }
    }
}

/// A watch under way. It ends when it is dropped.
#[derive(Debug)]
pub struct Events {
    client: Client,
    answers: Streaming<WatchAnswer>,
    waiting: VecDeque<Event>,
}

impl Client {
    /// Watches keys.
    ///
    /// # Errors
    /// The member does not answer.
    pub async fn watch(&self, watch: Watch) -> Result<Events, Error> {
        let create =
            WatchCreateRequest { key: watch.key, range_end: watch.range_end, start_revision: watch.from };
        let request = WatchRequest { create: Some(create) };
        let answers = self.streaming("/etcdserverpb.Watch/Watch", request).await?;
        Ok(Events { client: self.clone(), answers, waiting: VecDeque::new() })
    }
}

impl Events {
    /// The next event, in the order of their revisions.
    ///
    /// # Errors
    /// [`Error::Timeout`] when none comes within the deadline of the client, [`Error::Compacted`], or the watch broke. It does
    /// not go on after an error.
    pub async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Ok(event);
            }
            let answers = &mut self.answers;
            let next = async { answers.message().await.map_err(|status| Error::from_status(&status)) };
            let Some(answer) = self.client.in_time(next).await? else {
                return Err(Error::Unreachable { reason: "the watch ended".to_owned() });
            };
            if answer.compact_revision > 0 {
                return Err(Error::Compacted);
            }
            if answer.canceled {
                return Err(Error::from_status(&tonic::Status::unknown(answer.cancel_reason)));
            }
            self.waiting.extend(answer.events);
        }
    }
}
