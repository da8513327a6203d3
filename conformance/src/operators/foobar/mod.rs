//! What FooBar, the walk-through operator, has to show.

mod crash;
mod leader;
mod life;
mod manifests;
mod plan;
mod refused;
mod rest;
mod role;

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::control;
use super::run::Check;
use super::scene::Scene;
use super::server::RESTRICTED;

/// All of them.
pub const CHECKS: &[Check] = &[
    control::CHECK,
    Check {
        name: "life",
        shows: "kubectl creates, edits, breaks and deletes, and the operator keeps up",
        alone: true,
        run: life::check,
    },
    Check {
        name: "role",
        shows: "the roles that it is installed with are enough",
        alone: true,
        run: role::check,
    },
    Check {
        name: "crash",
        shows: "killed after any of its writes, it ends up where it would have",
        alone: false,
        run: crash::check,
    },
    Check {
        name: "rest",
        shows: "at rest it asks for no change but of its lease",
        alone: false,
        run: rest::check,
    },
    Check {
        name: "killed",
        shows: "when the leader is killed, the standby works in time, and never both",
        alone: false,
        run: leader::killed,
    },
    Check {
        name: "stopped",
        shows: "a leader that slept past its lease changes nothing, and ends",
        alone: false,
        run: leader::stopped,
    },
    Check {
        name: "ended",
        shows: "told to stop, a leader hands over its lease and ends well",
        alone: false,
        run: leader::ended,
    },
    Check {
        name: "refused",
        shows: "a watch that is refused slows nothing else down, and is told of once",
        alone: false,
        run: refused::check,
    },
    Check {
        name: "manifests",
        shows: "what it is installed with is accepted",
        alone: false,
        run: manifests::check,
    },
    Check { name: "plan", shows: "plan tells and does nothing", alone: false, run: plan::check },
];

/// Who there has to be on a server that cannot make users later: the name, and the groups.
pub fn users() -> Vec<(String, &'static str)> {
    let of_checks = CHECKS.iter().flat_map(|check| Scene::users(check.name));
    let mut users: Vec<_> = of_checks.map(|user| (user, "system:masters")).collect();
    users.push((RESTRICTED.to_owned(), ""));
    users.extend(role::users().map(|user| (user, "")));
    users
}

/// A FooBar as a user writes it.
fn foobar(name: &str, target: &str, type_: Option<&str>) -> Value {
    let mut spec = json!({"target": target});
    if let Some(type_) = type_ {
        spec["type"] = type_.into();
    }
    json!({"apiVersion": "test.example.com/v1", "kind": "FooBar", "metadata": {"name": name}, "spec": spec})
}

/// Several of them in one text.
fn foobars(names: &[String], target: &str) -> String {
    names.iter().map(|name| format!("---\n{}\n", foobar(name, target, None))).collect()
}

/// Waits until a FooBar and its ConfigMap say what the spec says; returns both.
fn wait_done(scene: &Scene<'_>, name: &str, spec: &Value, patience: Duration) -> Result<(Value, Value)> {
    scene.until(&format!("{name} is done with {spec}"), patience, || {
        let foobar = scene.kubectl.get("foobar", name)?.unwrap_or_default();
        let child = scene.kubectl.get("configmap", &format!("{name}-foobar"))?.unwrap_or_default();
        Ok(match is_done(&foobar, &child, spec) {
            true => Ok((foobar, child)),
            false => Err(format!("{foobar}\n{child}")),
        })
    })
}

/// Whether a FooBar has this spec, its child holds it, and the status says so of this generation.
fn is_done(foobar: &Value, child: &Value, spec: &Value) -> bool {
    foobar["spec"] == *spec
        && child["data"] == *spec
        && child["metadata"]["deletionTimestamp"].is_null()
        && foobar["status"]["observedGeneration"] == foobar["metadata"]["generation"]
        && ready(foobar).is_some_and(|condition| condition["status"] == "True")
}

/// The condition `Ready`.
fn ready(foobar: &Value) -> Option<&Value> {
    foobar["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Ready")
}

/// Waits until all FooBars of the namespace, at least `count`, are done.
fn wait_all_done(scene: &Scene<'_>, count: usize, patience: Duration) -> Result<()> {
    scene.until(&format!("{count} FooBars are done"), patience, || {
        let foobars = scene.kubectl.list("foobars")?;
        let children = scene.kubectl.list("configmaps")?;
        let done = |foobar: &&Value| {
            let name = foobar["metadata"]["name"].as_str().unwrap_or_default();
            let child = children.iter().find(|child| child["metadata"]["name"] == format!("{name}-foobar"));
            child.is_some_and(|child| is_done(foobar, child, &foobar["spec"]))
        };
        let done = foobars.iter().filter(done).count();
        Ok(match done >= count && done == foobars.len() {
            true => Ok(()),
            false => Err(format!("{done} of {}", foobars.len())),
        })
    })
}

/// A text of an object.
fn text<'a>(object: &'a Value, pointer: &str) -> Result<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).with_context(|| format!("no {pointer} in {object}"))
}

/// What `wanted` says and `stored` does not, as a path. What the server adds is fine.
fn missing(wanted: &Value, stored: &Value, path: &str) -> Option<String> {
    match (wanted, stored) {
        (Value::Object(wanted), Value::Object(stored)) => wanted.iter().find_map(|(key, value)| {
            missing(value, stored.get(key).unwrap_or(&Value::Null), &format!("{path}.{key}"))
        }),
        (Value::Array(wanted), Value::Array(stored)) if wanted.len() == stored.len() => wanted
            .iter()
            .zip(stored)
            .enumerate()
            .find_map(|(index, (wanted, stored))| missing(wanted, stored, &format!("{path}[{index}]"))),
        _ => (wanted != stored).then(|| format!("{path} was {wanted} and is {stored}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_adds_is_fine_and_what_it_drops_is_not() {
        assert_eq!(missing(&json!({"a": [{"b": 1}]}), &json!({"a": [{"b": 1, "c": 2}]}), "s"), None);
        let lost = missing(&json!({"a": [{"b": 1, "c": 2}]}), &json!({"a": [{"b": 1}]}), "s");
        assert_eq!(lost.as_deref(), Some("s.a[0].c was 2 and is null"));
    }
}
