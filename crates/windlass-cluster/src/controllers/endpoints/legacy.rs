//! Endpoints: all pods of a Service in one object, ready and not.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    EndpointAddress, EndpointPort, EndpointSubset, Endpoints, ObjectReference, Pod, Service, ServiceSpec,
};
use kube::api::ObjectMeta;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass::events::Event;
use windlass_core::ObjectKey;

use super::subsets::{capped, is_over, repack};
use super::{HEADLESS, LEADER, TRIGGER};
use crate::controllers::pods;
use crate::engine::{Controller, Refusal, Turn, View, Wiring};

/// Keeps the Endpoints of Services.
pub(in crate::controllers) struct LegacyEndpoints;

/// The label with who keeps Endpoints.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
/// That we do.
const MANAGER: &str = "endpoint-controller";
/// The annotation that tells that not all pods are there.
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

impl Controller for LegacyEndpoints {
    fn name(&self) -> &'static str {
        "endpoint-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        super::declare(wiring);
        // Somebody's own Endpoints are looked at when their Service goes, and not before.
        wiring.maps::<Endpoints>(|endpoints, view| {
            let key = ObjectKey::of(&endpoints.metadata);
            let ours = label(endpoints, MANAGED_BY) == Some(MANAGER);
            let gone = view.get::<Endpoints>(&key).is_none();
            (ours || gone).then_some(key).into_iter().collect()
        });
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, _: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let there = view.get::<Endpoints>(key);
        let Some(service) = view.get::<Service>(key) else {
            let annotated = |endpoints: &Endpoints| {
                endpoints.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(LEADER))
            };
            if let Some(endpoints) = there.filter(|endpoints| !annotated(endpoints)) {
                turn.delete(&*endpoints);
            }
            return turn;
        };
        if super::selector(&service).is_none() {
            return turn;
        }
        let spec = service.spec.clone().unwrap_or_default();
        let pods = super::pods_of(view, &service);
        let subsets = repack(subsets(&service, &spec, &pods));
        let labels = labels(&service, &spec);
        let before = there.as_deref().cloned().unwrap_or_else(|| fresh(&service));
        let is_new = there.is_none();
        if let Some(refusal) = view.refused().first() {
            tell(&mut turn, &before, key, is_new, refusal);
            return turn;
        }
        let overfull =
            before.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(OVER_CAPACITY));
        let same = before.subsets.clone().unwrap_or_default() == subsets
            && before.metadata.labels.clone().unwrap_or_default() == labels
            && !overfull;
        if !is_new && same {
            return turn;
        }
        let trigger = trigger(&service, &before, is_new, &pods, &subsets);
        let mut endpoints = before.clone();
        let mut annotations = endpoints.metadata.annotations.take().unwrap_or_default();
        annotations.remove(TRIGGER);
        annotations.extend(trigger.map(|time| (TRIGGER.to_owned(), time.to_string())));
        annotations.remove(OVER_CAPACITY);
        let over = is_over(&subsets);
        if over {
            annotations.insert(OVER_CAPACITY.into(), "truncated".into());
        }
        let subsets = if over { capped(subsets) } else { subsets };
        endpoints.metadata.annotations = Some(annotations).filter(|all| !all.is_empty());
        endpoints.metadata.labels = Some(labels);
        endpoints.subsets = Some(subsets).filter(|subsets| !subsets.is_empty());
        if is_new {
            turn.create(&endpoints);
        } else if endpoints != before {
            turn.replace(&endpoints);
        }
        turn
    }
}

fn label<'a>(endpoints: &'a Endpoints, key: &str) -> Option<&'a str> {
    endpoints.metadata.labels.as_ref()?.get(key).map(String::as_str)
}

fn fresh(service: &Service) -> Endpoints {
    let metadata = ObjectMeta {
        name: service.metadata.name.clone(),
        namespace: service.metadata.namespace.clone(),
        ..ObjectMeta::default()
    };
    Endpoints { metadata, subsets: None }
}

