//! What to tell the user. Pure.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use windlass::core::condition::{self, Finding};
use windlass::jiff::Timestamp;

use crate::api::{FooBar, FooBarStatus};
use crate::build;
use crate::observe::Observed;

/// The one condition of a FooBar.
pub const READY: &str = "Ready";

/// The status of a FooBar.
pub fn of(foobar: &FooBar, seen: &Observed, now: Timestamp) -> FooBarStatus {
    let wanted = build::config_map(foobar);
    let mut status = foobar.status.clone().unwrap_or_default();
    let (ready, reason, message) = match seen.config_map.as_deref() {
        Some(child) if holds(child, &wanted) => (true, "Written", "the ConfigMap holds the target"),
        Some(_) => (false, "Writing", "the ConfigMap does not hold the target yet"),
        None => (false, "Creating", "the ConfigMap is not there yet"),
    };
    let finding = Finding::new(READY, ready, reason, message).of(foobar.metadata.generation);
    condition::set(&mut status.conditions, finding, now);
    status.observed_generation = foobar.metadata.generation;
    status.config_map = Some(wanted.name_any());
    status
}

/// Whether a child says what it should.
pub fn holds(child: &ConfigMap, wanted: &ConfigMap) -> bool {
    child.metadata.deletion_timestamp.is_none() && child.data == wanted.data
}
