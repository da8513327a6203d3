//! What becomes of an object that a mutating hook patches.

use serde_json::Value;

use super::super::conversion::version;
use super::super::decode;
use super::super::registry::Flavor;
use super::hook::Hook;
use super::write::{Operation, Write};
use crate::codec::Parsed;
use crate::json::str_at;
use crate::status::{Result, Status};

/// What a hook's patch makes of an object, and whether it says anything else then. Defaults that are filled in where the patch
/// took them count as changed.
pub(super) fn apply(hook: &Hook, write: Write<'_>, patch: &Value) -> Result<(Value, bool)> {
    if write.operation == Operation::Delete {
        let why = "attempted to modify the object, which is not supported for this operation";
        return Err(Status::internal(&format!("admission webhook {:?} {why}", hook.name)));
    }
    let mut changed = write.object.cloned().unwrap_or_default();
    let failed = |error: crate::patch::PatchError| Status::internal(&error.to_string());
    crate::patch::json_patch(&mut changed, patch).map_err(failed)?;
    let failed = |why: &str| Status::internal(why);
    let Flavor::Custom { definition, .. } = &write.shape.flavor else {
        // Without its type it is read for what it was, until the version is turned; as of another one it is not read.
        decode::check_type(write.shape, Parsed::from(changed.clone())).map_err(|why| failed(&why))?;
        let pruned = decode::prune(write.shape, changed, &mut Vec::new()).map_err(|why| failed(&why))?;
        let differs = write.object != Some(&pruned);
        return Ok((decode::fill(write.shape, pruned), differs));
    };
    // What its schema does not know goes when the object is stored: those who are asked after this one see it.
    let (api_version, kind) = (str_at(&changed, &["apiVersion"]), str_at(&changed, &["kind"]));
    if kind.is_empty() {
        return Err(failed(&format!("Object 'Kind' is missing in '{changed}'")));
    }
    let differs = write.object != Some(&changed);
    if kind == definition.names.kind
        && let Some(version) = version(definition, api_version)
    {
        version.fill(&mut changed);
    }
    Ok((changed, differs))
}
