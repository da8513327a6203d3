//! Asks etcd: every member how it is, and one that has a leader who the members are.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use kube::ResourceExt as _;
use windlass::Env;
use windlass_etcd::{Member as Etcds, Status};

use super::etcd::Etcd;
use super::view::{List, Listed, Observed, Report};
use crate::api::EtcdCluster;
use crate::api::names::{self, CLIENT_PORT};

/// How long the others may take when the leader has answered.
const STRAGGLERS: Duration = Duration::from_millis(500);

/// Where a pod's etcd is asked.
pub fn client_url(address: &str) -> String {
    match address.contains(':') {
        true => format!("http://[{address}]:{CLIENT_PORT}"),
        false => format!("http://{address}:{CLIENT_PORT}"),
    }
}

/// Adds to what is seen what etcd says. Whoever does not answer in time is not heard.
pub(super) async fn ask(etcd: &dyn Etcd, env: &Env, cluster: &EtcdCluster, seen: &mut Observed) {
    let urls: Vec<Option<String>> = seen.members.iter().map(address).collect();
    let answers = statuses(etcd, env, &urls).await;
    for (member, status) in seen.members.iter_mut().zip(&answers) {
        member.report = status.as_ref().map(report);
    }
    // The leader knows first; the others ask it. Whoever answers first, answers for all.
    let mut askable: Vec<(&String, &Status)> = urls
        .iter()
        .zip(&answers)
        .filter_map(|(url, status)| Some((url.as_ref()?, status.as_ref()?)))
        .collect();
    askable.sort_by_key(|(_, status)| {
        (
            status.leader != status.header.member_id,
            status.is_learner,
            std::cmp::Reverse((status.raft_term, status.raft_index)),
        )
    });
    for (url, status) in askable.iter().filter(|(_, status)| status.leader != 0 && !status.is_learner) {
        if let Ok((cluster_id, members)) = etcd.members(url, true).await {
            seen.list = Some(list(cluster, cluster_id, status.leader, members, &answers));
            return;
        }
    }
    // Without a quorum: what the one has on its disk that knows most.
    askable.sort_by_key(|(_, status)| std::cmp::Reverse((status.raft_term, status.raft_index)));
    for (url, _) in askable {
        if let Ok((cluster_id, members)) = etcd.members(url, false).await {
            seen.local = Some(list(cluster, cluster_id, 0, members, &answers));
            return;
        }
    }
}

/// What all members say of themselves. Whoever is silent when the leader has answered has little time left: a look must not
/// wait for a node that is cut off.
async fn statuses(etcd: &dyn Etcd, env: &Env, urls: &[Option<String>]) -> Vec<Option<Status>> {
    let mut answers: Vec<Option<Status>> = vec![None; urls.len()];
    let asked = urls.iter().enumerate().filter_map(|(at, url)| Some((at, url.as_ref()?)));
    let mut asking: FuturesUnordered<_> =
        asked.map(|(at, url)| async move { (at, etcd.status(url).await.ok()) }).collect();
    while let Some((at, status)) = asking.next().await {
        let leads = status.as_ref().is_some_and(|status| status.leader == status.header.member_id);
        answers[at] = status;
        if leads {
            break;
        }
    }
    let others = async {
        while let Some((at, status)) = asking.next().await {
            answers[at] = status;
        }
    };
    env.within(STRAGGLERS, others).await;
    answers
}

/// Where a member is asked. Not one whose pod is on its way out: it is as good as gone, and where its node is cut off every
/// look would wait for it.
fn address(member: &super::view::Member) -> Option<String> {
    let pod = member.pod.as_ref().filter(|pod| !pod.deleting)?;
    pod.address.as_deref().map(client_url)
}

fn report(status: &Status) -> Report {
    let positive = |number: i64| u64::try_from(number).unwrap_or(0);
    Report {
        id: status.header.member_id,
        cluster_id: status.header.cluster_id,
        leader: status.leader,
        learner: status.is_learner,
        term: status.raft_term,
        index: status.raft_index,
        applied: status.raft_applied_index,
        db_size: positive(status.db_size),
        version: status.version.as_str().into(),
    }
}

fn list(
    cluster: &EtcdCluster,
    cluster_id: u64,
    leader: u64,
    members: Vec<Etcds>,
    answers: &[Option<Status>],
) -> List {
    let (name, namespace) = (cluster.name_any(), cluster.namespace().unwrap_or_default());
    let listed = |member: Etcds| {
        let url = member.peer_urls.first().map(String::as_str).unwrap_or_default();
        Listed {
            id: member.id,
            member: names::member_of_url(&name, &namespace, url).map(Into::into),
            url: Arc::from(url),
            learner: member.is_learner,
            started: !member.name.is_empty(),
        }
    };
    let alarms = || answers.iter().flatten().flat_map(|status| &status.errors).filter_map(|text| alarm(text));
    let mut corrupt: Vec<u64> = alarms().filter(|(_, kind)| *kind == "CORRUPT").map(|(id, _)| id).collect();
    corrupt.sort_unstable();
    corrupt.dedup();
    List {
        cluster_id,
        leader,
        members: members.into_iter().map(listed).collect(),
        corrupt,
        no_space: alarms().any(|(_, kind)| kind == "NOSPACE"),
    }
}

/// An alarm, as a member's status has it: `memberID:8211 alarm:NOSPACE`, with one blank or two between, as etcd 3.7 likes.
/// Asking for alarms themselves would be a write through raft, each time.
fn alarm(text: &str) -> Option<(u64, &str)> {
    let mut words = text.split_whitespace();
    let id = words.next()?.strip_prefix("memberID:")?;
    Some((id.parse().ok()?, words.next()?.strip_prefix("alarm:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_read_from_what_members_say() {
        assert_eq!(alarm("memberID:12345 alarm:NOSPACE "), Some((12345, "NOSPACE")));
        assert_eq!(alarm("memberID:12345  alarm:CORRUPT"), Some((12345, "CORRUPT")));
        assert_eq!(alarm("etcdserver: no leader"), None);
    }

    #[test]
    fn addresses_are_of_either_family() {
        assert_eq!(client_url("10.0.0.7"), "http://10.0.0.7:2379");
        assert_eq!(client_url("fd00::7"), "http://[fd00::7]:2379");
    }
}
