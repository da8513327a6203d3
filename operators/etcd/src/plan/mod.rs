//! Decides: from what is asked for, remembered and seen, to at most one step. Pure.
//!
//! ```text
//! Observed ─► Memory::learn ─► rungs propose, most urgent first ─► the rules permit or refuse ─► Decision
//! ```
//!
//! The rungs are eager: they say what should be done next, not whether it is safe. What is safe is said in one place, by the
//! rules of [`goal`](crate::goal), which every step passes: here, and again right before it is done, on a fresh look. The
//! first step that the rules permit is taken; if none is, the first refusal is what the user is told.

mod action;
mod bootstrap;
mod clean;
mod grow;
mod heal;
mod health;
mod learner;
mod memory;
mod recover;
mod shrink;
mod start;
mod view;

pub use action::{Action, Because, Start, Why};
pub use health::{Failure, Health};
pub use memory::{HOUR_SECONDS, Latch, Memory, Rescue, Since};
pub use recover::Loss;
pub use view::{View, best, is_born, is_healthy, quorum, trusted};

use std::time::Duration;

use windlass::jiff::Timestamp;

use crate::api::EtcdClusterSpec;
use crate::goal::{Rule, Rules};
use crate::observe::Observed;

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The one step.
    pub action: Option<Action>,
    /// Why nothing is done, or not what is most urgent.
    pub blocked: Option<Blocked>,
    /// What is to be remembered.
    pub memory: Memory,
    /// When to look again, changed or not.
    pub look_again: Duration,
}

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// One CamelCase word for machines.
    pub reason: &'static str,
    /// A sentence for people: what is waited for, and what they can do.
    pub message: String,
}

/// What the rungs propose.
#[derive(Debug, Default)]
pub struct Proposals {
    /// Steps, the most urgent first.
    pub actions: Vec<Action>,
    /// What is waited for, where that is nothing that a rule says.
    pub waiting: Option<Blocked>,
}

/// While something is on its way, etcd is asked this often how far it is.
const BUSY: Duration = Duration::from_millis(500);
/// At rest, etcd is asked this often whether all is well.
const REST: Duration = Duration::from_secs(10);

/// A step that is due for this long is told of: etcd refuses changes for five seconds after each, and gives up after seven.
const FAILS_SECONDS: i64 = 30;

/// Decides what to do next.
pub fn decide(spec: &EtcdClusterSpec, memory: &Memory, seen: &Observed, now: Timestamp) -> Decision {
    decide_by(&Rules::ALL, spec, memory, seen, now)
}

/// Decides by some of the rules. Only tests leave one out.
pub(crate) fn decide_by(
    rules: &Rules,
    spec: &EtcdClusterSpec,
    memory: &Memory,
    seen: &Observed,
    now: Timestamp,
) -> Decision {
    let memory = memory.learn(seen, now);
    let view = View { spec, memory: &memory, seen, now };
    let proposals = propose(&view);
    let mut refused = Vec::new();
    let mut action = None;
    for proposed in proposals.actions {
        match rules.permit(&proposed, &view) {
            Ok(()) => {
                action = Some(proposed);
                break;
            }
            Err(rule) => refused.push((rule, proposed)),
        }
    }
    let due = action.as_ref().map(|action| due(&memory, action.to_string(), now));
    let blocked = match &due {
        Some((step, since)) => fails(step, *since, now),
        None => told(&refused, proposals.waiting, &view),
    };
    // Some waits end only when somebody does something, which is seen at once.
    let is_long = |blocked: &Blocked| {
        matches!(blocked.reason, "Paused" | "AllMembersLost" | "ReplacementBudget" | "UnknownMember")
    };
    let is_at_rest = action.is_none() && blocked.as_ref().map_or_else(|| is_done(&view), is_long);
    let memory = match &action {
        Some(Action::Latch(latch)) => memory.with(latch, now),
        _ => memory,
    };
    let memory = Memory { due, ..memory };
    Decision { action, blocked, memory, look_again: if is_at_rest { REST } else { BUSY } }
}

/// What a user is told when nothing is done: what a rule forbids, else what is waited for, else what a rule puts off.
fn told(refused: &[(&Rule, Action)], waiting: Option<Blocked>, view: &View<'_>) -> Option<Blocked> {
    let tell = |(rule, action): &(&Rule, Action)| rule.refusal(action, view);
    let loud = refused.iter().find(|(rule, action)| rule.is_news(action));
    loud.map(tell).or(waiting).or_else(|| refused.first().map(tell))
}

/// A step, and since when it is due: it stays so for as long as it was not done.
fn due(memory: &Memory, step: String, now: Timestamp) -> (String, Timestamp) {
    let since = memory.due.as_ref().filter(|(before, _)| *before == step).map(|(_, since)| *since);
    (step, since.unwrap_or(now))
}

/// What a user is told of a step that was tried and tried and is not done. It is tried again nevertheless.
fn fails(step: &str, since: Timestamp, now: Timestamp) -> Option<Blocked> {
    let is_long = now.as_second() - since.as_second() >= FAILS_SECONDS;
    is_long.then(|| Blocked {
        reason: "StepFails",
        message: format!("tries since {since:.0} to {step}; the event ReconcileFailed says why it cannot"),
    })
}

/// Whether everything is as it was asked for.
pub fn is_done(view: &View<'_>) -> bool {
    let Some(list) = view.list() else { return false };
    let is_own = |member: &crate::observe::Member| list.of(&member.name).is_some();
    list.members.len() == view.size()
        && view.count() == (view.size(), view.size())
        && view.memory.recovery.is_none()
        && view.seen.members.iter().all(is_own)
}

/// What should be done, the most urgent first.
fn propose(view: &View<'_>) -> Proposals {
    let mut proposals = Proposals::default();
    // Before anything else is done, and before a client is let in, the cluster has come to life for good.
    if let Some(id) = view.memory.newborn(view.seen) {
        proposals.add(Action::Latch(Latch::Born(id)));
        return proposals;
    }
    // Before anything is done with a member, its serial is used up for good.
    let is_it = |object: &crate::observe::Object| object.serial == view.memory.serial;
    if view.memory.reserved && view.seen.members.iter().filter_map(|member| member.object.as_ref()).any(is_it)
    {
        proposals.add(Action::Latch(Latch::SerialUsed));
        return proposals;
    }
    if view.memory.recovery.is_some() {
        recover::propose(view, &mut proposals);
        return proposals;
    }
    if !view.is_born() {
        bootstrap::propose(view, &mut proposals);
        return proposals;
    }
    clean::propose(view, &mut proposals);
    start::propose(view, &mut proposals);
    recover::detect(view, &mut proposals);
    learner::propose(view, &mut proposals);
    heal::propose(view, &mut proposals);
    shrink::propose(view, &mut proposals);
    grow::propose(view, &mut proposals);
    proposals
}

impl Proposals {
    fn add(&mut self, action: Action) {
        self.actions.push(action);
    }

    fn wait(&mut self, reason: &'static str, message: impl FnOnce() -> String) {
        if self.waiting.is_none() {
            self.waiting = Some(Blocked { reason, message: message() });
        }
    }
}
