//! Which Services there are and which endpoints answer for them: what a node's rules are made from. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};

/// The label by which an EndpointSlice says whose endpoints it has.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// One port of one Service that has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// Which, for people: `default/web:http`.
    pub name: String,
    /// The Service's address.
    pub address: Ipv4Addr,
    /// Over what.
    pub protocol: Protocol,
    /// The Service's port.
    pub port: u16,
    /// The port by which nodes answer for it, too.
    pub node_port: Option<u16>,
    /// Whether a client is to come to the same endpoint each time.
    pub sticky: bool,
    /// Whether only endpoints of the client's own node may answer.
    pub local: bool,
    /// Who may answer, in order, each once.
    pub endpoints: BTreeSet<Target>,
}

/// Where a request ends up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The address of a pod, mostly.
    pub address: Ipv4Addr,
    /// The port there.
    pub port: u16,
    /// The node that it is on.
    pub node: Option<String>,
}

/// What a port speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Streams.
    Tcp,
    /// Datagrams.
    Udp,
}

impl Protocol {
    /// As Services write it, which leave it out for TCP. SCTP is not carried.
    pub fn of(text: Option<&str>) -> Option<Protocol> {
        match text {
            None | Some("TCP") => Some(Protocol::Tcp),
            Some("UDP") => Some(Protocol::Udp),
            Some(_) => None,
        }
    }

    /// As rules write it.
    pub fn word(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        }
    }
}

/// The ports of all Services that have an address, and who answers.
pub fn fronts<'a>(
    services: impl Iterator<Item = &'a Service>,
    slices: impl Iterator<Item = &'a EndpointSlice>,
) -> Vec<Front> {
    let mut by_service: BTreeMap<(&str, &str), Vec<&EndpointSlice>> = BTreeMap::new();
    for slice in slices {
        if let Some(of) = service_of(slice) {
            by_service.entry(of).or_default().push(slice);
        }
    }
    let mut all = Vec::new();
    for service in services {
        let (Some(name), Some(namespace)) = (&service.metadata.name, &service.metadata.namespace) else {
            continue;
        };
        let Some(address) = cluster_ip(service) else { continue };
        let none = Vec::new();
        let slices = by_service.get(&(namespace.as_str(), name.as_str())).unwrap_or(&none);
        let spec = service.spec.as_ref();
        let sticky = spec.and_then(|spec| spec.session_affinity.as_deref()) == Some("ClientIP");
        let local = spec.and_then(|spec| spec.internal_traffic_policy.as_deref()) == Some("Local");
        for port in ports(service) {
            let (Some(protocol), Some(number)) =
                (Protocol::of(port.protocol.as_deref()), number(Some(port.port)))
            else {
                continue;
            };
            let called = port.name.as_deref().unwrap_or_default();
            all.push(Front {
                name: format!("{namespace}/{name}:{called}"),
                address,
                protocol,
                port: number,
                node_port: number_of_node(port),
                sticky,
                local,
                endpoints: endpoints(slices, called, protocol),
            });
        }
    }
    all
}

/// The address of a Service; `None` for one that is headless or a name for something outside.
pub fn cluster_ip(service: &Service) -> Option<Ipv4Addr> {
    let spec = service.spec.as_ref()?;
    if spec.type_.as_deref() == Some("ExternalName") {
        return None;
    }
    spec.cluster_ip.as_deref()?.parse().ok()
}

/// The ports of a Service.
pub fn ports(service: &Service) -> impl Iterator<Item = &ServicePort> {
    service.spec.iter().flat_map(|spec| spec.ports.iter().flatten())
}

/// The namespace and the name of the Service whose endpoints a slice has.
pub fn service_of(slice: &EndpointSlice) -> Option<(&str, &str)> {
    let name = slice.metadata.labels.as_ref()?.get(SERVICE_NAME)?;
    Some((slice.metadata.namespace.as_deref()?, name))
}

/// The endpoints of a slice.
pub fn each(slice: &EndpointSlice) -> impl Iterator<Item = &Endpoint> {
    slice.endpoints.iter().flatten()
}

/// The IPv4 addresses of an endpoint.
pub fn addresses(endpoint: &Endpoint) -> impl Iterator<Item = Ipv4Addr> {
    endpoint.addresses.iter().filter_map(|address| address.parse().ok())
}

/// Whether an endpoint is to be sent new requests.
pub fn is_ready(endpoint: &Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
}

