//! `plan` tells what would be done.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::json;

use super::{foobar, wait_done};
use crate::operators::calls::lines;
use crate::operators::scene::{SOON, Scene};

/// Of a file, and of an object in the cluster; of what is to be done and of what is done.
pub fn check(scene: &Scene<'_>) -> Result<String> {
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
    let plan = |object: &str| scene.print(&["plan", object, "-n", namespace, "--kubeconfig", config]);
    let file = |name: &str, target: &str| {
        let path = scene.file(&format!("{name}.json"), &foobar(name, target, None).to_string())?;
        Ok::<_, anyhow::Error>(path.to_str().context("a path")?.to_owned())
    };
    for (object, wanted) in [
        (file("fresh", "x")?, vec![format!("create ConfigMap {namespace}/fresh-foobar")]),
        ("waiting".to_owned(), vec![format!("create ConfigMap {namespace}/waiting-foobar")]),
        // As the file would have it: another value.
        (
            file("settled", "from-a-file")?,
            vec![format!("{namespace}/settled-foobar"), "from-a-file".to_owned()],
        ),
    ] {
        let printed = plan(&object)?;
        for wanted in wanted {
            ensure!(printed.contains(&wanted), "plan {object} does not say {wanted:?}:\n{printed}");
        }
    }
    let printed = plan(&format!("{namespace}/settled"))?;
    ensure!(printed == "nothing to do\n", "of an object that is settled:\n{printed}");

    let calls = scene.calls(&user, since)?;
    let writes: Vec<_> = calls.iter().filter(|call| call.is_write()).collect();
    ensure!(writes.is_empty(), "plan asked for changes:{}", lines(writes));
    ensure!(!calls.is_empty(), "plan asked for nothing at all");
    ensure!(kubectl.get("foobar", "fresh")?.is_none(), "plan FILE made the object");
    ensure!(kubectl.get("configmap", "waiting-foobar")?.is_none(), "plan NAME made the child");
    Ok(format!("four plans, {} reads, 0 writes", calls.len()))
}
