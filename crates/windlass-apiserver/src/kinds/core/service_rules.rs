//! What services and endpoints must look like.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::service::{externally_accessible, needs_cluster_ip, needs_health_port};
use crate::field::{Errors, Path};
use crate::kinds::check::{by_rule, cidr, in_range, ip, one_of, port_or_name, required, text_by};
use crate::kinds::meta::labels;
use crate::kinds::tree::{get, int, is_zero, list, same, text};
use crate::kinds::{names, warn};

/// Checks a service.
pub(super) fn validate(service: &Value, errors: &mut Errors) {
    let (spec, path) = (&service["spec"], Path::Root.child("spec"));
    let kind = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    if list(spec, "ports").is_empty() && !headless && kind != "ExternalName" {
        errors.required(&path.child("ports"), "");
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.invalid(&path.child("clusterIPs").index(0), &json!("None"), &detail);
        }
        "ExternalName" => external_name(spec, &path, errors),
        _ => {}
    }
    ports(spec, &path, errors);
    labels(spec, "selector", &path, errors);
    one_of(spec, "sessionAffinity", &["ClientIP", "None"], &path, errors);
    addresses(spec, &path, errors);
    for (index, address) in list(spec, "externalIPs").iter().filter_map(Value::as_str).enumerate() {
        let at = path.child("externalIPs");
        match address.parse::<std::net::IpAddr>() {
            Ok(_) => endpoint_ip(address, &at.index(index), errors),
            Err(_) => ip(address, &at.index(index), errors),
        }
    }
    one_of(spec, "type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], &path, errors);
    source_ranges(spec, &path, errors);
    if kind != "LoadBalancer" {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if get(spec, field).is_some() {
                errors.forbidden(&path.child(field), "may only be used when `type` is 'LoadBalancer'");
            }
        }
    }
    traffic(spec, &path, errors);
}

/// Checks the addresses of a service, and what goes with them. This comes before anything is allocated, too.
pub(super) fn addresses(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if text(spec, "type") == "ExternalName" {
        return;
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    one_of(spec, "ipFamilyPolicy", &policies, path, errors);
    let at = path.child("clusterIPs");
    let all = list(spec, "clusterIPs").iter().filter_map(Value::as_str).collect::<Vec<_>>();
    let known = errors.0.len();
    for (index, address) in all.iter().enumerate() {
        if *address != "None" {
            ip(address, &at.index(index), errors);
        }
    }
    if errors.0.len() > known || all.first() == Some(&"None") {
        return;
    }
    for (index, (address, family)) in all.iter().zip(list(spec, "ipFamilies")).enumerate() {
        let family = family.as_str().unwrap_or("");
        let found = if address.contains(':') { "IPv6" } else { "IPv4" };
        if matches!(family, "IPv4" | "IPv6") && found != family {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.invalid(&at.index(index), &json!(address), &detail);
        }
    }
}

fn source_ranges(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let ranges = list(spec, "loadBalancerSourceRanges");
    // The real server spells the field so.
    let at = path.child("LoadBalancerSourceRanges");
    if !ranges.is_empty() && text(spec, "type") != "LoadBalancer" {
        errors.forbidden(&at, "may only be used when `type` is 'LoadBalancer'");
    }
    for (index, range) in ranges.iter().filter_map(Value::as_str).enumerate() {
        cidr(range.trim(), &at.index(index), errors);
    }
}

fn external_name(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if !is_zero(spec.get(field)) {
            errors.forbidden(&path.child(field), "may not be set for ExternalName services");
        }
    }
    let name = text(spec, "externalName");
    let name = name.strip_suffix('.').unwrap_or(name);
    match name {
        "" => errors.required(&path.child("externalName"), ""),
        name => by_rule(name, names::dns_subdomain, &path.child("externalName"), errors),
    }
}

