//! What was asked and what came of it, for tests and for the log.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;

use crate::schema::Str;

/// One request that was answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// When it was answered.
    pub time: Timestamp,
    /// Who asked.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, …; the lower-case method for paths that are no resource.
    pub verb: &'static str,
    /// The path.
    pub path: String,
    /// The group of the resource; empty for the core group.
    pub group: Str,
    /// The plural resource; empty for paths that are no resource.
    pub resource: Str,
    /// The subresource, if one was asked for.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name; of a create, the name that was given or generated.
    pub name: String,
    /// The HTTP status of the answer; 0 where somebody else gives it.
    pub code: u16,
    /// The reason of a refusal; empty otherwise.
    pub reason: Cow<'static, str>,
    /// The revision of the store after the request.
    pub revision: u64,
}

/// The latest requests, oldest first. A clone shares them.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    records: Arc<VecDeque<Arc<Record>>>,
    total: u64,
}

impl Audit {
    /// Remembers a request, and of all at most this many.
    pub(super) fn push(&mut self, record: impl FnOnce() -> Record, max: usize) {
        self.total += 1;
        if max == 0 {
            return;
        }
        let records = Arc::make_mut(&mut self.records);
        if records.len() >= max {
            records.pop_front();
        }
        records.push_back(Arc::new(record()));
    }

    /// The requests that are remembered, oldest first.
    pub fn records(&self) -> impl DoubleEndedIterator<Item = &Record> + ExactSizeIterator {
        self.records.iter().map(|record| &**record)
    }

    /// How many requests were answered since the server was made.
    pub fn total(&self) -> u64 {
        self.total
    }
}
