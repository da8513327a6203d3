//! What the operator counts and measures, under the names that controller-runtime uses.
//!
//! ```text
//! controller ─ ControllerMetrics ─┐
//! client     ─ ClientMetrics     ─┤
//! informer   ─ InformerMetrics   ─┼─► one registry ─► render(Format) ─► /metrics
//! election   ─ ElectionMetrics   ─┤
//! events     ─ EventMetrics      ─┤
//! the user's own families        ─┘
//! ```
//!
//! Names, labels and buckets are those of controller-runtime, so that dashboards and alerts that were made for operators
//! in Go show an operator in Rust. What has no counterpart there begins with `windlass_`.

mod client;
mod controller;
mod election;
mod events;
mod family;
mod format;
mod informer;
mod process;

pub use client::ClientMetrics;
pub use controller::{Busy, ControllerMetrics, Ended, QueueState};
pub use election::ElectionMetrics;
pub use events::{Dropped, EventMetrics};
pub use family::Family;
pub use format::Format;
pub use informer::{InformerMetrics, InformerState};
pub use prometheus_client;
pub use prometheus_client::registry::Registry;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use client::ClientFamilies;
use controller::ControllerFamilies;
use election::ElectionFamilies;
use events::EventFamilies;
use informer::InformerFamilies;

/// The metrics of one operator. Clones are the same metrics.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Mutex<Registry>,
    hooks: Mutex<Vec<Arc<dyn Fn() + Send + Sync>>>,
    controller: ControllerFamilies,
    client: ClientFamilies,
    informer: InformerFamilies,
    election: ElectionFamilies,
    events: EventFamilies,
}

impl Metrics {
    /// Metrics that nobody has counted anything in.
    pub fn new() -> Metrics {
        Metrics::default()
    }

