//! Plays one scenario on a server.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::api::{Api, Kind};
use super::mirror::{Entry, Mirror, View};
use super::normal::Picture;
use super::puppet::{self, Act};
use super::scenario::{Delete, Pods, Scenario, Step};
use super::strings::{self, Next, Strings};

/// Where scenarios are played.
pub struct Stage {
    /// The server.
    pub api: Api,
    /// What it has.
    pub mirror: Mirror,
    /// The time on its wall.
    pub now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// Who moves pods.
    pub node: Node,
    /// What is compared of what is there.
    pub picture: fn(&View, &str) -> Picture,
    /// Renews the leases of nodes that are alive.
    pub _heartbeats: JoinSet<()>,
}

/// Who moves pods.
#[derive(Clone, Debug)]
pub enum Node {
    /// The puppet, which binds them too.
    Puppet,
    /// The puppet, after a scheduler has bound them.
    ScheduledPuppet,
    /// A node that is there.
    Real,
    /// A node of ours whose pods do as the puppet would.
    OnStrings(Strings),
}

/// What was done about pods.
#[derive(PartialEq, Eq)]
enum Done {
    /// One thing.
    Something,
    /// Nothing, since some are still on their way.
    Waits,
    /// Nothing: there is nothing to do.
    Nothing,
}

/// What came of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// What was there, by the name of the moment; `end` is the last.
    pub pictures: BTreeMap<String, Picture>,
    /// What was waited for in vain.
    pub missed: Vec<String>,
}

struct Player<'a> {
    stage: &'a Stage,
    scenario: &'a Scenario,
    namespace: String,
    /// When this player did something last.
    acted: Instant,
    played: Played,
}

/// Plays a scenario to its end. A wait that ends in vain is a part of what came of it: what is there then is compared all
/// the same.
///
/// # Errors
/// When the server refuses a step.
pub async fn play(stage: &Stage, scenario: &Scenario) -> Result<Played> {
    let namespace = scenario.namespace();
    stage.mirror.note(&namespace);
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    stage.api.apply(&namespace, &object).await?;
    let played = Played::default();
    let mut player = Player { stage, scenario, namespace, acted: Instant::now(), played };
    // Controllers that give every namespace something come first.
    player.settle(scenario.quiet).await?;
    if matches!(stage.node, Node::Real) {
        // Pods are refused until their account is there.
        let account = |view: &View| matching(view, "serviceaccount/default").is_empty();
        player.until(|view| account(view).then(|| "an account for pods".to_owned())).await?;
    }
    for (index, step) in scenario.steps.iter().enumerate() {
        player.step(step).await.with_context(|| format!("{}, step {index}", scenario.full_name()))?;
    }
    player.settle(scenario.settle).await?;
    player.picture("end");
    Ok(player.played)
}

