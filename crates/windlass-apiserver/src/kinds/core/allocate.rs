//! Cluster IPs and node ports of services, handed out in order from the ranges.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::service::{needs_cluster_ip, needs_health_port, needs_node_port, node_ports};
use super::service_rules;
use crate::field::{Errors, Path};
use crate::kinds::Context;
use crate::kinds::tree::{
    each, fill, fill_zero, flag, get, int, is_zero, list, remove, restore, same, set, sub, text, text_at,
};
use crate::status::Status;

/// Node ports are handed out from here on.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// Fills in what the server allocates, before the service is prepared and checked.
pub(super) fn begin(service: &mut Value, old: Option<&Value>, context: &Context<'_>) -> Result<(), Status> {
    if !context.subresource.is_empty() {
        return Ok(());
    }
    let old_spec = old.and_then(|old| get(old, "spec"));
    let name = text_at(service, &["metadata", "name"]).to_owned();
    let spec = sub(service, "spec");
    if let Some(old) = old_spec {
        keep_allocated(spec, old);
    }
    normalize_ips(spec, old_spec);
    let mut errors = Errors::default();
    let mut held = Held { context, ips: None, ports: None, handed: Vec::new() };
    if needs_cluster_ip(spec) {
        families(spec, old_spec, &mut errors);
        if errors.is_empty() {
            cluster_ip(spec, old_spec, &mut held, &mut errors);
        }
    }
    if errors.is_empty() {
        ports(spec, old_spec, &mut held, &mut errors);
    }
    if !errors.is_empty() {
        return Err(Status::invalid("", "Service", &name, errors));
    }
    health_port(spec, old_spec, &mut held)
}

/// What other services hold, looked up when it is first asked for: most updates allocate nothing.
struct Held<'a> {
    context: &'a Context<'a>,
    ips: Option<BTreeSet<String>>,
    ports: Option<BTreeSet<i64>>,
    /// The ports that this request has been given so far.
    handed: Vec<i64>,
}

impl Held<'_> {
    fn has_ip(&mut self, ip: &str) -> bool {
        let all = || self.context.world.field("", "Service", "spec.clusterIP");
        self.ips.get_or_insert_with(all).contains(ip)
    }

    fn has_port(&mut self, port: i64) -> bool {
        let all = || {
            // `nodePort` and `healthCheckNodePort`.
            let services = self.context.world.list_with("", "Service", r#"odePort":"#);
            let of = |service: &Value| {
                let spec = &service["spec"];
                node_ports(spec).into_iter().chain(int(spec, "healthCheckNodePort")).collect::<Vec<_>>()
            };
            services.iter().flat_map(of).collect()
        };
        self.ports.get_or_insert_with(all).contains(&port)
    }

    /// Takes a port that is asked for, or says why not. A dry run does not look at the range.
    fn take(&mut self, port: i64) -> Option<String> {
        if !self.context.dry_run && !NODE_PORTS.contains(&port) {
            let (low, high) = (NODE_PORTS.start(), NODE_PORTS.end());
            return Some(format!(
                "provided port is not in the valid range. The range of valid ports is {low}-{high}"
            ));
        }
        if self.handed.contains(&port) || self.has_port(port) {
            return Some("provided port is already allocated".to_owned());
        }
        self.handed.push(port);
        None
    }

    /// Takes any port that is free. A dry run shows that there will be one, and not which.
    fn next(&mut self, held: &[i64]) -> Option<i64> {
        let taken = self.handed.iter().max().copied();
        let port = match self.context.dry_run {
            true => taken.unwrap_or(32_768) + 1,
            false => NODE_PORTS
                .into_iter()
                .find(|port| !held.contains(port) && !self.handed.contains(port) && !self.has_port(*port))?,
        };
        self.handed.push(port);
        Some(port)
    }
}

/// Lets clients leave out what was allocated for them before.
fn keep_allocated(spec: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && needs_cluster_ip(spec) {
        for field in ["clusterIP", "clusterIPs"] {
            if is_zero(spec.get(field)) {
                restore(spec, old, field);
            }
        }
    }
    if needs_node_port(old) && needs_node_port(spec) {
        let (before, now) = (node_ports(old), node_ports(spec));
        let taken = |port: i64| before.contains(&port) && now.contains(&port);
        each(spec, "ports", |port| {
            let same_name = |held: &&Value| text(held, "name") == text(port, "name");
            let held = list(old, "ports").iter().rev().find(same_name).and_then(|held| int(held, "nodePort"));
            if let Some(held) = held.filter(|held| *held != 0 && !taken(*held)) {
                fill_zero(port, "nodePort", held);
            }
        });
    }
    if needs_health_port(old) && needs_health_port(spec) && is_zero(spec.get("healthCheckNodePort")) {
        restore(spec, old, "healthCheckNodePort");
    }
}

