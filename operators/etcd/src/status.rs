//! What to tell the user, and what to remember. Pure.

mod remember;
mod tell;

pub use remember::memory;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use windlass::jiff::Timestamp;

use crate::api::{
    CLUSTER_LABEL, EtcdCluster, EtcdClusterStatus, Medium, MemberRole, MemberStatus, Quorum, names,
};
use crate::observe::{Member, Observed};
use crate::plan::{Decision, View, quorum};

/// What is always on its way under load is no lag that anybody has to see.
const LAG_SHOWN: u64 = 5000;
const MIB: u64 = 1024 * 1024;

/// The status of a cluster after a decision.
pub fn of(cluster: &EtcdCluster, seen: &Observed, decision: &Decision, now: Timestamp) -> EtcdClusterStatus {
    let view = View { spec: &cluster.spec, memory: &decision.memory, seen, now };
    let mut status = cluster.status.clone().unwrap_or_default();
    status.observed_generation = cluster.metadata.generation;
    status.selector = format!("{CLUSTER_LABEL}={}", cluster.name_any());
    remember::write(&mut status, &decision.memory);
    status.members = seen.members.iter().map(|member| member_status(&view, member, now)).collect();
    status.quorum = counted(&view, status.quorum);
    let (voters, healthy) = status.quorum.map_or((0, 0), |quorum| (quorum.voters, quorum.healthy));
    status.replicas = voters;
    status.summary = format!("{healthy}/{voters}");
    wait(&mut status, decision);
    tell::conditions(&mut status, cluster, &view, decision, now);
    status
}

/// What is waited for, and why nothing is done.
fn wait(status: &mut EtcdClusterStatus, decision: &Decision) {
    let waits = |reason: &str| {
        matches!(reason, "Bootstrapping" | "CatchingUp" | "Settling" | "Restarting" | "Recovering")
    };
    let blocked = decision.blocked.as_ref();
    let waiting = blocked.filter(|blocked| waits(blocked.reason)).map(|blocked| blocked.message.clone());
    if decision.action.is_none() {
        status.next_action = waiting;
    }
    status.blocked_reason = blocked
        .filter(|blocked| !waits(blocked.reason))
        .map(|blocked| format!("{}: {}", blocked.reason, blocked.message));
}

/// Who votes. Without a list nobody can tell how many are well; how many vote is what was known last.
fn counted(view: &View<'_>, before: Option<Quorum>) -> Option<Quorum> {
    let (voters, healthy) = match (view.best(), before) {
        (Some(_), _) => view.count(),
        (None, Some(before)) => (usize::try_from(before.voters).unwrap_or(0), 0),
        (None, None) => return None,
    };
    let small = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let needed = if voters == 0 { 0 } else { small(quorum(voters)) };
    Some(Quorum { voters: small(voters), healthy: small(healthy), margin: small(healthy) - needed })
}

fn member_status(view: &View<'_>, member: &Member, now: Timestamp) -> MemberStatus {
    let listed = view.best().and_then(|list| list.of(&member.name));
    let role = match (view.best(), listed) {
        (None, _) if member.joined().is_none() => MemberRole::Pending,
        (None, _) => MemberRole::Unknown,
        (Some(_), None) if view.is_removed(member) => MemberRole::Removed,
        (Some(_), None) => MemberRole::Pending,
        (Some(list), Some(listed)) if list.leader == listed.id => MemberRole::Leader,
        (Some(_), Some(listed)) if listed.learner => MemberRole::Learner,
        (Some(_), Some(_)) => MemberRole::Voter,
    };
    let known = view.memory.since.iter().find(|one| one.member == member.name);
    let report = member.report.as_ref();
    let leader = view.best().map(|list| list.leader);
    let head =
        view.seen.members.iter().filter_map(|one| one.report.as_ref()).find(|one| Some(one.id) == leader);
    let behind = report.zip(head).map(|(one, head)| head.applied.saturating_sub(one.applied));
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let on_disk = view.spec.storage.medium == Medium::Disk;
    MemberStatus {
        name: member.name.to_string(),
        id: listed.map(|listed| listed.id).or(member.joined()).map(names::id),
        role,
        version: report.map(|report| report.version.to_string()),
        healthy: known.is_some_and(|known| known.healthy),
        since: time(known.map_or(now, |known| known.at)),
        lag: behind.filter(|behind| *behind > LAG_SHOWN).map(signed),
        db_size: report.map(|report| signed(report.db_size.div_ceil(MIB) * MIB)),
        pvc: (on_disk && member.volume != crate::observe::Volume::Absent)
            .then(|| names::volume(&member.name)),
        node: member.pod.as_ref().and_then(|pod| pod.node.as_deref().map(str::to_owned)),
    }
}

/// A time as Kubernetes writes it: in whole seconds, so that what is planned is what is read back.
fn time(at: Timestamp) -> Time {
    Time(Timestamp::from_second(at.as_second()).unwrap_or(at))
}
