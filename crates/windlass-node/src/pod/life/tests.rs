//! Lives of pods, told in the world of a test: whatever is asked for happens at once, unless the test says otherwise.

mod ends;
mod probes;
mod starts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};
use serde_json::{Value, json};

use super::*;
use crate::pod::backoff::later;

/// A pod and the world that it lives in.
struct World {
    life: Life,
    now: Timestamp,
    runs: u32,
    /// What happened, each with the second in which it did.
    log: Vec<String>,
    /// Those who do not end when they are asked to.
    deaf: BTreeSet<&'static str>,
    /// Why a container cannot be started.
    broken: BTreeMap<&'static str, NotStarted>,
    /// What a probe of a container finds.
    findings: BTreeMap<(&'static str, ProbeKind), Finding>,
    /// Hooks that do not end by themselves.
    hooks: BTreeSet<&'static str>,
    status: PodStatus,
    wake: Option<Timestamp>,
    finish: Option<Finish>,
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn pod(spec: Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "u1", "generation": 1},
        "spec": {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30},
    });
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    serde_json::from_value(pod).unwrap()
}

fn container(name: &str) -> Value {
    json!({"name": name, "image": "busybox"})
}

impl World {
    fn new(spec: Value) -> World {
        World::of(pod(spec))
    }

    fn of(pod: Pod) -> World {
        let host = Host { ips: vec!["10.243.0.10".to_owned()] };
        World {
            life: Life::new(Arc::new(pod), host, start()),
            now: start(),
            runs: 0,
            log: Vec::new(),
            deaf: BTreeSet::new(),
            broken: BTreeMap::new(),
            findings: BTreeMap::new(),
            hooks: BTreeSet::new(),
            status: PodStatus::default(),
            wake: None,
            finish: None,
        }
    }

    /// Lets everything happen that happens now.
    fn settle(&mut self) -> &mut World {
        for _ in 0..100 {
            let turn = self.life.turn(self.now);
            self.status = turn.status;
            self.wake = turn.wake;
            self.finish = turn.finish;
            if turn.actions.is_empty() {
                return self;
            }
            turn.actions.into_iter().for_each(|action| self.act(action));
        }
        panic!("the life of this pod does not come to rest:\n{}", self.log.join("\n"));
    }

    /// Lets time pass.
    fn wait(&mut self, seconds: u64) -> &mut World {
        let until = later(self.now, Duration::from_secs(seconds));
        self.settle();
        while let Some(wake) = self.wake.filter(|wake| *wake <= until) {
            assert!(wake > self.now, "a life that wants to be looked at is at rest");
            self.now = wake;
            self.settle();
        }
        self.now = until;
        self.settle()
    }

    fn take(&mut self, report: Report) {
        let actions = self.life.take(report, self.now);
        actions.into_iter().for_each(|action| self.act(action));
    }

