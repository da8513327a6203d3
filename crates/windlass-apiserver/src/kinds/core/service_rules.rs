//! What services and endpoints must look like.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::service::{externally_accessible, needs_cluster_ip, needs_health_port};
use crate::field::{Errors, Path};
use crate::kinds::check::{by_rule, cidr, in_range, ip, one_of, port_or_name, required, sloppy_ip, text_by};
use crate::kinds::meta::labels;
use crate::kinds::tree::{get, int, is_zero, list, same, text};
use crate::kinds::{inner, names, warn};

/// Checks a service; the old one at an update.
pub(super) fn validate(service: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (spec, path) = (&service["spec"], Path::Root.child("spec"));
    let kind = text(spec, "type");
    topology(service, errors);
    if list(spec, "ports").is_empty() && !is_headless(spec) && kind != "ExternalName" {
        errors.required(&path.child("ports"), "");
    }
    match kind {
        "LoadBalancer" | "NodePort" if is_headless(spec) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.invalid(&path.child("clusterIPs").index(0), &json!("None"), &detail);
        }
        "ExternalName" => external_name(spec, &path, errors),
        _ => {}
    }
    ports(spec, &path, errors);
    labels(spec, "selector", &path, errors);
    one_of(spec, "sessionAffinity", &["ClientIP", "None"], &path, errors);
    affinity(spec, &path, errors);
    addresses(spec, &path, errors);
    for (index, address) in list(spec, "externalIPs").iter().filter_map(Value::as_str).enumerate() {
        let at = path.child("externalIPs");
        let before = errors.0.len();
        ip(address, &at.index(index), errors);
        if errors.0.len() == before {
            endpoint_ip(address, &at.index(index), errors);
        }
    }
    one_of(spec, "type", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"], &path, errors);
    source_ranges(service, old, &path, errors);
    if kind != "LoadBalancer" && get(spec, "allocateLoadBalancerNodePorts").is_some() {
        let at = path.child("allocateLoadBalancerNodePorts");
        errors.forbidden(&at, "may only be used when `type` is 'LoadBalancer'");
    }
    balancer_class(spec, None, &path, errors);
    traffic(spec, &path, errors);
}

/// Two annotations say the same.
fn topology(service: &Value, errors: &mut Errors) {
    const MODE: &str = "service.kubernetes.io/topology-mode";
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let of = |key: &str| service["metadata"]["annotations"].get(key);
    if let (Some(mode), Some(hints)) = (of(MODE), of(HINTS))
        && mode != hints
    {
        let path = Path::Root.child("metadata");
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        errors.invalid(&path.child("annotations").key(MODE), mode, &detail);
    }
}

/// Whether a service has no address of its own.
pub(super) fn is_headless(spec: &Value) -> bool {
    matches!(list(spec, "clusterIPs"), [only] if only == "None")
}

fn affinity(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("sessionAffinityConfig");
    let config = get(spec, "sessionAffinityConfig");
    match text(spec, "sessionAffinity") {
        "ClientIP" => {
            const WHEN: &str = "when session affinity type is ClientIP";
            let Some(config) = config else { return errors.required(&path, WHEN) };
            let at = path.child("clientIP");
            let Some(client) = get(config, "clientIP") else { return errors.required(&at, WHEN) };
            let at = at.child("timeoutSeconds");
            let Some(seconds) = int(client, "timeoutSeconds") else { return errors.required(&at, WHEN) };
            if !(1..=86_400).contains(&seconds) {
                errors.invalid(&at, &json!(seconds), "must be greater than 0 and less than 86400");
            }
        }
        "None" if config.is_some() => {
            errors.forbidden(&path, "must not be set when session affinity is None");
        }
        _ => {}
    }
}

