//! What `ip` is told, as text: one batch of commands for each step.
//!
//! Every pod is a link of its own in its node's network, with a route to it, and no bridge between pods: whatever a pod
//! sends goes through its node's routing. So the answer of a Service's pod comes back the way that the request took, also
//! between two pods of one node, where a bridge would carry it past the translation of addresses.

use std::net::Ipv4Addr;
use std::path::Path;

use super::addresses::{FABRIC, NodeAddresses, SERVICES};

/// The network of a node.
pub fn node_net(node: &str) -> String {
    format!("node-{node}")
}

/// The network of a pod.
pub fn pod_net(uid: &str) -> String {
    format!("pod-{uid}")
}

/// In the fabric: the bridge that the nodes are on. Services have a route so that what is sent to them gets as far as the
/// translation of addresses.
pub fn fabric() -> String {
    format!(
        "\
link add fabric0 type bridge
addr add {FABRIC}/24 dev fabric0
link set fabric0 up
route add {SERVICES} dev fabric0
"
    )
}

/// In the fabric: a node's link.
pub fn plug(net: &Path, node: NodeAddresses) -> String {
    let port = port(node);
    format!(
        "\
link add {port} type veth peer name uplink netns {}
link set {port} master fabric0 up
route add {} via {}
",
        quoted(net),
        node.pods(),
        node.own()
    )
}

/// In the network of a node: its addresses, and the ways to the pods of the others.
pub fn node(node: NodeAddresses, others: impl Iterator<Item = NodeAddresses>) -> String {
    let mut script = format!(
        "\
addr add {}/32 dev lo
addr add {}/24 dev uplink
link set uplink up
route add {SERVICES} dev uplink
",
        node.gateway(),
        node.own()
    );
    for other in others.filter(|other| *other != node) {
        script.push_str(&format!("route add {} via {}\n", other.pods(), other.own()));
    }
    script
}

/// In the fabric: cuts a node off from everybody but its own pods, or heals it.
pub fn cut(node: NodeAddresses, off: bool) -> String {
    format!("link set {} {}\n", port(node), if off { "down" } else { "up" })
}

/// In the network of a node: a pod's link.
pub fn attach(net: &Path, address: Ipv4Addr) -> String {
    let link = link(address);
    format!(
        "\
link add {link} type veth peer name eth0 netns {}
link set {link} up
route add {address}/32 dev {link}
",
        quoted(net)
    )
}

/// In the network of a node: takes a pod's link away, before another pod may have its name.
pub fn detach(address: Ipv4Addr) -> String {
    format!("link del {}\n", link(address))
}

/// In the network of a pod: its address, and the way to everything else.
pub fn pod(node: NodeAddresses, address: Ipv4Addr) -> String {
    let gateway = node.gateway();
    format!(
        "\
addr add {address}/32 dev eth0
link set eth0 up
route add {gateway}/32 dev eth0
route add default via {gateway}
"
    )
}

/// A path as `ip` reads it in a batch.
fn quoted(net: &Path) -> String {
    format!("\"{}\"", net.display())
}

/// A node's end of the fabric.
fn port(node: NodeAddresses) -> String {
    format!("node{}", node.index())
}

/// A pod's link, in its node's network. Its name has to be short, and there is one for each address.
fn link(address: Ipv4Addr) -> String {
    format!("pod{}", address.octets()[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts() {
        let [one, two] = [0, 1].map(|index| NodeAddresses::of(index).unwrap());
        let address = Ipv4Addr::new(10, 244, 1, 7);
        let all = [
            ("fabric", fabric()),
            ("fabric: plug", plug(Path::new("/nets/node-b"), two)),
            ("node", node(two, [one, two].into_iter())),
            ("node: attach", attach(Path::new("/nets/pod-0ee1"), address)),
            ("pod", pod(two, address)),
            ("node: detach", detach(address)),
            ("fabric: cut", cut(two, true) + &cut(two, false)),
        ];
        let text: String = all.iter().map(|(title, script)| format!("# {title}\n{script}\n")).collect();
        insta::assert_snapshot!(text);
    }
}
