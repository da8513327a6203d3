//! What happens to objects, told to people: events of `events.k8s.io/v1`, as `kubectl describe` shows them.
//!
//! ```text
//! publish ─► bounded queue ─► correlate: series, rate limit ─► create or patch ─► API server
//! (never waits,  (overflow is    (pure)                          (retried for a while,
//!  never fails)   counted)                                        then counted as lost)
//! ```
//!
//! # Guarantees
//! - [`Recorder::publish`] never waits and never fails: telling people of something must not stop the something.
//! - The same event of the same object within six minutes is one event with a count. The server hears of the count when
//!   it doubles, at least every half hour, and once more when the series has ended.
//! - Of one object at most 25 requests are made at once, and then one in five minutes.
//!
//! # Caveats
//! - Events may be lost: when more come than can be sent, when the server does not take them, when the process ends.
//!   `windlass_events_total` counts what became of them.

mod correlate;
mod sender;

use std::fmt;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windlass_core::Kind;

use crate::env::{Env, Task};
use crate::metrics::{Dropped, EventMetrics, Metrics};
use sender::Sender;

/// Something that happened to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether somebody should look.
    pub kind: EventType,
    /// Why it happened: one CamelCase word for machines, up to 128 characters.
    pub reason: String,
    /// What was done: one CamelCase word for machines, up to 128 characters.
    pub action: String,
    /// A sentence for people. What is longer than a kilobyte is cut.
    pub note: String,
}

/// Whether somebody should look at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// It went as it should.
    Normal,
    /// It did not.
    Warning,
}

impl Event {
    /// Something that went as it should.
    pub fn normal(reason: impl Into<String>, action: impl Into<String>, note: impl Into<String>) -> Event {
        Event { kind: EventType::Normal, reason: reason.into(), action: action.into(), note: note.into() }
    }

    /// Something that somebody should look at.
    pub fn warning(reason: impl Into<String>, action: impl Into<String>, note: impl Into<String>) -> Event {
        Event { kind: EventType::Warning, reason: reason.into(), action: action.into(), note: note.into() }
    }
}

impl EventType {
    fn text(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// The object that an event is about.
pub fn reference(kind: &Kind, metadata: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(kind.resource.api_version.clone()),
        kind: Some(kind.resource.kind.clone()),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        field_path: None,
    }
}

/// Where events are published. Clones are the same recorder.
#[derive(Clone)]
pub struct Recorder {
    queue: Option<mpsc::Sender<Report>>,
    metrics: EventMetrics,
}

/// An event on its way.
#[derive(Clone, Debug)]
struct Report {
    regarding: ObjectReference,
    event: Event,
}

/// client-go holds as many. A report is under 2 KiB, so the queue stays under 2 MiB.
const QUEUE: usize = 1000;

impl Recorder {
    /// A recorder, and the task that sends what it is given. When `stop` comes, the task tries once to send what it still
    /// has, and ends.
    ///
    /// The controller's name is the operator's; the instance tells its replicas apart. The client must not ask for the
    /// lease: a replica that stands by has things to tell as well.
    pub fn start(
        client: kube::Client,
        env: &Env,
        metrics: &Metrics,
        controller: &str,
        instance: &str,
        stop: CancellationToken,
    ) -> (Recorder, Task<()>) {
        let (queue, reports) = mpsc::channel(QUEUE);
        let sender = Sender::new(client, env.clone(), metrics.events(), controller, instance);
        let task = env.spawn("events", sender.run(reports, stop));
        (Recorder { queue: Some(queue), metrics: metrics.events() }, task)
    }

    /// A recorder that tells nobody.
    pub fn off() -> Recorder {
        Recorder { queue: None, metrics: Metrics::new().events() }
    }

    /// Tells of something that happened to an object. Never waits and never fails: what cannot be sent is counted.
    pub fn publish(&self, regarding: &ObjectReference, event: Event) {
        let Some(queue) = &self.queue else { return };
        if queue.try_send(Report { regarding: regarding.clone(), event }).is_err() {
            self.metrics.dropped(Dropped::Overflow);
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}
