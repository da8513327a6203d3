//! EndpointSlices: at most a hundred pods each, of one family of addresses and with the same ports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod, Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::{
    Endpoint, EndpointConditions, EndpointHints, EndpointPort, EndpointSlice, ForNode, ForZone,
};
use kube::api::ObjectMeta;
use windlass::cache::Index;
use windlass::events::Event;
use windlass_core::{ObjectKey, owner};

use super::{HEADLESS, MANAGED_BY, SERVICE_NAME, TRIGGER};
use crate::controllers::pods;
use crate::engine::{Controller, Turn, View, Wiring};

/// Keeps the EndpointSlices of Services.
pub(in crate::controllers) struct EndpointSlices;

/// How many pods a slice holds.
const FULL: usize = 100;
/// The index of slices by their Service.
const BY_SERVICE: &str = "service";
/// That a slice is one of ours.
const MANAGER: &str = "endpointslice-controller.k8s.io";
/// When a pod whose node is not there is looked at again.
const NODE_MISSING: Duration = Duration::from_secs(5);

impl Controller for EndpointSlices {
    fn name(&self) -> &'static str {
        "endpoint-slice-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        super::declare(wiring);
        wiring.reads::<Node>();
        wiring.index::<EndpointSlice>(Index::new(BY_SERVICE, |slice| {
            service_of(slice).map(|key| key.to_string()).into_iter().collect()
        }));
        wiring.maps::<EndpointSlice>(|slice, _| service_of(slice).into_iter().collect());
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let mut turn = Turn::default();
        let Some(service) = view.get::<Service>(key) else { return turn };
        if super::selector(&service).is_none() {
            return turn;
        }
        if let Some(refusal) = view.refused().first() {
            failed(&mut turn, &service, key, &refusal.message);
            return turn;
        }
        let mut there = view.by_index::<EndpointSlice>(BY_SERVICE, &key.to_string());
        there.retain(|slice| slice.metadata.deletion_timestamp.is_none());
        let spec = service.spec.clone().unwrap_or_default();
        let pods = super::pods_of(view, &service);
        let mut missing = Vec::new();
        let families = families(&spec);
        for family in &families {
            let of_family: Vec<_> =
                there.iter().filter(|slice| slice.address_type == *family).cloned().collect();
            let wanted = wanted(view, &service, &spec, &pods, family, &mut missing);
            let mut changes = Changes::new(&service, &spec, family);
            let endpoints = wanted.values().flat_map(|(_, endpoints)| endpoints.values());
            let names = endpoints.filter_map(|endpoint| pod_of(endpoint).map(str::to_owned)).collect();
            let trigger = trigger(&service, &of_family, &pods, &names);
            changes.settle(&of_family, wanted);
            changes.write(&mut turn, trigger);
        }
        for foreign in there.iter().filter(|slice| !families.contains(&slice.address_type)) {
            turn.delete(&**foreign);
        }
        if !missing.is_empty() {
            missing.dedup();
            let why = if let [one] = missing.as_slice() {
                one.clone()
            } else {
                format!("[{}]", missing.join(", "))
            };
            failed(&mut turn, &service, key, &why);
            turn.wake_at(now + NODE_MISSING);
        }
        turn
    }
}

fn failed(turn: &mut Turn, service: &Service, key: &ObjectKey, why: &str) {
    let note = format!("Error updating Endpoint Slices for Service {key}: {why}");
    turn.event(service, Event::warning("FailedToUpdateEndpointSlices", "Update", note));
}

/// The Service that a slice of ours is of.
fn service_of(slice: &EndpointSlice) -> Option<ObjectKey> {
    let labels = slice.metadata.labels.as_ref()?;
    let name = labels.get(SERVICE_NAME).filter(|_| labels.get(MANAGED_BY).is_some_and(|by| by == MANAGER))?;
    Some(ObjectKey::new(slice.metadata.namespace.as_deref(), name))
}

fn families(spec: &ServiceSpec) -> Vec<String> {
    match spec.ip_families.as_deref().unwrap_or_default() {
        [] => vec!["IPv4".into()],
        some => some.to_vec(),
    }
}

