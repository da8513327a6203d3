//! ClusterRoles whose rules are those of others, chosen by labels: `admin`, `edit` and `view` of every cluster.

use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use serde_json::json;
use windlass_core::ObjectKey;

use super::claim::selector;
use crate::engine::{Controller, Turn, View, Wiring};

/// Keeps the rules of ClusterRoles with an `aggregationRule`.
pub(super) struct ClusterRoleAggregation;

impl Controller for ClusterRoleAggregation {
    fn name(&self) -> &'static str {
        "clusterrole-aggregation-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<ClusterRole>();
        // Whatever changes may be, or have been, part of any of them.
        wiring.maps::<ClusterRole>(|_, view| {
            let all = view.list::<ClusterRole>(None);
            let aggregated = all.iter().filter(|role| role.aggregation_rule.is_some());
            aggregated.map(|role| ObjectKey::of(&role.metadata)).collect()
        });
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, _: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let Some(role) = view.get::<ClusterRole>(key) else { return turn };
        let Some(aggregation) = &role.aggregation_rule else { return turn };
        let mut all = view.list::<ClusterRole>(None);
        all.retain(|other| other.metadata.name != role.metadata.name);
        all.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        let mut rules: Vec<PolicyRule> = Vec::new();
        for wanted in aggregation.cluster_role_selectors.iter().flatten() {
            let selector = selector(wanted);
            let labels = |role: &ClusterRole| role.metadata.labels.clone().unwrap_or_default();
            for rule in all
                .iter()
                .filter(|other| selector.matches(&labels(other)))
                .flat_map(|other| &other.rules)
                .flatten()
            {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
        if rules != role.rules.clone().unwrap_or_default() {
            let version = &role.metadata.resource_version;
            turn.patch::<ClusterRole>(key, json!({"metadata": {"resourceVersion": version}, "rules": rules}));
        }
        turn
    }
}
