//! Services and endpoints.

use serde_json::{Value, json};

use super::{allocate, service_rules};
use crate::kinds::tree::{each, fill, fill_zero, int, is_zero, list, remove, restore, same, set, sub, text};
use crate::kinds::{Context, Hooks, meta, names};

pub(super) const SERVICE: Hooks = Hooks {
    default,
    begin: allocate::begin,
    name: names::dns_label,
    prepare_update,
    canonicalize: no_internal_policy,
    validate_create: |service, _, errors| service_rules::validate(service, None, errors),
    validate_update: |new, old, _, errors| {
        service_rules::validate_update(new, old, errors);
        service_rules::validate(new, Some(old), errors);
    },
    validate_status: |new, _, _, errors| service_rules::validate_status(new, errors),
    warnings: |new, _| service_rules::warnings(new),
    ..Hooks::NONE
};

pub(super) const ENDPOINTS: Hooks = Hooks {
    rechecks: &[meta::Check::Update, meta::Check::Whole],
    default: |object| {
        each(object, "subsets", |subset| each(subset, "ports", |port| fill_zero(port, "protocol", "TCP")));
    },
    validate_create: |object, _, errors| service_rules::validate_endpoints(object, errors),
    validate_update: |new, _, _, errors| service_rules::validate_endpoints(new, errors),
    warnings: |_, _| vec![ENDPOINTS_WARNING.to_owned()],
    ..Hooks::NONE
};

const ENDPOINTS_WARNING: &str = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";

/// How long client-IP affinity lasts.
const AFFINITY_SECONDS: i64 = 10_800;

fn default(service: &mut Value) {
    let spec = sub(service, "spec");
    fill_zero(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            remove(spec, "sessionAffinityConfig");
        }
        "ClientIP" if spec.pointer("/sessionAffinityConfig/clientIP/timeoutSeconds").is_none() => {
            set(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}));
        }
        _ => {}
    }
    fill_zero(spec, "type", "ClusterIP");
    each(spec, "ports", |port| {
        fill_zero(port, "protocol", "TCP");
        let own = port.get("port").cloned().unwrap_or(json!(0));
        fill_zero(port, "targetPort", own);
    });
    if externally_accessible(spec) {
        fill_zero(spec, "externalTrafficPolicy", "Cluster");
    }
    match text(spec, "type") {
        "NodePort" | "LoadBalancer" | "ClusterIP" => fill(spec, "internalTrafficPolicy", "Cluster"),
        _ => {}
    }
    if text(spec, "type") == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
        if let Some(balancer) = service.pointer_mut("/status/loadBalancer") {
            each(balancer, "ingress", |point| {
                if !text(point, "ip").is_empty() {
                    fill(point, "ipMode", "VIP");
                }
            });
        }
    }
}

pub(super) fn externally_accessible(spec: &Value) -> bool {
    match text(spec, "type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !is_zero(spec.get("externalIPs")),
        _ => false,
    }
}

pub(super) fn needs_cluster_ip(spec: &Value) -> bool {
    text(spec, "type") != "ExternalName"
}

pub(super) fn needs_node_port(spec: &Value) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

pub(super) fn needs_health_port(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

pub(super) fn node_ports(spec: &Value) -> Vec<i64> {
    list(spec, "ports").iter().filter_map(|port| int(port, "nodePort")).filter(|port| *port != 0).collect()
}

/// A name elsewhere has no traffic inside. Whoever sent a policy owns it all the same.
fn no_internal_policy(service: &mut Value) {
    let spec = sub(service, "spec");
    if text(spec, "type") == "ExternalName" {
        remove(spec, "internalTrafficPolicy");
    }
}

/// Wipes what the server once filled in and the new type of the service has no use for.
fn prepare_update(service: &mut Value, old: &Value, _: &Context<'_>) {
    let old_spec = &old["spec"];
    let spec = sub(service, "spec");
    let unchanged = |spec: &Value, field: &str| same(spec.get(field), old_spec.get(field));
    let lost = |spec: &Value, needs: fn(&Value) -> bool| needs(old_spec) && !needs(spec);
    if lost(spec, needs_cluster_ip) {
        if unchanged(spec, "clusterIP") && unchanged(spec, "clusterIPs") {
            remove(spec, "clusterIP");
            remove(spec, "clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if unchanged(spec, field) {
                remove(spec, field);
            }
        }
    }
    let held = node_ports(old_spec);
    if lost(spec, needs_node_port) && node_ports(spec).iter().all(|port| held.contains(port)) {
        each(spec, "ports", |port| {
            remove(port, "nodePort");
        });
    }
    let balances = |spec: &Value| text(spec, "type") == "LoadBalancer";
    for (needs, field) in [
        (needs_health_port as fn(&Value) -> bool, "healthCheckNodePort"),
        (balances, "allocateLoadBalancerNodePorts"),
        (balances, "loadBalancerClass"),
        (externally_accessible, "externalTrafficPolicy"),
    ] {
        if lost(spec, needs) && unchanged(spec, field) {
            remove(spec, field);
        }
    }
    if !balances(spec) {
        set(service, "status", json!({"loadBalancer": {}}));
        restore(sub(service, "status"), &old["status"], "conditions");
    }
}