/// Keeps `clusterIP` and `clusterIPs` in step for clients that know only the first.
fn normalize_ips(spec: &mut Value, old: Option<&Value>) {
    let ip = text(spec, "clusterIP").to_owned();
    let Some(old) = old else {
        if !ip.is_empty() && is_zero(spec.get("clusterIPs")) {
            set(spec, "clusterIPs", json!([ip]));
        }
        return;
    };
    let old_ip = text(old, "clusterIP");
    if is_zero(spec.get("clusterIPs")) && old_ip == ip {
        restore(spec, old, "clusterIPs");
    }
    if old_ip != ip && same(spec.get("clusterIPs"), old.get("clusterIPs")) {
        match ip.as_str() {
            "" => {
                remove(spec, "clusterIPs");
            }
            ip => set(spec, "clusterIPs", json!([ip])),
        }
    }
}

/// The server has one family, IPv4; a headless service without selector may claim both all the same.
fn families(spec: &mut Value, old: Option<&Value>, errors: &mut Errors) {
    if old.is_some_and(|old| keeps_preference(spec, old)) {
        return;
    }
    let headless = text(spec, "clusterIP") == "None" && is_zero(spec.get("selector"));
    let inherited = old.and_then(|old| get(old, "ipFamilyPolicy")).cloned();
    let usual = if headless { "RequireDualStack" } else { "SingleStack" };
    fill(spec, "ipFamilyPolicy", inherited.unwrap_or(json!(usual)));
    let path = Path::Root.child("spec");
    service_rules::addresses(spec, &path, errors);
    if !errors.is_empty() {
        return;
    }
    let single = text(spec, "ipFamilyPolicy") == "SingleStack";
    if let Some(old) = old {
        release_second(spec, old, single, &path, errors);
    }
    let policy = spec["ipFamilyPolicy"].clone();
    for (field, what) in [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")] {
        if single && list(spec, field).len() == 2 {
            let detail =
                format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            errors.invalid(&path.child("ipFamilyPolicy"), &policy, &detail);
        }
    }
    families_of_addresses(spec, &path, errors);
    if !errors.is_empty() {
        return;
    }
    if headless {
        if is_zero(spec.get("ipFamilies")) {
            set(spec, "ipFamilies", json!(["IPv4"]));
        }
        if !single && list(spec, "ipFamilies").len() == 1 {
            let other = if list(spec, "ipFamilies")[0] == "IPv4" { "IPv6" } else { "IPv4" };
            let both = json!([spec["ipFamilies"][0], other]);
            set(spec, "ipFamilies", both);
        }
        return;
    }
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.invalid(&path.child("ipFamilyPolicy"), &policy, detail);
    }
    for (index, family) in list(spec, "ipFamilies").iter().enumerate() {
        if family != "IPv4" {
            let detail = "not configured on this cluster";
            errors.invalid(&path.child("ipFamilies").index(index), family, detail);
        }
    }
    if errors.is_empty() && is_zero(spec.get("ipFamilies")) {
        set(spec, "ipFamilies", json!(["IPv4"]));
    }
}

/// A service that would rather have both families stays as it is, if nothing else is asked for.
fn keeps_preference(spec: &Value, old: &Value) -> bool {
    const PREFER: &str = "PreferDualStack";
    matches!(text(spec, "type"), "ClusterIP" | "NodePort" | "LoadBalancer")
        && text(spec, "ipFamilyPolicy") == PREFER
        && matches!(text(old, "ipFamilyPolicy"), "" | PREFER)
        && ["type", "clusterIP", "clusterIPs", "ipFamilies"].iter().all(|f| same(spec.get(f), old.get(f)))
}

/// A service of one family gives up what it had of the other; one of two does not.
fn release_second(spec: &mut Value, old: &Value, single: bool, path: &Path<'_>, errors: &mut Errors) {
    for (field, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let (after, before) = (list(spec, field).len(), list(old, field).len());
        if single && after > 1 && same(spec.get(field), old.get(field)) {
            let first = json!([spec[field][0]]);
            set(spec, field, first);
        } else if !single && after == 1 && before == 2 {
            let detail = format!("must be 'SingleStack' to release the secondary {what}");
            errors.invalid(&path.child("ipFamilyPolicy"), &spec["ipFamilyPolicy"], &detail);
        }
    }
}

/// Addresses that are asked for tell the families that nobody has told.
fn families_of_addresses(spec: &mut Value, path: &Path<'_>, errors: &mut Errors) {
    let addresses = list(spec, "clusterIPs").to_vec();
    for (index, address) in addresses.iter().filter_map(Value::as_str).enumerate() {
        if address == "None" {
            break;
        }
        let mut told = list(spec, "ipFamilies").to_vec();
        if index < told.len() {
            continue;
        }
        if address.contains(':') {
            let at = path.child("clusterIPs");
            errors.invalid(&at.index(index), &spec["clusterIPs"], "IPv6 is not configured on this cluster");
        } else {
            told.push(json!("IPv4"));
            set(spec, "ipFamilies", told);
        }
    }
}