fn ports(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let all = list(spec, "ports");
    let path = path.child("ports");
    let mut seen = BTreeSet::new();
    for (index, port) in all.iter().enumerate() {
        let path = path.index(index);
        let name = text(port, "name");
        if all.len() > 1 {
            required(port, "name", "", &path, errors);
        }
        text_by(port, "name", names::dns_label, &path, errors);
        if !name.is_empty() && !seen.insert(name) {
            errors.duplicate(&path.child("name"), &json!(name));
        }
        in_range(int(port, "port").unwrap_or(0), 1, 65_535, &path.child("port"), errors);
        one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &path, errors);
        port_or_name(get(port, "targetPort"), &path.child("targetPort"), errors);
        if let Some(protocol) = get(port, "appProtocol").and_then(Value::as_str) {
            by_rule(protocol, names::label_key, &path.child("appProtocol"), errors);
        }
    }
    let mut nodes = BTreeSet::new();
    for (index, port) in all.iter().enumerate() {
        let node = int(port, "nodePort").unwrap_or(0);
        if node != 0 && !nodes.insert((text(port, "protocol"), node)) {
            errors.duplicate(&path.index(index).child("nodePort"), &json!(node));
        }
    }
    let mut claimed = BTreeSet::new();
    for (index, port) in all.iter().enumerate() {
        if !claimed.insert((text(port, "protocol"), int(port, "port"))) {
            let key = json!({"protocol": port["protocol"], "port": port["port"]});
            errors.duplicate(&path.index(index), &key);
        }
    }
    if matches!(text(spec, "type"), "ClusterIP" | "ExternalName") {
        for (index, port) in all.iter().enumerate() {
            if int(port, "nodePort").is_some_and(|node| node != 0) {
                let detail = format!("may not be used when `type` is '{}'", text(spec, "type"));
                errors.forbidden(&path.index(index).child("nodePort"), &detail);
            }
        }
    }
}

fn traffic(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let policy = text(spec, "externalTrafficPolicy");
    let at = path.child("externalTrafficPolicy");
    match externally_accessible(spec) {
        true => one_of(spec, "externalTrafficPolicy", &["Cluster", "Local"], path, errors),
        false if !policy.is_empty() => {
            errors.invalid(&at, &json!(policy), "may only be set for externally-accessible services");
        }
        false => {}
    }
    if !needs_health_port(spec)
        && let Some(port) = int(spec, "healthCheckNodePort").filter(|port| *port != 0)
    {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.invalid(&path.child("healthCheckNodePort"), &json!(port), detail);
    }
    one_of(spec, "internalTrafficPolicy", &["Cluster", "Local"], path, errors);
}

/// Checks what may not change in a service.
/// Only what balances load has an address where it does that.
pub(super) fn validate_status(service: &Value, errors: &mut Errors) {
    let balancer = service.pointer("/status/loadBalancer").unwrap_or(&Value::Null);
    if text(&service["spec"], "type") != "LoadBalancer" && !list(balancer, "ingress").is_empty() {
        let status = Path::Root.child("status");
        let path = status.child("loadBalancer");
        errors.forbidden(&path.child("ingress"), "may only be used when `spec.type` is 'LoadBalancer'");
    }
}

pub(super) fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old, path) = (&new["spec"], &old["spec"], Path::Root.child("spec"));
    if needs_cluster_ip(new) && needs_cluster_ip(old) {
        let first = |spec: &Value, field: &str| list(spec, field).first().cloned();
        for field in ["clusterIPs", "ipFamilies"] {
            if first(old, field).is_some() && first(new, field) != first(old, field) {
                errors.invalid(&path.child(field).index(0), &new[field], "may not change once set");
            }
        }
    }
    let balances = |spec: &Value| text(spec, "type") == "LoadBalancer";
    if balances(old) && balances(new) && !same(new.get("loadBalancerClass"), old.get("loadBalancerClass")) {
        let class = new.get("loadBalancerClass").unwrap_or(&Value::Null);
        errors.invalid(&path.child("loadBalancerClass"), class, "may not change once set");
    }
    if needs_health_port(old)
        && needs_health_port(new)
        && int(new, "healthCheckNodePort") != int(old, "healthCheckNodePort")
    {
        errors.forbidden(&path.child("healthCheckNodePort"), "field is immutable");
    }
}

