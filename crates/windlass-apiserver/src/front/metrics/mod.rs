//! What the server counts of itself, under the names and labels of kube-apiserver.
//!
//! The core says what an answer [was about](About) and [who was asked](Consulted) before it; the front counts it when it is
//! given, and what goes on for longer when it ends. `conformance/src/metrics` compares it with kube-apiserver's.

mod process;
mod text;
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::running::Shared;
use crate::api::{About, Consulted, Labels};
use crate::schema::Str;
use text::Histogram;

/// The bounds of durations, in seconds: of requests, of those without the webhooks, and of webhooks.
const SECONDS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
const SLI_SECONDS: &[f64] = SECONDS.split_at(2).1;
const HOOK_SECONDS: &[f64] = &[0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// The bounds of sizes, in bytes: of answers, and of events.
const BYTES: &[f64] = &[1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const EVENT_BYTES: &[f64] = &[1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131072.0];

/// Requests that were alike.
#[derive(Clone, Debug)]
struct Requests {
    /// By what they said of a dry run, and by code.
    codes: BTreeMap<(&'static str, u16), u64>,
    /// By what they said of a dry run.
    seconds: BTreeMap<&'static str, Histogram>,
    sli_seconds: Histogram,
    bytes: Histogram,
    aborts: u64,
}

impl Default for Requests {
    fn default() -> Requests {
        Requests {
            codes: BTreeMap::new(),
            seconds: BTreeMap::new(),
            sli_seconds: Histogram::new(SLI_SECONDS),
            bytes: Histogram::new(BYTES),
            aborts: 0,
        }
    }
}

/// Questions to one webhook about one operation.
#[derive(Clone, Debug)]
struct Questions {
    /// By code, and whether it was refused.
    answers: BTreeMap<(u16, bool), u64>,
    /// How long those took that were let through, and those that were not.
    seconds: [Histogram; 2],
    /// By kind of error, and code.
    rejections: BTreeMap<(&'static str, u16), u64>,
    failed_open: u64,
}

impl Default for Questions {
    fn default() -> Questions {
        Questions {
            answers: BTreeMap::new(),
            seconds: [Histogram::new(HOOK_SECONDS), Histogram::new(HOOK_SECONDS)],
            rejections: BTreeMap::new(),
            failed_open: 0,
        }
    }
}

/// Which webhook, in which step, about which operation.
type Hook = (String, &'static str, &'static str);
/// Group, version and plural of what is watched.
type Watched = [Str; 3];

/// What is counted.
#[derive(Default)]
pub(super) struct Metrics {
    requests: Mutex<BTreeMap<Labels, Requests>>,
    going: Mutex<BTreeMap<Labels, u64>>,
    events: Mutex<BTreeMap<Watched, Arc<Mutex<Histogram>>>>,
    hooks: Mutex<BTreeMap<Hook, Questions>>,
    /// Those that change something, and those that only read.
    inflight: Mutex<[Inflight; 2]>,
}

/// How many requests are under way, and the most that there were at once, in each of the last two seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Inflight {
    now: u64,
    second: i64,
    most: u64,
    before: u64,
}

impl Inflight {
    fn at(&mut self, now: Timestamp) -> &mut Inflight {
        let second = now.as_second();
        if second != self.second {
            self.before = if second == self.second + 1 { self.most } else { self.now };
            (self.second, self.most) = (second, self.now);
        }
        self
    }
}

/// A request under way.
pub(super) struct Underway {
    shared: Arc<Shared>,
    kind: usize,
}

impl Underway {
    /// A request has come.
    pub fn begin(shared: &Arc<Shared>, mutating: bool, now: Timestamp) -> Underway {
        let kind = usize::from(!mutating);
        let mut inflight = lock(&shared.metrics.inflight);
        let inflight = inflight[kind].at(now);
        inflight.now += 1;
        inflight.most = inflight.most.max(inflight.now);
        Underway { shared: shared.clone(), kind }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let inflight = &mut lock(&self.shared.metrics.inflight)[self.kind];
        inflight.now = inflight.now.saturating_sub(1);
    }
}

/// What became of a request.
pub(super) struct Outcome {
    pub code: u16,
    pub took: SignedDuration,
    /// How much of that webhooks took.
    pub asking: SignedDuration,
    pub bytes: u64,
}

impl Metrics {
    /// A request was answered.
    pub fn answered(&self, about: About, outcome: &Outcome) {
        let Outcome { code, took, asking, bytes } = outcome;
        let About { labels, dry_run, is_sized, is_awaited, .. } = about;
        let mut all = lock(&self.requests);
        let requests = all.entry(labels).or_default();
        *requests.codes.entry((dry_run, *code)).or_default() += 1;
        let seconds = requests.seconds.entry(dry_run).or_insert_with(|| Histogram::new(SECONDS));
        seconds.observe(took.as_secs_f64().max(0.0));
        if is_awaited {
            requests.sli_seconds.observe((*took - *asking).as_secs_f64().max(0.0));
        }
        if is_sized {
            requests.bytes.observe(*bytes as f64);
        }
    }

    /// Webhooks were asked. How long the request waited for them.
    pub fn consulted(&self, all: Vec<Consulted>) -> SignedDuration {
        let (mut admitting, mut validating) = (SignedDuration::ZERO, SignedDuration::ZERO);
        if all.is_empty() {
            return SignedDuration::ZERO;
        }
        let mut hooks = lock(&self.hooks);
        for one in all {
            // The first are asked one after the other, the second side by side.
            match one.step {
                "admit" => admitting += one.took,
                _ => validating = validating.max(one.took),
            }
            let rejected = one.rejection.is_some();
            let code = one.code.min(600);
            let questions = hooks.entry((one.name, one.step, one.operation)).or_default();
            *questions.answers.entry((code, rejected)).or_default() += 1;
            questions.seconds[usize::from(rejected)].observe(one.took.as_secs_f64().max(0.0));
            if let Some(why) = one.rejection {
                *questions.rejections.entry((why, code)).or_default() += 1;
            }
            questions.failed_open += u64::from(one.failed_open);
        }
        admitting + validating
    }
}

/// A request that goes on for longer: counted when it ends.
pub(super) struct Going {
    shared: Arc<Shared>,
    about: About,
    began: Timestamp,
    code: u16,
    bytes: u64,
    events: Option<Arc<Mutex<Histogram>>>,
    is_told: bool,
}

impl Going {
    /// It has begun; `is_told` is whether it is counted while it goes on, too.
    pub fn begin(shared: &Arc<Shared>, about: About, began: Timestamp, is_told: bool) -> Going {
        if is_told {
            *lock(&shared.metrics.going).entry(meanwhile(&about)).or_default() += 1;
        }
        Going { shared: shared.clone(), about, began, code: 200, bytes: 0, events: None, is_told }
    }

    /// The answer begins with this code; none where the connection is not one of HTTP any more.
    pub fn coded(mut self, code: u16) -> Going {
        self.code = code;
        self
    }

    /// It is a watch, whose events are counted.
    pub fn of_events(mut self) -> Going {
        let Labels { group, version, resource, .. } = &self.about.labels;
        let watched = [group, version, resource].map(Str::clone);
        let mut all = lock(&self.shared.metrics.events);
        let events = all.entry(watched).or_insert_with(|| Arc::new(Mutex::new(Histogram::new(EVENT_BYTES))));
        self.events = Some(events.clone());
        drop(all);
        self
    }

    /// Bytes were sent. Those of a watch are whole events.
    pub fn sent(&mut self, bytes: usize, events: &[u8]) {
        self.bytes += bytes as u64;
        if let Some(all) = &self.events {
            let mut all = lock(all);
            let mut begin = 0;
            for end in memchr::memchr_iter(b'\n', events) {
                all.observe((end + 1 - begin) as f64);
                begin = end + 1;
            }
        }
    }

    /// It broke off.
    pub fn abort(&self) {
        lock(&self.shared.metrics.requests).entry(self.about.labels.clone()).or_default().aborts += 1;
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        let metrics = &self.shared.metrics;
        if self.is_told
            && let Some(count) = lock(&metrics.going).get_mut(&meanwhile(&self.about))
        {
            *count = count.saturating_sub(1);
        }
        let took = self.shared.clock.now().duration_since(self.began);
        // Nobody is asked about what is only read.
        let outcome = Outcome { code: self.code, took, asking: SignedDuration::ZERO, bytes: self.bytes };
        metrics.answered(std::mem::take(&mut self.about), &outcome);
    }
}

/// The labels of a request while it goes on.
fn meanwhile(about: &About) -> Labels {
    let (verb, scope) = about.going;
    Labels { verb, scope, ..about.labels.clone() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
