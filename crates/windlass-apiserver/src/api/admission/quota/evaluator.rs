//! What objects count for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use windlass_core::select::LabelSelector;

use super::super::storage::claim_class;
use super::super::{Admission, Operation};
use crate::codec::Quantity;
use crate::codec::scalar::time::{self, Precision};
use crate::kinds::Context;
use crate::kinds::check::quantity;
use crate::kinds::pod::amounts::{Amounts, Side, Summed, add, amounts, speaks_as_a_whole, total};
use crate::kinds::pod::{is_extended, is_native, qos};
use crate::kinds::tree::{at, int, list, text, text_at};

/// What is in no store, and what was never counted.
const IGNORED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("events.k8s.io", "events"),
];

/// What was counted before everything could be, under a name of its own.
const ALIASES: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

/// What a pod uses that has a request and a limit.
const COMPUTE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

const BY_STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const BY_DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";

/// The most devices that one request can get.
const DEVICES_MAX: i64 = 32;

/// Knows what objects of a resource count for.
pub(super) enum Evaluator {
    Pods,
    Services,
    Claims,
    DeviceClaims,
    /// Their number, under these names.
    Number(Vec<String>),
}

impl Evaluator {
    /// That of a resource, if there is one.
    pub fn of(context: &Context<'_>) -> Option<Evaluator> {
        let (group, resource) = (context.group, context.resource);
        if IGNORED.contains(&(group, resource)) {
            return None;
        }
        Some(match (group, resource) {
            ("", "pods") => Evaluator::Pods,
            ("", "services") => Evaluator::Services,
            ("", "persistentvolumeclaims") => Evaluator::Claims,
            ("resource.k8s.io", "resourceclaims") => Evaluator::DeviceClaims,
            ("", alias) if ALIASES.contains(&alias) => {
                Evaluator::Number(vec![number_of("", alias), alias.to_owned()])
            }
            (group, resource) => Evaluator::Number(vec![number_of(group, resource)]),
        })
    }

    /// Whether a write can change anything of what is counted.
    pub fn handles(&self, object: &Value, admission: &Admission<'_>) -> bool {
        let (operation, subresource) = (admission.operation, admission.context.subresource);
        match (self, operation, subresource) {
            (_, Operation::Delete, _) => false,
            (_, Operation::Create, "") => true,
            (Evaluator::Pods, Operation::Update, "") => {
                admission.old.is_some_and(|old| ends_by_itself(old) != ends_by_itself(object))
            }
            (Evaluator::Pods, Operation::Update, "resize") => true,
            (Evaluator::Services | Evaluator::DeviceClaims, Operation::Update, "") => true,
            (Evaluator::Claims, Operation::Update, "" | "status") => true,
            _ => false,
        }
    }

    /// Whether a resource of a quota is counted here.
    pub fn counts(&self, name: &str) -> bool {
        match self {
            Evaluator::Pods => {
                let bare = name.strip_prefix("requests.").or(name.strip_prefix("limits.")).unwrap_or(name);
                matches!(name, "count/pods" | "pods")
                    || COMPUTE.contains(&bare)
                    || name.starts_with("hugepages-")
                    || name.starts_with("requests.hugepages-")
                    || name.starts_with("requests.") && !is_native(name)
                    || name.starts_with("requests.deviceclass.resource.kubernetes.io/")
            }
            Evaluator::Services => {
                ["count/services", "services", "services.nodeports", "services.loadbalancers"].contains(&name)
            }
            Evaluator::Claims => {
                let what = name.split_once(BY_STORAGE_CLASS).map_or(name, |(_, what)| what);
                name == "count/persistentvolumeclaims"
                    || matches!(what, "persistentvolumeclaims" | "requests.storage")
            }
            Evaluator::DeviceClaims => {
                name == "count/resourceclaims.resource.k8s.io" || name.ends_with(BY_DEVICE_CLASS)
            }
            Evaluator::Number(names) => names.iter().any(|known| known == name),
        }
    }

