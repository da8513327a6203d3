//! Field ownership through the scale subresource.
//!
//! A `Scale` is not stored: who owns its `spec.replicas` is who owns the field that the object keeps its replicas
//! in.

use serde_json::Value;

use super::element::PathElement;
use super::entries::{Entry, Managers};
use super::set::Set;

const SCALE_VERSION: &str = "autoscaling/v1";
const SCALE_PATH: &[&str] = &["spec", "replicas"];

/// Where a version of a kind keeps its replicas.
#[derive(Clone, Copy, Debug)]
pub struct ReplicasPath<'a> {
    /// The version, such as `apps/v1`.
    pub api_version: &'a str,
    /// The path; `None` if this version has no scale subresource.
    pub path: Option<&'a [&'a str]>,
}

/// The `managedFields` of a `Scale`, from those of the object behind it.
pub fn to_scale(parent: &[Value], paths: &[ReplicasPath<'_>]) -> Result<Vec<Value>, String> {
    let mut managers = Managers::decode(parent)?;
    managers.0.retain(|_, entry| {
        let path = find(paths, &entry.version).flatten();
        path.is_some_and(|path| entry.set.contains(&elements(path)))
    });
    for entry in managers.0.values_mut() {
        entry.set = Set::from_paths([SCALE_PATH]);
        entry.version = SCALE_VERSION.to_owned();
    }
    Ok(managers.encode(false))
}

/// The `managedFields` of an object, from its former ones and those of a `Scale` that was written.
/// `api_version` is the version through which the scale subresource was reached.
pub fn from_scale(
    parent: &[Value],
    scale: &[Value],
    api_version: &str,
    paths: &[ReplicasPath<'_>],
) -> Result<Vec<Value>, String> {
    let mut scale = Managers::decode(scale)?;
    let mut out = Managers::default();
    for (id, mut entry) in Managers::decode(parent)?.0 {
        // Entries of a version that does not exist are dropped.
        let Some(path) = find(paths, &entry.version) else { continue };
        if let Some(path) = path.filter(|path| entry.set.contains(&elements(path)))
            && scale.0.remove(&id).is_none()
        {
            // Somebody took the replicas away through the subresource.
            entry.set = entry.set.difference(&Set::from_paths([path]));
            if entry.set.is_empty() {
                continue;
            }
        }
        out.0.insert(id, entry);
    }
    let scale_path = elements(SCALE_PATH);
    let path = find(paths, api_version).flatten().unwrap_or_default();
    for (id, entry) in scale.0 {
        if entry.set.contains(&scale_path) {
            let set = Set::from_paths([path]);
            let time = out.0.get(&id).and_then(|entry| entry.time);
            out.0.insert(id, Entry { version: api_version.to_owned(), set, time });
        }
    }
    Ok(out.encode(false))
}

/// `None` if the version is not known, `Some(None)` if it has no replicas.
fn find<'a>(paths: &[ReplicasPath<'a>], version: &str) -> Option<Option<&'a [&'a str]>> {
    paths.iter().find(|path| path.api_version == version).map(|path| path.path)
}

fn elements(path: &[&str]) -> Vec<PathElement> {
    path.iter().map(|&name| PathElement::Field(name.to_owned())).collect()
}
