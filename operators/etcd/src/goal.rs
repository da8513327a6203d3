//! What must never be done, and what "done" means.
//!
//! The rules are data: a number, a name, a sentence and a check. Every step passes all of them twice: when it is decided,
//! and right before it is done, on a fresh look. There is no other way to do anything to a member, a pod or a volume.
//! Numbers up to 22 are those of the operating knowledge that they come from; the gaps are rules about upgrades, backups
//! and certificates, which have their own time.

mod checks;

use crate::api::{EtcdCluster, MemberRole, conditions};
use crate::plan::{Action, Blocked, View};

/// Something that must never be done.
pub struct Rule {
    /// Its number.
    pub number: u8,
    /// Its name, in one CamelCase word: what `blockedReason` begins with.
    pub name: &'static str,
    /// What must never be done, as a sentence.
    pub sentence: &'static str,
    /// Whether a step keeps to it.
    check: fn(&Action, &View<'_>) -> bool,
}

/// Every rule, in the order in which they are asked. The first that refuses is what the user is told.
pub const RULES: [Rule; 17] = [
    Rule {
        number: 25,
        name: "Paused",
        sentence: "Never touch members, pods or volumes while spec.paused is set.",
        check: checks::not_paused,
    },
    Rule {
        number: 15,
        name: "AllMembersLost",
        sentence: "Never begin a cluster anew because none of its members is seen.",
        check: checks::begun_once,
    },
    Rule {
        number: 5,
        name: "NoQuorum",
        sentence: "Never act on membership without a leader and a linearizable read.",
        check: checks::by_a_quorum,
    },
    Rule {
        number: 0,
        name: "NotJustified",
        sentence: "Never do what cannot be undone when its reason does not hold any more.",
        check: checks::justified,
    },
    Rule {
        number: 1,
        name: "ChangeUnconfirmed",
        sentence: "Never start a second change of membership while one is unconfirmed.",
        check: checks::one_change,
    },
    Rule {
        number: 2,
        name: "OtherMemberDown",
        sentence: "Never disrupt a member while another one is down.",
        check: checks::one_disruption,
    },
    Rule {
        number: 3,
        name: "QuorumOfRest",
        sentence: "Never remove a voter unless the healthy voters of the rest are a quorum of the rest.",
        check: checks::rest_has_quorum,
    },
    Rule {
        number: 4,
        name: "HealthyVictim",
        sentence: "Never remove a healthy voter while another one is unhealthy.",
        check: checks::healthy_goes_last,
    },
    Rule {
        number: 6,
        name: "NameUsed",
        sentence: "Never use the name of a member twice.",
        check: checks::fresh_name,
    },
    Rule {
        number: 7,
        name: "EmptyVolume",
        sentence: "Never start etcd on an empty volume under the ID of a member that has data.",
        check: checks::data_is_there,
    },
    Rule {
        number: 8,
        name: "AlreadyBegun",
        sentence: "Never start a member as new once the cluster has its ID.",
        check: checks::new_only_once,
    },
    Rule {
        number: 9,
        name: "LearnerNotReady",
        sentence: "Never promote a learner that has not started or has not caught up.",
        check: checks::caught_up,
    },
    Rule {
        number: 11,
        name: "OneLearner",
        sentence: "Never have more than one learner.",
        check: checks::one_learner,
    },
    Rule {
        number: 12,
        name: "VolumeInUse",
        sentence: "Never delete a volume, or let go of a member, before etcd has removed it and its pod is gone.",
        check: checks::out_of_use,
    },
    Rule {
        number: 23,
        name: "ReplacementBudget",
        sentence: "Never replace more members within an hour than spec.healing.maxReplacementsPerHour.",
        check: checks::within_budget,
    },
    Rule {
        number: 21,
        name: "QuorumLost",
        sentence: "Never recover a lost quorum unless spec.healing.quorumLoss asks for it and it cannot come back.",
        check: checks::recovery_is_wanted,
    },
    Rule {
        number: 24,
        name: "NotFenced",
        sentence: "Never let a member go on alone while another one runs.",
        check: checks::fenced,
    },
];

/// The rules that are kept: all of them, always. Only tests leave one out, to see what would happen.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    kept: u32,
}

impl Rules {
    /// All of them.
    pub const ALL: Rules = Rules { kept: u32::MAX };

    /// All but one.
    #[cfg(test)]
    pub(crate) fn without(number: u8) -> Rules {
        assert!(RULES.iter().any(|rule| rule.number == number), "there is no rule {number}");
        Rules { kept: !(1 << number) }
    }

    /// Whether a step may be taken: the one chokepoint.
    ///
    /// # Errors
    /// The first rule that it would break.
    pub fn permit(&self, action: &Action, view: &View<'_>) -> Result<(), &'static Rule> {
        let kept = |rule: &&Rule| self.kept & (1 << rule.number) != 0;
        match RULES.iter().filter(kept).find(|rule| !(rule.check)(action, view)) {
            Some(rule) => Err(rule),
            None => Ok(()),
        }
    }
}

impl Rule {
    /// Whether a user has to hear of its refusal. The others say in which order things are done.
    pub(crate) fn is_news(&self, action: &Action) -> bool {
        match self.number {
            23 => matches!(action, Action::Latch(_)),
            number => matches!(number, 2 | 4 | 15 | 25),
        }
    }

    /// What a user is told when it refuses a step.
    pub(crate) fn refusal(&self, action: &Action, view: &View<'_>) -> Blocked {
        let (voters, healthy) = view.count();
        let message = match self.name {
            "AllMembersLost" => {
                "every member of the cluster is gone, and it is never begun anew: restore a backup into a \
                                 new EtcdCluster"
                    .to_owned()
            }
            "Paused" => format!("spec.paused is set; without it, the next step would be to {action}"),
            "ReplacementBudget" => format!(
                "{} members were replaced within an hour, and {action} would be one more: find out what fails, or raise \
                 spec.healing.maxReplacementsPerHour",
                view.memory.replacements.len()
            ),
            _ => format!("would {action}; {healthy} of {voters} voters are healthy. {}", self.sentence),
        };
        Blocked { reason: self.name, message }
    }
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rule {} ({}): {}", self.number, self.name, self.sentence)
    }
}

/// Whether an EtcdCluster is what its spec asks for, as its status says of this generation.
pub fn is_done(cluster: &EtcdCluster) -> bool {
    let Some(status) = &cluster.status else { return false };
    let votes = |role| matches!(role, MemberRole::Voter | MemberRole::Leader);
    let healthy = status.members.iter().filter(|member| votes(member.role) && member.healthy).count();
    status.observed_generation == cluster.metadata.generation
        && i64::try_from(healthy) == Ok(i64::from(cluster.spec.size))
        && i64::try_from(status.members.len()) == Ok(i64::from(cluster.spec.size))
        && status.next_action.is_none()
        && windlass::core::condition::is_true(&status.conditions, conditions::AVAILABLE)
}