    /// Whether an object is one of those that a quota is about.
    pub fn is_in_scope(&self, quota: &Value, object: &Value) -> bool {
        let spec = &quota["spec"];
        let scopes = list(spec, "scopes").iter().filter_map(Value::as_str);
        let scopes = scopes.map(|scope| json!({"scopeName": scope, "operator": "Exists"}));
        let selected =
            at(spec, &["scopeSelector"]).map_or(&[][..], |selector| list(selector, "matchExpressions"));
        scopes.chain(selected.iter().cloned()).all(|scope| match self {
            Evaluator::Pods => pod_scope(&scope, object),
            Evaluator::Claims => claim_scope(&scope, object),
            _ => false,
        })
    }

    /// What an object does not say and has to, where a quota is about it.
    pub fn lacks(&self, restricted: &[&str], object: &Value) -> Option<String> {
        if !matches!(self, Evaluator::Pods) || speaks_as_a_whole(object) {
            return None;
        }
        let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let spec = &object["spec"];
        for container in list(spec, "containers").iter().chain(list(spec, "initContainers")) {
            let given = compute(
                &amounts(&container["resources"], "requests"),
                &amounts(&container["resources"], "limits"),
            );
            let needed = restricted.iter().filter(|name| {
                let bare = name.strip_prefix("requests.").or(name.strip_prefix("limits.")).unwrap_or(name);
                matches!(bare, "cpu" | "memory")
            });
            for name in needed.filter(|name| !given.contains_key(**name)) {
                missing.entry(name).or_default().insert(text(container, "name"));
            }
        }
        let told = missing.into_iter().map(|(name, containers)| {
            let containers: Vec<&str> = containers.into_iter().collect();
            format!("{name} for: {}", containers.join(","))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| format!("must specify {}", told.join("; ")))
    }

    /// What an object counts for.
    pub fn usage(&self, object: &Value, admission: &Admission<'_>) -> Amounts {
        match self {
            Evaluator::Pods => pod_usage(object, admission),
            Evaluator::Services => service_usage(object),
            Evaluator::Claims => claim_usage(object),
            Evaluator::DeviceClaims => device_usage(object),
            Evaluator::Number(names) => names.iter().map(|name| (name.clone(), one())).collect(),
        }
    }
}

fn one() -> Quantity {
    Quantity::from_i64(1)
}

fn number_of(group: &str, resource: &str) -> String {
    if group.is_empty() { format!("count/{resource}") } else { format!("count/{resource}.{group}") }
}

fn ends_by_itself(pod: &Value) -> bool {
    int(&pod["spec"], "activeDeadlineSeconds").is_some_and(|seconds| seconds >= 0)
}

fn pod_scope(scope: &Value, pod: &Value) -> bool {
    match text(scope, "scopeName") {
        "Terminating" => ends_by_itself(pod),
        "NotTerminating" => !ends_by_itself(pod),
        "BestEffort" => qos::class(pod) == "BestEffort",
        "NotBestEffort" => qos::class(pod) != "BestEffort",
        "PriorityClass" => selects(scope, &[text_at(pod, &["spec", "priorityClassName"])]),
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    }
}

fn claim_scope(scope: &Value, claim: &Value) -> bool {
    let names = [
        text_at(claim, &["spec", "volumeAttributesClassName"]),
        text_at(claim, &["status", "currentVolumeAttributesClassName"]),
        text_at(claim, &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"]),
    ];
    text(scope, "scopeName") == "VolumeAttributesClass" && selects(scope, &names)
}

/// Whether one of some names is among those that a scope is about.
fn selects(scope: &Value, names: &[&str]) -> bool {
    let key = text(scope, "scopeName");
    let requirement =
        json!({"key": key, "operator": text(scope, "operator"), "values": list(scope, "values")});
    let selector = json!({"matchExpressions": [requirement]});
    let Ok(selector) = LabelSelector::from_object(Some(&selector)) else { return false };
    let named: Vec<&&str> = names.iter().filter(|name| !name.is_empty()).collect();
    let matches = |name: &str| selector.matches(&Map::from_iter([(key.to_owned(), json!(name))]));
    match named.as_slice() {
        [] => selector.matches(&Map::new()),
        named => named.iter().any(|name| matches(name)),
    }
}

fn crosses_namespaces(pod: &Value) -> bool {
    let crosses =
        |term: &Value| !list(term, "namespaces").is_empty() || at(term, &["namespaceSelector"]).is_some();
    ["podAffinity", "podAntiAffinity"].iter().any(|field| {
        let Some(affinity) = at(pod, &["spec", "affinity", field]) else { return false };
        let preferred = list(affinity, "preferredDuringSchedulingIgnoredDuringExecution").iter();
        list(affinity, "requiredDuringSchedulingIgnoredDuringExecution").iter().any(crosses)
            || preferred.filter_map(|term| at(term, &["podAffinityTerm"])).any(crosses)
    })
}

/// A pod is counted as long as it is there, and what it uses as long as it can run.
fn pod_usage(pod: &Value, admission: &Admission<'_>) -> Amounts {
    let mut usage = Amounts::from([("count/pods".to_owned(), one())]);
    if has_ended(pod, admission) {
        return usage;
    }
    let of = |side| total(pod, side, Summed::Taken);
    add(&mut usage, &compute(&of(Side::Requests), &of(Side::Limits)));
    usage
}

/// A pod that has ended, or should have.
fn has_ended(pod: &Value, admission: &Admission<'_>) -> bool {
    if matches!(text_at(pod, &["status", "phase"]), "Failed" | "Succeeded") {
        return true;
    }
    let metadata = &pod["metadata"];
    let (Ok(at), Some(grace)) = (
        time::parse(text(metadata, "deletionTimestamp"), Precision::Seconds),
        int(metadata, "deletionGracePeriodSeconds"),
    ) else {
        return false;
    };
    admission.context.now.as_second() > at.as_second().saturating_add(grace)
}

/// Under which names requests and limits are counted.
fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), one())]);
    for name in COMPUTE {
        if let Some(amount) = requests.get(name) {
            usage.insert(name.to_owned(), amount.clone());
            usage.insert(format!("requests.{name}"), amount.clone());
        }
        if let Some(amount) = limits.get(name) {
            usage.insert(format!("limits.{name}"), amount.clone());
        }
    }
    for (name, amount) in requests {
        let is_huge = name.starts_with("hugepages-");
        if is_huge {
            usage.insert(name.clone(), amount.clone());
        }
        if is_huge || is_extended(name) || name.starts_with("deviceclass.resource.kubernetes.io/") {
            usage.insert(format!("requests.{name}"), amount.clone());
        }
    }
    usage
}

