//! Which pods a Service has: as EndpointSlices, and as Endpoints for those who read what is older.

mod legacy;
mod mirror;
mod slices;
mod subsets;

pub(super) use legacy::LegacyEndpoints;
pub(super) use mirror::EndpointSliceMirroring;
pub(super) use slices::EndpointSlices;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod, Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use windlass_core::ObjectKey;

use super::{labelled, pods};
use crate::engine::{View, Wiring};

/// The annotation with the time of what led to a change.
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";
/// The label of what belongs to a Service without an address.
const HEADLESS: &str = "service.kubernetes.io/headless";

/// The label of a slice with the name of its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The label of a slice with who keeps it.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The annotation of Endpoints that are a lock, which nobody's Service they are.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// Services are keys, and a change of a pod is a look at each Service that selects it.
fn declare(wiring: &mut Wiring) {
    wiring.keys::<Service>();
    labelled::index_pods(wiring);
    labelled::index_selectors::<Service>(wiring, selector);
    wiring.maps::<Pod>(|pod, view| {
        let services = labelled::selecting::<Service>(view, pod, selector);
        services.iter().map(|service| ObjectKey::of(&service.metadata)).collect()
    });
}

/// The labels by which a Service selects pods, if it does.
fn selector(service: &Service) -> Option<BTreeMap<String, String>> {
    let spec = service.spec.as_ref().filter(|spec| spec.type_.as_deref() != Some("ExternalName"))?;
    spec.selector.clone().filter(|labels| !labels.is_empty())
}

/// The pods that a Service selects.
fn pods_of(view: &View<'_>, service: &Service) -> Vec<Arc<Pod>> {
    let namespace = service.metadata.namespace.as_deref().unwrap_or_default();
    labelled::pods(view, namespace, &selector(service).unwrap_or_default())
}

/// Whether a pod may be among the endpoints of a Service.
fn is_there(pod: &Pod) -> bool {
    !matches!(pods::phase(pod), "Failed" | "Succeeded") && addresses(pod).next().is_some()
}

/// The addresses of a pod.
fn addresses(pod: &Pod) -> impl Iterator<Item = IpAddr> {
    let all = pod.status.as_ref().and_then(|status| status.pod_ips.as_deref()).unwrap_or_default();
    all.iter().filter_map(|ip| ip.ip.parse().ok())
}

/// The hostname of a pod within the Service, where its subdomain is the Service's name.
fn hostname(pod: &Pod, service: &Service) -> Option<String> {
    let spec = pod.spec.as_ref().filter(|spec| spec.subdomain == service.metadata.name)?;
    spec.hostname.clone().filter(|name| !name.is_empty())
}

/// The number that a port of a Service has on a pod; a named one may be another on each.
fn port_on(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match &port.target_port {
        Some(IntOrString::Int(number)) => return Some(*number),
        None => return Some(port.port),
        Some(IntOrString::String(name)) => name,
    };
    let spec = pod.spec.as_ref()?;
    let sidecars = spec.init_containers.iter().flatten();
    let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
    let ports = spec
        .containers
        .iter()
        .chain(sidecars)
        .flat_map(|container: &Container| container.ports.iter().flatten());
    let protocol = |of: &Option<String>| of.clone().unwrap_or_else(|| "TCP".into());
    let mut named = ports
        .filter(|on| on.name.as_ref() == Some(name) && protocol(&on.protocol) == protocol(&port.protocol));
    named.next().map(|on| on.container_port)
}

fn is_headless(spec: &ServiceSpec) -> bool {
    spec.cluster_ip.as_deref().is_none_or(|ip| ip.is_empty() || ip == "None")
}

/// When the first of those pods turned that make a difference: ready, or no longer. `known` says what is written of them
/// so far, `wanted` who is to be written.
fn turned(
    pods: &[Arc<Pod>],
    known: &BTreeMap<String, bool>,
    wanted: impl Fn(&str) -> bool,
) -> Option<Timestamp> {
    let new = pods.iter().filter(|pod| {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        match known.get(name) {
            Some(was) => *was != pods::is_ready(pod),
            None => wanted(name),
        }
    });
    let time = |pod: &Arc<Pod>| Some(pods::condition(pod, "Ready")?.last_transition_time.as_ref()?.0);
    new.filter_map(time).min()
}
