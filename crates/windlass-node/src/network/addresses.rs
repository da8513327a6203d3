//! Which addresses there are.
//!
//! ```text
//! 10.243.0.0/24   the fabric: .1 the API server and the DNS server, .10 and up the nodes
//! 10.244.i.0/24   the pods of node i; .1 is their gateway
//! 10.0.0.0/24     Services, as the API server hands them out
//! ```

use std::net::Ipv4Addr;

/// Where pods reach what this process serves: the API server and DNS.
pub const FABRIC: Ipv4Addr = Ipv4Addr::new(10, 243, 0, 1);

/// The port of the embedded API server on the fabric.
pub const API_PORT: u16 = 6443;

/// The addresses of Services.
pub const SERVICES: &str = "10.0.0.0/24";

/// The Service of the DNS server: what a pod's `resolv.conf` names.
pub const DNS_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 10);

/// How many nodes there can be: the fabric has no room for more.
pub const NODES_MAX: u8 = 200;

/// How many pods a node has addresses for.
pub const PODS_MAX: u8 = LAST - FIRST + 1;

/// The first and the last address of a pod, within its node's.
const FIRST: u8 = 2;
const LAST: u8 = 254;

/// The addresses of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeAddresses {
    index: u8,
}

impl NodeAddresses {
    /// Those of the node with this number; `None` beyond [`NODES_MAX`].
    pub fn of(index: usize) -> Option<NodeAddresses> {
        let index = u8::try_from(index).ok().filter(|index| *index < NODES_MAX)?;
        Some(NodeAddresses { index })
    }

    /// The node's number.
    pub fn index(self) -> u8 {
        self.index
    }

    /// Its own address, on the fabric.
    pub fn own(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 243, 0, 10 + self.index)
    }

    /// Where its pods send everything.
    pub fn gateway(self) -> Ipv4Addr {
        self.pod(1)
    }

    /// The addresses of its pods.
    pub fn pods(self) -> String {
        format!("{}/24", self.pod(0))
    }

    fn pod(self, last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 244, self.index, last)
    }

    /// All addresses that pods may have, beginning after the one that was given last: an address that became free is
    /// not given again while clients may still talk to it.
    pub(super) fn after(self, last: Option<Ipv4Addr>) -> impl Iterator<Item = Ipv4Addr> {
        let last = last.map_or(LAST, |last| last.octets()[3].clamp(FIRST, LAST));
        let numbers = (FIRST..=LAST).cycle().skip(usize::from(last - FIRST) + 1);
        numbers.take(usize::from(PODS_MAX)).map(move |number| self.pod(number))
    }

    /// Whether a pod of this node may have an address.
    pub(super) fn contains(self, address: Ipv4Addr) -> bool {
        let [a, b, c, d] = address.octets();
        [a, b, c] == [10, 244, self.index] && (FIRST..=LAST).contains(&d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_addresses_that_do_not_meet() {
        let [one, two] = [0, 1].map(|index| NodeAddresses::of(index).unwrap());
        assert_eq!((one.own(), two.own()), ([10, 243, 0, 10].into(), [10, 243, 0, 11].into()));
        assert_eq!((one.pods(), two.pods()), ("10.244.0.0/24".to_owned(), "10.244.1.0/24".to_owned()));
        assert_eq!(two.gateway(), Ipv4Addr::from([10, 244, 1, 1]));
        assert!(NodeAddresses::of(199).is_some() && NodeAddresses::of(200).is_none());
    }

    #[test]
    fn addresses_go_round_from_the_last_one_given() {
        let node = NodeAddresses::of(3).unwrap();
        let all: Vec<_> = node.after(Some([10, 244, 3, 253].into())).collect();
        assert_eq!(all.len(), usize::from(PODS_MAX));
        assert_eq!(all[..2], [Ipv4Addr::from([10, 244, 3, 254]), [10, 244, 3, 2].into()]);
        assert_eq!(node.after(None).next(), Some([10, 244, 3, 2].into()));
        assert!(all.iter().all(|address| node.contains(*address)));
        assert!(!node.contains(node.gateway()) && !node.contains([10, 244, 2, 7].into()));
    }
}
