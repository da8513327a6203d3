//! What a name means. Pure.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

use super::super::resolv::DOMAIN;
use super::super::services::{addresses, cluster_ip, each, is_ready, ports, service_of};
use super::wire::{Code, Data, Kind, Record, Reply};

/// Where names are looked up. Each costs the same, however many objects there are.
pub trait Directory {
    /// A Service.
    fn service(&self, namespace: &str, name: &str) -> Option<Arc<Service>>;
    /// The endpoints of a Service.
    fn slices(&self, namespace: &str, service: &str) -> Vec<Arc<EndpointSlice>>;
    /// The Service with an address.
    fn service_at(&self, address: Ipv4Addr) -> Option<Arc<Service>>;
    /// The slices that have an endpoint with an address.
    fn slices_at(&self, address: Ipv4Addr) -> Vec<Arc<EndpointSlice>>;
    /// Whether there is such a namespace.
    fn has_namespace(&self, name: &str) -> bool;
}

/// How long answers may be remembered. Endpoints come and go; that they are asked for again costs little.
const TTL: u32 = 5;

/// How often a name may stand for another.
const CHAIN_MAX: usize = 8;

/// What there is under a name.
enum Found {
    /// The name does not exist.
    Nothing,
    /// The name exists, and has nothing.
    Empty,
    /// Hosts, and the ports that they have.
    Hosts(Vec<Host>),
    /// Another name.
    Alias(String),
}

/// A port of a host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Host {
    /// The name of its own.
    name: String,
    address: Ipv4Addr,
    port: u16,
}

/// Answers a question for the records of a name.
pub fn answer(name: &[String], kind: Kind, directory: &impl Directory) -> Reply {
    if let [.., arpa] = name
        && arpa == "arpa"
    {
        return reverse(name, kind, directory);
    }
    let Some(inside) = inside(name) else { return nothing(Code::NoSuchName) };
    if inside.is_empty() && kind == Kind::Soa {
        return Reply { answers: vec![zone()], ..nothing(Code::Ok) };
    }
    match look_up(inside, directory) {
        Found::Nothing => Reply { authority: vec![zone()], ..nothing(Code::NoSuchName) },
        Found::Empty => none(),
        Found::Alias(target) => alias(name, target, kind, directory),
        Found::Hosts(hosts) => match kind {
            Kind::A => of_addresses(&name.join("."), &hosts),
            Kind::Srv => of_services(&name.join("."), &hosts),
            _ => none(),
        },
    }
}

/// The labels of a name within the cluster's domain.
fn inside(name: &[String]) -> Option<&[String]> {
    let [rest @ .., one, two] = name else { return None };
    (format!("{one}.{two}") == DOMAIN).then_some(rest)
}

fn look_up(name: &[String], directory: &impl Directory) -> Found {
    let text: Vec<_> = name.iter().map(String::as_str).collect();
    match text[..] {
        [] | ["svc"] | ["pod"] => Found::Empty,
        [namespace, "svc" | "pod"] if directory.has_namespace(namespace) => Found::Empty,
        [dashed, namespace, "pod"] if directory.has_namespace(namespace) => pod(dashed, name),
        [service, namespace, "svc"] => of_service(directory, namespace, service, None, Port::ANY),
        [host, service, namespace, "svc"] => of_service(directory, namespace, service, Some(host), Port::ANY),
        [port, protocol, service, namespace, "svc"] => {
            let part = |label: &'_ str| label.strip_prefix('_').unwrap_or(label).to_owned();
            let (port, protocol) = (part(port), part(protocol));
            of_service(directory, namespace, service, None, Port { name: &port, protocol: &protocol })
        }
        _ => Found::Nothing,
    }
}

/// Which ports are asked for.
#[derive(Clone, Copy)]
struct Port<'a> {
    name: &'a str,
    protocol: &'a str,
}

