//! NamespaceLifecycle: namespaces come and go in order.

use serde_json::Value;

use super::{Admission, Operation};
use crate::status::{Result, Status};

/// Namespaces that a cluster cannot be without.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Objects are made only in namespaces that exist and are not on their way out.
pub(super) fn admit(object: &mut Value, admission: &mut Admission<'_>) -> Result<()> {
    let (operation, name) = (admission.operation, admission.namespace);
    if admission.is_in("", "namespaces") {
        return match operation == Operation::Delete && IMMORTAL.contains(&admission.name) {
            true => {
                let why = "this namespace may not be deleted";
                Err(Status::forbidden("", "namespaces", admission.name, why))
            }
            false => Ok(()),
        };
    }
    if name.is_empty() || operation == Operation::Delete {
        return Ok(());
    }
    let Some(namespace) = admission.context.world.namespace(name) else {
        return Err(Status::not_found("", "namespaces", name));
    };
    if operation != Operation::Create || namespace.phase != "Terminating" {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {name} because it is being terminated");
    let message = format!("namespace {name} is being terminated");
    Err(admission.refuse(object, &why).cause("NamespaceTerminating", message, "metadata.namespace"))
}
