//! The operator is killed after each of its writes.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{foobar, is_done, missing};
use crate::operators::calls::{Call, lines};
use crate::operators::process::Process;
use crate::operators::scene::{SOON, Scene};

/// By this variable an operator kills itself after so many writes.
const CRASH_AT: &str = "WINDLASS_CRASH_AT";
/// How long nothing is written when there is nothing more to write.
const QUIET: Duration = Duration::from_millis(400);
/// More writes than a FooBar's life can take.
const WRITES_MAX: usize = 40;

/// What kubectl does, and the name of what has to come of it.
const STAGES: [(&str, Act); 3] = [("created", create), ("edited", edit), ("deleted", delete)];
type Act = fn(&Scene<'_>) -> Result<()>;

/// A life without a crash tells what should come of it and how many writes it takes; then one life for each write.
pub fn check(scene: &Scene<'_>) -> Result<String> {
    let (reference, writes) = whole(scene)?;
    for number in 1..=writes.len() {
        life(scene, number, &reference).map_err(|error| {
            error.context(format!("killed after write {number} of {}{}", writes.len(), lines(&writes)))
        })?;
    }
    Ok(format!("{} crashes, one after each write: the same in the end", writes.len()))
}

/// The state after each stage, and the writes that it took.
fn whole(scene: &Scene<'_>) -> Result<(Vec<Value>, Vec<Call>)> {
    let user = scene.user("a");
    let since = Timestamp::now();
    let _operator = scene.operator(&user).start()?;
    let mut states = Vec::new();
    for (name, act) in STAGES {
        act(scene)?;
        scene.until(name, SOON, || {
            let state = objects(scene)?;
            Ok(if is_settled(name, &state) { Ok(()) } else { Err(format!("{state:#?}")) })
        })?;
        scene.quiet(&user, QUIET)?;
        states.push(normal(objects(scene)?));
    }
    let mut calls = scene.calls(&user, since)?;
    calls.retain(Call::is_work);
    ensure!((6..WRITES_MAX).contains(&calls.len()), "a life of so many writes?{}", lines(&calls));
    ensure!(calls.iter().all(|call| call.code < 300), "a write was refused:{}", lines(&calls));
    Ok((states, calls))
}

/// A life in which the operator is killed once.
fn life(scene: &Scene<'_>, number: usize, reference: &[Value]) -> Result<()> {
    let user = scene.user("a");
    let launch = || scene.operator(&user);
    let mut operator = launch().env(CRASH_AT, &number.to_string()).start()?;
    let mut crashed = false;
    for ((name, act), wanted) in STAGES.into_iter().zip(reference) {
        act(scene)?;
        // Twice: it has to be so, and to stay so.
        for _ in 0..2 {
            scene.until(&format!("{name}, as without a crash"), SOON, || {
                mend(&mut operator, &mut crashed, launch)?;
                let state = normal(objects(scene)?);
                let different =
                    missing(wanted, &state, "objects").or_else(|| missing(&state, wanted, "objects"));
                Ok(match different {
                    None => Ok(()),
                    Some(what) => Err(format!("{what}\n{state:#}{}", operator.log_tail())),
                })
            })?;
            scene.quiet(&user, QUIET)?;
        }
    }
    ensure!(crashed, "it was not killed{}", operator.log_tail());
    Ok(())
}

/// Starts the operator again when it has been killed.
fn mend<'a>(
    operator: &mut Process,
    crashed: &mut bool,
    launch: impl Fn() -> crate::operators::scene::Launch<'a>,
) -> Result<()> {
    let Some(status) = operator.ended()? else { return Ok(()) };
    ensure!(status.signal() == Some(9) && !*crashed, "it ended with {status}{}", operator.log_tail());
    *crashed = true;
    *operator = launch().start()?;
    Ok(())
}

fn create(scene: &Scene<'_>) -> Result<()> {
    let object = foobar("one", "first", Some("red")).to_string();
    scene.kubectl.run_with(&["create", "-f", "-"], &object).map(drop)
}

fn edit(scene: &Scene<'_>) -> Result<()> {
    let patch = r#"{"spec":{"target":"second","type":null}}"#;
    scene.kubectl.run(&["patch", "foobar", "one", "--type=merge", "-p", patch]).map(drop)
}

fn delete(scene: &Scene<'_>) -> Result<()> {
    scene.kubectl.run(&["delete", "foobar", "one", "--wait=false"]).map(drop)
}

fn is_settled(stage: &str, objects: &[Value]) -> bool {
    let spec = match stage {
        "created" => json!({"target": "first", "type": "red"}),
        "edited" => json!({"target": "second"}),
        _ => return objects.is_empty(),
    };
    let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind);
    matches!((of("FooBar"), of("ConfigMap")), (Some(foobar), Some(child)) if is_done(foobar, child, &spec))
}

/// All FooBars and ConfigMaps, but for the one that every namespace of a real cluster has.
fn objects(scene: &Scene<'_>) -> Result<Vec<Value>> {
    let args = ["get", "foobars,configmaps", "-o", "json", "--show-managed-fields"];
    let list: Value = serde_json::from_str(&scene.kubectl.run(&args)?)?;
    let mut objects = list["items"].as_array().cloned().unwrap_or_default();
    objects.retain(|object| object["metadata"]["name"] != "kube-root-ca.crt");
    Ok(objects)
}

/// Objects without what differs between any two lives: uids, versions and times.
fn normal(mut objects: Vec<Value>) -> Value {
    for object in &mut objects {
        strip(object);
        // Entries are ordered by their times.
        if let Some(managers) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) {
            managers.sort_by_cached_key(Value::to_string);
        }
    }
    objects.into()
}

fn strip(value: &mut Value) {
    const DIFFERENT: [&str; 5] =
        ["uid", "resourceVersion", "creationTimestamp", "time", "lastTransitionTime"];
    match value {
        Value::Object(fields) => {
            let old = std::mem::take(fields);
            fields.extend(old.into_iter().map(|(name, mut field)| {
                match DIFFERENT.contains(&name.as_str()) {
                    true => field = "…".into(),
                    false => strip(&mut field),
                }
                (without_uids(&name), field)
            }));
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Fields of a list of owners are named by the uid.
fn without_uids(name: &str) -> String {
    match name.split_once(r#"k:{"uid":""#) {
        Some((before, _)) => format!(r#"{before}k:{{"uid":"…"}}"#),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_are_compared_without_their_times() {
        let object = |time: &str, order: [&str; 2], target: &str| {
            let entries: Vec<Value> =
                order.iter().map(|name| json!({"manager": name, "time": time})).collect();
            normal(vec![
                json!({"metadata": {"uid": time, "managedFields": entries}, "spec": {"target": target}}),
            ])
        };
        assert_eq!(object("1", ["a", "b"], "x"), object("2", ["a", "b"], "x"));
        assert_ne!(object("1", ["a", "b"], "x"), object("1", ["a", "b"], "y"));
    }
}
