//! What a JSON patch or merge patch leaves of `kind` and `apiVersion`.

use serde_json::Value;

use super::registry::Resource;
use crate::codec::{self, Parsed};
use crate::json::str_at;
use crate::status::{Result, Status};

/// The patched tree with the resource's `kind` and `apiVersion`, if it has no others. `shown` is its text.
pub(super) fn retype(
    resource: &Resource,
    mut tree: Value,
    unknown: &mut Vec<String>,
    shown: impl Fn() -> String,
    fail: impl Fn(&str) -> Status,
) -> Result<Value> {
    // The patch went through a map of Go, which writes its keys in order: `kind` comes after `Kind`, and counts.
    if let Value::Object(map) = &mut tree {
        map.sort_keys();
    }
    let parsed = Parsed::from(tree);
    let (api_version, _) = codec::type_meta(&parsed).map_err(|e| fail(&e.to_string()))?;
    if resource.is_custom() {
        return custom(parsed.value, shown, fail);
    }
    let mut tree = super::decode::check_type(resource, parsed).map_err(|why| fail(&why))?;
    if let Value::Object(map) = &mut tree
        && api_version.is_empty()
    {
        // Without a version upstream takes it for its internal type, whose fields have other names: none is known.
        let own = |key: &str| matches!(key, "apiVersion" | "kind");
        unknown.extend(map.keys().filter(|key| !own(key)).cloned());
        map.retain(|key, _| own(key));
    }
    Ok(tree)
}

/// Custom objects carry their type with them: nobody adds what is missing, and what is wrong is a fault of the object.
fn custom(tree: Value, shown: impl Fn() -> String, fail: impl Fn(&str) -> Status) -> Result<Value> {
    let (api_version, kind) = (str_at(&tree, &["apiVersion"]), str_at(&tree, &["kind"]));
    if kind.is_empty() {
        return Err(fail(&format!("Object 'Kind' is missing in '{}'", shown())));
    }
    if api_version.is_empty() {
        return Err(Status::internal("Object 'apiVersion' is missing in 'object has no apiVersion field'"));
    }
    if api_version.matches('/').count() > 1 {
        return Err(fail(&format!("unexpected GroupVersion string: {api_version}")));
    }
    Ok(tree)
}
