//! What "done" means, for tests and simulations.

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::core::condition;

use crate::api::FooBar;
use crate::{build, status};

/// The child says what the spec says, and the status says so of this generation.
pub fn done(foobar: &FooBar, child: Option<&ConfigMap>) -> bool {
    child.is_some_and(|child| status::holds(child, &build::config_map(foobar))) && is_ready(foobar)
}

/// The status claims that all is well with the spec as it is now.
pub fn is_ready(foobar: &FooBar) -> bool {
    let conditions = foobar.status.as_ref().map(|status| &status.conditions[..]).unwrap_or_default();
    condition::is_true_of(conditions, status::READY, foobar.metadata.generation)
}
