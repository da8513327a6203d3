//! Jobs that have ended and said for how long they want to stay.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use windlass_core::{Kind, ObjectKey};

use super::job;
use crate::engine::{Controller, Delete, Propagation, Turn, View, Wiring, Write};

/// Deletes jobs some time after they have ended.
pub(super) struct TtlAfterFinished;

impl Controller for TtlAfterFinished {
    fn name(&self) -> &'static str {
        "ttl-after-finished-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<Job>();
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let job = view.get::<Job>(key).filter(|job| job.metadata.deletion_timestamp.is_none());
        let Some((job, expires)) = job.and_then(|job| Some((job.clone(), expires_at(&job)?))) else {
            return turn;
        };
        if expires > now {
            turn.wake_at(expires);
            return turn;
        }
        turn.writes.push(Write::Delete(Delete {
            kind: Kind::of::<Job>(),
            key: key.clone(),
            uid: job.metadata.uid.clone(),
            // One whose time was made longer meanwhile is another version.
            version: job.metadata.resource_version.clone(),
            propagation: Some(Propagation::Foreground),
            grace: None,
        }));
        turn
    }
}

fn expires_at(job: &Job) -> Option<Timestamp> {
    let seconds = job.spec.as_ref()?.ttl_seconds_after_finished?;
    let finished = job::finished(job)?.last_transition_time.as_ref()?.0;
    finished.checked_add(Duration::from_secs(seconds.try_into().unwrap_or_default())).ok()
}
