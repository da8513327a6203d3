//! Nobody grants what he does not have: what is checked before a role or a binding is written.

use serde_json::Value;

use super::attributes::Attributes;
use super::policy::{Missing, Reference};
use super::rule::{self, Rule};
use super::{GROUP, is_master};
use crate::api::object::meta_str;
use crate::api::registry::Resource;
use crate::api::server::{Call, Server};
use crate::api::user::User;
use crate::go::{aggregate, quote, quoted};
use crate::json::str_at;
use crate::status::{Result, Status};

impl Server {
    /// Refuses a role with rules that its writer does not have, and a binding to such a role, unless the writer is allowed to
    /// `escalate` the role or to `bind` it.
    pub(in crate::api) fn confirm_no_escalation(
        &self,
        call: &Call<'_>,
        resource: &Resource,
        old: Option<&Value>,
        tree: &Value,
    ) -> Result<()> {
        let user = &call.request.user;
        let is_role = match (&*resource.group, &*resource.plural) {
            (GROUP, "roles" | "clusterroles") => true,
            (GROUP, "rolebindings" | "clusterrolebindings") => false,
            _ => return Ok(()),
        };
        if is_master(user) || old.is_some_and(|old| differs_for_collector_only(old, tree)) {
            return Ok(());
        }
        let namespace = call.target.namespace.as_str();
        match is_role {
            true => self.confirm_role(call, resource, old, tree),
            false => {
                let role = Reference {
                    kind: str_at(tree, &["roleRef", "kind"]).to_owned(),
                    name: str_at(tree, &["roleRef", "name"]).to_owned(),
                };
                if self.may_bind(user, &role, str_at(tree, &["roleRef", "apiGroup"]), namespace) {
                    return Ok(());
                }
                let rules =
                    self.policy.policy.rules(&role, namespace).map_err(|missing| match &*role.kind {
                        // Upstream whoever looks for the role knows only what the request is about.
                        "Role" | "ClusterRole" => Status::not_found(GROUP, &resource.plural, &role.name),
                        _ => Status::new(500, "", missing.to_string()),
                    })?;
                self.held(call, resource, rules).map_err(|why| refusal(resource, tree, &why))
            }
        }
    }

    fn confirm_role(
        &self,
        call: &Call<'_>,
        resource: &Resource,
        old: Option<&Value>,
        tree: &Value,
    ) -> Result<()> {
        let (user, target) = (&call.request.user, call.target);
        let escalate = Attributes::resource("escalate", GROUP, &resource.plural)
            .named(&*target.name)
            .within(&*target.namespace);
        if self.decide(user, &escalate).is_allowed() {
            return Ok(());
        }
        let rules: Vec<Rule> = serde_json::from_value(tree["rules"].clone()).unwrap_or_default();
        self.held(call, resource, &rules).map_err(|why| refusal(resource, tree, &why))?;
        let aggregates = |role: &Value| {
            let selectors = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array);
            selectors.is_some_and(|selectors| !selectors.is_empty())
        };
        let everything = || [Rule::everything_with_resources(), Rule::everything_at_paths()];
        if (aggregates(tree) || old.is_some_and(aggregates))
            && self.held(call, resource, &everything()).is_err()
        {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(refusal(resource, tree, why));
        }
        Ok(())
    }

    fn may_bind(&self, user: &User, role: &Reference, group: &str, namespace: &str) -> bool {
        let plural = match role.kind.as_str() {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            _ => return false,
        };
        let bind = Attributes::resource("bind", group, plural).named(&*role.name).within(namespace);
        self.decide(user, &bind).is_allowed()
    }

    /// Whether the user has all of these rules; if not, which of them are missing.
    fn held(&self, call: &Call<'_>, resource: &Resource, wanted: &[Rule]) -> std::result::Result<(), String> {
        let user = &call.request.user;
        let (own, lost) = self.policy.policy.rules_of(user, &call.target.namespace);
        let missing = rule::uncovered(&own, wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let mut why = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            quote(&user.name),
            quoted(&user.groups),
            rule::told(&missing)
        );
        if !lost.is_empty() {
            let told =
                |lost: &Missing<'_>| format!("{}.{GROUP} {} not found", resource.plural, quote(&lost.0.name));
            let lost: Vec<String> = lost.iter().map(told).collect();
            why += &format!("; resolution errors: [{}]", aggregate(&lost));
        }
        Err(why)
    }
}

fn refusal(resource: &Resource, tree: &Value, why: &str) -> Status {
    Status::forbidden(GROUP, &resource.plural, meta_str(tree, "name"), why)
}

/// Whether nothing differs but what the garbage collector writes: it has to be able to let every object go.
fn differs_for_collector_only(old: &Value, tree: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.retain(|key, _| {
                !matches!(key.as_str(), "ownerReferences" | "finalizers" | "selfLink" | "managedFields")
            });
        }
        object
    };
    without(old) == without(tree)
}
