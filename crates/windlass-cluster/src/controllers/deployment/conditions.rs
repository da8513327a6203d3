//! The conditions of a Deployment.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DeploymentCondition, DeploymentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Type, status, reason and message of a condition.
pub(super) type Said<'a> = (&'a str, &'a str, &'a str, &'a str);

/// A condition of this moment.
pub(super) fn new((kind, status, reason, message): Said<'_>, now: Timestamp) -> DeploymentCondition {
    DeploymentCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// The condition of a type.
pub(super) fn get<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.as_deref().unwrap_or_default().iter().find(|condition| condition.type_ == kind)
}

/// The reason of the condition of a type.
pub(super) fn reason<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a str> {
    get(status, kind).map(|condition| condition.reason.as_deref().unwrap_or_default())
}

/// Says something new. What has the same status and reason is not new: its message stays as it is.
pub(super) fn set(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    if let Some(before) = get(status, &condition.type_)
        && before.status == condition.status
    {
        if before.reason == condition.reason {
            return;
        }
        condition.last_transition_time = before.last_transition_time.clone();
    }
    remove(status, &condition.type_);
    status.conditions.get_or_insert_default().push(condition);
}

/// Takes a condition back.
pub(super) fn remove(status: &mut DeploymentStatus, kind: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != kind);
    }
    status.conditions = status.conditions.take().filter(|conditions| !conditions.is_empty());
}