impl Player<'_> {
    async fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Apply(objects) => {
                for object in objects {
                    self.stage.api.apply(&self.namespace, &self.played(object)).await?;
                }
            }
            Step::Try(objects) => {
                for object in objects {
                    let (status, answer) =
                        self.stage.api.try_apply(&self.namespace, &self.played(object)).await?;
                    let message = if status < 300 { &Value::Null } else { &answer["message"] };
                    let kind = object["kind"].as_str().unwrap_or_default();
                    self.add("try", kind, json!({"code": status, "message": message}));
                }
            }
            Step::Patch(patches) => {
                for (what, patch) in patches {
                    self.stage.api.merge(&self.path(what)?, &self.played(patch)).await?;
                }
            }
            Step::Strategic(patches) => {
                let content = "application/strategic-merge-patch+json";
                for (what, patch) in patches {
                    let (path, patch) = (self.path(what)?, self.played(patch));
                    self.stage.api.send(Method::PATCH, &path, content, &patch).await?;
                }
            }
            Step::Status(patches) => {
                for (what, patch) in patches {
                    if matches!(self.stage.node, Node::OnStrings(_)) && what.starts_with("node/") {
                        self.node_is_ready(what).await?;
                        continue;
                    }
                    let patch = json!({"status": self.expand(patch)});
                    self.stage.api.merge(&format!("{}/status", self.path(what)?), &patch).await?;
                }
            }
            Step::StrategicStatus(patches) => {
                for (what, patch) in patches {
                    let patch = json!({"status": self.expand(patch)});
                    self.set_status(&self.path(what)?, &patch).await?;
                }
            }
            Step::Scale(replicas) => {
                for (what, replicas) in replicas {
                    let patch = json!({"spec": {"replicas": replicas}});
                    self.stage.api.merge(&format!("{}/scale", self.path(what)?), &patch).await?;
                }
            }
            Step::Delete(Delete { what, propagation, grace }) => {
                let mut options = json!({});
                if let Some(propagation) = propagation {
                    options["propagationPolicy"] = json!(propagation);
                }
                if let Some(grace) = grace {
                    options["gracePeriodSeconds"] = json!(grace);
                }
                self.stage.api.delete(&self.path(what)?, &options).await?;
            }
            Step::Pods(pods) => self.pods(pods).await?,
            Step::Wait(wanted) => {
                let wanted: BTreeMap<String, Value> =
                    wanted.iter().map(|(what, like)| (what.clone(), self.expand(like))).collect();
                let namespace = self.namespace.clone();
                self.until(|view| {
                    wanted.iter().find_map(|(what, like)| unlike(view, &namespace, what, like))
                })
                .await?;
            }
            Step::Count(wanted) => {
                self.until(|view| {
                    wanted.iter().find_map(|(what, count)| {
                        let found = matching(view, what).len();
                        (found != *count).then(|| format!("{count} of {what}; there are {found}"))
                    })
                })
                .await?;
            }
            Step::Review(secret) => self.review(secret).await?,
            Step::Sleep(seconds) => self.pass(Duration::from_secs_f64(*seconds)).await?,
            Step::Snapshot(name) => {
                self.settle(self.scenario.settle).await?;
                self.picture(name);
            }
        }
        self.acted = Instant::now();
        Ok(())
    }

    fn picture(&mut self, name: &str) {
        let view = self.stage.mirror.view(&self.namespace);
        self.played.pictures.insert(name.to_owned(), (self.stage.picture)(&view, &self.namespace));
    }

    /// Waits until there is nothing to say against what is there, looking only when nothing happens. Where pods really run,
    /// those that there are have started then: whether one was just about to is not left to chance.
    async fn until(&mut self, against: impl Fn(&View) -> Option<String>) -> Result<()> {
        let deadline = Instant::now() + self.scenario.patience();
        let quiet = Duration::from_secs_f64(self.scenario.quiet);
        let mut seen = false;
        loop {
            self.calm(quiet, deadline).await;
            let view = self.stage.mirror.view(&self.namespace);
            let starting = match &self.stage.node {
                Node::OnStrings(strings) => matches!(strings.next(&view), Next::Wait | Next::Bind(..)),
                _ => false,
            };
            let why = against(&view).filter(|_| !seen);
            seen |= why.is_none();
            let Some(why) = why.or(starting.then(|| "pods that are what they are to be".to_owned())) else {
                return Ok(());
            };
            if Instant::now() >= deadline {
                self.played.missed.push(why);
                return Ok(());
            }
            if self.act().await? != Done::Something {
                self.stage.mirror.changed(quiet).await;
            }
        }
    }

    /// Waits until the puppet has nothing more to do and nothing happens for so many seconds.
    async fn settle(&mut self, seconds: f64) -> Result<()> {
        let deadline = Instant::now() + self.scenario.patience();
        let quiet = Duration::from_secs_f64(self.scenario.quiet);
        loop {
            self.calm(quiet, deadline).await;
            let done = self.act().await?;
            if done == Done::Something {
                continue;
            }
            let long = Duration::from_secs_f64(seconds);
            let so_far = self.stage.mirror.quiet_for(&self.namespace, self.acted);
            if so_far >= long && done == Done::Nothing {
                return Ok(());
            }
            if Instant::now() >= deadline {
                self.played.missed.push(format!("{seconds} s in which nothing happens"));
                return Ok(());
            }
            let rest = if done == Done::Waits { quiet } else { long - so_far };
            self.stage.mirror.changed(rest).await;
        }
    }

    /// Lets time pass; the puppet goes on.
    async fn pass(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        let quiet = Duration::from_secs_f64(self.scenario.quiet);
        while Instant::now() < end {
            self.calm(quiet, end).await;
            if Instant::now() < end && self.act().await? != Done::Something {
                self.stage.mirror.changed(quiet.min(end - Instant::now())).await;
            }
        }
        Ok(())
    }

    /// Waits until nothing happens.
    async fn calm(&self, quiet: Duration, deadline: Instant) {
        loop {
            let so_far = self.stage.mirror.quiet_for(&self.namespace, self.acted);
            if so_far >= quiet || Instant::now() >= deadline {
                return;
            }
            sleep((quiet - so_far).min(deadline - Instant::now())).await;
        }
    }

    /// Does one thing about pods, where there is something to do.
    async fn act(&mut self) -> Result<Done> {
        let view = self.stage.mirror.view(&self.namespace);
        match &self.stage.node {
            Node::Real => return Ok(Done::Nothing),
            Node::Puppet | Node::ScheduledPuppet => {
                let bind = matches!(self.stage.node, Node::Puppet);
                match puppet::next(&view, bind, (self.stage.now)()) {
                    Some((pod, act)) => self.do_to_pod(&pod.object, act).await?,
                    None => return Ok(Done::Nothing),
                }
            }
            Node::OnStrings(strings) => match strings.next(&view) {
                Next::Bind(pod, node) => self.do_to_pod(pod, Act::Bind(node)).await?,
                Next::End(pod, code) => strings.end(pod, code).await?,
                Next::Wait => return Ok(Done::Waits),
                Next::Nothing => return Ok(Done::Nothing),
            },
        }
        self.acted = Instant::now();
        Ok(Done::Something)
    }

    /// A node of ours says by itself how it is: it is waited for.
    async fn node_is_ready(&mut self, what: &str) -> Result<()> {
        let what = what.replace("${ns}", &self.namespace);
        self.until(|view| {
            let ready = matching(view, &what).first().is_some_and(|node| strings::is_ready(&node.object));
            (!ready).then(|| format!("{what} is ready"))
        })
        .await
    }

    async fn do_to_pod(&self, pod: &Value, act: Act) -> Result<()> {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("/api/v1/namespaces/{}/pods/{name}", self.namespace);
        let api = &self.stage.api;
        match act {
            Act::Bind(node) => {
                let binding = json!({
                    "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": node},
                });
                let path = format!("{path}/binding");
                let (status, answer) =
                    api.send_to_any(Method::POST, &path, "application/json", &binding).await?;
                // A pod that is deleted at this moment cannot be bound any more.
                if status != 404 && status != 409 && !(200..300).contains(&status) {
                    bail!("binding of {name}: {status} {}", answer["message"]);
                }
            }
            Act::Status(patch) => self.set_status(&path, &patch).await?,
            Act::Finish(last) => {
                if !last.is_null() {
                    self.set_status(&path, &last).await?;
                }
                let uid = &pod["metadata"]["uid"];
                let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
                api.delete(&path, &options).await?;
            }
        }
        Ok(())
    }

    async fn set_status(&self, path: &str, patch: &Value) -> Result<()> {
        let path = format!("{path}/status");
        let content = "application/strategic-merge-patch+json";
        let (status, answer) = self.stage.api.send_to_any(Method::PATCH, &path, content, patch).await?;
        // A pod that is gone at this moment has no status.
        if status != 404 && !(200..300).contains(&status) {
            bail!("PATCH {path}: {status} {}", answer["message"]);
        }
        Ok(())
    }

    async fn pods(&mut self, pods: &Pods) -> Result<()> {
        let view = self.stage.mirror.view(&self.namespace);
        let mut chosen = matching(&view, &format!("pod?{}", pods.select));
        chosen.retain(|pod| pod.object["metadata"]["deletionTimestamp"].is_null());
        // They are in the order in which they were made, but those of a daemon set are made all at once.
        chosen.sort_by_key(|pod| match pod.object["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet" {
            true => pod.object["spec"]["nodeName"].as_str().unwrap_or_default().to_owned(),
            false => String::new(),
        });
        chosen.truncate(pods.take.unwrap_or(usize::MAX));
        if chosen.is_empty() {
            return Err(anyhow!("there is no pod {:?} to {}", pods.select, pods.act));
        }
        let now = (self.stage.now)();
        for pod in chosen {
            let name = pod.object["metadata"]["name"].as_str().unwrap_or_default();
            let path = format!("/api/v1/namespaces/{}/pods/{name}", self.namespace);
            let (act, tag) = pods.act.split_once(':').unwrap_or((&pods.act, "1"));
            if let Node::OnStrings(strings) = &self.stage.node
                && ["ready", "unready", "succeed", "fail"].contains(&act)
            {
                match act {
                    "succeed" => strings.will_end(&pod.object, 0),
                    "fail" => strings.will_end(&pod.object, tag.parse()?),
                    _ => strings.ready(&pod.object, act == "ready")?,
                }
                continue;
            }
            let status = match act {
                "ready" if pod.object["status"]["phase"] == "Running" => {
                    puppet::readiness(&pod.object, true, now)
                }
                "ready" => puppet::running(&pod.object, true, pod.order, now),
                "running" => puppet::running(&pod.object, false, pod.order, now),
                "unready" => puppet::readiness(&pod.object, false, now),
                "succeed" => puppet::terminated(&pod.object, 0, now),
                "fail" => puppet::terminated(&pod.object, tag.parse()?, now),
                "delete" => {
                    self.stage.api.delete(&path, &json!({})).await?;
                    continue;
                }
                "finish" => {
                    self.stage.api.delete(&path, &json!({"gracePeriodSeconds": 0})).await?;
                    continue;
                }
                "evict" => {
                    self.evict(&path, name).await?;
                    continue;
                }
                other => bail!("nothing called {other:?} becomes of pods"),
            };
            self.set_status(&path, &status).await?;
        }
        Ok(())
    }

    /// What the server says to an eviction is compared as an event would be: it is a part of the end.
    async fn evict(&mut self, path: &str, name: &str) -> Result<()> {
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.namespace}});
        let path = format!("{path}/eviction");
        let deadline = Instant::now() + self.scenario.patience();
        let (status, answer) = loop {
            let (status, answer) =
                self.stage.api.send_to_any(Method::POST, &path, "application/json", &body).await?;
            let cause = answer["details"]["causes"][0]["message"].as_str().unwrap_or_default();
            // The pod was written at this very moment. As everybody who evicts pods does, it is asked again.
            let again = cause.ends_with("is still being processed by the server.");
            if !again || Instant::now() >= deadline {
                break (status, answer);
            }
            sleep(Duration::from_secs(1)).await;
        };
        let cause = answer["details"]["causes"][0]["message"].as_str().unwrap_or_default();
        let answer = json!({"code": status, "message": answer["message"], "cause": cause});
        self.add("eviction", "Eviction", answer);
        Ok(())
    }

    /// Whom the token in a Secret speaks for, by the server's own word.
    async fn review(&mut self, secret: &str) -> Result<()> {
        let view = self.stage.mirror.view(&self.namespace);
        let found = matching(&view, &format!("secret/{secret}"));
        let text = found.first().and_then(|secret| secret.object["data"]["token"].as_str());
        let token = String::from_utf8(STANDARD.decode(text.unwrap_or_default())?)?;
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token}});
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let (_, answer) = self.stage.api.send_to_any(Method::POST, path, "application/json", &body).await?;
        let mut status = answer["status"].clone();
        if let Some(user) = status["user"].as_object_mut() {
            user.shift_remove("uid");
        }
        self.add("review", "TokenReview", status);
        Ok(())
    }

    /// One more answer that is compared: `name` is the moment, `kind` what was asked.
    fn add(&mut self, name: &str, kind: &str, answer: Value) {
        let count = self.played.pictures.len();
        let picture = Picture::from([(kind.to_owned(), answer)]);
        self.played.pictures.insert(format!("{name} {count}"), picture);
    }

    fn path(&self, what: &str) -> Result<String> {
        let what = what.replace("${ns}", &self.namespace);
        let (kind, name) = what.split_once('/').with_context(|| format!("{what:?} is no kind/name"))?;
        Ok(format!("{}/{name}", Kind::named(kind)?.path(Some(&self.namespace))))
    }

    /// What is sent of an object, or a patch of one.
    fn played(&self, value: &Value) -> Value {
        let value = self.expand(value);
        match &self.stage.node {
            Node::OnStrings(strings) => strings.tie(self.scenario, &value),
            _ => value,
        }
    }

    /// With `${ns}` as the namespace and `${now+5}` as the time in five seconds.
    fn expand(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.expand_text(text)),
            Value::Array(items) => items.iter().map(|item| self.expand(item)).collect(),
            Value::Object(map) => Value::Object(
                map.iter().map(|(key, value)| (self.expand_text(key), self.expand(value))).collect(),
            ),
            other => other.clone(),
        }
    }

    fn expand_text(&self, text: &str) -> String {
        let text = text.replace("${ns}", &self.namespace);
        if let Some(uid) = text.strip_prefix("${uid ").and_then(|rest| rest.strip_suffix('}')) {
            let view = self.stage.mirror.view(&self.namespace);
            let (kind, name) = uid.split_once('/').unwrap_or((uid, ""));
            let found = view.iter().find(|entry| {
                entry.kind.kind.eq_ignore_ascii_case(kind) && entry.object["metadata"]["name"] == name
            });
            return found
                .and_then(|entry| entry.object["metadata"]["uid"].as_str())
                .unwrap_or(uid)
                .to_owned();
        }
        let Some(offset) = text.strip_prefix("${now").and_then(|rest| rest.strip_suffix('}')) else {
            return text;
        };
        let seconds: i64 = offset.parse().unwrap_or(0);
        let then = (self.stage.now)().as_second() + seconds;
        Timestamp::from_second(then).map(|time| time.to_string()).unwrap_or_default()
    }
}

