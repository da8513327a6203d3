//! The rules of a network as text for `nft`: requests to a Service go to one of its endpoints. Pure.
//!
//! The table is replaced as a whole, in one transaction: no request ever meets half of the rules.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use super::addresses::{FABRIC, NodeAddresses, SERVICES};
use super::services::{Front, Target};

/// Whose rules these are.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// The network that this process reaches pods and Services from.
    Fabric,
    /// The network of a node.
    Node {
        /// The node.
        name: &'a str,
        /// Its addresses.
        addresses: NodeAddresses,
    },
}

impl Place<'_> {
    /// The address that answers for node ports.
    fn own(self) -> Ipv4Addr {
        match self {
            Place::Fabric => FABRIC,
            Place::Node { addresses, .. } => addresses.own(),
        }
    }

    /// Whether an endpoint may answer a Service whose requests stay on their node.
    fn has(self, target: &Target) -> bool {
        match self {
            Place::Fabric => true,
            Place::Node { name, .. } => target.node.as_deref() == Some(name),
        }
    }
}

/// All rules of a network.
///
/// What is sent to the address of a Service and translated by no rule has nobody to answer it, and is refused at once. A
/// pod that reaches itself through a Service is met by its gateway's address: its own it would not answer. What comes to a
/// node's port goes on under the node's own address, so that the answer comes back to where it was translated.
pub fn ruleset(fronts: &[Front], place: Place<'_>) -> String {
    let mut chains = String::new();
    let (mut services, mut ports) = (Vec::new(), Vec::new());
    let mut own = std::collections::BTreeSet::new();
    for front in fronts {
        let answering: Vec<_> =
            front.endpoints.iter().filter(|target| !front.local || place.has(target)).collect();
        if answering.is_empty() {
            continue;
        }
        let (chain, protocol) = (chain(front), front.protocol.word());
        services.push(format!("{} . {protocol} . {} : goto {chain}", front.address, front.port));
        ports.extend(front.node_port.map(|port| format!("{protocol} . {port} : goto {chain}")));
        // Writing to a text does not fail.
        let _ = write!(
            chains,
            "\n\t# {}\n\tchain {chain} {{\n\t\tmeta l4proto {protocol} dnat ip to {} map {{ {} }}\n\t}}\n",
            front.name,
            choice(front.sticky, answering.len()),
            numbered(&answering)
        );
        if let Place::Node { addresses, .. } = place {
            own.extend(answering.iter().map(|target| target.address).filter(|pod| addresses.contains(*pod)));
        }
    }
    let own: Vec<_> = own.iter().map(|pod| format!("{pod} . {pod}")).collect();
    let gateway = match place {
        Place::Fabric => FABRIC,
        Place::Node { addresses, .. } => addresses.gateway(),
    };
    let (services, ports, own) = (elements(&services), elements(&ports), elements(&own));
    let at = place.own();
    format!(
        "\
table ip windlass
delete table ip windlass
table ip windlass {{
	map services {{
		typeof ip daddr . meta l4proto . th dport : verdict
{services}	}}

	map ports {{
		typeof meta l4proto . th dport : verdict
{ports}	}}

	set own {{
		type ipv4_addr . ipv4_addr
{own}	}}
{chains}
	chain translate {{
		ip daddr . meta l4proto . th dport vmap @services
		ip daddr {at} jump by_port
	}}

	chain by_port {{
		meta mark set 0x4000
		meta l4proto . th dport vmap @ports
	}}

	chain prerouting {{
		type nat hook prerouting priority -100
		jump translate
	}}

	chain output {{
		type nat hook output priority -100
		jump translate
	}}

	chain postrouting {{
		type nat hook postrouting priority 100
		ct status dnat ip saddr . ip daddr @own snat to {gateway}
		ct status dnat meta mark 0x4000 snat to {at}
	}}

	chain refuse {{
		meta l4proto tcp reject with tcp reset
		reject
	}}

	chain forward {{
		type filter hook forward priority 0
		ip daddr {SERVICES} jump refuse
	}}

	chain outgoing {{
		type filter hook output priority 0
		ip daddr {SERVICES} jump refuse
	}}
}}
"
    )
}

/// One name for each port of a Service, whatever the Service is called: names of chains are short.
fn chain(front: &Front) -> String {
    format!("service-{}-{}-{}", front.address, front.protocol.word(), front.port)
}

/// Which endpoint: any, or the same for the same client as long as the endpoints stay.
fn choice(sticky: bool, endpoints: usize) -> String {
    if sticky { format!("jhash ip saddr mod {endpoints}") } else { format!("numgen random mod {endpoints}") }
}

fn numbered(targets: &[&Target]) -> String {
    let each = targets.iter().enumerate();
    let all: Vec<_> =
        each.map(|(number, target)| format!("{number} : {} . {}", target.address, target.port)).collect();
    all.join(", ")
}

/// A list of none is not written: `nft` does not take it.
fn elements(all: &[String]) -> String {
    match all {
        [] => String::new(),
        all => format!("\t\telements = {{\n\t\t\t{}\n\t\t}}\n", all.join(",\n\t\t\t")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::services::fronts;
    use super::super::services::tests::{service, slice};
    use super::*;
    use serde_json::json;

    fn some() -> Vec<Front> {
        let services = [
            service(
                "web",
                json!({"clusterIP": "10.0.0.5", "ports": [{"name": "http", "port": 80, "nodePort": 30080}]}),
            ),
            service(
                "sticky",
                json!({
                    "clusterIP": "10.0.0.6", "sessionAffinity": "ClientIP",
                    "ports": [{"port": 53, "protocol": "UDP"}, {"name": "tcp", "port": 53}],
                }),
            ),
            service(
                "local",
                json!({"clusterIP": "10.0.0.7", "internalTrafficPolicy": "Local", "ports": [{"port": 1}]}),
            ),
            service("nobody", json!({"clusterIP": "10.0.0.8", "ports": [{"port": 80}]})),
        ];
        let two = json!([
            {"addresses": ["10.244.0.2"], "nodeName": "a"},
            {"addresses": ["10.244.1.2"], "nodeName": "b"},
        ]);
        let slices = [
            slice("web", json!([{"name": "http", "port": 8080}]), two.clone()),
            slice(
                "sticky",
                json!([{"port": 53, "protocol": "UDP"}, {"name": "tcp", "port": 53}]),
                two.clone(),
            ),
            slice("local", json!([{"port": 1}]), two),
        ];
        fronts(services.iter(), slices.iter())
    }

    #[test]
    fn the_rules_of_a_node() {
        let addresses = NodeAddresses::of(0).unwrap();
        insta::assert_snapshot!(ruleset(&some(), Place::Node { name: "a", addresses }));
    }

    #[test]
    fn the_rules_of_the_fabric_know_no_node_of_their_own() {
        let rules = ruleset(&some(), Place::Fabric);
        assert!(rules.contains("random mod 2 map { 0 : 10.244.0.2 . 1, 1 : 10.244.1.2 . 1 }"), "{rules}");
        assert!(!rules.contains("10.244.0.2 . 10.244.0.2"), "{rules}");
    }

    #[test]
    fn without_services_there_are_no_lists() {
        assert!(!ruleset(&[], Place::Fabric).contains("elements"));
    }
}
