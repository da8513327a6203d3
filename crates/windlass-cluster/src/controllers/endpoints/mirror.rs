//! Endpoints that somebody writes for a Service without a selector, mirrored to EndpointSlices.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{EndpointAddress, Endpoints, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use kube::api::ObjectMeta;
use windlass::cache::Index;
use windlass::events::Event;
use windlass_core::{ObjectKey, owner};

use super::subsets::repack;
use super::{LEADER, MANAGED_BY, SERVICE_NAME, TRIGGER};
use crate::engine::{Controller, Turn, View, Wiring};

/// Mirrors Endpoints.
pub(in crate::controllers) struct EndpointSliceMirroring;

/// That a slice is one of ours.
const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
/// The index of our slices by their Service.
const BY_SERVICE: &str = "mirrored service";
/// The label of Endpoints that are not mirrored.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// The annotation that kubectl keeps for itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// How many addresses of a subset are mirrored.
const FULL: usize = 1000;

impl Controller for EndpointSliceMirroring {
    fn name(&self) -> &'static str {
        "endpoint-slice-mirroring-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<Endpoints>();
        wiring.keys::<Service>();
        wiring.index::<EndpointSlice>(Index::new(BY_SERVICE, |slice| {
            service_of(slice).map(|key| key.to_string()).into_iter().collect()
        }));
        wiring.maps::<EndpointSlice>(|slice, _| service_of(slice).into_iter().collect());
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, _: Timestamp) -> Turn {
        let mut turn = Turn::default();
        if !view.refused().is_empty() {
            return turn;
        }
        let mut there = view.by_index::<EndpointSlice>(BY_SERVICE, &key.to_string());
        there.retain(|slice| slice.metadata.deletion_timestamp.is_none());
        let wanted = view.get::<Endpoints>(key).filter(|endpoints| is_mirrored(endpoints, view, key));
        let mut slices = wanted.map(|endpoints| slices(&mut turn, &endpoints)).unwrap_or_default();
        let mut left = Vec::new();
        for slice in there {
            match slices.iter().position(|new| place(new) == place(&slice)) {
                Some(at) => update(&mut turn, &slice, slices.remove(at)),
                None => left.push(slice),
            }
        }
        for slice in left {
            match slices.iter().position(|new| new.address_type == slice.address_type) {
                Some(at) => update(&mut turn, &slice, slices.remove(at)),
                None => turn.delete(&*slice),
            }
        }
        for slice in slices {
            turn.create(&slice);
        }
        turn
    }
}

fn service_of(slice: &EndpointSlice) -> Option<ObjectKey> {
    let labels = slice.metadata.labels.as_ref()?;
    let name = labels.get(SERVICE_NAME).filter(|_| labels.get(MANAGED_BY).is_some_and(|by| by == MANAGER))?;
    Some(ObjectKey::new(slice.metadata.namespace.as_deref(), name))
}

fn is_mirrored(endpoints: &Endpoints, view: &View<'_>, key: &ObjectKey) -> bool {
    let meta = &endpoints.metadata;
    let skipped =
        meta.labels.as_ref().is_some_and(|labels| labels.get(SKIP).is_some_and(|skip| skip == "true"));
    let lock = meta.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(LEADER));
    let by_hand = view.get::<Service>(key).is_some_and(|service| {
        service.spec.as_ref().is_none_or(|spec| spec.selector.as_ref().is_none_or(BTreeMap::is_empty))
    });
    !skipped && !lock && by_hand
}

/// What tells two slices apart: the family and the ports.
fn place(slice: &EndpointSlice) -> (&str, Vec<String>) {
    let mut ports: Vec<String> = slice.ports.iter().flatten().map(|port| format!("{port:?}")).collect();
    ports.sort();
    (&slice.address_type, ports)
}

/// A slice for each subset and family.
fn slices(turn: &mut Turn, endpoints: &Endpoints) -> Vec<EndpointSlice> {
    let (mut slices, mut wrong, mut skipped) = (Vec::new(), 0, 0);
    for subset in repack(endpoints.subsets.clone().unwrap_or_default()) {
        let port = |port: k8s_openapi::api::core::v1::EndpointPort| EndpointPort {
            name: Some(port.name.unwrap_or_default()),
            port: Some(port.port),
            protocol: port.protocol,
            app_protocol: port.app_protocol,
        };
        let ports: Vec<EndpointPort> = subset.ports.into_iter().flatten().map(port).collect();
        let ready = subset.addresses.into_iter().flatten().map(|address| (address, true));
        let others = subset.not_ready_addresses.into_iter().flatten().map(|address| (address, false));
        let mut families: BTreeMap<&str, Vec<Endpoint>> = BTreeMap::new();
        let mut added = 0;
        for (address, ready) in ready.chain(others) {
            match endpoint(address, ready) {
                None => wrong += 1,
                Some(_) if added >= FULL => skipped += 1,
                Some((family, endpoint)) => {
                    added += 1;
                    families.entry(family).or_default().push(endpoint);
                }
            }
        }
        slices.extend(families.into_iter().map(|(family, held)| slice(endpoints, family, &ports, held)));
    }
    if wrong > 0 {
        let note = format!("Skipped {wrong} invalid IP addresses when mirroring to EndpointSlices");
        turn.event(endpoints, Event::warning("InvalidIPAddress", "Mirror", note));
    }
    if skipped > 0 {
        let note = format!(
            "A max of {FULL} addresses can be mirrored to EndpointSlices per Endpoints subset. {} addresses were skipped",
            skipped + wrong
        );
        turn.event(endpoints, Event::warning("TooManyAddressesToMirror", "Mirror", note));
    }
    slices
}

fn endpoint(address: EndpointAddress, ready: bool) -> Option<(&'static str, Endpoint)> {
    let ip: IpAddr = address.ip.parse().ok()?;
    let endpoint = Endpoint {
        addresses: vec![ip.to_string()],
        conditions: Some(EndpointConditions { ready: Some(ready), ..EndpointConditions::default() }),
        hostname: address.hostname.filter(|name| !name.is_empty()),
        node_name: address.node_name,
        target_ref: address.target_ref,
        ..Endpoint::default()
    };
    Some((if ip.is_ipv6() { "IPv6" } else { "IPv4" }, endpoint))
}

fn slice(endpoints: &Endpoints, family: &str, ports: &[EndpointPort], held: Vec<Endpoint>) -> EndpointSlice {
    let name = endpoints.metadata.name.clone().unwrap_or_default();
    let mut labels = endpoints.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.into(), name.clone());
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    let mut annotations = endpoints.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|key, _| key != TRIGGER && key != LAST_APPLIED);
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: endpoints.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
            owner_references: owner::reference_to(endpoints).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        address_type: family.to_owned(),
        endpoints: Some(held),
        ports: Some(ports.to_vec()),
    }
}

fn update(turn: &mut Turn, there: &Arc<EndpointSlice>, new: EndpointSlice) {
    let metadata = ObjectMeta {
        labels: new.metadata.labels,
        annotations: new.metadata.annotations,
        ..there.metadata.clone()
    };
    let same = metadata == there.metadata
        && new.endpoints.as_deref().unwrap_or_default() == there.endpoints.as_deref().unwrap_or_default()
        && new.ports.as_deref().unwrap_or_default() == there.ports.as_deref().unwrap_or_default();
    if !same {
        turn.replace(&EndpointSlice { metadata, ..new });
    }
}