impl Port<'_> {
    const ANY: Port<'static> = Port { name: "", protocol: "" };

    fn is(self, name: Option<&str>, protocol: Option<&str>) -> bool {
        let same = |asked: &str, has: &str| asked.is_empty() || asked.eq_ignore_ascii_case(has);
        same(self.name, name.unwrap_or_default()) && same(self.protocol, protocol.unwrap_or("TCP"))
    }
}

/// `10-244-0-7.default.pod.cluster.local`, whether there is such a pod or not.
fn pod(dashed: &str, name: &[String]) -> Found {
    match dashed.replace('-', ".").parse() {
        Ok(address) => {
            Found::Hosts(vec![Host { name: format!("{}.{DOMAIN}", name.join(".")), address, port: 0 }])
        }
        Err(_) => Found::Nothing,
    }
}

fn of_service(
    directory: &impl Directory,
    namespace: &str,
    name: &str,
    host: Option<&str>,
    port: Port<'_>,
) -> Found {
    let Some(service) = directory.service(namespace, name) else { return Found::Nothing };
    let spec = service.spec.as_ref();
    let own = format!("{name}.{namespace}.svc.{DOMAIN}");
    if let Some(target) = spec.and_then(|spec| spec.external_name.as_ref())
        && spec.and_then(|spec| spec.type_.as_deref()) == Some("ExternalName")
    {
        let plain = host.is_none() && port.name.is_empty() && port.protocol.is_empty();
        let target = target.trim_end_matches('.').to_ascii_lowercase();
        return if plain { Found::Alias(target) } else { Found::Nothing };
    }
    let mut hosts = BTreeSet::new();
    if let Some(address) = cluster_ip(&service).filter(|_| host.is_none()) {
        for one in ports(&service).filter(|one| port.is(one.name.as_deref(), one.protocol.as_deref())) {
            let port = u16::try_from(one.port).unwrap_or(0);
            hosts.insert(Host { name: own.clone(), address, port });
        }
    } else {
        for slice in directory.slices(namespace, name) {
            let ready = each(&slice).filter(|endpoint| is_ready(endpoint));
            for (endpoint, address) in ready.flat_map(|one| addresses(one).map(move |address| (one, address)))
            {
                let called = host_name(endpoint, address);
                if host.is_some_and(|host| !host.eq_ignore_ascii_case(&called)) {
                    continue;
                }
                hosts.extend(slice_ports(&slice, port).map(|port| Host {
                    name: format!("{called}.{own}"),
                    address,
                    port,
                }));
            }
        }
    }
    if hosts.is_empty() { Found::Nothing } else { Found::Hosts(hosts.into_iter().collect()) }
}

/// The ports of a slice that are asked for. An endpoint without ports still has an address.
fn slice_ports(slice: &EndpointSlice, port: Port<'_>) -> impl Iterator<Item = u16> {
    let ports = slice.ports.as_deref().unwrap_or_default();
    let asked = ports.iter().filter(move |one| port.is(one.name.as_deref(), one.protocol.as_deref()));
    let bare = (ports.is_empty() && port.name.is_empty() && port.protocol.is_empty()).then_some(0);
    asked.map(|one| one.port.and_then(|port| u16::try_from(port).ok()).unwrap_or(0)).chain(bare)
}

/// The name of an endpoint within its Service: the host name of a StatefulSet's pod, or the address with dashes.
fn host_name(endpoint: &Endpoint, address: Ipv4Addr) -> String {
    match endpoint.hostname.as_deref() {
        None | Some("") => address.to_string().replace('.', "-"),
        Some(name) => name.to_owned(),
    }
}

fn of_addresses(name: &str, hosts: &[Host]) -> Reply {
    let addresses: BTreeSet<_> = hosts.iter().map(|host| host.address).collect();
    let record = |address| record(name, Data::A(address));
    Reply { answers: addresses.into_iter().map(record).collect(), ..nothing(Code::Ok) }
}

