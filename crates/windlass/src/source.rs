//! One list and watch: from requests to objects that are there, changed and gone.
//!
//! ```text
//!            ┌──────────── expired ────────────┐
//!            ▼                                 │
//! WatchList ───► (initial events) ──► watch ◄──┴─► watch …
//!     │ not known to the server         ▲
//!     └──────► list, page by page ──────┘
//! ```
//!
//! Every source has its own task, backoff and state. It says once that it began to fail, and once that it is well again.

mod backoff;
mod body;
mod error;
mod query;
mod wire;

pub use error::Error;
pub(crate) use query::Query;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use kube::Client;
use kube::core::Status;
use serde_json::value::RawValue;
use windlass_core::Moment;

use crate::cache::{Listed, State};
use crate::env::{Env, panic_message};
use crate::error::chain;
use backoff::Backoff;
use body::{Answer, PATIENCE, send};
use wire::{Bookmark, Event, Page, Resources, read_json, version};

/// What a source brings.
pub(crate) trait Sink: Send + Sync {
    /// A list begins: what it does not name until its end is gone.
    fn begin(&self);
    /// An object is there, by the list or by an event. Gives back its version, where it has one.
    fn applied(&self, json: &RawValue) -> Option<u64>;
    /// An object is gone. Gives back the version of that.
    fn deleted(&self, json: &RawValue) -> Option<u64>;
    /// The list is complete, as of a version.
    fn end(&self, version: u64) -> Listed;
    /// Everything up to a version has been told.
    fn bookmark(&self, version: u64);
    /// Something failed.
    fn failed(&self, error: &Error);
    /// The source is in this state now.
    fn state(&self, state: State);
}

/// One list and watch.
pub(crate) struct Source {
    client: Client,
    env: Env,
    query: Query,
    sink: Arc<dyn Sink>,
    /// Go on from this version; `None` to begin with a list.
    from: Option<u64>,
    /// Whether the server can begin a watch with a list, as far as we know.
    watch_list: bool,
    /// Whether the rest of a list has expired while we read it: then pages take too long.
    paged: bool,
    health: Health,
    backoff: Backoff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Unknown,
    Well,
    Failing(Moment),
    Absent,
}

/// How long a watch is asked to last. The server ends it in time; a connection that died without a word does not.
const WATCH: Duration = Duration::from_secs(240);

/// A watch that nothing came by for so long after it should have ended is dead.
const GRACE: Duration = Duration::from_secs(15);

/// A watch that lasts so long is not refused.
const SETTLED: Duration = Duration::from_secs(1);

/// How often to look at most for a kind that the server does not have.
const ABSENT_MAX: Duration = Duration::from_secs(10);

impl Source {
    pub(crate) fn new(client: Client, env: Env, query: Query, sink: Arc<dyn Sink>) -> Source {
        Source {
            client,
            env,
            query,
            sink,
            from: None,
            watch_list: true,
            paged: true,
            health: Health::Unknown,
            backoff: Backoff::new(),
        }
    }

    /// Lists and watches for as long as it is polled. A panic is a failure like any other.
    pub(crate) async fn run(mut self) {
        loop {
            let turn = AssertUnwindSafe(self.turn()).catch_unwind().await;
            let wait = match turn {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => self.failed(error).await,
                Err(panic) => {
                    self.from = None;
                    self.failing(format!("panicked: {}", panic_message(&*panic)));
                    self.backoff.next(&self.env)
                }
            };
            self.env.sleep(wait).await;
        }
    }

    /// One request and what comes of it.
    async fn turn(&mut self) -> Result<(), Error> {
        match self.from {
            Some(from) => self.follow(from).await,
            None if self.watch_list => self.watch_list().await,
            None => self.list().await,
        }
    }

