//! The one form of the subsets of Endpoints: each address once for the ports that it shares with others.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset};

/// How many addresses Endpoints hold.
const CAPACITY: usize = 1000;

/// What tells two addresses apart.
type Id = (String, Option<String>);
/// Addresses, and whether they are ready.
type Addresses = BTreeMap<Id, (EndpointAddress, bool)>;

/// Puts together the ports that the same addresses have. Who is not ready on one of two counts as not ready.
pub(super) fn repack(subsets: Vec<EndpointSubset>) -> Vec<EndpointSubset> {
    let mut by_port: BTreeMap<String, (Option<EndpointPort>, Addresses)> = BTreeMap::new();
    for subset in subsets {
        let ports = subset.ports.unwrap_or_default();
        let ports: Vec<Option<EndpointPort>> =
            if ports.is_empty() { vec![None] } else { ports.into_iter().map(Some).collect() };
        for port in ports {
            let (_, addresses) =
                by_port.entry(format!("{port:?}")).or_insert_with(|| (port, Addresses::new()));
            for (some, ready) in [(&subset.addresses, true), (&subset.not_ready_addresses, false)] {
                for address in some.iter().flatten() {
                    let (_, is_ready) =
                        addresses.entry(id(address)).or_insert_with(|| (address.clone(), ready));
                    *is_ready &= ready;
                }
            }
        }
    }
    let mut by_addresses: Vec<(Addresses, Vec<EndpointPort>)> = Vec::new();
    for (port, addresses) in by_port.into_values() {
        match by_addresses.iter_mut().find(|(some, _)| *some == addresses) {
            Some((_, ports)) => ports.extend(port),
            None => by_addresses.push((addresses, port.into_iter().collect())),
        }
    }
    by_addresses.into_iter().map(|(addresses, ports)| subset(addresses, ports)).collect()
}

fn id(address: &EndpointAddress) -> Id {
    (address.ip.clone(), address.target_ref.as_ref().and_then(|pod| pod.uid.clone()))
}

fn subset(addresses: Addresses, ports: Vec<EndpointPort>) -> EndpointSubset {
    let (ready, not_ready): (Vec<_>, Vec<_>) = addresses.into_values().partition(|(_, ready)| *ready);
    let list = |some: Vec<(EndpointAddress, bool)>| {
        Some(some.into_iter().map(|(address, _)| address).collect::<Vec<_>>()).filter(|some| !some.is_empty())
    };
    EndpointSubset {
        addresses: list(ready),
        not_ready_addresses: list(not_ready),
        ports: Some(ports).filter(|ports| !ports.is_empty()),
    }
}

fn length(some: &Option<Vec<EndpointAddress>>) -> usize {
    some.as_ref().map_or(0, Vec::len)
}

/// Whether these are more addresses than Endpoints hold.
pub(super) fn is_over(subsets: &[EndpointSubset]) -> bool {
    subsets
        .iter()
        .map(|subset| length(&subset.addresses) + length(&subset.not_ready_addresses))
        .sum::<usize>()
        > CAPACITY
}

/// As many addresses as Endpoints hold: ready ones before the others, each subset its share.
pub(super) fn capped(mut subsets: Vec<EndpointSubset>) -> Vec<EndpointSubset> {
    let ready: usize = subsets.iter().map(|subset| length(&subset.addresses)).sum();
    let not_ready: usize = subsets.iter().map(|subset| length(&subset.not_ready_addresses)).sum();
    let too_many_ready = ready > CAPACITY;
    let (room, all) = if too_many_ready { (CAPACITY, ready) } else { (CAPACITY - ready, not_ready) };
    let mut left = room;
    for subset in &mut subsets {
        let cut = if too_many_ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
        let share = (length(cut) * room).div_ceil(all.max(1)).min(left);
        if let Some(some) = cut {
            some.truncate(share);
        }
        left -= length(cut);
        if too_many_ready {
            subset.not_ready_addresses = None;
        }
    }
    subsets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(ip: &str, port: i32, ready: bool) -> EndpointSubset {
        let address = EndpointAddress { ip: ip.into(), ..EndpointAddress::default() };
        let ports = Some(vec![EndpointPort { port, ..EndpointPort::default() }]);
        let (yes, no) = if ready { (Some(vec![address]), None) } else { (None, Some(vec![address])) };
        EndpointSubset { addresses: yes, not_ready_addresses: no, ports }
    }

    fn shape(subsets: &[EndpointSubset]) -> Vec<(usize, usize, usize)> {
        let ports = |subset: &EndpointSubset| subset.ports.as_ref().map_or(0, Vec::len);
        subsets
            .iter()
            .map(|subset| (length(&subset.addresses), length(&subset.not_ready_addresses), ports(subset)))
            .collect()
    }

    #[test]
    fn ports_of_the_same_addresses_are_together() {
        let all = vec![
            one("b", 1, true),
            one("a", 1, true),
            one("a", 2, true),
            one("b", 2, true),
            one("b", 3, true),
        ];
        assert_eq!(shape(&repack(all)), [(2, 0, 2), (1, 0, 1)]);
        let all = vec![one("a", 1, true), one("b", 1, false)];
        assert_eq!(shape(&repack(all)), [(1, 1, 1)]);
    }

    #[test]
    fn ready_addresses_have_room_before_the_others() {
        let all: Vec<EndpointSubset> = (0..1500).map(|at| one(&format!("{at:04}"), 1, at < 900)).collect();
        let all = repack(all);
        assert!(is_over(&all));
        assert_eq!(shape(&capped(all)), [(900, 100, 1)]);
    }
}
