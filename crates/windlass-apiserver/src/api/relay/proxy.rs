//! Requests that are for a pod, a service or a node itself.

use std::net::IpAddr;

use serde_json::Value;

use super::super::object::load;
use super::super::route::Target;
use super::super::server::{Request, Server};
use super::super::webhooks::Service;
use super::{Peer, Relay, Relayed, list};
use crate::json::str_at;
use crate::status::{Result, Status};

impl Server {
    pub(super) fn pod_proxy(&self, target: &Target, path: String) -> Result<Relay> {
        let invalid = || Status::bad_request(format!("invalid pod request {:?}", target.name));
        let (tls, name, port) = scheme_name_port(&target.name).ok_or_else(invalid)?;
        let pod = self.tree(target, "pods", name)?;
        let address = list(&pod, &["status", "podIPs"]).first().map_or("", |first| str_at(first, &["ip"]));
        if !address.parse().is_ok_and(is_global) {
            return Err(Status::bad_request("address not allowed"));
        }
        let port = match port {
            "" => first_port(&pod).unwrap_or(if tls { 443 } else { 80 }),
            port => port.parse().map_err(|_| invalid())?,
        };
        Ok(program(tls, address, port, path))
    }

    pub(super) fn service_proxy(&self, target: &Target, path: String, random: u64) -> Result<Relay> {
        let id = &target.name;
        let invalid = || Status::bad_request(format!("invalid service request {id:?}"));
        let none = |what: &str| {
            Status::new(503, "ServiceUnavailable", format!("no endpoints available for service {what:?}"))
        };
        let (tls, name, port) = scheme_name_port(id).ok_or_else(invalid)?;
        // A number is that of the service; its endpoints are found by the port's name.
        let port_name = match port.parse::<i64>() {
            Ok(number) => {
                let service = self.tree(target, "services", name)?;
                let ports = list(&service, &["spec", "ports"]);
                let found = ports.iter().find(|port| port["port"] == number).ok_or_else(|| {
                    let message = format!("no service port {number} found for service {name:?}");
                    Status::new(503, "ServiceUnavailable", message)
                })?;
                found["name"].as_str().unwrap_or_default().to_owned()
            }
            Err(_) => port.to_owned(),
        };
        let endpoints = self.tree(target, "endpoints", name)?;
        let subsets = list(&endpoints, &["subsets"]);
        if subsets.is_empty() {
            return Err(none(name));
        }
        for subset in rotated(subsets, random) {
            let ports = list(subset, &["ports"]);
            let port = ports.iter().find(|port| port["name"].as_str().unwrap_or_default() == port_name);
            let Some(port) = port.and_then(|port| u16::try_from(port["port"].as_u64()?).ok()) else {
                continue;
            };
            for address in rotated(list(subset, &["addresses"]), random) {
                let ip = address["ip"].as_str().unwrap_or_default();
                if self.is_pod_address(target, address, ip) {
                    return Ok(program(tls, ip, port, path));
                }
            }
        }
        Err(none(id))
    }

    /// Where a webhook answers for a Service: one of its endpoints that are ready, or why there is none. Unlike a proxy it
    /// need not be a pod: whoever answers has to show a certificate of the hook's own authority.
    pub(in crate::api) fn service_endpoint(
        &self,
        service: &Service,
    ) -> std::result::Result<(String, u16), String> {
        let Service { namespace, name, port, .. } = service;
        let tree = |plural: &str| {
            let resource = self.registry.find("", "v1", plural)?;
            Some(load(&resource, self.store.get(&resource.storage, namespace, name)?))
        };
        let found = tree("services").ok_or_else(|| format!("service {name:?} not found"))?;
        let none = || format!("no endpoints available for service {name:?}");
        let ports = list(&found, &["spec", "ports"]);
        let served = ports.iter().find(|one| one["port"] == *port);
        let served = served.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
        let port_name = served["name"].as_str().unwrap_or_default();
        let endpoints = tree("endpoints").ok_or_else(none)?;
        let address = |subset: &Value| {
            let ports = list(subset, &["ports"]);
            let port = ports.iter().find(|port| port["name"].as_str().unwrap_or_default() == port_name)?;
            let ip = list(subset, &["addresses"]).first()?["ip"].as_str()?.to_owned();
            Some((ip, u16::try_from(port["port"].as_u64()?).ok()?))
        };
        list(&endpoints, &["subsets"]).iter().find_map(address).ok_or_else(none)
    }

    /// Only addresses that are a pod's are gone to: an Endpoints object may name any.
    fn is_pod_address(&self, target: &Target, address: &Value, ip: &str) -> bool {
        let reference = &address["targetRef"];
        let same = reference["namespace"].as_str() == Some(&target.namespace);
        let pod = reference["name"].as_str().and_then(|name| self.tree(target, "pods", name).ok());
        let of_pod = |pod: Value| list(&pod, &["status", "podIPs"]).iter().any(|one| one["ip"] == ip);
        same && pod.is_some_and(of_pod)
    }

    pub(super) fn node_proxy(&self, target: &Target, path: String) -> Result<Relay> {
        let invalid = || Status::bad_request(format!("invalid node request {:?}", target.name));
        let (_, name, port) = scheme_name_port(&target.name).ok_or_else(invalid)?;
        let relay = self.node_relay(target, name, path, Relayed::Proxy)?;
        // A node's endpoint may listen on this machine's own address; other ports there are nobody's business.
        match port.is_empty() || port.parse() == Ok(relay.port) {
            true => Ok(relay),
            false => Err(Status::bad_request("address not allowed")),
        }
    }
}

/// All of them, beginning somewhere.
fn rotated(all: &[Value], random: u64) -> impl Iterator<Item = &Value> {
    let start = if all.is_empty() { 0 } else { (random % all.len() as u64) as usize };
    all[start..].iter().chain(&all[..start])
}

fn first_port(pod: &Value) -> Option<u16> {
    let containers = list(pod, &["spec", "containers"]);
    let port = containers.iter().find_map(|container| list(container, &["ports"]).first())?;
    u16::try_from(port["containerPort"].as_u64()?).ok()
}

/// Reads `name`, `name:port` or `scheme:name:port`.
fn scheme_name_port(id: &str) -> Option<(bool, &str, &str)> {
    let (scheme, name, port) = match id.split(':').collect::<Vec<_>>()[..] {
        [name] => ("", name, ""),
        [name, port] => ("", name, port),
        [scheme, name, port] => (scheme, name, port),
        _ => return None,
    };
    (!name.is_empty() && matches!(scheme, "" | "http" | "https")).then_some((scheme == "https", name, port))
}

fn program(tls: bool, host: &str, port: u16, path: String) -> Relay {
    let (peer, host, answer) = (Peer::Program, host.to_owned(), Relayed::Proxy);
    Relay { peer, host, port, tls, path, answer, warnings: Vec::new() }
}

/// What stands behind `proxy` in the path, undecoded, and the query.
pub(super) fn rest_of(request: &Request, target: &Target) -> String {
    let before = if target.namespace.is_empty() { 5 } else { 7 };
    // `/api/v1/namespaces/<namespace>/<resource>/<name>/proxy…`: so many slashes stand before the rest.
    let path = request.uri.path();
    let rest = path.match_indices('/').nth(before).map_or("", |(at, _)| &path[at..]);
    request.uri.query().map_or_else(|| rest.to_owned(), |query| format!("{rest}?{query}"))
}

/// Whether an address is one that pods can have: not this machine's own, nobody's or everybody's.
fn is_global(address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(link_local || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}
