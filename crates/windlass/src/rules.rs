//! What an operator may ask of the API server, derived from what it declares.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::rbac::v1::PolicyRule;
use windlass_core::Kind;

/// A set of calls: which verbs on which resources. It becomes the operator's Role, and in tests every call is held
/// against it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Group → resource, with its subresource as `pods/status` → verbs.
    groups: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

impl Rules {
    /// The verbs that reading through the cache needs.
    pub const READ: [&str; 3] = ["get", "list", "watch"];
    /// The verbs that keeping children needs.
    pub const OWN: [&str; 3] = ["create", "patch", "delete"];

    /// No call at all.
    pub fn new() -> Rules {
        Rules::default()
    }

    /// Allows verbs on a resource (`configmaps`, `pods/status`) of a group (empty for the core group).
    pub fn allow(&mut self, group: &str, resource: &str, verbs: &[&str]) {
        let resources = self.groups.entry(group.to_owned()).or_default();
        resources.entry(resource.to_owned()).or_default().extend(verbs.iter().map(|&verb| verb.to_owned()));
    }

    /// Allows verbs on a kind.
    pub fn allow_kind(&mut self, kind: &Kind, verbs: &[&str]) {
        self.allow(&kind.resource.group, &kind.resource.plural, verbs);
    }

    /// Allows verbs on a subresource of a kind.
    pub fn allow_subresource(&mut self, kind: &Kind, subresource: &str, verbs: &[&str]) {
        self.allow(&kind.resource.group, &format!("{}/{subresource}", kind.resource.plural), verbs);
    }

    /// Everything that another set allows.
    pub fn extend(&mut self, other: &Rules) {
        for (group, resources) in &other.groups {
            for (resource, verbs) in resources {
                let entry =
                    self.groups.entry(group.clone()).or_default().entry(resource.clone()).or_default();
                entry.extend(verbs.iter().cloned());
            }
        }
    }

    /// Whether a call is allowed. The resource has its subresource with it: `pods/status`.
    pub fn covers(&self, verb: &str, group: &str, resource: &str) -> bool {
        let verbs = self.groups.get(group).and_then(|resources| resources.get(resource));
        verbs.is_some_and(|verbs| verbs.contains(verb))
    }

    /// The rules of a Role: one for each group and set of verbs, without wildcards.
    pub fn policy_rules(&self) -> Vec<PolicyRule> {
        let mut rules = Vec::new();
        for (group, resources) in &self.groups {
            let mut by_verbs: BTreeMap<&BTreeSet<String>, Vec<String>> = BTreeMap::new();
            for (resource, verbs) in resources {
                by_verbs.entry(verbs).or_default().push(resource.clone());
            }
            rules.extend(by_verbs.into_iter().map(|(verbs, resources)| PolicyRule {
                api_groups: Some(vec![group.clone()]),
                resources: Some(resources),
                verbs: verbs.iter().cloned().collect(),
                ..PolicyRule::default()
            }));
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    #[test]
    fn rules_are_merged_and_have_no_wildcards() {
        let mut rules = Rules::new();
        rules.allow_kind(&Kind::of::<ConfigMap>(), &Rules::READ);
        rules.allow("", "secrets", &Rules::READ);
        rules.allow("", "configmaps", &Rules::OWN);
        rules.allow_subresource(&Kind::of::<ConfigMap>(), "status", &["patch"]);
        assert!(rules.covers("delete", "", "configmaps"));
        assert!(!rules.covers("delete", "", "secrets"));
        assert!(!rules.covers("get", "apps", "configmaps"));
        let text: Vec<String> = rules.policy_rules().iter().map(line).collect();
        assert_eq!(
            text,
            [
                "configmaps: create,delete,get,list,patch,watch",
                "secrets: get,list,watch",
                "configmaps/status: patch"
            ]
        );
    }

    fn line(rule: &PolicyRule) -> String {
        format!("{}: {}", rule.resources.clone().unwrap_or_default().join(","), rule.verbs.join(","))
    }
}
