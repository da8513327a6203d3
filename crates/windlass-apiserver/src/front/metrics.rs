//! What the server counts of itself, under the names and labels of kube-apiserver.
//!
//! The core says what an answer [was about](About); the front counts it when it is given, and a watch when it ends.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use crate::api::{About, Server};

/// The bounds of durations, in seconds, and of sizes, in bytes.
const SECONDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
const BYTES: &[f64] = &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// How often something was at most so much.
#[derive(Clone, Debug, Default)]
struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: f64,
}

impl Histogram {
    fn observe(&mut self, bounds: &[f64], value: f64) {
        self.counts.resize(bounds.len(), 0);
        if let Some(at) = bounds.iter().position(|bound| value <= *bound) {
            self.counts[at] += 1;
        }
        self.count += 1;
        self.sum += value;
    }

    fn write(&self, out: &mut String, name: &str, labels: &str, bounds: &[f64]) {
        let mut below = 0;
        for (bound, count) in bounds.iter().zip(&self.counts) {
            below += count;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{}\"}} {below}", bound_text(*bound));
        }
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", self.count);
        let _ = writeln!(out, "{name}_sum{{{labels}}} {}", self.sum);
        let _ = writeln!(out, "{name}_count{{{labels}}} {}", self.count);
    }
}

/// Large bounds are written as Go writes them.
fn bound_text(bound: f64) -> String {
    match bound >= 1e6 {
        true => format!("1e+{:02}", bound.log10().round()),
        false => bound.to_string(),
    }
}

/// Requests that were alike.
#[derive(Clone, Debug, Default)]
struct Requests {
    codes: BTreeMap<u16, u64>,
    seconds: Histogram,
    bytes: Histogram,
}

/// What is counted.
#[derive(Default)]
pub(super) struct Metrics {
    requests: Mutex<BTreeMap<About, Requests>>,
    watches: Mutex<BTreeMap<About, u64>>,
    /// Events and their bytes, by what was watched.
    events: Mutex<BTreeMap<About, Histogram>>,
    mutating: AtomicI64,
    reading: AtomicI64,
}

/// A request under way.
pub(super) struct Underway {
    metrics: Arc<Metrics>,
    mutating: bool,
}

/// A watch under way: counted as a request when it ends.
pub(super) struct Watching {
    metrics: Arc<Metrics>,
    about: About,
    began: Timestamp,
    bytes: u64,
}

impl Metrics {
    /// A request has come.
    pub fn begin(self: &Arc<Metrics>, mutating: bool) -> Underway {
        self.underway(mutating).fetch_add(1, Ordering::Relaxed);
        Underway { metrics: self.clone(), mutating }
    }

    fn underway(&self, mutating: bool) -> &AtomicI64 {
        if mutating { &self.mutating } else { &self.reading }
    }

    /// A request was answered.
    pub fn answered(&self, about: About, code: u16, took: SignedDuration, bytes: u64) {
        let reads = matches!(about.verb, "GET" | "LIST" | "WATCH");
        let mut all = lock(&self.requests);
        let requests = all.entry(about).or_default();
        *requests.codes.entry(code).or_default() += 1;
        requests.seconds.observe(SECONDS, took.as_secs_f64().max(0.0));
        if reads {
            requests.bytes.observe(BYTES, bytes as f64);
        }
    }

    /// A watch has begun.
    pub fn watching(self: &Arc<Metrics>, about: About, now: Timestamp) -> Watching {
        *lock(&self.watches).entry(about.clone()).or_default() += 1;
        Watching { metrics: self.clone(), about, began: now, bytes: 0 }
    }

    /// All of it as Prometheus reads it.
    pub fn render(&self, server: &Server) -> String {
        let mut out = String::new();
        self.write_requests(&mut out);
        self.write_watches(&mut out);
        head(
            &mut out,
            "apiserver_current_inflight_requests",
            "gauge",
            "[STABLE] Requests that are being answered, by kind.",
        );
        for (kind, mutating) in [("mutating", true), ("readOnly", false)] {
            let number = self.underway(mutating).load(Ordering::Relaxed);
            let _ = writeln!(out, "apiserver_current_inflight_requests{{request_kind=\"{kind}\"}} {number}");
        }
        write_objects(&mut out, server);
        write_process(&mut out);
        out
    }

