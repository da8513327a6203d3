//! The conditions: whether clients can work, whether something is on its way, what is not well, and how close the end is.

use windlass::core::condition::{self, Finding, Status};
use windlass::jiff::Timestamp;

use crate::api::conditions::{AVAILABLE, DEGRADED, PROGRESSING, QUORUM_AT_RISK};
use crate::api::{EtcdCluster, EtcdClusterStatus};
use crate::plan::{Decision, View, is_done, quorum};

/// Sets all four.
pub(super) fn conditions(
    status: &mut EtcdClusterStatus,
    cluster: &EtcdCluster,
    view: &View<'_>,
    decision: &Decision,
    now: Timestamp,
) {
    let findings =
        [available(view, decision), progressing(view, decision), degraded(view, decision), at_risk(view)];
    for finding in findings {
        condition::set(&mut status.conditions, finding.of(cluster.metadata.generation), now);
    }
}

fn available(view: &View<'_>, decision: &Decision) -> Finding {
    let (voters, healthy) = view.count();
    let blocked = decision.blocked.as_ref();
    match (view.list(), view.is_born()) {
        (Some(list), _) if list.no_space => Finding::new(
            AVAILABLE,
            false,
            "NoSpace",
            "a database is full and etcd refuses writes: compact, defragment, disarm the alarm, or raise spec.options.quota",
        ),
        (Some(_), true) => {
            let message = format!("{healthy} of {voters} voters are healthy, {} are needed", quorum(voters));
            Finding::new(AVAILABLE, true, "QuorumHealthy", message)
        }
        (_, false) => {
            Finding::new(AVAILABLE, false, "Bootstrapping", "the first member has not answered yet")
        }
        (None, true) => {
            let reason = blocked.map_or("QuorumLost", |blocked| match blocked.reason {
                reason @ ("AllMembersLost" | "Recovering") => reason,
                _ => "QuorumLost",
            });
            let message =
                blocked.map_or("no member can make a linearizable read".to_owned(), |b| b.message.clone());
            Finding::new(AVAILABLE, false, reason, message)
        }
    }
}

fn progressing(view: &View<'_>, decision: &Decision) -> Finding {
    let Decision { action, blocked, .. } = decision;
    match (action, blocked) {
        (Some(action), _) => Finding::new(PROGRESSING, true, action.name(), format!("about to {action}")),
        (None, Some(blocked)) => {
            let moves = matches!(
                blocked.reason,
                "Bootstrapping"
                    | "CatchingUp"
                    | "Settling"
                    | "Restarting"
                    | "Recovering"
                    | "MemberUnhealthy"
                    | "OneLearner"
            );
            Finding::new(PROGRESSING, moves, blocked.reason, blocked.message.clone())
        }
        (None, None) if is_done(view) => {
            Finding::new(PROGRESSING, false, "AsAsked", format!("{} members vote, as asked for", view.size()))
        }
        (None, None) => Finding::new(PROGRESSING, true, "Waiting", "what was begun has to end first"),
    }
}

fn degraded(view: &View<'_>, decision: &Decision) -> Finding {
    let unwell: Vec<&str> = view
        .best()
        .into_iter()
        .flat_map(|list| list.voters())
        .filter(|listed| !view.is_listed_healthy(listed))
        .map(|listed| listed.member.as_deref().unwrap_or(&listed.url))
        .collect();
    let waits = |reason| {
        matches!(reason, "Bootstrapping" | "CatchingUp" | "Settling" | "Restarting" | "OneLearner" | "Paused")
    };
    match &decision.blocked {
        Some(blocked) if !waits(blocked.reason) => {
            Finding::new(DEGRADED, true, blocked.reason, blocked.message.clone())
        }
        _ if !unwell.is_empty() => {
            Finding::new(DEGRADED, true, "MemberUnhealthy", format!("not healthy: {}", unwell.join(", ")))
        }
        _ => Finding::new(DEGRADED, false, "AllHealthy", "nothing keeps the operator from its work"),
    }
}

/// One more failure stops writes. Of a single member that is always so, and asked for.
fn at_risk(view: &View<'_>) -> Finding {
    let (voters, healthy) = view.count();
    if view.list().is_none() {
        let is_so = if view.is_born() { Status::True } else { Status::Unknown };
        return Finding::new(QUORUM_AT_RISK, is_so, "NoQuorum", "no member can make a linearizable read");
    }
    let margin = healthy.saturating_sub(quorum(voters));
    let message = format!("{healthy} of {voters} voters are healthy: {margin} more may fail");
    let is_so = margin == 0 && (voters > 1 || view.size() > 1);
    let reason = if is_so { "NoMargin" } else { "EnoughVoters" };
    Finding::new(QUORUM_AT_RISK, is_so, reason, message)
}
