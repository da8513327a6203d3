//! What pods ask of a node, and what a node has.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::controllers::quantity::{milli, units};

/// Amounts by resource: thousandths of processors, and whole units of all else.
pub(super) type Amounts = BTreeMap<String, i64>;

/// What a container counts for that asks for nothing, when nodes are compared.
const CPU_LEAST: i64 = 100;
const MEMORY_LEAST: i64 = 200 << 20;

fn amounts(list: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    let amount = |name: &str, quantity| if name == "cpu" { milli(quantity) } else { units(quantity) };
    list.into_iter().flatten().map(|(name, quantity)| (name.clone(), amount(name, quantity))).collect()
}

/// Adds to some amounts.
pub(super) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *to.entry(name.clone()).or_default() += amount;
    }
}

/// Takes from some amounts.
pub(super) fn subtract(from: &mut Amounts, less: &Amounts) {
    for (name, amount) in less {
        *from.entry(name.clone()).or_default() -= amount;
    }
}

fn at_least(amounts: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        let has = amounts.entry(name.clone()).or_default();
        *has = (*has).max(*amount);
    }
}

/// What a node gives to pods.
pub(super) fn allocatable(node: &Node) -> Amounts {
    let status = node.status.as_ref();
    amounts(status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref())))
}

/// What a pod asks for: its containers together with the sidecars before them, or its greediest moment before these run.
pub(super) fn requests(pod: &Pod) -> Amounts {
    sum(pod, amounts_of)
}

/// As [`requests`], where a container that does not say counts for a little: it will use something.
pub(super) fn likely(pod: &Pod) -> (i64, i64) {
    let amounts = sum(pod, |resources| {
        let mut amounts = amounts_of(resources);
        amounts.entry("cpu".to_owned()).or_insert(CPU_LEAST);
        amounts.entry("memory".to_owned()).or_insert(MEMORY_LEAST);
        amounts
    });
    let get = |name: &str| amounts.get(name).copied().unwrap_or_default();
    (get("cpu"), get("memory"))
}

fn amounts_of(resources: Option<&ResourceRequirements>) -> Amounts {
    amounts(resources.and_then(|resources| resources.requests.as_ref()))
}

fn sum(pod: &Pod, of: impl Fn(Option<&ResourceRequirements>) -> Amounts) -> Amounts {
    let Some(spec) = &pod.spec else { return Amounts::new() };
    let mut total = Amounts::new();
    for container in &spec.containers {
        add(&mut total, &of(container.resources.as_ref()));
    }
    let mut sidecars = Amounts::new();
    let mut greediest = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let mut moment = of(container.resources.as_ref());
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut total, &moment);
            add(&mut sidecars, &moment);
            moment = sidecars.clone();
        } else {
            add(&mut moment, &sidecars);
        }
        at_least(&mut greediest, &moment);
    }
    at_least(&mut total, &greediest);
    for (name, amount) in amounts_of(spec.resources.as_ref()) {
        if ["cpu", "memory"].contains(&name.as_str()) || name.starts_with("hugepages-") {
            total.insert(name, amount);
        }
    }
    add(&mut total, &amounts(spec.overhead.as_ref()));
    total
}

/// A port of a node: protocol, number, address.
pub(super) type Port = (String, i32, String);

/// The ports of its node that a pod takes.
pub(super) fn ports(pod: &Pod) -> BTreeSet<Port> {
    let spec = pod.spec.as_ref();
    let containers = spec.into_iter().flat_map(|spec| &spec.containers);
    let sidecars = spec
        .into_iter()
        .flat_map(|spec| spec.init_containers.iter().flatten())
        .filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let ports = containers.chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    let taken = ports.filter_map(|port| {
        let number = port.host_port.filter(|number| *number > 0)?;
        let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
        let address = port.host_ip.clone().filter(|ip| !ip.is_empty()).unwrap_or_else(|| ANY.to_owned());
        Some((protocol, number, address))
    });
    taken.collect()
}

/// All addresses of a node.
const ANY: &str = "0.0.0.0";

/// Whether two ports of a node cannot both be had.
pub(super) fn collide(a: &Port, b: &Port) -> bool {
    a.0 == b.0 && a.1 == b.1 && (a.2 == b.2 || a.2 == ANY || b.2 == ANY)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_asks_for_its_greediest_moment() {
        let pod: Pod = serde_json::from_value(json!({"spec": {
            "containers": [
                {"name": "a", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}},
                {"name": "b", "resources": {"requests": {"cpu": "200m"}}},
            ],
            "initContainers": [
                {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}},
                {"name": "init", "resources": {"requests": {"cpu": "1"}}},
            ],
            "overhead": {"cpu": "10m"},
        }}))
        .unwrap();
        let requests = requests(&pod);
        assert_eq!((requests["cpu"], requests["memory"]), (1060, 1 << 30));
        assert_eq!(likely(&pod).1, (1 << 30) + 2 * MEMORY_LEAST);
    }

    #[test]
    fn ports_collide_on_the_same_address() {
        let port = |ip: &str| ("TCP".to_owned(), 80, ip.to_owned());
        assert!(collide(&port(ANY), &port("127.0.0.1")) && collide(&port("1.1.1.1"), &port("1.1.1.1")));
        assert!(!collide(&port("1.1.1.1"), &port("127.0.0.1")));
        assert!(!collide(&port(ANY), &("UDP".to_owned(), 80, ANY.to_owned())));
    }
}
