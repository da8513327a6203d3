//! All objects of a server as they are now, those that were, and when something last happened in a namespace.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::api::{Api, KINDS, Kind};

/// What a server has, followed by watches of its own: nothing that is under test is between them.
#[derive(Clone)]
pub struct Mirror {
    state: Arc<State>,
    _watches: Arc<JoinSet<()>>,
}

#[derive(Default)]
struct State {
    all: Mutex<All>,
    changed: Notify,
}

#[derive(Default)]
struct All {
    /// By uid, those that are gone among them.
    objects: BTreeMap<String, Entry>,
    /// How many objects were seen first so far.
    seen: u64,
    /// When something last happened, by namespace.
    changes: BTreeMap<String, Instant>,
}

/// An object as it was seen last.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its kind.
    pub kind: &'static Kind,
    /// When it was seen first: later ones have higher numbers.
    pub order: u64,
    /// Whether it is there no more.
    pub gone: bool,
    /// Itself.
    pub object: Value,
}

/// What a namespace has, or had: objects in it, and objects outside that name it.
pub type View = Vec<Entry>;

impl Mirror {
    /// Follows a server.
    pub fn start(api: &Api) -> Mirror {
        let state = Arc::new(State::default());
        let mut watches = JoinSet::new();
        for kind in KINDS {
            watches.spawn(follow(api.clone(), kind, state.clone()));
        }
        Mirror { state, _watches: Arc::new(watches) }
    }

    /// What a namespace has, in the order in which it was seen first.
    pub fn view(&self, namespace: &str) -> View {
        let all = self.state.lock();
        let mut view: View =
            all.objects.values().filter(|entry| belongs(&entry.object, namespace)).cloned().collect();
        view.sort_by_key(|entry| entry.order);
        view
    }

    /// The names of all nodes that are there and have this label.
    pub fn nodes_with(&self, label: &str) -> Vec<String> {
        let all = self.state.lock();
        let nodes = all.objects.values().filter(|entry| entry.kind.kind == "Node" && !entry.gone);
        let labelled = nodes.filter(|node| node.object["metadata"]["labels"][label].is_string());
        labelled.filter_map(|node| node.object["metadata"]["name"].as_str().map(str::to_owned)).collect()
    }

    /// How long nothing has happened in a namespace. `since` is when the one who asks did something there.
    pub fn quiet_for(&self, namespace: &str, since: Instant) -> Duration {
        let last = self.state.lock().changes.get(namespace).copied();
        last.map_or(since, |last| last.max(since)).elapsed()
    }

    /// Waits until something happens anywhere, but not for longer than this.
    pub async fn changed(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.state.changed.notified()).await;
    }

    /// Something that happens in this namespace from here on is noted.
    pub fn note(&self, namespace: &str) {
        self.state.lock().changes.insert(namespace.to_owned(), Instant::now());
    }
}

impl State {
    fn lock(&self) -> std::sync::MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, kind: &'static Kind, object: Value, gone: bool) {
        let mut all = self.lock();
        let now = Instant::now();
        // A probe that goes on failing is told of again and again: that is nothing new.
        let again = kind.kind == "Event" && object["reason"] == "Unhealthy";
        for (namespace, last) in &mut all.changes {
            if !again && belongs(&object, namespace) {
                *last = now;
            }
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        all.seen += 1;
        let order = all.objects.get(&uid).map_or(all.seen, |entry| entry.order);
        all.objects.insert(uid, Entry { kind, order, gone, object });
        drop(all);
        self.changed.notify_waiters();
    }
}

/// Whether an object is in a namespace, or says its name: a node of its own, a volume with a claim in it, an event about
/// one of these.
fn belongs(object: &Value, namespace: &str) -> bool {
    match object["metadata"]["namespace"].as_str() {
        Some(own) if own != "default" => own == namespace,
        _ => says(object, namespace),
    }
}

fn says(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(items) => items.iter().any(|item| says(item, text)),
        Value::Object(map) => map.values().any(|item| says(item, text)),
        _ => false,
    }
}

async fn follow(api: Api, kind: &'static Kind, state: Arc<State>) {
    loop {
        // A server that has stopped is nothing to follow; one that goes on is listed again.
        let _ = list_and_watch(&api, kind, &state).await;
        sleep(Duration::from_millis(200)).await;
    }
}

async fn list_and_watch(api: &Api, kind: &'static Kind, state: &State) -> anyhow::Result<()> {
    let (items, version) = api.list(kind, None).await?;
    let known: Vec<String> =
        items.iter().filter_map(|item| item["metadata"]["uid"].as_str()).map(str::to_owned).collect();
    for item in items {
        state.put(kind, item, false);
    }
    let lost: Vec<Value> = {
        let all = state.lock();
        let entries = all.objects.iter().filter(|(_, entry)| entry.kind == kind && !entry.gone);
        entries.filter(|(uid, _)| !known.contains(uid)).map(|(_, entry)| entry.object.clone()).collect()
    };
    for object in lost {
        state.put(kind, object, true);
    }
    let mut lines = api.watch(kind, &version).await?;
    while let Some(mut event) = lines.next().await? {
        let object = event["object"].take();
        match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => state.put(kind, object, false),
            Some("DELETED") => state.put(kind, object, true),
            _ => break,
        }
    }
    Ok(())
}