    async fn watch_list(&mut self) -> Result<(), Error> {
        let timeout = self.env.jittered(WATCH, 0.25);
        let mut answer = match send(&self.client, &self.env, self.query.watch_list(timeout)).await {
            Ok(answer) => answer,
            Err(error) if matches!(error.code(), Some(400 | 422)) => {
                tracing::debug!(kind = %self.query.kind, "server has no WatchList");
                self.watch_list = false;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.sink.begin();
        loop {
            // A server that does not know the question gives a watch without a list, and it never ends.
            let line = match answer.line(&self.env, PATIENCE).await {
                Err(Error::Silent(_)) => {
                    self.watch_list = false;
                    return Ok(());
                }
                line => line?,
            };
            let Some(line) = line else { return Err(Error::EndedEarly) };
            if let Told { version: Some(version), list_ends: true } = self.event(&line)? {
                if !self.complete(version) {
                    return Ok(());
                }
                self.well();
                return self.read(answer, timeout, true).await;
            }
        }
    }

    async fn list(&mut self) -> Result<(), Error> {
        self.sink.begin();
        let mut rest: Option<String> = None;
        loop {
            let request = self.query.list(rest.as_deref(), self.paged);
            let mut answer = match send(&self.client, &self.env, request).await {
                Err(Error::Expired) if rest.is_some() => {
                    self.paged = false;
                    return Ok(());
                }
                answer => answer?,
            };
            let page = answer.whole(&self.env).await?;
            let page: Page<'_> = read_json(&page, "list")?;
            for item in page.items.iter().flatten() {
                self.sink.applied(item);
            }
            let version = version(&page.metadata.resource_version, "list")?;
            match page.metadata.rest.filter(|rest| !rest.is_empty()) {
                Some(more) => rest = Some(more.into_owned()),
                None => {
                    self.complete(version);
                    return Ok(());
                }
            }
        }
    }

    /// The list is complete. Whether that is good: not, if the server went back and has to be asked again.
    fn complete(&mut self, version: u64) -> bool {
        match self.sink.end(version) {
            Listed::Done => {
                self.from = Some(version);
                true
            }
            Listed::WentBack => {
                tracing::warn!(kind = %self.query.kind, version, "server went back to an earlier version");
                self.from = None;
                false
            }
        }
    }

    async fn follow(&mut self, from: u64) -> Result<(), Error> {
        let timeout = self.env.jittered(WATCH, 0.25);
        let answer = send(&self.client, &self.env, self.query.watch(from, timeout)).await?;
        self.read(answer, timeout, false).await
    }

    /// Reads a watch to its end. Whether something came says if it is any good.
    async fn read(&mut self, mut answer: Answer, timeout: Duration, mut came: bool) -> Result<(), Error> {
        let settled = self.env.moment() + SETTLED;
        let dead = self.env.moment() + timeout + GRACE;
        loop {
            let now = self.env.moment();
            if now >= dead {
                return Ok(());
            }
            if came || now >= settled {
                self.well();
            }
            let until = if self.health == Health::Well { dead } else { settled };
            match answer.line(&self.env, until - now).await {
                Ok(Some(line)) => {
                    came = true;
                    if let Some(version) = self.event(&line)?.version {
                        self.from = Some(version);
                    }
                }
                Ok(None) if came || self.env.moment() >= settled => return Ok(()),
                Ok(None) => return Err(Error::EndedEarly),
                Err(Error::Silent(_)) if until != dead => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Passes an event on.
    fn event(&self, line: &Bytes) -> Result<Told, Error> {
        let event: Event<'_> = read_json(line, "event")?;
        match &*event.kind {
            "ADDED" | "MODIFIED" => Ok(Told { version: self.sink.applied(event.object), list_ends: false }),
            "DELETED" => Ok(Told { version: self.sink.deleted(event.object), list_ends: false }),
            "BOOKMARK" => {
                let bookmark: Bookmark<'_> = read_json(event.object.get().as_bytes(), "bookmark")?;
                let version = version(&bookmark.metadata.resource_version, "bookmark")?;
                self.sink.bookmark(version);
                let annotations = bookmark.metadata.annotations.unwrap_or_default();
                Ok(Told { version: Some(version), list_ends: annotations.initial_events_end == "true" })
            }
            "ERROR" => {
                let status: Status = read_json(event.object.get().as_bytes(), "status")?;
                Err(Error::refused(status, 500, None))
            }
            // Types that are yet to be invented say nothing about objects that we know.
            _ => Ok(Told { version: None, list_ends: false }),
        }
    }

    // --- how it is doing

    fn well(&mut self) {
        self.backoff.reset();
        if self.health == Health::Well {
            return;
        }
        let (kind, namespace) = (&self.query.kind, self.query.namespace.as_deref());
        match self.health {
            Health::Failing(_) => tracing::info!(%kind, namespace, "watch is well again"),
            Health::Absent => tracing::info!(%kind, namespace, "kind has appeared"),
            Health::Unknown | Health::Well => {}
        }
        self.health = Health::Well;
        self.sink.state(State::Live);
    }

    /// What to do about an error: how long to wait.
    async fn failed(&mut self, error: Error) -> Duration {
        if matches!(error, Error::Expired) {
            self.from = None;
            tracing::debug!(kind = %self.query.kind, "watch has expired and begins again");
            return self.backoff.unless_first(&self.env);
        }
        if error.code() == Some(404) && (self.health == Health::Absent || self.is_absent().await) {
            self.absent();
            return self.backoff.next(&self.env).min(ABSENT_MAX);
        }
        self.sink.failed(&error);
        self.failing(chain(&error));
        let wait = self.backoff.next(&self.env);
        error.retry_after().map_or(wait, |asked| asked.max(wait))
    }

    fn failing(&mut self, error: String) {
        let (kind, namespace) = (&self.query.kind, self.query.namespace.as_deref());
        let since = match self.health {
            Health::Failing(since) => since,
            _ => {
                tracing::warn!(%kind, namespace, error, "watch fails, and is tried again until it is well");
                self.env.moment()
            }
        };
        self.health = Health::Failing(since);
        self.sink.state(State::Failing { error, since });
    }

    fn absent(&mut self) {
        if self.health != Health::Absent {
            let (kind, namespace) = (&self.query.kind, self.query.namespace.as_deref());
            tracing::info!(%kind, namespace, "server does not have the kind; it is waited for");
        }
        self.from = None;
        self.health = Health::Absent;
        self.sink.state(State::Absent);
    }

    /// Whether the server says that it does not have the kind. One that is starting may not find what it has.
    async fn is_absent(&self) -> bool {
        let answer = match send(&self.client, &self.env, self.query.discovery()).await {
            Ok(mut answer) => answer.whole(&self.env).await,
            Err(error) => return error.code() == Some(404),
        };
        let resources = answer.and_then(|body| read_json::<Resources>(&body, "list of resources"));
        let plural = &self.query.kind.resource.plural;
        resources.is_ok_and(|all| !all.resources.iter().any(|resource| resource.name == *plural))
    }
}

/// What an event has told.
struct Told {
    /// Everything up to here.
    version: Option<u64>,
    /// And that the list that the watch began with is complete.
    list_ends: bool,
}
