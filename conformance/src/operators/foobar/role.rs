//! The roles that the operator is installed with are enough to run it.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::manifests::documents;
use super::{foobar, wait_done};
use crate::operators::calls::lines;
use crate::operators::scene::{SOON, Scene};

/// Installed in one namespace for all, and in one namespace for itself.
const PLACES: [(&str, bool); 2] = [("role", false), ("role-only", true)];

/// The ServiceAccounts of both installations, as users.
pub fn users() -> impl Iterator<Item = String> {
    PLACES.into_iter().map(|(namespace, _)| account(namespace))
}

fn account(namespace: &str) -> String {
    format!("system:serviceaccount:{namespace}:foobar-operator")
}

/// A whole life with no other rights than the manifests give.
pub fn check(scene: &Scene<'_>) -> Result<String> {
    for (namespace, namespaced) in PLACES {
        if namespaced {
            scene.kubectl.run(&["create", "namespace", namespace])?;
        }
        let mut args = vec!["manifests", "-n", namespace];
        args.extend(namespaced.then_some("--namespaced"));
        let manifests = scene.print(&args)?;
        let applied = scene.kubectl.anywhere(&["apply", "--server-side", "-f", "-"], &manifests)?;
        ensure!(applied.status.success(), "{}", applied.err);
        let args = arguments(&manifests, namespace)?;
        let launch = scene.operator(&account(namespace)).only(args).env("POD_NAMESPACE", namespace);
        let mut operator = launch.env("POD_NAME", "foobar-operator-0").start()?;
        let here = scene.within(namespace)?;
        here.kubectl.run_with(&["create", "-f", "-"], &foobar("one", "x", Some("red")).to_string())?;
        wait_done(&here, "one", &json!({"target": "x", "type": "red"}), SOON)?;
        here.kubectl.run(&[
            "patch",
            "foobar",
            "one",
            "--type=json",
            "-p",
            r#"[{"op":"remove","path":"/spec/type"}]"#,
        ])?;
        wait_done(&here, "one", &json!({"target": "x"}), SOON)?;
        here.kubectl.run(&["delete", "foobar", "one", "--timeout=30s"])?;
        operator.signal("TERM")?;
        let status = operator.wait(SOON)?;
        ensure!(status.success(), "it ended with {status}{}", operator.log_tail());
        let calls = scene.calls(&account(namespace), Timestamp::UNIX_EPOCH)?;
        let refused: Vec<_> = calls.iter().filter(|call| call.code == 403).collect();
        ensure!(refused.is_empty(), "it asked for what it may not:{}", lines(refused));
    }
    Ok("cluster-wide and in one namespace, nothing refused".to_owned())
}

/// What the container of the Deployment is started with. Where it listens is the harness's to say.
fn arguments(manifests: &str, namespace: &str) -> Result<Vec<String>> {
    let documents = documents(manifests)?;
    let deployment = documents.iter().find(|one| one["kind"] == "Deployment").context("no Deployment")?;
    let args = deployment.pointer("/spec/template/spec/containers/0/args").and_then(Value::as_array);
    let args = args.context("a container without arguments")?.iter().filter_map(Value::as_str);
    Ok(args
        .filter(|arg| !arg.contains("-bind-address"))
        .map(|arg| arg.replace("$(POD_NAMESPACE)", namespace))
        .collect())
}