    /// Adds the user's own metrics: the registry is the one that `/metrics` shows. A counter is registered without its
    /// `_total`, which is added when it is shown.
    ///
    /// ```
    /// use windlass::metrics::{Format, Metrics, prometheus_client::metrics::counter::Counter};
    ///
    /// let metrics = Metrics::new();
    /// let backups: Counter = Counter::default();
    /// metrics.register(|registry| registry.register("myapp_backups", "Backups that were taken", backups.clone()));
    /// backups.inc();
    /// assert!(metrics.render(Format::Text).contains("\nmyapp_backups_total 1\n"));
    /// ```
    pub fn register<T>(&self, add: impl FnOnce(&mut Registry) -> T) -> T {
        add(&mut self.0.registry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls `hook` before the metrics are shown, for gauges whose value is a question of when one asks. It stays as long
    /// as the metrics do, so it should hold what it looks at weakly.
    pub fn on_collect(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.0.hooks.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(hook));
    }

    /// All metrics as text.
    pub fn render(&self, format: Format) -> String {
        let hooks = self.0.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for hook in hooks {
            // A hook that panics leaves its gauges as they were; the others are no worse for it.
            if catch_unwind(AssertUnwindSafe(|| hook())).is_err() {
                tracing::error!("a metric could not be collected: its hook panicked");
            }
        }
        format.render(&self.0.registry.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Of a controller and its queue, by its name.
    pub fn controller(&self, name: &str) -> ControllerMetrics {
        self.0.controller.of(name, self)
    }

    /// Of the clients.
    pub fn client(&self) -> ClientMetrics {
        self.0.client.handle()
    }

    /// Of the informer of a kind (`Kind.group`) in a scope (a namespace, or empty for all).
    pub fn informer(&self, kind: &str, scope: &str) -> InformerMetrics {
        self.0.informer.of(kind, scope)
    }

    /// Of the election on a lease, by the lease's name.
    pub fn election(&self, lease: &str) -> ElectionMetrics {
        self.0.election.of(lease)
    }

    /// Of the events that the operator reports.
    pub fn events(&self) -> EventMetrics {
        self.0.events.handle()
    }
}

impl Default for Inner {
    fn default() -> Inner {
        let mut registry = Registry::default();
        let controller = ControllerFamilies::register(&mut registry);
        let client = ClientFamilies::register(&mut registry);
        let election = ElectionFamilies::register(&mut registry);
        let informer = InformerFamilies::register(&mut registry);
        let events = EventFamilies::register(&mut registry);
        registry.register_collector(Box::new(process::Process));
        Inner {
            registry: Mutex::new(registry),
            hooks: Mutex::default(),
            controller,
            client,
            informer,
            election,
            events,
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The text without what the process is just doing, which is different every time.
    fn shown(metrics: &Metrics) -> String {
        let text = metrics.render(Format::Text);
        text.split_inclusive('\n').filter(|line| !line.contains("process_")).collect()
    }

    #[test]
    fn what_nobody_counted_is_not_shown() {
        assert_eq!(shown(&Metrics::new()), "");
    }

    #[test]
    fn names_and_labels_are_those_of_controller_runtime() {
        let metrics = Metrics::new();
        let controller = metrics.controller("foobar");
        controller.workers(4);
        controller.reconciled(Ended::Terminal, Duration::from_millis(120));
        controller.panicked();
        controller.timed_out();
        controller.added();
        controller.started(Duration::from_micros(3));
        controller.finished(Duration::from_millis(120));
        controller.retried();
        controller.observe_queue(|| QueueState {
            depth: [(0, 2), (-100, 7)].into(),
            unfinished: Duration::from_millis(1500),
            longest: Duration::from_secs(1),
        });
        let busy = controller.busy();
        let client = metrics.client();
        client.answered("PATCH", "10.0.0.1:443", Some(200), Duration::from_millis(4));
        client.answered("POST", "10.0.0.1:443", None, Duration::from_secs(30));
        client.retried("GET", "10.0.0.1:443", Some(429));
        let election = metrics.election("foobar-lock");
        election.leading(true);
        election.slow_path();
        let informer = metrics.informer("FooBar.test.example.com", "");
        informer.state(InformerState::Failing);
        informer.objects(3);
        informer.watch_failed();
        informer.undecodable();
        metrics.events().dropped(Dropped::Overflow);
        insta::assert_snapshot!(shown(&metrics));
        drop(busy);
        assert!(shown(&metrics).contains("controller_runtime_active_workers{controller=\"foobar\"} 0\n"));
    }

    #[test]
    fn a_priority_that_is_empty_again_shows_zero() {
        let metrics = Metrics::new();
        let controller = metrics.controller("one");
        let state = Arc::new(Mutex::new(QueueState { depth: [(-100, 7)].into(), ..QueueState::default() }));
        let seen = state.clone();
        controller.observe_queue(move || seen.lock().unwrap().clone());
        let line =
            |count| format!("workqueue_depth{{name=\"one\",controller=\"one\",priority=\"-100\"}} {count}\n");
        assert!(shown(&metrics).contains(&line(7)));
        *state.lock().unwrap() = QueueState::default();
        assert!(shown(&metrics).contains(&line(0)));
    }

    #[test]
    fn a_hook_that_panics_does_not_hide_the_rest() {
        let metrics = Metrics::new();
        metrics.on_collect(|| panic!("oh no"));
        metrics.election("lock").leading(true);
        assert!(shown(&metrics).contains("leader_election_master_status{name=\"lock\"} 1\n"));
    }

    #[test]
    fn the_process_shows_what_dashboards_ask_for() {
        let text = Metrics::new().render(Format::Text);
        let value = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("no {name} in\n{text}"))
                .rsplit(' ')
                .next()
                .unwrap()
                .parse()
                .unwrap()
        };
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_virtual_memory_bytes") > value("process_resident_memory_bytes"));
        assert!(value("process_open_fds") >= 3.0);
        assert!(value("process_max_fds") >= value("process_open_fds"));
        assert!(value("process_cpu_seconds_total") < 3600.0);
        let now = jiff::Timestamp::now().as_second() as f64;
        let started = value("process_start_time_seconds");
        assert!(now - 3600.0 < started && started < now + 2.0, "started at {started}, it is {now}");
    }
}
