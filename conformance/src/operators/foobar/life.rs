//! The life of a FooBar, driven by kubectl.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{foobar, ready, text, wait_done};
use crate::operators::scene::{SOON, Scene};

/// From the first object to the last.
pub fn check(scene: &Scene<'_>) -> Result<String> {
    let kubectl = &scene.kubectl;
    let started = Instant::now();
    let mut operator = scene.operator(&scene.user("a")).everywhere().start()?;
    let start = started.elapsed();

    kubectl.run_with(&["create", "-f", "-"], &foobar("one", "first", Some("red")).to_string())?;
    let (object, child) = wait_done(scene, "one", &json!({"target": "first", "type": "red"}), SOON)?;
    status_is_by_the_status_subresource(&object)?;
    ensure!(object["metadata"]["generation"] == 1, "the status changed the generation: {object}");
    ensure!(
        object["metadata"]["finalizers"] == json!(["test.example.com/cleanup"]),
        "no finalizer: {}",
        object["metadata"]
    );
    let owner = &child["metadata"]["ownerReferences"][0];
    ensure!(
        owner["uid"] == object["metadata"]["uid"] && owner["controller"] == true,
        "the child does not belong to it: {child}"
    );

    invalid(scene)?;

    // An edit, and a field that is taken back.
    kubectl.run(&["patch", "foobar", "one", "--type=merge", "-p", r#"{"spec":{"target":"second"}}"#])?;
    wait_done(scene, "one", &json!({"target": "second", "type": "red"}), SOON)?;
    kubectl.run(&[
        "patch",
        "foobar",
        "one",
        "--type=json",
        "-p",
        r#"[{"op":"remove","path":"/spec/type"}]"#,
    ])?;
    let spec = json!({"target": "second"});
    let (object, child) = wait_done(scene, "one", &spec, SOON)?;
    ensure!(object["metadata"]["generation"] == 3, "three specs, and another generation: {object}");

    let columns = kubectl.run(&["get", "fb"])?;
    let rows: Vec<Vec<&str>> = columns.lines().map(|line| line.split_whitespace().collect()).collect();
    ensure!(
        rows.len() == 2
            && rows[0] == ["NAME", "TARGET", "READY", "AGE"]
            && rows[1][..3] == ["one", "second", "True"],
        "kubectl get fb prints\n{columns}"
    );

    // What is broken by hand is mended.
    let broken = Instant::now();
    kubectl.run(&["delete", "configmap", "one-foobar", "--timeout=30s"])?;
    let (_, new) = wait_done(scene, "one", &spec, SOON)?;
    ensure!(new["metadata"]["uid"] != child["metadata"]["uid"], "the child was not deleted");
    let deleted = broken.elapsed();
    let wrong = r#"{"data":{"target":"wrong","more":"too"}}"#;
    kubectl.run(&["patch", "configmap", "one-foobar", "--type=merge", "-p", wrong])?;
    scene.until("the child's own value is back", SOON, || {
        let child = kubectl.get("configmap", "one-foobar")?.unwrap_or_default();
        // The other key is somebody else's: server-side apply leaves it alone.
        Ok(if child["data"] == json!({"target": "second", "more": "too"}) {
            Ok(())
        } else {
            Err(child.to_string())
        })
    })?;
    kubectl.run(&[
        "patch",
        "configmap",
        "one-foobar",
        "--type=json",
        "-p",
        r#"[{"op":"remove","path":"/data/more"}]"#,
    ])?;
    wait_done(scene, "one", &spec, SOON)?;
    let wrong = r#"{"status":{"configMap":"wrong","observedGeneration":1,"conditions":[]}}"#;
    kubectl.run(&["patch", "foobar", "one", "--subresource=status", "--type=merge", "-p", wrong])?;
    scene.until("the status is mended", SOON, || {
        let object = kubectl.get("foobar", "one")?.unwrap_or_default();
        let status = &object["status"];
        let well = status["configMap"] == "one-foobar" && status["observedGeneration"] == 3;
        Ok(if well && ready(&object).is_some() { Ok(()) } else { Err(object.to_string()) })
    })?;
    wait_done(scene, "one", &spec, SOON)?;

    // Somebody else's ConfigMap is nobody's child.
    kubectl.run(&["create", "configmap", "mine-foobar", "--from-literal=a=b"])?;
    kubectl.run_with(&["create", "-f", "-"], &foobar("mine", "x", None).to_string())?;
    kubectl.run(&["delete", "foobar", "mine", "--timeout=30s"])?;
    let mine = kubectl.get("configmap", "mine-foobar")?.context("somebody else's ConfigMap was deleted")?;
    ensure!(mine["data"] == json!({"a": "b"}), "somebody else's ConfigMap was changed: {mine}");

    let asked = Instant::now();
    kubectl.run(&["delete", "foobar", "one", "--timeout=30s"])?;
    let gone = asked.elapsed();
    ensure!(kubectl.get("configmap", "one-foobar")?.is_none(), "the child is still there");

    operator.signal("TERM")?;
    let status = operator.wait(SOON)?;
    ensure!(status.success(), "told to stop, it ended with {status}{}", operator.log_tail());
    Ok(format!(
        "ready {:.2} s after its start, a deleted child is back after {:.2} s, a delete takes {:.2} s",
        start.as_secs_f64(),
        deleted.as_secs_f64(),
        gone.as_secs_f64()
    ))
}

fn status_is_by_the_status_subresource(object: &Value) -> Result<()> {
    let ready = ready(object).context("no condition")?;
    for field in ["/reason", "/message", "/lastTransitionTime"] {
        text(ready, field)?;
    }
    ensure!(ready["observedGeneration"] == 1, "of which generation is {ready}");
    let managers = object["metadata"]["managedFields"].as_array().context("nobody manages anything")?;
    let mut of_status = managers.iter().filter(|entry| entry["fieldsV1"].get("f:status").is_some());
    ensure!(
        of_status.all(|entry| entry["subresource"] == "status"),
        "the status was written past its subresource: {managers:?}"
    );
    Ok(())
}

/// Objects that the schema forbids are not stored, and the error names the field.
fn invalid(scene: &Scene<'_>) -> Result<()> {
    let kubectl = &scene.kubectl;
    let mut without = foobar("bad", "x", None);
    without["spec"] = json!({"type": "red"});
    let mut number = foobar("bad", "x", None);
    number["spec"] = json!({"target": 7});
    for bad in [without, number, foobar("bad", "", None)] {
        let error = kubectl.fail(&["create", "-f", "-"], &bad.to_string())?;
        ensure!(error.contains("spec.target"), "the error does not name the field: {error}");
    }
    let error =
        kubectl.fail(&["patch", "foobar", "one", "--type=merge", "-p", r#"{"spec":{"target":null}}"#], "")?;
    ensure!(error.contains("spec.target"), "the error does not name the field: {error}");
    ensure!(kubectl.get("foobar", "bad")?.is_none(), "an invalid object was stored");
    Ok(())
}
