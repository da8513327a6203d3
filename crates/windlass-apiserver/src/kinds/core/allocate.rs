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
    let mut held = Held { context, found: None };
    service_rules::addresses(spec, &Path::Root.child("spec"), &mut errors);
    if needs_cluster_ip(spec) && errors.is_empty() {
        families(spec, old_spec, &mut errors);
        if errors.is_empty() {
            cluster_ip(spec, old_spec, &mut held, &mut errors);
        }
    }
    if errors.is_empty() {
        ports(spec, old_spec, &mut held, &mut errors);
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid("", "Service", &name, errors)) }
}

/// What other services hold, looked up when it is first asked for: most updates allocate nothing.
struct Held<'a> {
    context: &'a Context<'a>,
    found: Option<(BTreeSet<String>, BTreeSet<i64>)>,
}

impl Held<'_> {
    fn both(&mut self) -> &(BTreeSet<String>, BTreeSet<i64>) {
        self.found.get_or_insert_with(|| {
            let services = self.context.world.list("", "Service", "");
            let ips =
                services.iter().map(|service| text_at(service, &["spec", "clusterIP"]).to_owned()).collect();
            let of = |service: &Value| {
                let spec = &service["spec"];
                node_ports(spec).into_iter().chain(int(spec, "healthCheckNodePort")).collect::<Vec<_>>()
            };
            (ips, services.iter().flat_map(of).collect())
        })
    }

    fn has_ip(&mut self, ip: &str) -> bool {
        self.both().0.contains(ip)
    }

    fn has_port(&mut self, port: i64) -> bool {
        self.both().1.contains(&port)
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
    let headless = text(spec, "clusterIP") == "None" && is_zero(spec.get("selector"));
    let inherited = old.and_then(|old| get(old, "ipFamilyPolicy")).cloned();
    let usual = if headless { "RequireDualStack" } else { "SingleStack" };
    fill(spec, "ipFamilyPolicy", inherited.unwrap_or(json!(usual)));
    let path = Path::Root.child("spec");
    let single = text(spec, "ipFamilyPolicy") == "SingleStack";
    if is_zero(spec.get("ipFamilies")) {
        set(spec, "ipFamilies", json!(["IPv4"]));
    }
    if headless {
        if !single && list(spec, "ipFamilies").len() == 1 {
            let other = if list(spec, "ipFamilies")[0] == "IPv4" { "IPv6" } else { "IPv4" };
            spec["ipFamilies"].as_array_mut().expect("set above").push(json!(other));
        }
        return;
    }
    if text(spec, "ipFamilyPolicy") == "RequireDualStack" {
        let policy = &spec["ipFamilyPolicy"];
        let detail = "this cluster is not configured for dual-stack services";
        errors.invalid(&path.child("ipFamilyPolicy"), policy, detail);
    }
    for (index, family) in list(spec, "ipFamilies").iter().enumerate() {
        if family != "IPv4" {
            let detail = "not configured on this cluster";
            errors.invalid(&path.child("ipFamilies").index(index), family, detail);
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
        Ok(address) if address.octets()[..3] != [10, 0, 0] => {
            format!("the provided IP ({ip}) is not in the valid range. The range of valid IPs is 10.0.0.0/24")
        }
        Ok(_) if held.has_ip(&ip) => "provided IP is already allocated".to_owned(),
        // What is not an address at all is for validation to say.
        _ => return,
    };
    let detail = format!("failed to allocate IP {ip}: {why}");
    errors.invalid(&path.child("clusterIPs"), &json!([ip]), &detail);
}

fn ports(spec: &mut Value, old: Option<&Value>, others: &mut Held<'_>, errors: &mut Errors) {
    let mut held = old.map(node_ports).unwrap_or_default();
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
                    if let Some(why) = refusal(asked, others) {
                        errors.invalid(&path.index(index).child("nodePort"), &json!(asked), &why);
                    }
                    held.push(asked);
                    given.push((port, asked));
                }
                None if wanted => {
                    // The same port over another protocol shares its node port.
                    let shared =
                        given.iter().find(|(of, _)| *of == port).map(|(_, node)| *node).or_else(|| {
                            let of_port = |other: &&Value| int(other, "port") == Some(port);
                            ports[index..]
                                .iter()
                                .filter(of_port)
                                .find_map(|p| int(p, "nodePort"))
                                .filter(|p| *p != 0)
                        });
                    let Some(node) = shared.or_else(|| free(&held, others)) else { continue };
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
    if needs_health_port(spec)
        && is_zero(spec.get("healthCheckNodePort"))
        && let Some(node) = free(&held, others)
    {
        set(spec, "healthCheckNodePort", node);
    }
}

fn refusal(port: i64, others: &mut Held<'_>) -> Option<String> {
    if !NODE_PORTS.contains(&port) {
        let (low, high) = (NODE_PORTS.start(), NODE_PORTS.end());
        return Some(format!(
            "provided port is not in the valid range. The range of valid ports is {low}-{high}"
        ));
    }
    others.has_port(port).then(|| "provided port is already allocated".to_owned())
}

fn free(held: &[i64], others: &mut Held<'_>) -> Option<i64> {
    NODE_PORTS.into_iter().find(|port| !held.contains(port) && !others.has_port(*port))
}