    fn say(&mut self, what: impl std::fmt::Display) {
        let seconds = self.now.duration_since(start()).as_secs();
        self.log.push(format!("{seconds}: {what}"));
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Prepare => self.take(Report::Prepared(vec!["10.244.0.2".to_owned()])),
            Action::Release => {
                self.say("release");
                self.take(Report::Released);
            }
            Action::Start { container, attempt } => {
                self.runs += 1;
                let run = Started {
                    id: format!("windlass://{}", self.runs),
                    image: "busybox".to_owned(),
                    image_id: "sha256:1".to_owned(),
                    pulled: Pulled::Present,
                    user: None,
                    at: self.now,
                };
                match self.broken.get(&*container).cloned() {
                    Some(why) => {
                        self.say(format_args!("{container} cannot start"));
                        self.take(Report::NotStarted { container, why });
                    }
                    None => {
                        self.say(format_args!("{container} starts ({attempt})"));
                        self.take(Report::Started { container, run });
                    }
                }
            }
            Action::Hook { container, id, hook, .. } => {
                self.say(format_args!("{container} {hook:?}"));
                if !self.hooks.contains(&*container) {
                    self.take(Report::Hooked { container, id, hook, result: Ok(()) });
                }
            }
            Action::Probe { container, id, kind } => {
                let finding = self.findings.iter().find(|((name, of), _)| *name == container && *of == kind);
                let finding = finding.map_or(Finding::Success, |(_, finding)| finding.clone());
                self.take(Report::Probed { container, id, kind, finding });
            }
            Action::Signal { container, id: _, force } => {
                self.say(format_args!("{container} {}", if force { "KILL" } else { "TERM" }));
                if force || !self.deaf.contains(&*container) {
                    self.exit(&container, if force { 137 } else { 143 });
                }
            }
            Action::Tell(told) => {
                let about = told.container.map(|container| format!("[{container}] ")).unwrap_or_default();
                self.say(format_args!("{about}{}: {}", told.reason, told.note));
            }
        }
    }

    /// A container ends.
    fn exit(&mut self, container: &str, code: i32) {
        let id = self.life.record(container).run().expect("the container runs").id.clone();
        let exit = Exit { code, oom: false, message: String::new(), at: self.now };
        self.take(Report::Exited { container: container.to_owned(), id, exit });
    }

    /// A hook ends.
    fn hooked(&mut self, container: &str, hook: Hook, result: Result<(), String>) {
        let id = self.life.record(container).run().expect("the container runs").id.clone();
        self.take(Report::Hooked { container: container.to_owned(), id, hook, result });
    }

    /// The pod is changed.
    fn change(&mut self, change: impl FnOnce(&mut Pod)) {
        let mut pod = Pod::clone(self.life.pod());
        change(&mut pod);
        pod.status = Some(self.status.clone());
        self.take(Report::Changed(Arc::new(pod)));
    }

    /// The pod is deleted.
    fn delete(&mut self, grace: i64) {
        let now = self.now;
        self.change(|pod| {
            pod.metadata.deletion_timestamp =
                Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(later(now, seconds(grace))));
            pod.metadata.deletion_grace_period_seconds = Some(grace);
        });
    }

    /// What happened since this was asked last.
    fn news(&mut self) -> String {
        std::mem::take(&mut self.log).join("\n")
    }

    /// The status in a line: phase, containers, conditions.
    fn line(&self) -> String {
        let status = &self.status;
        let init = status.init_container_statuses.iter().flatten();
        let all = init.chain(status.container_statuses.iter().flatten());
        let containers: Vec<String> = all.map(said).collect();
        let conditions =
            status.conditions.iter().flatten().filter(|condition| condition.type_ != "PodScheduled");
        let conditions: Vec<String> = conditions
            .map(|condition| {
                let sign = if condition.status == "True" { '+' } else { '-' };
                let reason = condition.reason.as_ref().map(|reason| format!("({reason})"));
                format!("{sign}{}{}", condition.type_, reason.unwrap_or_default())
            })
            .collect();
        let reason = status.reason.as_ref().map(|reason| format!(" {reason}")).unwrap_or_default();
        let phase = status.phase.as_deref().unwrap_or_default();
        format!("{phase}{reason} | {} | {}", containers.join(", "), conditions.join(" "))
    }
}

/// A container's status in a few words.
fn said(status: &ContainerStatus) -> String {
    let of = |state: &Option<ContainerState>| {
        let state = state.clone().unwrap_or_default();
        if let Some(ended) = state.terminated {
            format!("{}({})", ended.reason.unwrap_or_default(), ended.exit_code)
        } else if state.running.is_some() {
            "running".to_owned()
        } else {
            state.waiting.and_then(|waiting| waiting.reason).unwrap_or_default()
        }
    };
    let mut text = format!("{} {}", status.name, of(&status.state));
    if status.ready {
        text.push_str(" ready");
    }
    if status.restart_count > 0 {
        text.push_str(&format!(" restarts={}", status.restart_count));
    }
    let last = of(&status.last_state);
    if !last.is_empty() {
        text.push_str(&format!(" last={last}"));
    }
    text
}