fn service_usage(service: &Value) -> Amounts {
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

fn claim_usage(claim: &Value) -> Amounts {
    const CLAIMS: &str = "persistentvolumeclaims";
    const STORAGE: &str = "requests.storage";
    let mut usage = Amounts::from([(CLAIMS.to_owned(), one()), (number_of("", CLAIMS), one())]);
    let class = claim_class(claim);
    if !class.is_empty() {
        usage.insert(format!("{class}{BY_STORAGE_CLASS}{CLAIMS}"), one());
    }
    let of = |path: &[&str]| at(claim, path).and_then(quantity);
    let asked = of(&["spec", "resources", "requests", "storage"]);
    let given = of(&["status", "allocatedResources", "storage"]);
    if let Some(asked) = asked {
        let most = given.filter(|given| *given > asked).unwrap_or(asked).whole();
        usage.insert(STORAGE.to_owned(), most.clone());
        if !class.is_empty() {
            usage.insert(format!("{class}{BY_STORAGE_CLASS}{STORAGE}"), most);
        }
    }
    usage
}

/// Devices by class; of alternatives the worst counts.
fn device_usage(claim: &Value) -> Amounts {
    let mut usage = Amounts::from([(number_of("resource.k8s.io", "resourceclaims"), one())]);
    let devices = |request: &Value| {
        let count = match text(request, "allocationMode") {
            "ExactCount" => int(request, "count").unwrap_or(0),
            "All" => DEVICES_MAX,
            _ => 0,
        };
        (format!("{}{BY_DEVICE_CLASS}", text(request, "deviceClassName")), Quantity::from_i64(count))
    };
    let Some(all) = at(claim, &["spec", "devices"]) else { return usage };
    for request in list(all, "requests") {
        let mut worst = Amounts::new();
        let alternatives = list(request, "firstAvailable").iter();
        for (name, count) in alternatives.chain(at(request, &["exactly"])).map(devices) {
            if worst.get(&name).is_none_or(|so_far| *so_far < count) {
                worst.insert(name, count);
            }
        }
        add(&mut usage, &worst);
    }
    usage
}