/// The ports of a slice, in an order of their own.
type Ports = Vec<EndpointPort>;
/// The pods that have the same ports, by what identifies them.
type Wanted = BTreeMap<String, (Ports, BTreeMap<Identity, Endpoint>)>;
/// What two states of one endpoint have in common.
type Identity = (Option<String>, Vec<String>, Option<String>);

fn identity(endpoint: &Endpoint) -> Identity {
    let name = endpoint.target_ref.as_ref().and_then(|pod| pod.name.clone());
    let mut addresses = endpoint.addresses.clone();
    addresses.sort();
    (name, addresses, endpoint.hostname.clone())
}

fn wanted(
    view: &View<'_>,
    service: &Service,
    spec: &ServiceSpec,
    pods: &[Arc<Pod>],
    family: &str,
    missing: &mut Vec<String>,
) -> Wanted {
    let mut wanted = Wanted::new();
    for pod in pods.iter().filter(|pod| super::is_there(pod)) {
        let ports = ports(spec, pod);
        let (_, endpoints) = wanted.entry(key_of(&ports)).or_insert_with(|| (ports, BTreeMap::new()));
        let node = view.get::<Node>(&ObjectKey::cluster(pods::node(pod)));
        if node.is_none() && spec.publish_not_ready_addresses != Some(true) {
            missing.push(format!(
                "skipping Pod {} for Service {}: Node {} Not Found",
                pod.metadata.name.as_deref().unwrap_or_default(),
                ObjectKey::of(&service.metadata),
                pods::node(pod)
            ));
            continue;
        }
        let endpoint = endpoint(service, spec, pod, node.as_deref(), family);
        if !endpoint.addresses.is_empty() {
            endpoints.insert(identity(&endpoint), endpoint);
        }
    }
    wanted
}

fn ports(spec: &ServiceSpec, pod: &Pod) -> Ports {
    let port = |port: &k8s_openapi::api::core::v1::ServicePort| {
        Some(EndpointPort {
            name: Some(port.name.clone().unwrap_or_default()),
            port: Some(super::port_on(pod, port)?),
            protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".into())),
            app_protocol: port.app_protocol.clone(),
        })
    };
    spec.ports.iter().flatten().filter_map(port).collect()
}

/// Ports are the same in whichever order they stand.
fn key_of(ports: &[EndpointPort]) -> String {
    let mut texts: Vec<String> = ports.iter().map(|port| format!("{port:?}")).collect();
    texts.sort();
    texts.join(",")
}

