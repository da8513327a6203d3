//! What a decision needs to know beside the FooBar itself.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::core::ObjectKey;
use windlass::{Context, Error};

use crate::api::FooBar;
use crate::build;

/// What there is.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The child, if it is there.
    pub config_map: Option<Arc<ConfigMap>>,
}

/// Reads it from the cache.
///
/// # Errors
/// When the cache has not heard from the server yet.
pub fn observe(ctx: &Context, foobar: &FooBar) -> Result<Observed, Error> {
    let key = ObjectKey::of(&build::config_map(foobar).metadata);
    Ok(Observed { config_map: ctx.get(&key)? })
}
