//! The values of fields that a user leaves out. The schema has them, so that the stored object shows them.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The version of etcd where none is named: the newest that our tests run.
pub const VERSION: &str = "3.7.3";
/// Where the image comes from where none is named.
pub const IMAGE: &str = "quay.io/coreos/etcd";

pub(super) fn size() -> i32 {
    3
}

pub(super) fn version() -> String {
    VERSION.to_owned()
}

pub(super) fn image() -> String {
    IMAGE.to_owned()
}

pub(super) fn yes() -> bool {
    true
}

/// Four times the default quota: the database, a snapshot on its way, the copy of a defragmentation, the log.
pub(super) fn storage_size() -> Quantity {
    Quantity("8Gi".to_owned())
}

/// etcd's own default.
pub(super) fn quota() -> Quantity {
    Quantity("2Gi".to_owned())
}

pub(super) fn retention() -> String {
    "1h".to_owned()
}

pub(super) fn snapshot_count() -> i32 {
    10_000
}

pub(super) fn heartbeat() -> i32 {
    100
}

pub(super) fn election() -> i32 {
    1000
}

/// Longer than a node takes to come back from a reboot or a drain, which is no failure.
pub(super) fn suspect_after() -> i32 {
    300
}

pub(super) fn failed_after() -> i32 {
    600
}

pub(super) fn learner_deadline() -> i32 {
    600
}

pub(super) fn quorum_loss_grace() -> i32 {
    300
}

pub(super) fn replacements() -> i32 {
    3
}

pub(super) fn crash_loop_restarts() -> i32 {
    5
}