fn endpoint(service: &Service, spec: &ServiceSpec, pod: &Pod, node: Option<&Node>, family: &str) -> Endpoint {
    let serving = pods::is_ready(pod);
    let terminating = pod.metadata.deletion_timestamp.is_some();
    let ready = spec.publish_not_ready_addresses == Some(true) || (serving && !terminating);
    let label = |node: &Node| node.metadata.labels.as_ref()?.get("topology.kubernetes.io/zone").cloned();
    let zone = node.and_then(label).filter(|zone| !zone.is_empty());
    let node_name = Some(pods::node(pod).to_owned()).filter(|name| !name.is_empty());
    let of_family = super::addresses(pod).filter(|ip| ip.is_ipv6() == (family == "IPv6"));
    Endpoint {
        addresses: of_family.map(|ip| ip.to_string()).collect(),
        conditions: Some(EndpointConditions {
            ready: Some(ready),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        hints: hints(spec, ready, node_name.as_ref(), zone.as_ref()),
        hostname: super::hostname(pod, service),
        node_name,
        target_ref: Some(ObjectReference {
            kind: Some("Pod".into()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        }),
        zone,
        ..Endpoint::default()
    }
}

/// Who should use an endpoint rather than another one.
fn hints(
    spec: &ServiceSpec,
    ready: bool,
    node: Option<&String>,
    zone: Option<&String>,
) -> Option<EndpointHints> {
    let choice = spec.traffic_distribution.as_deref().filter(|_| ready)?;
    let by_node = match choice {
        "PreferClose" | "PreferSameZone" => false,
        "PreferSameNode" => true,
        _ => return None,
    };
    let for_zones = zone.map(|zone| vec![ForZone { name: zone.clone() }]);
    let for_nodes = node.filter(|_| by_node).map(|node| vec![ForNode { name: node.clone() }]);
    (for_zones.is_some() || for_nodes.is_some()).then_some(EndpointHints { for_zones, for_nodes })
}

/// When that happened what the slices follow now: the Service came, or one of the pods turned.
fn trigger(
    service: &Service,
    there: &[Arc<EndpointSlice>],
    pods: &[Arc<Pod>],
    wanted: &BTreeSet<String>,
) -> Option<Timestamp> {
    if there.is_empty() {
        return service.metadata.creation_timestamp.as_ref().map(|time| time.0);
    }
    let endpoints = there.iter().flat_map(|slice| held(slice));
    let known = endpoints.filter_map(|endpoint| {
        let serving = endpoint.conditions.as_ref().and_then(|conditions| conditions.serving);
        Some((pod_of(endpoint)?.to_owned(), serving.unwrap_or_default()))
    });
    super::turned(pods, &known.collect(), |name| wanted.contains(name))
}

fn pod_of(endpoint: &Endpoint) -> Option<&str> {
    endpoint.target_ref.as_ref()?.name.as_deref()
}

/// What becomes of the slices of one family.
struct Changes<'a> {
    service: &'a Service,
    spec: &'a ServiceSpec,
    family: &'a str,
    create: Vec<EndpointSlice>,
    update: Vec<EndpointSlice>,
    delete: Vec<Arc<EndpointSlice>>,
}

impl<'a> Changes<'a> {
    fn new(service: &'a Service, spec: &'a ServiceSpec, family: &'a str) -> Changes<'a> {
        Changes { service, spec, family, create: Vec::new(), update: Vec::new(), delete: Vec::new() }
    }

    fn settle(&mut self, there: &[Arc<EndpointSlice>], mut wanted: Wanted) {
        let uid = self.service.metadata.uid.as_deref().unwrap_or_default();
        let is_ours = |slice: &EndpointSlice| {
            let owners = slice.metadata.owner_references.iter().flatten();
            owners.into_iter().any(|owner| owner.uid == uid && owner.kind == "Service")
        };
        let mut by_ports: BTreeMap<String, Vec<Arc<EndpointSlice>>> = BTreeMap::new();
        for slice in there {
            if is_ours(slice) {
                let key = key_of(slice.ports.as_deref().unwrap_or_default());
                by_ports.entry(key).or_default().push(slice.clone());
            } else {
                self.delete.push(slice.clone());
            }
        }
        let keys: BTreeSet<String> = wanted.keys().chain(by_ports.keys()).cloned().collect();
        for key in keys {
            let slices = by_ports.remove(&key).unwrap_or_default();
            match wanted.remove(&key) {
                Some((ports, endpoints)) => self.settle_ports(&slices, &ports, endpoints),
                None => self.delete.extend(slices),
            }
        }
        if self.delete.len() == there.len() && self.create.is_empty() {
            self.keep_place(there);
        }
    }

    /// A Service without pods has one slice all the same, which says so.
    fn keep_place(&mut self, there: &[Arc<EndpointSlice>]) {
        let empty = self.slice(&[]);
        let is_empty = |slice: &EndpointSlice| {
            held(slice).is_empty()
                && slice.ports.as_deref().unwrap_or_default().is_empty()
                && slice.metadata.labels == empty.metadata.labels
                && slice.metadata.owner_references == empty.metadata.owner_references
        };
        match there {
            [slice] if is_empty(slice) => self.delete.clear(),
            _ => self.create.push(empty),
        }
    }

    /// The slices of the same ports: what is wanted stays where it is, the rest fills what changes anyway.
    fn settle_ports(
        &mut self,
        there: &[Arc<EndpointSlice>],
        ports: &[EndpointPort],
        mut wanted: BTreeMap<Identity, Endpoint>,
    ) {
        let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
        for slice in there {
            let kept = held(slice).iter().filter_map(|endpoint| wanted.remove(&identity(endpoint)));
            let kept: Vec<Endpoint> = kept.collect();
            let labels = self.labels();
            let same = kept == held(slice) && slice.metadata.labels.as_ref() == Some(&labels);
            if same {
                unchanged.push(slice.clone());
            } else if kept.is_empty() && !held(slice).is_empty() {
                self.delete.push(slice.clone());
            } else {
                let mut slice = EndpointSlice::clone(slice);
                slice.endpoints = Some(kept);
                slice.metadata.labels = Some(labels);
                changed.push(slice);
            }
        }
        let mut rest = wanted.into_values().collect::<Vec<_>>().into_iter();
        changed.sort_by_key(|slice| std::cmp::Reverse(held(slice).len()));
        for slice in &mut changed {
            fill(slice, &mut rest);
        }
        while rest.len() > 0 {
            let left = rest.len();
            let fits = |slice: &&Arc<EndpointSlice>| left < FULL && held(slice).len() + left <= FULL;
            let fullest = unchanged.iter().filter(fits).max_by_key(|slice| held(slice).len());
            if let Some(fullest) = fullest {
                let mut slice = EndpointSlice::clone(fullest);
                fill(&mut slice, &mut rest);
                changed.push(slice);
            } else {
                let mut slice = self.slice(ports);
                fill(&mut slice, &mut rest);
                self.create.push(slice);
            }
        }
        self.update.extend(changed);
    }

    fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.service.metadata.labels.clone().unwrap_or_default();
        labels.remove(HEADLESS);
        if super::is_headless(self.spec) {
            labels.insert(HEADLESS.into(), String::new());
        }
        labels.insert(SERVICE_NAME.into(), self.service.metadata.name.clone().unwrap_or_default());
        labels.insert(MANAGED_BY.into(), MANAGER.into());
        labels
    }

    fn slice(&self, ports: &[EndpointPort]) -> EndpointSlice {
        let name = self.service.metadata.name.as_deref().unwrap_or_default();
        EndpointSlice {
            metadata: ObjectMeta {
                generate_name: Some(format!("{name}-")),
                namespace: self.service.metadata.namespace.clone(),
                labels: Some(self.labels()),
                owner_references: owner::reference_to(self.service).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            address_type: self.family.to_owned(),
            endpoints: Some(Vec::new()),
            ports: Some(ports.to_vec()),
        }
    }

    /// What would be deleted is used again for what would be created.
    fn write(mut self, turn: &mut Turn, trigger: Option<Timestamp>) {
        let uid = self.service.metadata.uid.clone().unwrap_or_default();
        let mut delete = Vec::new();
        for slice in std::mem::take(&mut self.delete) {
            let ours = slice.metadata.owner_references.iter().flatten().any(|owner| owner.uid == uid);
            match self.create.pop_if(|_| ours) {
                Some(new) => {
                    let metadata = ObjectMeta { labels: new.metadata.labels, ..slice.metadata.clone() };
                    self.update.push(EndpointSlice { metadata, ..new });
                }
                None => delete.push(slice),
            }
        }
        // The garbage collector is at work on the slices of a Service that goes.
        if self.service.metadata.deletion_timestamp.is_none() {
            for slice in self.create {
                turn.create(&triggered(slice, trigger));
            }
        }
        for slice in self.update {
            turn.replace(&triggered(slice, trigger));
        }
        for slice in delete {
            turn.delete(&*slice);
        }
    }
}

fn fill(slice: &mut EndpointSlice, rest: &mut impl Iterator<Item = Endpoint>) {
    let free = FULL.saturating_sub(held(slice).len());
    slice.endpoints.get_or_insert_default().extend(rest.take(free));
}

/// The endpoints that a slice has.
fn held(slice: &EndpointSlice) -> &[Endpoint] {
    slice.endpoints.as_deref().unwrap_or_default()
}

fn triggered(mut slice: EndpointSlice, trigger: Option<Timestamp>) -> EndpointSlice {
    let mut annotations = slice.metadata.annotations.take().unwrap_or_default();
    annotations.remove(TRIGGER);
    annotations.extend(trigger.map(|time| (TRIGGER.to_owned(), time.to_string())));
    slice.metadata.annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
    slice
}