/// The objects that are there of `kind`, `kind/name` or `kind?label=value`.
fn matching<'a>(view: &'a View, what: &str) -> Vec<&'a Entry> {
    let (kind, rest) = match what.find(['/', '?']) {
        Some(at) => (&what[..at], &what[at..]),
        None => (what, ""),
    };
    let is_it = |entry: &&Entry| {
        let metadata = &entry.object["metadata"];
        let fits = match (rest.strip_prefix('/'), rest.strip_prefix('?')) {
            (Some(name), _) => metadata["name"] == name,
            (_, Some(selector)) => selector.split(',').all(|one| match one.split_once('=') {
                Some((label, value)) => metadata["labels"][label] == value,
                None => one.is_empty() || metadata["labels"][one].is_string(),
            }),
            _ => true,
        };
        !entry.gone && entry.kind.kind.eq_ignore_ascii_case(kind) && fits
    };
    view.iter().filter(is_it).collect()
}

/// Why an object is not what is waited for.
fn unlike(view: &View, namespace: &str, what: &str, like: &Value) -> Option<String> {
    let what = what.replace("${ns}", namespace);
    match (matching(view, &what).as_slice(), like) {
        ([], Value::Null) => None,
        ([], _) => Some(format!("{what} is there")),
        (_, Value::Null) => Some(format!("{what} is gone")),
        ([one], like) => lacks(&one.object, like, "").map(|why| format!("{what}: {why}")),
        (many, _) => Some(format!("one {what}; there are {}", many.len())),
    }
}

/// What of `like` an object lacks. Conditions are found by their type; a `null` says that nothing is there.
fn lacks(object: &Value, like: &Value, path: &str) -> Option<String> {
    match (object, like) {
        (_, Value::Object(map)) => {
            map.iter().find_map(|(key, like)| lacks(&object[key], like, &format!("{path}.{key}")))
        }
        (Value::Array(items), Value::Array(wanted)) => wanted.iter().find_map(|wanted| {
            let found = items.iter().any(|item| lacks(item, wanted, path).is_none());
            (!found).then(|| format!("{path} has {wanted}; it is {object}"))
        }),
        _ => (object != like).then(|| format!("{path} is {like}; it is {object}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_a_part_of_what_is_there() {
        let object = json!({"status": {"conditions": [{"type": "A", "status": "True"}], "replicas": 3}});
        assert_eq!(lacks(&object, &json!({"status": {"replicas": 3}}), ""), None);
        assert_eq!(lacks(&object, &json!({"status": {"ready": null}}), ""), None);
        let other = json!({"status": {"conditions": [{"type": "A", "status": "False"}]}});
        assert!(lacks(&object, &other, "").is_some());
    }
}
