//! The objects that a binding gives to a policy.

use std::sync::Arc;

use serde_json::Value;

use super::Server;
use super::compiled::Policy;
use crate::api::matching::Match;
use crate::api::registry::{Resource, split_api_version};
use crate::api::server::Call;
use crate::api::webhooks::Write;
use crate::json::str_at;
use crate::kinds::check::matches;
use crate::status::Status;

/// A binding with its parameters, or why it has none.
pub(super) type Bound<'p> = (&'p Value, Result<Vec<Value>, String>);

impl Server {
    /// The bindings of a policy that apply to a write, each with its parameters or why there are none, and the version that
    /// the policy wants to see, if it is another one. The error says what is wrong with the policy.
    pub(super) fn bindings_of<'p>(
        &self,
        policy: &'p Policy,
        call: &Call<'_>,
        write: Write<'_>,
    ) -> Result<(Option<Arc<Resource>>, Vec<Bound<'p>>), String> {
        let told = |status: Status| status.message;
        let sees = match self.matching(&policy.spec["matchConstraints"], call, write).map_err(told)? {
            Match::Not => return Ok((None, Vec::new())),
            Match::Asked => None,
            Match::In(other) => Some(other),
        };
        self.check_param_kind(&policy.spec)?;
        let given = |holder: &'p Value, field: &str| holder.get(field).filter(|value| value.is_object());
        let kind = given(&policy.spec, "paramKind");
        let bound = |binding: &'p Value| {
            let limits = given(&binding["spec"], "matchResources");
            let params = match limits.map(|limits| self.matching(limits, call, write)) {
                Some(Ok(Match::Not)) => return None,
                Some(Err(status)) => Err(told(status)),
                _ => self.params(kind, given(&binding["spec"], "paramRef"), write.namespace(call)),
            };
            Some((binding, params))
        };
        Ok((sees, policy.bindings.iter().filter_map(bound).collect()))
    }

    /// Whether what a policy wants as parameters is there at all.
    fn check_param_kind(&self, spec: &Value) -> Result<(), String> {
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
    fn params(
        &self,
        kind: Option<&Value>,
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