/// Whether an endpoint that is going away still answers.
fn is_serving_still(endpoint: &Endpoint) -> bool {
    let Some(conditions) = &endpoint.conditions else { return false };
    conditions.serving == Some(true) && conditions.terminating == Some(true)
}

/// The endpoints of a port: those that are ready, and while none is, those that go away and still answer.
fn endpoints(slices: &[&EndpointSlice], port: &str, protocol: Protocol) -> BTreeSet<Target> {
    let (mut ready, mut going) = (BTreeSet::new(), BTreeSet::new());
    for slice in slices.iter().filter(|slice| slice.address_type == "IPv4") {
        let mut ports = slice.ports.iter().flatten();
        let found = ports.find(|one| {
            one.name.as_deref().unwrap_or_default() == port
                && Protocol::of(one.protocol.as_deref()) == Some(protocol)
        });
        let Some(port) = found.and_then(|port| number(port.port)) else { continue };
        for endpoint in each(slice) {
            let into = match () {
                () if is_ready(endpoint) => &mut ready,
                () if is_serving_still(endpoint) => &mut going,
                () => continue,
            };
            into.extend(addresses(endpoint).map(|address| Target {
                address,
                port,
                node: endpoint.node_name.clone(),
            }));
        }
    }
    if ready.is_empty() { going } else { ready }
}

fn number(port: Option<i32>) -> Option<u16> {
    port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port != 0)
}

fn number_of_node(port: &ServicePort) -> Option<u16> {
    number(port.node_port)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::{Value, json};

    pub fn service(name: &str, spec: Value) -> Service {
        let object = json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec});
        serde_json::from_value(object).unwrap()
    }

    pub fn slice(service: &str, ports: Value, endpoints: Value) -> EndpointSlice {
        let object = json!({
            "metadata": {"name": format!("{service}-x"), "namespace": "default", "labels": {SERVICE_NAME: service}},
            "addressType": "IPv4", "ports": ports, "endpoints": endpoints,
        });
        serde_json::from_value(object).unwrap()
    }

    fn check(endpoints: Value, expected: &[&str]) {
        let service =
            service("web", json!({"clusterIP": "10.0.0.5", "ports": [{"name": "http", "port": 80}]}));
        let slices = [
            slice("web", json!([{"name": "http", "port": 8080, "protocol": "TCP"}]), endpoints),
            slice("web", json!([{"name": "other", "port": 1}]), json!([{"addresses": ["10.244.0.99"]}])),
            slice("app", json!([{"name": "http", "port": 2}]), json!([{"addresses": ["10.244.0.98"]}])),
        ];
        let fronts = fronts([&service].into_iter(), slices.iter());
        let found: Vec<_> =
            fronts[0].endpoints.iter().map(|target| format!("{}:{}", target.address, target.port)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn ready_endpoints_answer_and_going_ones_while_there_are_no_others() {
        let ready = json!({"addresses": ["10.244.0.2"], "conditions": {"ready": true}});
        let unknown = json!({"addresses": ["10.244.0.3"]});
        let failing = json!({"addresses": ["10.244.0.4"], "conditions": {"ready": false, "serving": false}});
        let going = json!({
            "addresses": ["10.244.0.5"],
            "conditions": {"ready": false, "serving": true, "terminating": true},
        });
        check(json!([ready, unknown, failing, going]), &["10.244.0.2:8080", "10.244.0.3:8080"]);
        check(json!([failing, going]), &["10.244.0.5:8080"]);
        check(json!([failing]), &[]);
        check(json!([ready, ready]), &["10.244.0.2:8080"]);
    }

    #[test]
    fn only_services_with_an_address_have_rules() {
        let all = [
            service("headless", json!({"clusterIP": "None", "ports": [{"port": 1}]})),
            service("outside", json!({"type": "ExternalName", "externalName": "example.com"})),
            service("sctp", json!({"clusterIP": "10.0.0.7", "ports": [{"port": 1, "protocol": "SCTP"}]})),
            service("bare", json!({"clusterIP": "10.0.0.8", "ports": [{"port": 53, "protocol": "UDP"}]})),
        ];
        let fronts = fronts(all.iter(), [].into_iter());
        assert_eq!(fronts.len(), 1);
        assert_eq!((fronts[0].name.as_str(), fronts[0].protocol), ("default/bare:", Protocol::Udp));
    }
}
