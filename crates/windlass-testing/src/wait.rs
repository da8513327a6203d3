//! Waiting for the world to be as expected.

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_apiserver::store::{Object, Store};

use crate::TestCluster;
use crate::world::{read, resource_of, tree, yaml};

/// What was waited for did not come. It prints, also by `{:?}`, what the world is instead.
#[derive(Clone, PartialEq, Eq)]
pub struct TimedOut {
    /// What was waited for, of which object, and for how long.
    pub waited_for: String,
    /// The object as YAML; `None` where there is none.
    pub last_state: Option<String>,
    /// What was reported of the object, oldest first, a line each.
    pub events: Vec<String>,
    /// How often the object changed while it was waited for.
    pub changes: usize,
}

impl TestCluster {
    /// Waits until an object is there and as expected. `what` says in words what is expected, for the failure.
    ///
    /// # Errors
    /// When it does not come within the cluster's timeout.
    pub async fn wait_for<K>(
        &self,
        namespace: &str,
        name: &str,
        what: &str,
        mut expected: impl FnMut(&K) -> bool,
    ) -> Result<K, TimedOut>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let found = self.wait::<K>(namespace, name, what, |object| object.is_some_and(&mut expected)).await?;
        Ok(found.expect("what is not there is not as expected"))
    }

    /// Waits until an object has a condition of this type and status, as `kubectl wait --for=condition=Ready=True`.
    ///
    /// # Errors
    /// When it does not come within the cluster's timeout.
    pub async fn wait_for_condition<K>(
        &self,
        namespace: &str,
        name: &str,
        condition: &str,
        status: &str,
    ) -> Result<K, TimedOut>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + serde::Serialize,
    {
        let what = format!("condition {condition} is {status}");
        let holds = |object: &K| {
            let tree = serde_json::to_value(object).unwrap_or_default();
            let conditions = tree["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|c| c["type"] == condition && c["status"] == status)
        };
        self.wait_for(namespace, name, &what, holds).await
    }

    /// Waits until there is no such object.
    ///
    /// # Errors
    /// When it is still there after the cluster's timeout.
    pub async fn wait_gone<K>(&self, namespace: &str, name: &str) -> Result<(), TimedOut>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        self.wait::<K>(namespace, name, "it is gone", |object| object.is_none()).await.map(drop)
    }

    async fn wait<K>(
        &self,
        namespace: &str,
        name: &str,
        what: &str,
        mut expected: impl FnMut(Option<&K>) -> bool,
    ) -> Result<Option<K>, TimedOut>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let key = Store::key(namespace, name);
        let mut seen = Seen::default();
        let waiting = async {
            let mut revision = 0;
            // The server lives as long as `self`, and is closed by nobody else.
            while let Some(store) = self.server().changed(revision).await {
                revision = store.revision();
                // A kind may be defined while it is waited for.
                let resource = self.server().inspect(|server| resource_of::<K>(server.registry()));
                let object =
                    resource.as_ref().and_then(|resource| store.find(&resource.storage, &key)).cloned();
                seen.note(object.clone());
                let typed = resource.zip(object).and_then(|(resource, object)| read::<K>(&resource, &object));
                if expected(typed.as_ref()) {
                    return Some(typed);
                }
            }
            None
        };
        let timeout = self.timeout();
        if let Ok(Some(found)) = tokio::time::timeout(timeout, waiting).await {
            return Ok(found);
        }
        let subject = format!("{} {} {key}", K::api_version(&()), K::kind(&()));
        Err(self.timed_out(&subject, &K::kind(&()), namespace, name, what, timeout, &seen))
    }

    #[expect(clippy::too_many_arguments, reason = "the one place that puts a failure together")]
    fn timed_out(
        &self,
        subject: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        what: &str,
        timeout: Duration,
        seen: &Seen,
    ) -> TimedOut {
        TimedOut {
            waited_for: format!("{subject}: {what} (waited {timeout:?})"),
            last_state: seen.last.as_ref().map(|object| yaml(object)),
            events: self.events_of(kind, namespace, name),
            changes: seen.changes.saturating_sub(1),
        }
    }

    /// What `kubectl describe` shows under Events.
    fn events_of(&self, kind: &str, namespace: &str, name: &str) -> Vec<String> {
        let server = self.server().snapshot();
        let Some(resource) = server.registry().by_kind(&json!({"apiVersion": "v1", "kind": "Event"})) else {
            return Vec::new();
        };
        let all = server.store().list(&resource.storage);
        let mut events: Vec<(u64, String)> = Vec::new();
        for object in all.range(None, None) {
            let event = tree(object);
            let about = ["involvedObject", "regarding"]
                .iter()
                .map(|field| &event[field])
                .find(|value| value.is_object());
            if about.is_some_and(|about| is_about(about, kind, namespace, name)) {
                events.push((object.revision(), line(&event)));
            }
        }
        events.sort();
        events.into_iter().map(|(_, line)| line).collect()
    }
}

/// What a wait has seen of its object.
#[derive(Default)]
struct Seen {
    last: Option<Arc<Object>>,
    revision: Option<u64>,
    changes: usize,
}

impl Seen {
    fn note(&mut self, object: Option<Arc<Object>>) {
        let revision = object.as_ref().map(|object| object.revision());
        if self.changes == 0 || self.revision != revision {
            self.changes += 1;
        }
        self.revision = revision;
        self.last = object;
    }
}

fn is_about(about: &Value, kind: &str, namespace: &str, name: &str) -> bool {
    about["kind"] == kind
        && about["name"] == name
        && about["namespace"].as_str().unwrap_or_default() == namespace
}

fn line(event: &Value) -> String {
    let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let message = [text("message"), text("note")].concat();
    let count = event["count"].as_u64().filter(|count| *count > 1).map(|count| format!(" (x{count})"));
    format!("{} {}: {message}{}", text("type"), text("reason"), count.unwrap_or_default())
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = format!("{}\n", self.waited_for);
        match &self.last_state {
            None => out.push_str("there is no such object\n"),
            Some(state) => {
                let changes = self.changes;
                writeln!(out, "last state, after {changes} change{}:", if changes == 1 { "" } else { "s" })?;
                state.lines().try_for_each(|line| writeln!(out, "  {line}"))?;
            }
        }
        if self.events.is_empty() {
            out.push_str("no events about it\n");
        } else {
            out.push_str("events about it:\n");
            self.events.iter().try_for_each(|event| writeln!(out, "  {event}"))?;
        }
        f.write_str(out.trim_end())
    }
}

/// What `unwrap` prints should be read by people.
impl fmt::Debug for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for TimedOut {}
