//! What a node is asked about the containers of a pod.

use serde_json::{Value, json};

use super::super::options::Query;
use super::super::route::Target;
use super::super::server::Server;
use super::{Going, Relay, Relayed, list};
use crate::field::{Errors, Path};
use crate::json::str_at;
use crate::status::{Result, Status};

impl Server {
    pub(super) fn log(&self, target: &Target, query: &Query<'_>) -> Result<Going> {
        let mut words = Words::default();
        for name in ["follow", "previous", "timestamps"] {
            words.flag(name, query.flag(name), "true");
        }
        let since_time = query.text("sinceTime");
        let mut faults = Errors::default();
        let mut number = |name: &str, least: i64, fault: &str| {
            let value = query.int(name)?;
            if let Some(value) = value.filter(|value| *value < least) {
                faults.invalid(&Path::Root.child(name), &json!(value), fault);
            }
            Ok::<_, Status>(value)
        };
        let tail = number("tailLines", 0, "must be greater than or equal to 0")?;
        let limit = number("limitBytes", 1, "must be greater than 0")?;
        let since = match since_time {
            "" => number("sinceSeconds", 1, "must be greater than 0")?,
            _ => query.int("sinceSeconds")?,
        };
        if since.is_some() && !since_time.is_empty() {
            let both = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            faults.forbidden(&Path::Root.child(""), both);
        }
        if !matches!(query.text("stream"), "" | "All" | "Stdout" | "Stderr") {
            let path = Path::Root;
            faults.not_supported(
                &path.child("stream"),
                &json!(query.text("stream")),
                &["All", "Stderr", "Stdout"],
            );
        }
        if !faults.0.is_empty() {
            return Err(Status::invalid("", "PodLogOptions", &target.name, faults));
        }
        let pod = self.tree(target, "pods", &target.name)?;
        let container = container(&pod, query.text("container"))?;
        let node = str_at(&pod, &["spec", "nodeName"]);
        if node.is_empty() {
            return Ok(Going::Nowhere);
        }
        let number = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
        words.value("sinceSeconds", &number(since));
        words.value("sinceTime", since_time);
        words.value("tailLines", &number(tail));
        words.value("limitBytes", &number(limit));
        let stream = query.text("stream");
        words.value("stream", if stream == "All" { "" } else { stream });
        let path = format!("/containerLogs/{}/{}/{container}", target.namespace, target.name);
        let answer = Relayed::Log { pod: target.name.clone() };
        self.node_relay(target, node, path + &words.query(), answer).map(Going::There)
    }

    pub(super) fn stream(&self, target: &Target, options: &Value, what: &str) -> Result<Relay> {
        let pod = self.tree(target, "pods", &target.name)?;
        let container = container(&pod, str_at(options, &["container"]))?;
        let node = host_of(&pod, &target.name)?;
        let mut words = Words::default();
        for (ours, theirs) in [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")]
        {
            words.flag(theirs, options[ours] == true, "1");
        }
        for word in list(options, &["command"]).iter().filter_map(Value::as_str) {
            words.pair("command", word);
        }
        let path = format!("/{what}/{}/{}/{container}", target.namespace, target.name);
        self.node_relay(target, node, path + &words.query(), Relayed::Upgrade)
    }

    pub(super) fn forward(&self, target: &Target, options: &Value) -> Result<Relay> {
        let pod = self.tree(target, "pods", &target.name)?;
        let node = host_of(&pod, &target.name)?;
        let mut words = Words::default();
        let ports: Vec<String> = list(options, &["ports"]).iter().map(Value::to_string).collect();
        words.value("port", &ports.join(","));
        let path = format!("/portForward/{}/{}", target.namespace, target.name);
        self.node_relay(target, node, path + &words.query(), Relayed::Upgrade)
    }
}

/// The query of a relayed request.
#[derive(Default)]
struct Words(Vec<(&'static str, String)>);

impl Words {
    fn pair(&mut self, name: &'static str, value: &str) {
        self.0.push((name, value.to_owned()));
    }

    fn value(&mut self, name: &'static str, value: &str) {
        if !value.is_empty() {
            self.pair(name, value);
        }
    }

    fn flag(&mut self, name: &'static str, on: bool, value: &str) {
        self.value(name, if on { value } else { "" });
    }

    /// In the order of the names, as Go writes it: the query is told where the node cannot be reached.
    fn query(mut self) -> String {
        self.0.sort_by_key(|(name, _)| *name);
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish();
        if query.is_empty() { query } else { format!("?{query}") }
    }
}

/// The names of all containers of a pod: those that start first come first.
fn containers(pod: &Value) -> impl Iterator<Item = &str> {
    let sorts = ["initContainers", "containers", "ephemeralContainers"];
    let all = sorts.into_iter().flat_map(|sort| list(pod, &["spec", sort]));
    all.filter_map(|container| container["name"].as_str())
}

/// The container that is meant: the one that is named, or the only one.
fn container(pod: &Value, named: &str) -> Result<String> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    if !named.is_empty() {
        return match containers(pod).any(|one| one == named) {
            true => Ok(named.to_owned()),
            false => Err(Status::bad_request(format!("container {named} is not valid for pod {name}"))),
        };
    }
    match list(pod, &["spec", "containers"]) {
        [only] => Ok(only["name"].as_str().unwrap_or_default().to_owned()),
        [] => Err(Status::bad_request(format!("a container name must be specified for pod {name}"))),
        _ => {
            let all: Vec<_> = containers(pod).collect();
            let which = format!("choose one of: [{}]", all.join(" "));
            Err(Status::bad_request(format!("a container name must be specified for pod {name}, {which}")))
        }
    }
}

fn host_of<'a>(pod: &'a Value, name: &str) -> Result<&'a str> {
    match str_at(pod, &["spec", "nodeName"]) {
        "" => Err(Status::bad_request(format!("pod {name} does not have a host assigned"))),
        node => Ok(node),
    }
}
