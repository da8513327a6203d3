//! What is said of a pod, as kubelet says it: its containers, its phase, its conditions.

mod condition;
mod phase;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, HostIP, PodCondition, PodIP, PodStatus, VolumeMountStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::life::{Life, Record, Slot};
use super::member::{Member, Role};

pub(crate) use phase::Phase;

/// A container's restarts are counted, and its end is known, unless its pod ended in a way that nobody saw.
const UNSEEN: &str = "The container could not be located when the pod was terminated";

/// The status of a pod.
pub(crate) fn of(life: &Life, now: Timestamp) -> PodStatus {
    let pod = life.pod();
    let old = life.said();
    let generation = pod.metadata.generation;
    let mut status = PodStatus {
        observed_generation: generation,
        qos_class: old.qos_class.clone(),
        start_time: Some(old.start_time.clone().unwrap_or(Time(now))),
        nominated_node_name: old.nominated_node_name.clone(),
        resource_claim_statuses: old.resource_claim_statuses.clone(),
        ..PodStatus::default()
    };
    addresses(life, &mut status);
    let of_role = |role: fn(Role) -> bool| -> Vec<ContainerStatus> {
        life.members()
            .iter()
            .filter(|member| role(member.role))
            .map(|member| container(life, member))
            .collect()
    };
    let mut init = of_role(|role| matches!(role, Role::Init | Role::Sidecar));
    let mut main = of_role(|role| role == Role::Main);
    let debug = of_role(|role| role == Role::Ephemeral);

    let mut phase = phase::of(life, &init, &main);
    let said = old.phase.as_deref().and_then(Phase::parse);
    if let Some(said) = said.filter(|said| said.is_final()) {
        phase = said;
    }
    if life.is_past_deadline() {
        phase = Phase::Failed;
        status.reason = Some("DeadlineExceeded".to_owned());
        status.message = Some("Pod was active on the node longer than the specified deadline".to_owned());
    } else if said == Some(phase) {
        status.reason.clone_from(&old.reason);
        status.message.clone_from(&old.message);
    }
    if life.is_released() {
        seal(life, &mut init, &mut main);
        if !phase.is_final() {
            phase = Phase::Failed;
        }
    }
    status.phase = Some(phase.text().to_owned());

    // Others have a say as well: readiness gates, disruptions.
    let of_others = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut conditions: Vec<PodCondition> =
        of_others.filter(|condition| !condition::is_ours(&condition.type_)).cloned().collect();
    let ours = condition::all(life, &init, &main, phase, &conditions);
    for mut condition in ours {
        let before = old.conditions.iter().flatten().find(|before| before.type_ == condition.type_);
        let since = before.filter(|before| before.status == condition.status);
        let since = since.and_then(|before| before.last_transition_time.clone());
        condition.last_transition_time = Some(since.unwrap_or(Time(now)));
        condition.observed_generation = generation;
        conditions.push(condition);
    }
    status.conditions = Some(conditions);
    let some = |list: Vec<ContainerStatus>| Some(list).filter(|list| !list.is_empty());
    main.sort_by(|a, b| a.name.cmp(&b.name));
    status.init_container_statuses = some(init);
    status.container_statuses = some(main);
    status.ephemeral_container_statuses = some(debug);
    status
}

fn addresses(life: &Life, status: &mut PodStatus) {
    let host = life.host_ips();
    let on_host = life.pod().spec.as_ref().is_some_and(|spec| spec.host_network == Some(true));
    let own = if on_host { host } else { life.ips() };
    status.host_ip = host.first().cloned();
    status.host_ips = Some(host.iter().map(|ip| HostIP { ip: ip.clone() }).collect())
        .filter(|ips: &Vec<_>| !ips.is_empty());
    status.pod_ip = own.first().cloned();
    status.pod_ips =
        Some(own.iter().map(|ip| PodIP { ip: ip.clone() }).collect()).filter(|ips: &Vec<_>| !ips.is_empty());
}

