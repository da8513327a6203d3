//! `plan` tells what would be done.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::json;

use super::{foobar, wait_done};
use crate::operators::calls::lines;
use crate::operators::run::Seen;
use crate::operators::scene::{SOON, Scene};

/// Of a file, and of an object in the cluster; as YAML and as JSON.
pub fn check(scene: &Scene<'_>) -> Result<Seen> {
    let user = scene.user("a");
    let mut operator = scene.operator(&scene.user("b")).start()?;
    let (kubectl, namespace) = (&scene.kubectl, scene.namespace.as_str());
    kubectl.run_with(&["create", "-f", "-"], &foobar("settled", "x", None).to_string())?;
    wait_done(scene, "settled", &json!({"target": "x"}), SOON)?;
    operator.signal("TERM")?;
    operator.wait(SOON)?;
    kubectl.run_with(&["create", "-f", "-"], &foobar("waiting", "elsewhere", None).to_string())?;

    let since = Timestamp::now();
    let config = scene.server.user(&user)?;
    let config = config.to_str().context("a path")?;
    let mut new = foobar("fresh", "from-a-file", Some("red"));
    new["metadata"]["namespace"] = namespace.into();
    let file = scene.file("fresh.json", &new.to_string())?;
    let of_file = scene.print(&["plan", file.to_str().context("a path")?, "--kubeconfig", config])?;
    for wanted in ["fresh-foobar", "from-a-file", "ConfigMap"] {
        ensure!(of_file.contains(wanted), "plan FILE does not say {wanted}:\n{of_file}");
    }
    let of_name = scene.print(&["plan", "waiting", "-n", namespace, "--kubeconfig", config])?;
    for wanted in ["waiting-foobar", "elsewhere", "ConfigMap"] {
        ensure!(of_name.contains(wanted), "plan NAME does not say {wanted}:\n{of_name}");
    }
    let of_settled = scene.print(&["plan", &format!("{namespace}/settled"), "--kubeconfig", config])?;
    ensure!(of_settled != of_name, "of an object that is settled, it says the same:\n{of_settled}");

    let calls = scene.calls(&user, since)?;
    let writes: Vec<_> = calls.iter().filter(|call| call.is_write()).collect();
    ensure!(writes.is_empty(), "plan asked for changes:{}", lines(writes));
    ensure!(!calls.is_empty(), "plan asked for nothing at all");
    ensure!(kubectl.get("foobar", "fresh")?.is_none(), "plan FILE made the object");
    ensure!(kubectl.get("configmap", "waiting-foobar")?.is_none(), "plan NAME made the child");
    Ok(Seen::Passed(format!("three plans, {} reads, 0 writes", calls.len())))
}
