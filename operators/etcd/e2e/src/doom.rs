//! The operator killed right after each of its writes: between any two of its actions, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::etcd::{Etcd, Healing};
use crate::kill::{Course, go};
use crate::kubectl::uid_of;
use crate::world::World;

/// How long a course may take: the operator has to be started for each write.
const LIMIT: Duration = Duration::from_secs(900);

/// What an operator says before it kills itself.
const LAST_WORDS: &str = "killed by WINDLASS_CRASH_AT";

/// Goes every course with an operator that lives for one write only. In the end there are as many members as asked for,
/// each with its pod, and none was made in vain. What was written, and how often, in each course.
///
/// # Errors
/// That is not so.
pub fn doomed(world: &World, name: &str) -> Result<Vec<String>> {
    world.doom_operator()?;
    let (mut told, mut deaths) = (Vec::new(), Deaths::new());
    for course in Course::ALL {
        let writes = nursed(world, &mut deaths, || go(world, name, course, LIMIT))?;
        let count: usize = writes.values().sum();
        ensure!(count >= course.steps(), "{course}: the operator was killed only {count} times: {writes:?}");
        let writes: Vec<String> = writes.iter().map(|(write, times)| format!("{write} × {times}")).collect();
        told.push(format!("{course}: killed after each write, seen {count} times: {}", writes.join(", ")));
    }
    nursed(world, &mut deaths, || Etcd::there(world, name, Healing::DEFAULT)?.patient(LIMIT).delete())?;
    Ok(told)
}

/// What dead containers said at last.
type Deaths = BTreeMap<String, String>;

/// Does something, and meanwhile replaces pods of the operator that died: a kubelet waits longer each time. After which
/// writes they died that were alive before, and how often.
fn nursed(
    world: &World,
    deaths: &mut Deaths,
    act: impl FnOnce() -> Result<()>,
) -> Result<BTreeMap<String, usize>> {
    let is_done = AtomicBool::new(false);
    let before: BTreeSet<String> = deaths.keys().cloned().collect();
    std::thread::scope(|scope| {
        let nurse = scope.spawn(|| {
            let mut gone = BTreeSet::new();
            while !is_done.load(Ordering::SeqCst) {
                for pod in world.operator_pods()? {
                    note(deaths, &pod);
                    if is_waiting(&pod) && gone.insert(uid_of(&pod).to_owned()) {
                        world.let_go(&pod)?;
                    }
                }
                sleep(Duration::from_millis(50));
            }
            anyhow::Ok(())
        });
        let done = act();
        is_done.store(true, Ordering::SeqCst);
        let nursed = nurse.join().expect("the nurse does not panic");
        done.and(nursed)
    })?;
    let mut writes = BTreeMap::new();
    for (_, message) in deaths.iter().filter(|(container, _)| !before.contains(*container)) {
        *writes.entry(last_write(message)?).or_default() += 1;
    }
    Ok(writes)
}

/// Notes who has died in a pod. What was heard first counts: kubelet keeps the logs of one dead container, and when the next one
/// dies it may find none any more of the one before, and say that instead of what it had read there.
fn note(deaths: &mut Deaths, pod: &Value) {
    for (container, message) in dead(pod) {
        deaths.entry(container).or_insert(message);
    }
}

/// The containers of a pod that are known to have died, and what they said at last. One that was told to end, as in a
/// rollout, did not die.
fn dead(pod: &Value) -> impl Iterator<Item = (String, String)> {
    let container = &pod["status"]["containerStatuses"][0];
    let ends = ["state", "lastState"].map(|state| &container[state]["terminated"]);
    ends.into_iter().filter(|end| end["exitCode"] != 0).filter_map(|end| {
        Some((
            end["containerID"].as_str()?.to_owned(),
            end["message"].as_str().unwrap_or_default().to_owned(),
        ))
    })
}

/// Whether the kubelet lets a pod wait: after the first death it starts it again at once.
fn is_waiting(pod: &Value) -> bool {
    let container = &pod["status"]["containerStatuses"][0];
    container["state"]["running"].is_null()
        && container["restartCount"].as_u64().is_some_and(|count| count > 0)
}

/// After which write an operator died.
fn last_write(message: &str) -> Result<String> {
    let mut lines = message.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let last = lines.rfind(|line| line["message"] == LAST_WORDS);
    let last = last.with_context(|| format!("the operator died of something else: {message}"))?;
    Ok(last["name"].as_str().context("it does not say after which write")?.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Seen on a real node: `etcd-e2e all --real` ended with an operator that had "died of something else".
    #[test]
    fn what_a_container_said_is_not_forgotten_with_its_log() {
        let words = |write: &str| json!({"message": LAST_WORDS, "name": write}).to_string();
        let died = |container: &str, message: &str| json!({"terminated": {"exitCode": 137, "containerID": container, "message": message}});
        let pod =
            |state, last| json!({"status": {"containerStatuses": [{"state": state, "lastState": last}]}});
        let mut deaths = Deaths::new();
        note(&mut deaths, &pod(json!({"running": {}}), died("a", &words("reserve serial 1"))));
        let lost = "Error on reading termination message from logs: no such file or directory";
        note(&mut deaths, &pod(died("b", &words("apply status")), died("a", lost)));
        let writes: Vec<String> = deaths.values().map(|message| last_write(message).unwrap()).collect();
        assert_eq!(writes, ["reserve serial 1", "apply status"]);
        assert!(last_write(lost).is_err(), "nobody is believed to have died of what they do not say");
    }
}
