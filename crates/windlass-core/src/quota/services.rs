//! Services: their number, load balancers, and ports of nodes.

use serde_json::Value;

use super::one;
use crate::amounts::Amounts;
use crate::quantity::Quantity;
use crate::tree::{int, list, text};

pub(super) fn counts(name: &str) -> bool {
    ["count/services", "services", "services.nodeports", "services.loadbalancers"].contains(&name)
}

pub(super) fn usage(service: &Value) -> Amounts {
    let spec = &service["spec"];
    let ports = list(spec, "ports");
    let given = || ports.iter().filter(|port| int(port, "nodePort").is_some_and(|port| port != 0)).count();
    let (node_ports, balancers) = match text(spec, "type") {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == false => (given(), 1),
        "LoadBalancer" => (ports.len(), 1),
        _ => (0, 0),
    };
    Amounts::from([
        ("count/services".to_owned(), one()),
        ("services".to_owned(), one()),
        ("services.nodeports".to_owned(), Quantity::from_i64(node_ports as i64)),
        ("services.loadbalancers".to_owned(), Quantity::from_i64(balancers)),
    ])
}
