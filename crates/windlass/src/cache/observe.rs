//! Who wants to know how informers are doing.

use k8s_openapi::api::core::v1::ObjectReference;
use windlass_core::Kind;

use super::health::State;
use crate::source;

/// Told of what metrics and Events are made of. All of it is optional.
///
/// # Assumptions
/// It returns soon: an informer waits for it.
pub trait Observer: Send + Sync {
    /// An informer is in another state, in one namespace or in all.
    fn state(&self, kind: &Kind, namespace: Option<&str>, state: &State) {
        let _ = (kind, namespace, state);
    }

    /// A list or a watch failed. Told each time, where the log says it once.
    fn watch_failed(&self, kind: &Kind, error: &source::Error) {
        let _ = (kind, error);
    }

    /// An object does not decode, and is skipped.
    fn undecodable(&self, kind: &Kind, object: &ObjectReference, error: &str) {
        let _ = (kind, object, error);
    }
}

/// Nobody wants to know.
impl Observer for () {}
