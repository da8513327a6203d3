//! Which ports of this machine lead to which Services. Pure.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use k8s_openapi::api::core::v1::Service;

use super::services::{Protocol, cluster_ip, ports};

/// A port of this machine, at 127.0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Door {
    /// Over what.
    pub protocol: Protocol,
    /// The port.
    pub port: u16,
}

/// Where a door leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behind {
    /// The Service's address and port.
    pub to: SocketAddrV4,
    /// The Service: its namespace and its name.
    pub service: (String, String),
    /// Whether it is a load balancer's own port, beside which there is a node port.
    pub balancer: bool,
}

/// The ports of this machine that should be open: the node ports of Services, and the own ports of load balancers. Where two
/// want the same, the first by name has it.
pub fn doors<'a>(services: impl Iterator<Item = &'a Service>) -> BTreeMap<Door, Behind> {
    let mut all = BTreeMap::new();
    for service in services {
        let (Some(namespace), Some(name)) = (&service.metadata.namespace, &service.metadata.name) else {
            continue;
        };
        let Some(address) = cluster_ip(service) else { continue };
        let number = |port: i32| u16::try_from(port).ok().filter(|port| *port != 0);
        for port in ports(service) {
            let (Some(protocol), Some(own)) = (Protocol::of(port.protocol.as_deref()), number(port.port))
            else {
                continue;
            };
            let mut open = |port: u16, balancer: bool| {
                let service = (namespace.clone(), name.clone());
                let to = SocketAddrV4::new(address, own);
                all.entry(Door { protocol, port }).or_insert(Behind { to, service, balancer });
            };
            if is_balancer(service) {
                open(own, true);
            }
            if let Some(port) = port.node_port.and_then(number) {
                open(port, false);
            }
        }
    }
    all
}

/// Whether a Service is a load balancer of ours. One that names a class is somebody else's.
pub fn is_balancer(service: &Service) -> bool {
    let spec = service.spec.as_ref();
    spec.is_some_and(|spec| {
        spec.type_.as_deref() == Some("LoadBalancer") && spec.load_balancer_class.is_none()
    })
}

/// Where a load balancer is reached.
pub const BALANCER: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Whether a Service's status says where it is reached.
pub fn is_balanced(service: &Service) -> bool {
    let ingress = service.status.as_ref().and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref());
    let at = BALANCER.to_string();
    ingress.is_some_and(|all| all.iter().any(|one| one.ip.as_deref() == Some(at.as_str())))
}

#[cfg(test)]
mod tests {
    use super::super::services::tests::service;
    use super::*;
    use serde_json::json;

    #[test]
    fn node_ports_and_load_balancers_are_open() {
        let services = [
            service(
                "a",
                json!({"clusterIP": "10.0.0.5", "type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}),
            ),
            service(
                "b",
                json!({"clusterIP": "10.0.0.6", "type": "LoadBalancer", "ports": [
                    {"port": 8080, "nodePort": 30081}, {"port": 53, "protocol": "UDP", "nodePort": 30082},
                ]}),
            ),
            service("c", json!({"clusterIP": "10.0.0.7", "ports": [{"port": 80}]})),
            service("d", json!({"clusterIP": "10.0.0.8", "type": "LoadBalancer", "ports": [{"port": 8080}]})),
            service(
                "e",
                json!({
                    "clusterIP": "10.0.0.9", "type": "LoadBalancer", "loadBalancerClass": "other",
                    "ports": [{"port": 9090}],
                }),
            ),
        ];
        let found: Vec<_> = doors(services.iter())
            .into_iter()
            .map(|(door, behind)| {
                format!("{}/{} {} {}", door.protocol.word(), door.port, behind.to, behind.balancer)
            })
            .collect();
        assert_eq!(
            found,
            [
                "tcp/8080 10.0.0.6:8080 true",
                "tcp/30080 10.0.0.5:80 false",
                "tcp/30081 10.0.0.6:8080 false",
                "udp/53 10.0.0.6:53 true",
                "udp/30082 10.0.0.6:53 false",
            ]
        );
    }

    #[test]
    fn a_load_balancer_is_known_by_its_address() {
        let mut balancer = service("a", json!({"type": "LoadBalancer"}));
        assert!(is_balancer(&balancer) && !is_balanced(&balancer));
        balancer.status =
            serde_json::from_value(json!({"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}})).unwrap();
        assert!(is_balanced(&balancer));
    }
}
