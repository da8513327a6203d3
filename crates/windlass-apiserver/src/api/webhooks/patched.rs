//! What becomes of an object that a mutating hook patches.

use serde_json::Value;

use super::super::decode;
use super::super::registry::Flavor;
use super::hook::Hook;
use super::write::{Operation, Write};
use crate::codec::Parsed;
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
    if let Flavor::Custom { definition, .. } = &write.shape.flavor {
        let differs = write.object != Some(&changed);
        return Ok((decode::as_left(definition, changed).map_err(|why| failed(&why))?, differs));
    }
    // Without its type it is read for what it was, until the version is turned; as of another one it is not read.
    decode::check_type(write.shape, Parsed::from(changed.clone())).map_err(|why| failed(&why))?;
    let pruned = decode::prune(write.shape, changed, &mut Vec::new()).map_err(|why| failed(&why))?;
    let differs = write.object != Some(&pruned);
    Ok((decode::fill(write.shape, pruned), differs))
}