/// What the server warns of in services.
pub(super) fn warnings(service: &Value) -> Vec<String> {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let (spec, path) = (&service["spec"], Path::Root.child("spec"));
    let headless = text(spec, "type") == "ClusterIP" && text(spec, "clusterIP") == "None";
    let external_name = text(spec, "type") == "ExternalName";
    let mut out = Vec::new();
    let hints =
        format!("annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead");
    say(&mut out, service["metadata"]["annotations"].get(HINTS).is_some(), &hints);
    let ips = |field: &'static str| list(spec, field).iter().filter_map(Value::as_str).enumerate();
    if !matches!(text(spec, "clusterIP"), "" | "None") {
        let path = path.child("clusterIPs");
        ips("clusterIPs").for_each(|(index, ip)| warn::ip(ip, &path.index(index), &mut out));
    }
    let external_ips = !is_zero(spec.get("externalIPs"));
    if headless {
        say(
            &mut out,
            !text(spec, "loadBalancerIP").is_empty(),
            "spec.loadBalancerIP is ignored for headless services",
        );
        say(&mut out, external_ips, "spec.externalIPs is ignored for headless services");
        say(
            &mut out,
            text(spec, "sessionAffinity") != "None",
            "spec.SessionAffinity is ignored for headless services",
        );
    }
    let at = path.child("externalIPs");
    ips("externalIPs").for_each(|(index, ip)| warn::ip(ip, &at.index(index), &mut out));
    say(
        &mut out,
        external_ips && !headless && !external_name,
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    warn::ip(text(spec, "loadBalancerIP"), &path.child("loadBalancerIP"), &mut out);
    let at = path.child("loadBalancerSourceRanges");
    ips("loadBalancerSourceRanges").for_each(|(index, range)| warn::cidr(range, &at.index(index), &mut out));
    say(
        &mut out,
        external_name && external_ips,
        "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
    );
    say(
        &mut out,
        !external_name && !text(spec, "externalName").is_empty(),
        "spec.externalName is ignored when spec.type is not \"ExternalName\"",
    );
    say(
        &mut out,
        text(spec, "trafficDistribution") == "PreferClose",
        "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
    );
    out
}

fn say(out: &mut Vec<String>, when: bool, what: &str) {
    if when {
        out.push(what.to_owned());
    }
}

/// Checks endpoints.
pub(super) fn validate_endpoints(endpoints: &Value, errors: &mut Errors) {
    let path = Path::Root.child("subsets");
    for (index, subset) in list(endpoints, "subsets").iter().enumerate() {
        let path = path.index(index);
        if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
            errors.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for field in ["addresses", "notReadyAddresses"] {
            for (index, address) in list(subset, field).iter().enumerate() {
                let addresses = path.child(field);
                let at = addresses.index(index);
                endpoint_ip(text(address, "ip"), &at.child("ip"), errors);
            }
        }
        let several = list(subset, "ports").len() > 1;
        for (index, port) in list(subset, "ports").iter().enumerate() {
            let ports = path.child("ports");
            let at = ports.index(index);
            if several {
                required(port, "name", "", &at, errors);
            }
            text_by(port, "name", names::dns_label, &at, errors);
            in_range(int(port, "port").unwrap_or(0), 1, 65_535, &at.child("port"), errors);
            one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &at, errors);
        }
    }
}

/// An address that traffic can be sent to from elsewhere.
pub(crate) fn endpoint_ip(value: &str, path: &Path<'_>, errors: &mut Errors) {
    ip(value, path, errors);
    let Ok(address) = value.parse::<std::net::IpAddr>() else {
        errors.invalid(path, &json!(value), "must be a valid IP address");
        return;
    };
    let detail = match address {
        address if address.is_unspecified() => format!("may not be unspecified ({value})"),
        address if address.is_loopback() => {
            "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
        }
        std::net::IpAddr::V4(v4) if v4.is_link_local() => {
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()
        }
        std::net::IpAddr::V4(v4) if v4.octets()[..3] == [224, 0, 0] => {
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()
        }
        _ => return,
    };
    errors.invalid(path, &json!(value), &detail);
}
