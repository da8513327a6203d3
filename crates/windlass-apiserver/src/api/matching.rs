//! What rules and selectors say of a write: shared by webhooks and admission policies.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use super::object::meta_str;
use super::registry::Resource;
use super::server::{Call, Server};
use super::webhooks::Write;
use crate::crd::{Asked, Authorizer, Part, Who};
use crate::json::str_at;
use crate::kinds::check::matches;
use crate::status::{Result, Status};
use crate::store::Kind;

use super::authorize::Attributes;
use super::user::User;

static NAMESPACES: LazyLock<Kind> = LazyLock::new(|| Kind::new("", "namespaces"));

/// A list within an object; empty where there is none.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether one of some rules names what is done, and the object if it names any.
fn has_rule(rules: &[Value], write: Write<'_>, subresource: &str, name: &str) -> bool {
    let Write { operation, resource, .. } = write;
    let has =
        |rule: &Value, key: &str, value: &str| list(rule, key).iter().any(|one| one == "*" || one == value);
    let fits = |rule: &&Value| {
        let scope = match str_at(rule, &["scope"]) {
            "Namespaced" => resource.namespaced && !resource.is_namespaces(),
            "Cluster" => !resource.namespaced,
            _ => true,
        };
        let names = list(rule, "resourceNames");
        scope
            && has(rule, "operations", operation.as_str())
            && has(rule, "apiGroups", &resource.group)
            && has(rule, "apiVersions", &resource.version)
            && list(rule, "resources").iter().any(|one| self::names(one, &resource.plural, subresource))
            && (names.is_empty() || names.iter().any(|one| one == name))
    };
    rules.iter().any(|rule| fits(&rule))
}

/// How rules name what is done.
pub(super) enum Match {
    /// They do not.
    Not,
    /// As it was asked for.
    Asked,
    /// In another version of the same resource.
    In(Arc<Resource>),
}

/// Whether an entry of a rule names a resource: `pods`, `pods/status`, `pods/*`, `*/status`, `*` or `*/*`.
fn names(entry: &Value, plural: &str, subresource: &str) -> bool {
    let entry = entry.as_str().unwrap_or_default();
    let (resource, sub) = entry.split_once('/').unwrap_or((entry, ""));
    (resource == "*" || resource == plural) && (sub == subresource || sub == "*")
}

impl Server {
    /// How rules name a write. `is_exact` says that other versions of the resource are other resources.
    pub(super) fn matched(
        &self,
        rules: &[Value],
        is_exact: bool,
        call: &Call<'_>,
        write: Write<'_>,
    ) -> Match {
        let (subresource, name) = (call.target.subresource.as_str(), write.name(call));
        if has_rule(rules, write, subresource, name) {
            return Match::Asked;
        }
        if is_exact {
            return Match::Not;
        }
        let is_other = |other: &&Arc<Resource>| {
            (&other.group, &other.version) != (&write.resource.group, &write.resource.version)
                && (subresource.is_empty() || other.subresource(subresource).is_some())
        };
        let others: Vec<_> = self.registry.views(&write.resource.storage).filter(is_other).collect();
        let named = |rule| {
            let is_named = |other: &&&Arc<Resource>| {
                has_rule(std::slice::from_ref(rule), Write { resource: other, ..write }, subresource, name)
            };
            others.iter().find(is_named)
        };
        rules.iter().find_map(named).map_or(Match::Not, |other| Match::In(Arc::clone(other)))
    }

    /// Whether selectors of namespaces and of objects choose a write. Of a namespace that is not there nobody can tell.
    pub(super) fn is_selected(
        &self,
        namespaces: &Value,
        objects: &Value,
        call: &Call<'_>,
        write: Write<'_>,
    ) -> Result<bool> {
        let is_any = |selector: &Value| selector.as_object().is_none_or(Map::is_empty);
        // What has no metadata has no labels to be chosen by, nor any to lack. A custom object from which somebody took them
        // has none.
        let is_chosen = |object: &Value| match object.get("metadata") {
            Some(metadata) => matches(Some(objects), metadata.get("labels")),
            None => write.shape.is_custom() && matches(Some(objects), None),
        };
        if !is_any(objects) && ![write.object, write.old].into_iter().flatten().any(is_chosen) {
            return Ok(false);
        }
        if is_any(namespaces) {
            return Ok(true);
        }
        // What is in no namespace is not chosen by namespaces.
        let labels = self.namespace_labels(call, write)?;
        Ok(labels.is_none_or(|labels| matches(Some(namespaces), Some(&labels))))
    }

