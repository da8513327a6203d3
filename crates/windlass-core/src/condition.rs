//! Conditions of an object's status: what an operator found out, and since when it is so.
//!
//! ```
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
//! use windlass_core::condition::{self, Finding};
//!
//! let mut conditions: Vec<Condition> = Vec::new();
//! let finding = Finding::new("Ready", false, "Starting", "1 of 3 replicas is ready").of(Some(7));
//! condition::set(&mut conditions, finding, "2026-01-01T12:00:00Z".parse().unwrap());
//!
//! // A minute later there is more to say, and the status is the same: so is the time of its last transition.
//! let finding = Finding::new("Ready", false, "Starting", "2 of 3 replicas are ready").of(Some(7));
//! condition::set(&mut conditions, finding, "2026-01-01T12:01:00Z".parse().unwrap());
//!
//! let ready = condition::find(&conditions, "Ready").unwrap();
//! assert_eq!(ready.message, "2 of 3 replicas are ready");
//! assert_eq!(ready.last_transition_time.0.to_string(), "2026-01-01T12:00:00Z");
//! assert!(!condition::is_true(&conditions, "Ready"));
//! ```

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// What was found out about one aspect of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The aspect: `Ready`, `Available`, …
    pub type_: String,
    /// Whether it is so.
    pub status: Status,
    /// Why, as one CamelCase word for machines. Kubernetes wants it not to be empty.
    pub reason: String,
    /// Why, as a sentence for people.
    pub message: String,
    /// The generation of the object that this was found out about.
    pub generation: Option<i64>,
}

/// Whether something is so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It is.
    True,
    /// It is not.
    False,
    /// That could not be found out, or not yet.
    Unknown,
}

/// Says what was found out, and whether that changed anything.
///
/// The time of the last transition is `now` where the status is another than before, and stays what it is otherwise: an
/// operator that finds the same twice writes once. The condition keeps its place in the list; a new one goes to the end.
pub fn set(conditions: &mut Vec<Condition>, finding: Finding, now: Timestamp) -> bool {
    let Finding { type_, status, reason, message, generation } = finding;
    let status = status.as_str().to_owned();
    let known = conditions.iter_mut().find(|condition| condition.type_ == type_);
    let last_transition_time = match &known {
        Some(known) if known.status == status => known.last_transition_time.clone(),
        // Kubernetes writes whole seconds; what is planned has to be what is read back.
        _ => Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
    };
    let condition =
        Condition { last_transition_time, message, observed_generation: generation, reason, status, type_ };
    match known {
        Some(known) if *known == condition => false,
        Some(known) => {
            *known = condition;
            true
        }
        None => {
            conditions.push(condition);
            true
        }
    }
}

/// The condition of that type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether a condition is there and true.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == Status::True.as_str())
}

/// Whether a condition is there, true, and about this generation of the object or a later one.
pub fn is_true_of(conditions: &[Condition], type_: &str, generation: Option<i64>) -> bool {
    is_true(conditions, type_)
        && find(conditions, type_).is_some_and(|condition| condition.observed_generation >= generation)
}

/// Removes the condition of that type, and says whether it was there.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let count = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() != count
}

impl Finding {
    /// Something was found out, with its reason for machines and its message for people.
    pub fn new(
        type_: impl Into<String>,
        status: impl Into<Status>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        let (type_, status) = (type_.into(), status.into());
        Finding { type_, status, reason: reason.into(), message: message.into(), generation: None }
    }

    /// It was found out about this generation of the object.
    #[must_use]
    pub fn of(mut self, generation: Option<i64>) -> Finding {
        self.generation = generation;
        self
    }
}

impl Status {
    /// As Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::True => "True",
            Status::False => "False",
            Status::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<bool> for Status {
    fn from(is_so: bool) -> Status {
        if is_so { Status::True } else { Status::False }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> Timestamp {
        format!("2026-01-01T{time}Z").parse().unwrap()
    }

    fn ready(status: impl Into<Status>, message: &str) -> Finding {
        Finding::new("Ready", status, "Counted", message).of(Some(1))
    }

    fn time(conditions: &[Condition]) -> String {
        find(conditions, "Ready").unwrap().last_transition_time.0.to_string()
    }

    #[test]
    fn the_time_changes_with_the_status_only() {
        let mut conditions = Vec::new();
        assert!(set(&mut conditions, ready(false, "1 of 2"), at("00:00:00.9")));
        assert_eq!(time(&conditions), "2026-01-01T00:00:00Z");
        // Nothing is new.
        assert!(!set(&mut conditions, ready(false, "1 of 2"), at("00:00:10")));
        // Something is, but not the status.
        for finding in [
            ready(false, "0 of 2"),
            ready(false, "0 of 2").of(Some(2)),
            Finding::new("Ready", false, "Waiting", "0 of 2").of(Some(2)),
        ] {
            assert!(set(&mut conditions, finding.clone(), at("00:00:20")), "{finding:?}");
            assert_eq!(time(&conditions), "2026-01-01T00:00:00Z");
        }
        for (status, now) in
            [(Status::True, "00:00:30"), (Status::Unknown, "00:00:40"), (Status::False, "00:00:50")]
        {
            assert!(set(&mut conditions, ready(status, "2 of 2"), at(now)));
            assert_eq!(time(&conditions), format!("2026-01-01T{now}Z"));
            assert_eq!(is_true(&conditions, "Ready"), status == Status::True);
        }
        assert_eq!(conditions.len(), 1);
    }

    #[test]
    fn conditions_keep_their_places() {
        let mut conditions = Vec::new();
        for type_ in ["A", "B", "C"] {
            set(&mut conditions, Finding::new(type_, true, "R", ""), at("00:00:00"));
        }
        set(&mut conditions, Finding::new("A", false, "R", ""), at("00:00:01"));
        assert!(remove(&mut conditions, "B"));
        assert!(!remove(&mut conditions, "B"));
        let left = conditions.iter().map(|condition| (condition.type_.as_str(), condition.status.as_str()));
        assert_eq!(left.collect::<Vec<_>>(), [("A", "False"), ("C", "True")]);
    }

    #[test]
    fn what_was_true_of_an_older_generation_says_nothing_of_this_one() {
        let mut conditions = Vec::new();
        set(&mut conditions, ready(true, "2 of 2").of(Some(3)), at("00:00:00"));
        let is_true = |generation| is_true_of(&conditions, "Ready", Some(generation));
        assert_eq!([2, 3, 4].map(is_true), [true, true, false]);
        assert!(!is_true_of(&conditions, "Available", None));
    }

    /// What is planned is what is read back, or each pass would write anew.
    #[test]
    fn a_condition_survives_the_wire() {
        let mut conditions = Vec::new();
        set(&mut conditions, ready(true, "2 of 2"), at("12:34:56.789"));
        let wire = serde_json::to_value(&conditions).unwrap();
        assert_eq!(wire[0]["lastTransitionTime"], "2026-01-01T12:34:56Z");
        assert_eq!(serde_json::from_value::<Vec<Condition>>(wire).unwrap(), conditions);
    }
}