fn labels(service: &Service, spec: &ServiceSpec) -> BTreeMap<String, String> {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.remove(HEADLESS);
    if super::is_headless(spec) {
        labels.insert(HEADLESS.into(), String::new());
    }
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    labels
}

/// A subset for each pod and port.
fn subsets(service: &Service, spec: &ServiceSpec, pods: &[Arc<Pod>]) -> Vec<EndpointSubset> {
    let unready_too = spec.publish_not_ready_addresses == Some(true);
    let mut subsets = Vec::new();
    for pod in pods.iter().filter(|pod| super::is_there(pod)) {
        if pod.metadata.deletion_timestamp.is_some() && !unready_too {
            continue;
        }
        let Some(address) = address(service, spec, pod) else { continue };
        let ready = unready_too || pods::is_ready(pod);
        let mut add = |ports: Option<Vec<EndpointPort>>| {
            let (yes, no) =
                if ready { (Some(vec![address.clone()]), None) } else { (None, Some(vec![address.clone()])) };
            subsets.push(EndpointSubset { addresses: yes, not_ready_addresses: no, ports });
        };
        let service_ports = spec.ports.as_deref().unwrap_or_default();
        if service_ports.is_empty() && super::is_headless(spec) {
            add(None);
        }
        for port in service_ports {
            let Some(number) = super::port_on(pod, port) else { continue };
            add(Some(vec![EndpointPort {
                name: port.name.clone().filter(|name| !name.is_empty()),
                port: number,
                protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".into())),
                app_protocol: port.app_protocol.clone(),
            }]));
        }
    }
    subsets
}

fn address(service: &Service, spec: &ServiceSpec, pod: &Pod) -> Option<EndpointAddress> {
    let family = spec.ip_families.as_ref().and_then(|families| families.first());
    let six = family.is_some_and(|family| family == "IPv6");
    let ip = super::addresses(pod).find(|ip| ip.is_ipv6() == six)?;
    Some(EndpointAddress {
        ip: ip.to_string(),
        hostname: super::hostname(pod, service),
        node_name: Some(pods::node(pod).to_owned()),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".into()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        }),
    })
}

/// When that happened what the Endpoints follow now: the Service came, or one of the pods turned.
fn trigger(
    service: &Service,
    before: &Endpoints,
    is_new: bool,
    pods: &[Arc<Pod>],
    wanted: &[EndpointSubset],
) -> Option<Timestamp> {
    if is_new {
        return service.metadata.creation_timestamp.as_ref().map(|time| time.0);
    }
    let known = ready_by_name(before.subsets.as_deref().unwrap_or_default());
    let wanted = ready_by_name(wanted);
    super::turned(pods, &known, |name| wanted.contains_key(name))
}

/// The pods of some subsets, and whether they are ready.
fn ready_by_name(subsets: &[EndpointSubset]) -> BTreeMap<String, bool> {
    let mut pods = BTreeMap::new();
    for subset in subsets {
        for (addresses, ready) in [(&subset.addresses, true), (&subset.not_ready_addresses, false)] {
            let targets = addresses.iter().flatten().filter_map(|address| address.target_ref.as_ref());
            pods.extend(targets.filter_map(|pod| Some((pod.name.clone()?, ready))));
        }
    }
    pods
}

fn tell(turn: &mut Turn, endpoints: &Endpoints, key: &ObjectKey, is_new: bool, refusal: &Refusal) {
    let message = &refusal.message;
    let event = if is_new {
        let note = format!("Failed to create endpoint for service {key}: {message}");
        Event::warning("FailedToCreateEndpoint", "Create", note)
    } else {
        let note = format!("Failed to update endpoint {key}: {message}");
        Event::warning("FailedToUpdateEndpoint", "Update", note)
    };
    turn.event(endpoints, event);
}