/// Checks the addresses of a service, and what goes with them. This comes before anything is allocated, too.
pub(super) fn addresses(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if text(spec, "type") == "ExternalName" {
        return;
    }
    let at = path.child("clusterIPs");
    let (first, listed) = (text(spec, "clusterIP"), &spec["clusterIPs"]);
    let all = list(spec, "clusterIPs").iter().filter_map(Value::as_str).collect::<Vec<_>>();
    match (first, all.first()) {
        ("", None) => {}
        ("", Some(_)) => errors.invalid(&at, listed, "must be empty when `clusterIP` is not specified"),
        (_, None) => errors.required(&at, ""),
        (first, Some(other)) if first != *other => {
            errors.invalid(&at, listed, "first value must match `clusterIP`");
        }
        _ => {}
    }
    let families = list(spec, "ipFamilies");
    for (index, family) in families.iter().enumerate() {
        let at = path.child("ipFamilies");
        if family != "IPv4" && family != "IPv6" {
            errors.not_supported(&at.index(index), family, &["IPv4", "IPv6"]);
        }
        if families[..index].contains(family) {
            errors.duplicate(&at.index(index), family);
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    one_of(spec, "ipFamilyPolicy", &policies, path, errors);
    let known = errors.0.len();
    for (index, address) in all.iter().enumerate() {
        if index == 0 && *address == "None" {
            if all.len() > 1 {
                errors.invalid(&at, listed, "'None' must be the first and only value");
            }
            continue;
        }
        ip(address, &at.index(index), errors);
    }
    let broken = errors.0.len() > known;
    if all.len() > 2 {
        errors.invalid(&at, listed, "may only hold up to 2 values");
    }
    if broken {
        return;
    }
    let is_six = |address: &str| address.contains(':');
    if all.len() > 1 && all.iter().all(|address| is_six(address) == is_six(all[0])) {
        errors.invalid(&at, listed, "may specify no more than one IP for each IP family");
    }
    if is_headless(spec) {
        return;
    }
    for (index, (address, family)) in all.iter().zip(families).enumerate() {
        let family = family.as_str().unwrap_or("");
        let found = if is_six(address) { "IPv6" } else { "IPv4" };
        if matches!(family, "IPv4" | "IPv6") && found != family {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.invalid(&at.index(index), &json!(address), &detail);
        }
    }
}

fn source_ranges(service: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    const ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    const ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
    let spec = &service["spec"];
    let ranges = list(spec, "loadBalancerSourceRanges");
    let balances = text(spec, "type") == "LoadBalancer";
    // The real server spells the field so.
    let at = path.child("LoadBalancerSourceRanges");
    if !ranges.is_empty() && !balances {
        errors.forbidden(&at, ONLY);
    }
    for (index, range) in ranges.iter().filter_map(Value::as_str).enumerate() {
        cidr(range.trim(), &at.index(index), errors);
    }
    let of = |service: &Value| service["metadata"]["annotations"].get(ANNOTATION).cloned();
    let Some(annotation) = of(service).filter(|_| ranges.is_empty()) else { return };
    let at = Path::Root.child("metadata");
    let at = at.child("annotations");
    let at = at.key(ANNOTATION);
    if !balances {
        errors.forbidden(&at, ONLY);
    }
    let value = annotation.as_str().unwrap_or("").trim();
    if !value.is_empty() && old.and_then(of).as_ref() != Some(&annotation) {
        for range in value.split(',') {
            cidr(range.trim(), &at, errors);
        }
    }
}

/// Who balances is told by a class, once.
fn balancer_class(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let balances = |spec: &Value| text(spec, "type") == "LoadBalancer";
    let at = path.child("loadBalancerClass");
    let class = get(spec, "loadBalancerClass");
    if let Some(old) = old
        && balances(old)
        && balances(spec)
        && !same(class, old.get("loadBalancerClass"))
    {
        errors.invalid(&at, class.unwrap_or(&Value::Null), "may not change once set");
    }
    match class.and_then(Value::as_str) {
        Some(class) if balances(spec) => by_rule(class, names::label_key, &at, errors),
        Some(_) => errors.forbidden(&at, "may only be used when `type` is 'LoadBalancer'"),
        None => {}
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
            let shown = inner::shown("io.k8s.api.core.v1.ServicePort", &key);
            errors.duplicate(&path.index(index), &shown);
        }
    }
    if text(spec, "type") == "ClusterIP" {
        for (index, port) in all.iter().enumerate() {
            if int(port, "nodePort").is_some_and(|node| node != 0) {
                let detail = "may not be used when `type` is 'ClusterIP'";
                errors.forbidden(&path.index(index).child("nodePort"), detail);
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
    let at = path.child("healthCheckNodePort");
    match (needs_health_port(spec), int(spec, "healthCheckNodePort").unwrap_or(0)) {
        (false, 0) => {}
        (false, port) => {
            let detail =
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.invalid(&at, &json!(port), detail);
        }
        (true, 0) => errors.required(&at, ""),
        (true, port) => in_range(port, 1, 65_535, &at, errors),
    }
    one_of(spec, "internalTrafficPolicy", &["Cluster", "Local"], path, errors);
    let distributions = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    one_of(spec, "trafficDistribution", &distributions, path, errors);
}

/// Checks what may not change in a service.
pub(super) fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old, path) = (&new["spec"], &old["spec"], Path::Root.child("spec"));
    let (was_headless, headless) = (is_headless(old), is_headless(new));
    if needs_cluster_ip(new) && needs_cluster_ip(old) {
        if !(was_headless && headless) {
            kept(new, old, "clusterIPs", "clusterIP", &path, errors);
        }
        if !was_headless && !headless {
            kept(new, old, "ipFamilies", "ipFamily", &path, errors);
        }
    }
    balancer_class(new, Some(old), &path, errors);
    if needs_health_port(old)
        && needs_health_port(new)
        && int(new, "healthCheckNodePort") != int(old, "healthCheckNodePort")
    {
        errors.forbidden(&path.child("healthCheckNodePort"), "field is immutable");
    }
}

/// Of addresses and families, the first stays, and the second comes and goes.
fn kept(new: &Value, old: &Value, field: &str, one: &str, path: &Path<'_>, errors: &mut Errors) {
    const FIXED: &str = "may not change once set";
    let (after, before) = (list(new, field), list(old, field));
    let at = path.child(field);
    let shown = new.get(field).unwrap_or(&Value::Null);
    if before.len() == after.len() {
        for index in 0..before.len() {
            if before[index] != after[index] {
                let index = if field == "ipFamilies" { 0 } else { index };
                errors.invalid(&at.index(index), shown, FIXED);
            }
        }
        return;
    }
    let emptied = if field == "ipFamilies" { list(new, "clusterIPs").is_empty() } else { after.is_empty() };
    if before.len() > after.len() && emptied {
        errors.invalid(&at.index(0), shown, &format!("primary {one} can not be unset"));
    }
    if let (Some(before), Some(after)) = (before.first(), after.first())
        && before != after
    {
        // The real server shows the addresses even where it speaks of families.
        let shown = new.get("clusterIPs").unwrap_or(&Value::Null);
        errors.invalid(&at.index(0), shown, FIXED);
    }
    if before.len() > after.len() && after.len() == 1 && text(new, "ipFamilyPolicy") != "SingleStack" {
        let policy = new.get("ipFamilyPolicy").unwrap_or(&Value::Null);
        let detail = format!("must be set to 'SingleStack' when releasing the secondary {one}");
        errors.invalid(&path.child("ipFamilyPolicy"), policy, &detail);
    }
}

/// Only what balances load has an address where it does that.
pub(super) fn validate_status(service: &Value, errors: &mut Errors) {
    let balancer = service.pointer("/status/loadBalancer").unwrap_or(&Value::Null);
    if text(&service["spec"], "type") != "LoadBalancer" && !list(balancer, "ingress").is_empty() {
        let status = Path::Root.child("status");
        let path = status.child("loadBalancer");
        errors.forbidden(&path.child("ingress"), "may only be used when `spec.type` is 'LoadBalancer'");
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
                text_by(address, "hostname", names::dns_label, &at, errors);
                if let Some(node) = get(address, "nodeName").and_then(Value::as_str) {
                    by_rule(node, names::dns_subdomain, &at.child("nodeName"), errors);
                }
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
            if let Some(protocol) = get(port, "appProtocol").and_then(Value::as_str) {
                by_rule(protocol, names::label_key, &at.child("appProtocol"), errors);
            }
        }
    }
}

/// An address that traffic can be sent to from elsewhere.
pub(crate) fn endpoint_ip(value: &str, path: &Path<'_>, errors: &mut Errors) {
    ip(value, path, errors);
    let Some(address) = sloppy_ip(value) else {
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
