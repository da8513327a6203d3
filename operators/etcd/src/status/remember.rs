//! What has to be remembered, into the status and out of it.

use windlass::jiff::Timestamp;

use super::time;
use crate::api::{EtcdClusterStatus, LastAction, Recovery, Replacement, names};
use crate::plan::{Memory, Rescue, Since};

/// What the status remembers.
pub fn memory(status: Option<&EtcdClusterStatus>) -> Memory {
    let Some(status) = status else { return Memory::default() };
    let since = |member: &crate::api::MemberStatus| Since {
        member: member.name.as_str().into(),
        healthy: member.healthy,
        at: member.since.0,
    };
    Memory {
        cluster_id: status.cluster_id.as_deref().and_then(|id| u64::from_str_radix(id, 16).ok()),
        serial: u64::try_from(status.member_serial).unwrap_or(0),
        reserved: status.serial_reserved,
        since: status.members.iter().map(since).collect(),
        replacements: status.replacements.iter().map(|one| (one.member.as_str().into(), one.at.0)).collect(),
        quorum_lost_since: status.quorum_lost_since.as_ref().map(|at| at.0),
        recovery: status.recovery.as_ref().map(|recovery| Rescue {
            survivor: recovery.survivor.as_str().into(),
            at: recovery.at.0,
            forced: recovery.forced,
        }),
        due: due(status),
    }
}

/// The last step, if it is the next one still.
fn due(status: &EtcdClusterStatus) -> Option<(String, Timestamp)> {
    let last = status.last_action.as_ref()?;
    (status.next_action.as_ref() == Some(&last.action)).then(|| (last.action.clone(), last.at.0))
}

/// Writes what has to be remembered. Since when members are as they are is written with the members.
pub(super) fn write(status: &mut EtcdClusterStatus, memory: &Memory) {
    status.cluster_id = memory.cluster_id.map(names::id);
    status.member_serial = i64::try_from(memory.serial).unwrap_or(i64::MAX);
    status.serial_reserved = memory.reserved;
    let replacement =
        |(member, at): &(crate::observe::Name, _)| Replacement { member: member.to_string(), at: time(*at) };
    status.replacements = memory.replacements.iter().map(replacement).collect();
    status.quorum_lost_since = memory.quorum_lost_since.map(time);
    status.recovery = memory.recovery.as_ref().map(|rescue| Recovery {
        survivor: rescue.survivor.to_string(),
        at: time(rescue.at),
        forced: rescue.forced,
    });
    if let Some((action, at)) = &memory.due {
        status.last_action = Some(LastAction { action: action.clone(), at: time(*at) });
    }
    status.next_action = memory.due.as_ref().map(|(action, _)| action.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written is what is read: a crash forgets nothing.
    #[test]
    fn nothing_is_forgotten() {
        let at = Timestamp::from_second(1_700_000_000).unwrap();
        let before = Memory {
            cluster_id: Some(0xcafe_f00d_1234_5678),
            serial: 7,
            reserved: true,
            since: Vec::new(),
            replacements: vec![("db-00abc".into(), at)],
            quorum_lost_since: Some(at),
            recovery: Some(Rescue { survivor: "db-00abd".into(), at, forced: true }),
            due: Some(("promote db-00abd".to_owned(), at)),
        };
        let mut status = EtcdClusterStatus::default();
        write(&mut status, &before);
        let wire = serde_json::to_value(&status).unwrap();
        let read: EtcdClusterStatus = serde_json::from_value(wire).unwrap();
        assert_eq!(memory(Some(&read)), before);
    }
}