    /// The labels of the namespace that a write is in; those of the object itself, where that is a namespace. What is in no
    /// namespace has none.
    fn namespace_labels(&self, call: &Call<'_>, write: Write<'_>) -> Result<Option<Value>> {
        let labels = |object: &Value| object.pointer("/metadata/labels").cloned().unwrap_or_default();
        if write.resource.is_namespaces() {
            return Ok(write.object.or(write.old).map(labels));
        }
        let namespace = &call.target.namespace;
        if namespace.is_empty() {
            return Ok(None);
        }
        let missing = || Status::not_found("", "namespaces", namespace);
        let found = self.store.get(&NAMESPACES, "", namespace).ok_or_else(missing)?;
        let labels = found.labels().iter().map(|pair| (pair.key().to_owned(), json!(pair.value())));
        Ok(Some(labels.collect::<Map<_, _>>().into()))
    }
}

/// The user of a request, asked about by expressions.
pub(super) struct Asking<'a> {
    server: &'a Server,
    user: &'a User,
    /// What the request is about.
    pub about: Part,
}

impl<'a> Asking<'a> {
    pub fn new(server: &'a Server, call: &'a Call<'_>, write: Write<'_>) -> Asking<'a> {
        let Resource { group, plural, .. } = write.resource;
        let about = Part {
            group: group.to_string(),
            resource: plural.to_string(),
            subresource: call.target.subresource.clone(),
            namespace: write.namespace(call).to_owned(),
            name: write.name(call).to_owned(),
        };
        Asking { server, user: &call.request.user, about }
    }
}

impl Authorizer for Asking<'_> {
    fn decide(&self, who: &Who, asked: &Asked, verb: &str) -> (bool, String) {
        let account;
        let user = match who {
            Who::Requester => self.user,
            Who::Account { namespace, name } => {
                // Nobody has proved to be it: it is not among those who have.
                account = User::account(namespace, name).without("system:authenticated");
                &account
            }
        };
        let attributes = match asked {
            Asked::Path(path) => Attributes::path(verb, path.as_str()),
            Asked::Resource(part) => Attributes::resource(verb, &part.group, &part.resource)
                .below(part.subresource.as_str())
                .within(part.namespace.as_str())
                .named(part.name.as_str()),
        };
        let decision = self.server.decide(user, &attributes);
        (decision.is_allowed(), decision.reason())
    }
}

impl<'a> Write<'a> {
    /// The name of what is written: that of the path, if it has one.
    pub fn name<'b>(&self, call: &'b Call<'_>) -> &'b str
    where
        'a: 'b,
    {
        match call.name.as_str() {
            "" => self.object.or(self.old).map_or("", |object| meta_str(object, "name")),
            name => name,
        }
    }

    /// The namespace of what is written. A namespace is in itself, as far as anybody who looks at requests is concerned.
    pub fn namespace<'b>(&self, call: &'b Call<'_>) -> &'b str
    where
        'a: 'b,
    {
        match self.resource.is_namespaces() {
            true => self.name(call),
            false => &call.target.namespace,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_name_resources_and_their_parts() {
        let fits = |entry: &str, plural, sub| names(&json!(entry), plural, sub);
        assert!(fits("pods", "pods", "") && !fits("pods", "pods", "status"));
        assert!(fits("*", "pods", "") && !fits("*", "pods", "status"));
        assert!(fits("*/*", "pods", "status") && fits("*/*", "pods", ""));
        assert!(fits("pods/*", "pods", "status") && fits("pods/*", "pods", ""));
        assert!(fits("*/status", "pods", "status") && !fits("*/status", "pods", ""));
    }
}