fn container(life: &Life, member: &Member) -> ContainerStatus {
    let record = life.record_of(member.name());
    let mut status = ContainerStatus {
        name: member.name().to_owned(),
        image: member.image().to_owned(),
        restart_count: record.restart_count,
        volume_mounts: mounts(&member.spec),
        started: Some(record.is_started()),
        last_state: record.previous.clone().map(terminated),
        ..ContainerStatus::default()
    };
    if record.created {
        status.container_id = Some(record.identity.id.clone());
        status.image.clone_from(&record.identity.image);
        status.image_id.clone_from(&record.identity.image_id);
    }
    if record.created && record.exists() {
        status.resources = Some(member.spec.resources.clone().unwrap_or_default());
        status.allocated_resources =
            member.spec.resources.as_ref().and_then(|resources| resources.requests.clone());
    }
    let waits = |reason: &str| waiting(reason, None);
    let has_init = life.members().iter().any(|member| matches!(member.role, Role::Init | Role::Sidecar));
    let default = || waits(if has_init { "PodInitializing" } else { "ContainerCreating" });
    let shown = match (&record.slot, record.last_exit()) {
        (Slot::Running(run), _) if !run.post_start => {
            status.user.clone_from(&run.user);
            ContainerState {
                running: Some(ContainerStateRunning { started_at: Some(Time(run.started)) }),
                ..ContainerState::default()
            }
        }
        (_, Some(exited)) => match &record.waiting {
            Some(why) if starts_again(life, member, record) => {
                status.last_state = Some(terminated(exited.state.clone()));
                waiting(&why.reason, Some(&why.message))
            }
            _ => {
                // Of a container that has ended and waits for nothing, kubelet keeps no earlier end.
                status.last_state = None;
                terminated(exited.state.clone())
            }
        },
        (_, None) => match &record.waiting {
            Some(why) => waiting(&why.reason, Some(&why.message)),
            None => default(),
        },
    };
    status.ready = match member.role {
        Role::Init => shown.terminated.as_ref().is_some_and(|ended| ended.exit_code == 0),
        Role::Sidecar | Role::Main => record.is_ready(),
        Role::Ephemeral => false,
    };
    if member.role == Role::Ephemeral {
        status.started = None;
    }
    status.last_state = Some(status.last_state.unwrap_or_default());
    status.state = Some(shown);
    status
}

fn starts_again(life: &Life, member: &Member, record: &Record) -> bool {
    let Some(exited) = record.last_exit() else { return true };
    let deleted = life.pod().metadata.deletion_timestamp.is_some();
    !deleted && (exited.forced || member.restarts_after(life.restart_policy(), exited.state.exit_code))
}

fn mounts(container: &Container) -> Option<Vec<VolumeMountStatus>> {
    let mounts: Vec<VolumeMountStatus> = container
        .volume_mounts
        .iter()
        .flatten()
        .map(|mount| {
            let read_only = mount.read_only.filter(|&read_only| read_only);
            VolumeMountStatus {
                name: mount.name.clone(),
                mount_path: mount.mount_path.clone(),
                read_only,
                recursive_read_only: read_only.map(|_| "Disabled".to_owned()),
                ..VolumeMountStatus::default()
            }
        })
        .collect();
    Some(mounts).filter(|mounts| !mounts.is_empty())
}

/// A pod that is over says of every container how it ended: of those that nobody saw the end of, that it was not well.
fn seal(life: &Life, init: &mut [ContainerStatus], main: &mut [ContainerStatus]) {
    let moved = |status: &ContainerStatus| {
        ended(status.last_state.as_ref())
            || status.state.as_ref().is_some_and(|state| state.waiting.is_none())
    };
    let last_done = init.last().is_some_and(|last| {
        last.ready
            || last.started == Some(true)
            || last
                .state
                .as_ref()
                .and_then(|state| state.terminated.as_ref())
                .is_some_and(|ended| ended.exit_code == 0)
    });
    let initialized = life.members().iter().all(|member| matches!(member.role, Role::Main | Role::Ephemeral))
        || main.iter().any(moved)
        || last_done;
    if initialized {
        main.iter_mut().for_each(unseen);
    }
    let tried = init.iter().rposition(moved).map_or(1, |last| last + 1);
    init.iter_mut().take(tried).for_each(unseen);
}

fn unseen(status: &mut ContainerStatus) {
    if ended(status.state.as_ref()) {
        return;
    }
    status.state = Some(terminated(ContainerStateTerminated {
        exit_code: 137,
        reason: Some("ContainerStatusUnknown".to_owned()),
        message: Some(UNSEEN.to_owned()),
        ..ContainerStateTerminated::default()
    }));
}

fn ended(state: Option<&ContainerState>) -> bool {
    state.is_some_and(|state| state.terminated.is_some())
}

fn terminated(ended: ContainerStateTerminated) -> ContainerState {
    ContainerState { terminated: Some(ended), ..ContainerState::default() }
}

fn waiting(reason: &str, message: Option<&str>) -> ContainerState {
    let message = message.map(str::to_owned).filter(|message| !message.is_empty());
    ContainerState {
        waiting: Some(ContainerStateWaiting { reason: Some(reason.to_owned()), message }),
        ..ContainerState::default()
    }
}