fn cluster_ip(spec: &mut Value, old: Option<&Value>, held: &mut Held<'_>, errors: &mut Errors) {
    let ip = text(spec, "clusterIP").to_owned();
    let had = old.filter(|old| needs_cluster_ip(old)).map(|old| text(old, "clusterIP"));
    if ip == "None" || had.is_some_and(|had| !had.is_empty()) {
        return;
    }
    let path = Path::Root.child("spec");
    if ip.is_empty() {
        // A dry run shows that there will be an address, and not which.
        let first = if held.context.dry_run { 0 } else { 1 };
        let mut addresses = (first..255).map(|last| format!("10.0.0.{last}"));
        match addresses.find(|ip| !held.has_ip(ip)) {
            Some(free) => {
                set(spec, "clusterIP", free.as_str());
                set(spec, "clusterIPs", json!([free]));
            }
            None => errors.push(
                crate::field::Reason::Internal,
                &path.child("clusterIPs"),
                "Internal error: failed to allocate a serviceIP: range is full",
            ),
        }
        return;
    }
    let why = match ip.parse::<std::net::Ipv4Addr>() {
        Ok(address) if address.octets()[..3] != [10, 0, 0] => match held.context.dry_run {
            true => format!(
                "the provided IP ({ip}) is not in the valid range. The range of valid IPs is 10.0.0.0/24"
            ),
            false => "the provided network does not match the current range".to_owned(),
        },
        Ok(_) if held.has_ip(&ip) => "provided IP is already allocated".to_owned(),
        // What is not an address at all is for validation to say.
        _ => return,
    };
    let detail = format!("failed to allocate IP {ip}: {why}");
    errors.invalid(&path.child("clusterIPs"), &json!([ip]), &detail);
}

fn ports(spec: &mut Value, old: Option<&Value>, others: &mut Held<'_>, errors: &mut Errors) {
    let mut held = old.filter(|old| needs_node_port(old)).map(node_ports).unwrap_or_default();
    let mut given: Vec<(i64, i64)> = Vec::new();
    let wanted = needs_node_port(spec)
        && (text(spec, "type") == "NodePort" || flag(spec, "allocateLoadBalancerNodePorts"));
    let path = Path::Root.child("spec");
    let path = path.child("ports");
    let mut ports = list(spec, "ports").to_vec();
    if needs_node_port(spec) {
        for index in 0..ports.len() {
            let (port, asked) = (int(&ports[index], "port").unwrap_or(0), int(&ports[index], "nodePort"));
            match asked.filter(|asked| *asked != 0) {
                Some(asked) if held.contains(&asked) => given.push((port, asked)),
                Some(asked) => {
                    if let Some(why) = others.take(asked) {
                        errors.invalid(&path.index(index).child("nodePort"), &json!(asked), &why);
                        return;
                    }
                    held.push(asked);
                    given.push((port, asked));
                }
                None if wanted => {
                    // The same port over another protocol shares its node port, in a new service.
                    let shared = given
                        .iter()
                        .filter(|_| old.is_none())
                        .find(|(of, _)| *of == port)
                        .map(|(_, node)| *node)
                        .or_else(|| {
                            let of_port = |other: &&Value| int(other, "port") == Some(port);
                            ports[index..]
                                .iter()
                                .filter(|other| old.is_none() && of_port(other))
                                .find_map(|p| int(p, "nodePort"))
                                .filter(|p| *p != 0)
                        });
                    let Some(node) = shared.or_else(|| others.next(&held)) else { continue };
                    held.push(node);
                    given.push((port, node));
                    set(&mut ports[index], "nodePort", node);
                }
                None => {}
            }
        }
        if !ports.is_empty() {
            set(spec, "ports", ports);
        }
    }
}

/// The port by which a balancer asks whether a node has pods of the service.
fn health_port(spec: &mut Value, old: Option<&Value>, others: &mut Held<'_>) -> Result<(), Status> {
    if !needs_health_port(spec) || old.is_some_and(needs_health_port) {
        return Ok(());
    }
    let held = node_ports(spec);
    match int(spec, "healthCheckNodePort").filter(|port| *port != 0) {
        Some(asked) => match others.take(asked) {
            None => Ok(()),
            Some(why) => {
                let why = format!("failed to allocate requested HealthCheck NodePort {asked}: {why}");
                Err(Status::internal(&why))
            }
        },
        None => {
            if let Some(port) = others.next(&held) {
                set(spec, "healthCheckNodePort", port);
            }
            Ok(())
        }
    }
}
