//! The objects that a binding gives to a policy.

use serde_json::Value;

use super::Server;
use crate::api::registry::split_api_version;
use crate::json::str_at;
use crate::kinds::check::matches;

/// A kind of parameters, as it is served.
pub(super) type ParamKind<'a> = Option<&'a Value>;

impl Server {
    /// Whether what a policy wants as parameters is there at all.
    pub(super) fn check_param_kind(&self, spec: &Value) -> Result<(), String> {
        let Some(kind) = spec.get("paramKind").filter(|kind| kind.is_object()) else { return Ok(()) };
        match self.registry.by_kind(kind) {
            Some(_) => Ok(()),
            None => {
                let (group, version) = split_api_version(str_at(kind, &["apiVersion"]));
                let name = str_at(kind, &["kind"]);
                Err(format!(
                    "failed to find resource referenced by paramKind: '{group}/{version}, Kind={name}'"
                ))
            }
        }
    }

    /// The parameters of a binding: one that is nothing, where there are none to be had.
    pub(super) fn params(
        &self,
        kind: ParamKind<'_>,
        reference: Option<&Value>,
        namespace: &str,
    ) -> Result<Vec<Value>, String> {
        let (Some(kind), Some(reference)) = (kind, reference) else { return Ok(vec![Value::Null]) };
        let resource = self.registry.by_kind(kind).ok_or("paramKind is not served")?;
        let (name, own) = (str_at(reference, &["name"]), str_at(reference, &["namespace"]));
        let namespace = match (resource.namespaced, own, namespace) {
            (true, "", "") => {
                return Err(
                    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                        .into(),
                );
            }
            (true, "", of_request) => of_request,
            (true, own, _) => own,
            (false, "", _) => "",
            (false, ..) => {
                return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".into());
            }
        };
        let found: Vec<Value> = if name.is_empty() {
            let snapshot = self.store.list(&resource.storage);
            let within = Some(namespace).filter(|namespace| !namespace.is_empty());
            let all = snapshot.range(within, None).map(|object| self.load(&resource, object));
            let selector = reference.get("selector");
            all.filter(|object| matches(selector, object.pointer("/metadata/labels"))).collect()
        } else {
            let object = self.store.get(&resource.storage, namespace, name);
            object.map(|object| self.load(&resource, object)).into_iter().collect()
        };
        if found.is_empty() && str_at(reference, &["parameterNotFoundAction"]) == "Deny" {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".into());
        }
        Ok(found)
    }
}
