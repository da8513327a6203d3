//! The status: last, and only on change.

use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};
use windlass_core::condition::{self, Finding};
use windlass_core::diff::{Difference, differences, without_nulls};
use windlass_core::{Outcome, Plan, Problem};

use super::memory::Fingerprint;
use super::{Executor, Failure, Parent, Pass};
use crate::write::Error;

/// The condition that says that an object cannot be what its spec asks for, until somebody changes something.
pub const STALLED: &str = "Stalled";

/// Whether statuses of this kind have conditions. Found out by trying: the server refuses a field that the schema does not
/// have, and does not find a status where the kind has none. The condition is then left out, and the problem shows in the log and in Events only.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    missing: AtomicBool,
}

/// A status that should be there and is not.
pub(super) struct Wanted {
    pub status: Value,
    pub found: Vec<Difference>,
    now: Fingerprint,
}

impl Pass<'_> {
    /// Gives the parent the status that was planned, or the one that it has, and shows a problem in it.
    pub(super) async fn status(&mut self, planned: Option<&Value>, problem: Option<&Problem>) {
        if self.parent.deleting && self.executor.finalizer.is_none() {
            return;
        }
        let conditions = &self.executor.conditions.missing;
        let mut shown = problem.filter(|_| !conditions.load(Ordering::Relaxed));
        loop {
            let wanted = self.executor.status(&self.parent, planned, shown);
            let Some(wanted) = wanted else { return };
            match self.write_status(&wanted).await {
                Err(Error::Invalid { what, source } | Error::NotFound { what, source })
                    if shown.is_some() =>
                {
                    tracing::debug!(call = what, error = %source, "the status has no conditions to show a problem in");
                    conditions.store(true, Ordering::Relaxed);
                    shown = None;
                }
                Err(error) => return self.failed(Failure::Write(error)),
                Ok(()) => return,
            }
        }
    }

    /// What keeps the object from being what its spec asks for.
    pub(super) fn problem<K, E>(&self, plan: &Plan<K, E>) -> Option<Problem> {
        match &plan.outcome {
            Outcome::Terminal(problem) => Some(problem.clone()),
            _ => self.report.failures.iter().find(|failure| failure.is_lasting()).map(Failure::problem),
        }
    }

    async fn write_status(&mut self, wanted: &Wanted) -> Result<(), Error> {
        let parent = &self.parent;
        let answer = self.executor.writer.apply_status(parent.target(), &wanted.status, &self.origin).await?;
        let version = answer["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if version == parent.resource_version {
            self.executor.memory.settle(&parent.uid, None, wanted.now);
        }
        self.wrote(format!("apply status of {} {}", self.parent.kind, self.parent.key));
        Ok(())
    }
}

impl Executor {
    /// The status that should be there, if another one is.
    pub(super) fn status(
        &self,
        parent: &Parent,
        planned: Option<&Value>,
        problem: Option<&Problem>,
    ) -> Option<Wanted> {
        let mut status = match planned {
            Some(planned) => planned.clone(),
            None if problem.is_some() || stalled(&parent.status).is_some() => parent.status.clone(),
            None => return None,
        };
        without_nulls(&mut status);
        show(&mut status, parent, problem, self.env.now(), planned.is_some());
        // Nearly always it is there already: to see that costs an eighth of what it costs to say what differs.
        if status == parent.status {
            return None;
        }
        let live = json!({"status": parent.status});
        let desired = json!({"status": status});
        // The cache does not keep which fields of a status are ours, so all are taken for ours: a field that left the
        // status is seen, and one of somebody else costs an apply that changes nothing, once.
        let applied = fields(&live);
        let found = differences(&desired, &live, Some(&applied));
        if found.is_empty() {
            return None;
        }
        let now = Fingerprint::of(&parent.uid, &desired, &found, None);
        match self.memory.is_settled(&parent.uid, &None, now) {
            true => None,
            false => Some(Wanted { status, found, now }),
        }
    }
}

/// Puts the condition into a status, or takes it out. One that was planned stays.
fn show(status: &mut Value, parent: &Parent, problem: Option<&Problem>, now: Timestamp, planned: bool) {
    if planned && stalled(status).is_some() {
        return;
    }
    if !status.is_object() {
        *status = Value::Object(Map::new());
    }
    if let Some(Value::Array(conditions)) = status.get_mut("conditions") {
        conditions.retain(|condition| condition["type"] != STALLED);
    }
    let Some(problem) = problem else { return };
    let before = stalled(&parent.status).and_then(|before| serde_json::from_value(before.clone()).ok());
    let mut conditions: Vec<Condition> = before.into_iter().collect();
    let finding = Finding::new(STALLED, true, problem.reason.clone(), problem.message.clone());
    condition::set(&mut conditions, finding.of(parent.generation), now);
    let condition = serde_json::to_value(conditions.first()).unwrap_or_default();
    match status.get_mut("conditions") {
        Some(Value::Array(conditions)) => conditions.push(condition),
        _ => status["conditions"] = json!([condition]),
    }
}

fn stalled(status: &Value) -> Option<&Value> {
    status["conditions"].as_array()?.iter().find(|condition| condition["type"] == STALLED)
}

/// A set of all fields of a value, as if we had applied them: lists of conditions by their type, others as one value.
fn fields(value: &Value) -> Value {
    let set: Map<_, _> = match value {
        Value::Object(members) => {
            let fields = members.iter().filter(|(_, member)| !member.is_null());
            fields.map(|(name, member)| (format!("f:{name}"), fields_of_member(member))).collect()
        }
        _ => Map::new(),
    };
    Value::Object(set)
}

fn fields_of_member(member: &Value) -> Value {
    let Value::Array(items) = member else { return fields(member) };
    let types: Vec<_> = items.iter().filter_map(|item| item["type"].as_str()).collect();
    let is_unique = |at: usize| !types[..at].contains(&types[at]);
    if types.len() != items.len() || !(0..types.len()).all(is_unique) {
        return Value::Object(Map::new());
    }
    items
        .iter()
        .map(|item| (format!("k:{}", json!({"type": item["type"]})), fields(item)))
        .collect::<Map<_, _>>()
        .into()
}