/// Hosts share what comes to a service alike; their addresses come along.
fn of_services(name: &str, hosts: &[Host]) -> Reply {
    let hosts: Vec<_> = hosts.iter().filter(|host| host.port != 0).collect();
    if hosts.is_empty() {
        return none();
    }
    let weight = (100 / hosts.len()).max(1) as u16;
    let answer =
        |host: &&Host| record(name, Data::Srv { weight, port: host.port, target: host.name.clone() });
    let named: BTreeSet<_> = hosts.iter().map(|host| (&host.name, host.address)).collect();
    Reply {
        answers: hosts.iter().map(answer).collect(),
        additional: named.into_iter().map(|(name, address)| record(name, Data::A(address))).collect(),
        ..nothing(Code::Ok)
    }
}

/// A name that stands for another: also what that one means, where we know it.
fn alias(name: &[String], target: String, kind: Kind, directory: &impl Directory) -> Reply {
    let mut reply = nothing(Code::Ok);
    let (mut from, mut to) = (name.join("."), target);
    for _ in 0..CHAIN_MAX {
        reply.answers.push(record(&from, Data::Cname(to.clone())));
        let labels: Vec<_> = to.split('.').map(str::to_owned).collect();
        let found = inside(&labels).map(|labels| look_up(labels, directory));
        match found {
            Some(Found::Alias(next)) if kind != Kind::Cname => (from, to) = (to, next),
            Some(Found::Hosts(hosts)) if kind == Kind::A => {
                reply.answers.extend(of_addresses(&to, &hosts).answers);
                return reply;
            }
            _ => return reply,
        }
    }
    reply
}

/// `7.0.244.10.in-addr.arpa`: the Service that has the address, or else the names of the endpoint.
fn reverse(name: &[String], kind: Kind, directory: &impl Directory) -> Reply {
    let [digits @ .., "in-addr", "arpa"] = &name.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        return nothing(Code::NoSuchName);
    };
    let forward: Vec<_> = digits.iter().rev().copied().collect();
    let Ok(address) = forward.join(".").parse::<Ipv4Addr>() else { return nothing(Code::NoSuchName) };
    let mut names = BTreeSet::new();
    if let Some(service) = directory.service_at(address) {
        let metadata = &service.metadata;
        if let (Some(name), Some(namespace)) = (&metadata.name, &metadata.namespace) {
            names.insert(format!("{name}.{namespace}.svc.{DOMAIN}"));
        }
    } else {
        for slice in directory.slices_at(address) {
            let Some((namespace, service)) = service_of(&slice) else { continue };
            let here = |endpoint: &&Endpoint| addresses(endpoint).any(|one| one == address);
            names.extend(each(&slice).filter(here).map(|endpoint| {
                format!("{}.{service}.{namespace}.svc.{DOMAIN}", host_name(endpoint, address))
            }));
        }
    }
    match kind {
        _ if names.is_empty() => nothing(Code::NoSuchName),
        Kind::Ptr => {
            let record = |target| record(&name.join("."), Data::Ptr(target));
            Reply { answers: names.into_iter().map(record).collect(), ..nothing(Code::Ok) }
        }
        _ => nothing(Code::Ok),
    }
}

fn record(name: &str, data: Data) -> Record {
    Record { name: name.to_owned(), ttl: TTL, data }
}

fn zone() -> Record {
    let server = format!("ns.dns.{DOMAIN}");
    record(DOMAIN, Data::Soa { server, mailbox: format!("hostmaster.{DOMAIN}"), minimum: TTL })
}

/// The name exists, and has nothing of what is asked for.
fn none() -> Reply {
    Reply { authority: vec![zone()], ..nothing(Code::Ok) }
}

fn nothing(code: Code) -> Reply {
    Reply { code, answers: Vec::new(), authority: Vec::new(), additional: Vec::new() }
}

#[cfg(test)]
mod tests;
