//! Whoever lets a policy read parameters has to be one who may read them himself.

use serde_json::Value;

use super::GROUP;
use crate::api::authorize::{Attributes, is_master};
use crate::api::object::meta_str;
use crate::api::registry::{Resource, split_api_version};
use crate::api::server::{Call, Server};
use crate::api::user::User;
use crate::field::{Errors, Path};
use crate::json::str_at;
use crate::status::{Result, Status};
use crate::store::Kind;

impl Server {
    /// Refuses a policy with parameters of a kind, or a binding with parameters, that its writer may not read.
    pub(in crate::api) fn confirm_params(
        &self,
        call: &Call<'_>,
        resource: &Resource,
        old: Option<&Value>,
        tree: &Value,
    ) -> Result<()> {
        let user = &call.request.user;
        if resource.group != GROUP || !call.target.subresource.is_empty() || is_master(user) {
            return Ok(());
        }
        let spec = &tree["spec"];
        let (field, verdict) = match &*resource.plural {
            "validatingadmissionpolicies" | "mutatingadmissionpolicies" => {
                let is_same = |old: &Value| old["spec"].get("paramKind") == spec.get("paramKind");
                if old.is_some_and(is_same) {
                    return Ok(());
                }
                ("paramKind", self.may_read_kind(user, &spec["paramKind"]))
            }
            "validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings" => {
                let policies = resource.plural.replace("policybindings", "policies");
                ("paramRef", self.may_read_params(user, &policies, spec))
            }
            _ => return Ok(()),
        };
        verdict.map_err(|why| {
            let mut errors = Errors::default();
            errors.forbidden(&Path::Root.child("spec").child(field), &why);
            Status::invalid(GROUP, &resource.kind, meta_str(tree, "name"), errors)
        })
    }

    fn may_read_kind(&self, user: &User, kind: &Value) -> std::result::Result<(), String> {
        if !kind.is_object() {
            return Ok(());
        }
        let (group, _) = split_api_version(str_at(kind, &["apiVersion"]));
        let found = self.registry.by_kind(kind);
        let plural = found.as_ref().map_or("*", |found| &*found.plural);
        let asked = Attributes::resource("get", group, plural).within("*").named("*");
        match self.decide(user, &asked).is_allowed() {
            true => Ok(()),
            false => Err(format!(
                "user {} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
                told(user),
                str_at(kind, &["kind"]),
                str_at(kind, &["apiVersion"]),
            )),
        }
    }

    fn may_read_params(&self, user: &User, policies: &str, spec: &Value) -> std::result::Result<(), String> {
        let Some(reference) = spec.get("paramRef").filter(|reference| reference.is_object()) else {
            return Ok(());
        };
        let policy_name = str_at(spec, &["policyName"]);
        let policy = self.store.get(&Kind::new(GROUP, policies), "", policy_name);
        let policy: Option<Value> = policy.and_then(|object| serde_json::from_slice(object.body()).ok());
        let kind = policy.as_ref().and_then(|policy| policy["spec"].get("paramKind"));
        let found = kind.and_then(|kind| self.registry.by_kind(kind));
        let group = kind.map_or("*", |kind| split_api_version(str_at(kind, &["apiVersion"])).0);
        let plural = found.as_ref().map_or("*", |found| &*found.plural);
        let name = str_at(reference, &["name"]);
        let verb = if name.is_empty() { "list" } else { "get" };
        let asked = Attributes::resource(verb, group, plural);
        let asked = asked.within(str_at(reference, &["namespace"])).named(name);
        if self.decide(user, &asked).is_allowed() {
            return Ok(());
        }
        let user = told(user);
        let not_all = format!(
            "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, versions and resources"
        );
        Err(match (&policy, kind, &found) {
            (None, ..) => format!("unable to get policy {policy_name} {not_all}"),
            (_, Some(kind), None) => {
                let text = |key: &str| str_at(kind, &[key]);
                format!("unable to resolve paramKind &{{{} {}}} {not_all}", text("apiVersion"), text("kind"))
            }
            // Upstream mixes them up.
            _ if policies.starts_with("mutating") => {
                format!(
                    "user {verb} does not have \"{user}\" permission on the object referenced by paramRef"
                )
            }
            _ => format!(
                "user {user} does not have \"{verb}\" permission on the object referenced by paramRef"
            ),
        })
    }
}

/// A user as Go prints it.
fn told(user: &User) -> String {
    let extra: Vec<String> =
        user.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{} {} [{}] map[{}]}}", user.name, user.uid, user.groups.join(" "), extra.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_told_as_go_tells_him() {
        let mut user = User::new("bob", ["team"]);
        assert_eq!(told(&user), "&{bob  [team system:authenticated] map[]}");
        user.extra.insert("k".into(), vec!["a".into(), "b".into()]);
        assert_eq!(told(&user), "&{bob  [team system:authenticated] map[k:[a b]]}");
    }
}
