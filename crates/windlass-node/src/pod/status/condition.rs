//! The conditions of a pod that the node speaks for.

use k8s_openapi::api::core::v1::{ContainerStatus, PodCondition};

use super::phase::Phase;
use crate::pod::life::{Life, terminated};
use crate::pod::member::Role;

const OURS: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

/// Whether the node speaks for a condition.
pub(super) fn is_ours(condition: &str) -> bool {
    OURS.contains(&condition)
}

/// Whether something is so, and if not, why.
#[derive(Clone)]
struct Verdict {
    is: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

const YES: Verdict = Verdict { is: true, reason: None, message: None };

/// The conditions that the node speaks for, in kubelet's order. Times and generations are the caller's.
pub(super) fn all(
    life: &Life,
    init: &[ContainerStatus],
    main: &[ContainerStatus],
    phase: Phase,
    others: &[PodCondition],
) -> Vec<PodCondition> {
    let containers = containers_ready(life, init, main, phase);
    let ready = if containers.is { gates(life, others) } else { containers.clone() };
    let place = if life.has_place() { YES } else { Verdict { is: false, ..YES } };
    let verdicts = [place, initialized(life, init, main, phase), ready, containers, YES];
    let conditions = OURS.into_iter().zip(verdicts).map(|(kind, verdict)| PodCondition {
        type_: kind.to_owned(),
        status: if verdict.is { "True" } else { "False" }.to_owned(),
        reason: verdict.reason.map(str::to_owned),
        message: verdict.message,
        ..PodCondition::default()
    });
    conditions.collect()
}

fn no(reason: &'static str, message: Option<String>) -> Verdict {
    Verdict { is: false, reason: Some(reason), message }
}

fn containers_ready(
    life: &Life,
    init: &[ContainerStatus],
    main: &[ContainerStatus],
    phase: Phase,
) -> Verdict {
    match phase {
        Phase::Succeeded => return no("PodCompleted", None),
        Phase::Failed => return no("PodFailed", None),
        Phase::Pending | Phase::Running => {}
    }
    let counts = |name: &str| {
        life.member(name).is_some_and(|member| matches!(member.role, Role::Main | Role::Sidecar))
    };
    let all = init.iter().chain(main);
    let unready: Vec<&str> =
        all.filter(|status| counts(&status.name) && !status.ready).map(|status| &*status.name).collect();
    if unready.is_empty() {
        return YES;
    }
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    no("ContainersNotReady", Some(message))
}

fn gates(life: &Life, others: &[PodCondition]) -> Verdict {
    let spec = life.pod().spec.as_ref();
    let gates = spec.and_then(|spec| spec.readiness_gates.as_ref()).into_iter().flatten();
    let closed: Vec<String> = gates
        .filter_map(|gate| {
            let gate = &gate.condition_type;
            match others.iter().find(|condition| &condition.type_ == gate) {
                None => {
                    Some(format!("corresponding condition of pod readiness gate \"{gate}\" does not exist."))
                }
                Some(condition) if condition.status != "True" => Some(format!(
                    "the status of pod readiness gate \"{gate}\" is not \"True\", but {}",
                    condition.status
                )),
                Some(_) => None,
            }
        })
        .collect();
    if closed.is_empty() { YES } else { no("ReadinessGatesNotReady", Some(closed.join(", "))) }
}

fn initialized(life: &Life, init: &[ContainerStatus], main: &[ContainerStatus], phase: Phase) -> Verdict {
    if phase == Phase::Succeeded {
        return Verdict { reason: Some("PodCompleted"), ..YES };
    }
    // It was, even if a sidecar is being started again.
    let started = |status: &ContainerStatus| {
        let state = status.state.as_ref();
        state.is_some_and(|state| state.running.is_some()) || terminated(state).is_some()
    };
    if main.iter().any(started) {
        return YES;
    }
    let done = |status: &ContainerStatus| match life.member(&status.name).map(|member| member.role) {
        Some(Role::Sidecar) => status.started == Some(true),
        _ => status.ready,
    };
    let open: Vec<&str> = init.iter().filter(|status| !done(status)).map(|status| &*status.name).collect();
    if open.is_empty() {
        return YES;
    }
    no("ContainersNotInitialized", Some(format!("containers with incomplete status: [{}]", open.join(" "))))
}