    fn write_requests(&self, out: &mut String) {
        // What is counted meanwhile waits for no more than a copy.
        let requests = lock(&self.requests).clone();
        let name = "apiserver_request_total";
        head(
            out,
            name,
            "counter",
            "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.",
        );
        for (about, requests) in &requests {
            for (code, count) in &requests.codes {
                let _ = writeln!(out, "{name}{{code=\"{code}\",{}}} {count}", labels(about, true));
            }
        }
        let name = "apiserver_request_duration_seconds";
        head(
            out,
            name,
            "histogram",
            "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, version, resource, subresource, scope and component.",
        );
        for (about, requests) in &requests {
            requests.seconds.write(out, name, &labels(about, true), SECONDS);
        }
        let name = "apiserver_response_sizes";
        head(
            out,
            name,
            "histogram",
            "[STABLE] Response size distribution in bytes for each group, version, verb, resource, subresource, scope and component.",
        );
        for (about, requests) in requests.iter().filter(|(_, requests)| requests.bytes.count > 0) {
            requests.bytes.write(out, name, &labels(about, false), BYTES);
        }
    }

    fn write_watches(&self, out: &mut String) {
        let name = "apiserver_longrunning_requests";
        head(
            out,
            name,
            "gauge",
            "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, version, resource, scope and component. Not all requests are tracked this way.",
        );
        for (about, count) in lock(&self.watches).iter() {
            let _ = writeln!(out, "{name}{{{}}} {count}", labels(about, false));
        }
        let events = lock(&self.events).clone();
        let of = |about: &About| {
            format!("group=\"{}\",resource=\"{}\",version=\"{}\"", about.group, about.resource, about.version)
        };
        let name = "apiserver_watch_events_total";
        head(out, name, "counter", "[ALPHA] Number of events sent in watch clients");
        for (about, events) in &events {
            let _ = writeln!(out, "{name}{{{}}} {}", of(about), events.count);
        }
    }
}

impl Watching {
    /// Events were sent.
    pub fn sent(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let what = About {
            group: self.about.group.clone(),
            version: self.about.version.clone(),
            resource: self.about.resource.clone(),
            ..About::default()
        };
        let mut all = lock(&self.metrics.events);
        let events = all.entry(what).or_default();
        events.count += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        events.sum += bytes.len() as f64;
    }

    /// It is over.
    pub fn end(&self, now: Timestamp) {
        let took = now.duration_since(self.began);
        self.metrics.answered(self.about.clone(), 200, took, self.bytes);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(count) = lock(&self.metrics.watches).get_mut(&self.about) {
            *count = count.saturating_sub(1);
        }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.metrics.underway(self.mutating).fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// The labels of a request, in the order of their names.
fn labels(about: &About, with_dry_run: bool) -> String {
    let component = if about.scope.is_empty() { "" } else { "apiserver" };
    let dry_run = match (with_dry_run, about.dry_run) {
        (false, _) => "",
        (true, false) => "dry_run=\"\",",
        (true, true) => "dry_run=\"All\",",
    };
    format!(
        "component=\"{component}\",{dry_run}group=\"{}\",resource=\"{}\",scope=\"{}\",subresource=\"{}\",verb=\"{}\",version=\"{}\"",
        about.group, about.resource, about.scope, about.subresource, about.verb, about.version
    )
}

/// How many objects there are.
fn write_objects(out: &mut String, server: &Server) {
    let mut counts = BTreeMap::new();
    for resource in server.registry().all().filter(|resource| resource.has_verb("list")) {
        let (group, plural) = (resource.storage.group(), resource.storage.resource());
        counts.insert((group.to_owned(), plural.to_owned()), server.store().list(&resource.storage).len());
    }
    let name = "apiserver_resource_objects";
    head(
        out,
        name,
        "gauge",
        "[ALPHA] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.",
    );
    for ((group, plural), count) in &counts {
        let _ = writeln!(out, "{name}{{group=\"{group}\",resource=\"{plural}\"}} {count}");
    }
    let name = "apiserver_storage_objects";
    head(
        out,
        name,
        "gauge",
        "[STABLE] (Deprecated since 1.34.0) [DEPRECATED, consider using apiserver_resource_objects instead] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.",
    );
    for ((group, plural), count) in &counts {
        let whole = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
        let _ = writeln!(out, "{name}{{resource=\"{whole}\"}} {count}");
    }
}

/// What the kernel says of this process; what it does not say is left out.
fn write_process(out: &mut String) {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let stat = read("stat");
    // After the name, which may hold anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok());
    let hundredths = |at: usize| number(at).map(|ticks| ticks / 100.0);
    let cpu = hundredths(11).zip(hundredths(12)).map(|(user, system)| user + system);
    let status = read("status");
    let kilobytes = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
    };
    let open = std::fs::read_dir("/proc/self/fd").map(|all| all.count() as f64).ok();
    for (name, kind, help, value) in [
        ("process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", cpu),
        ("process_open_fds", "gauge", "Number of open file descriptors.", open),
        ("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", kilobytes("VmRSS:")),
        ("process_virtual_memory_bytes", "gauge", "Virtual memory size in bytes.", kilobytes("VmSize:")),
    ] {
        if let Some(value) = value {
            head(out, name, kind, help);
            let _ = writeln!(out, "{name} {value}");
        }
    }
}
