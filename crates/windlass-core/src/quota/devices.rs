//! Claims of devices: their number, and devices by class.
//!
//! A class may have a name under which pods ask for its devices as for any other resource. What is claimed counts under that
//! name, too, unless it is claimed for a pod that counts for it already.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{World, number_of, one, pods};
use crate::amounts::{Amounts, add, is_native};
use crate::quantity::Quantity;
use crate::tree::{at, flag, int, list, text, text_at};

/// Devices of a class, by their claims.
const BY_CLASS: &str = ".deviceclass.resource.k8s.io/devices";

/// Devices of a class that has no other name, as pods ask for them.
pub(super) const BY_IMPLICIT_NAME: &str = "requests.deviceclass.resource.kubernetes.io/";

/// Of a claim that the scheduler made for a pod that asks for devices by a name.
const FOR_A_POD: &str = "resource.kubernetes.io/extended-resource-claim";

/// The most devices that one request can get.
const DEVICES_MAX: i64 = 32;

/// The classes of devices there are, each with the name under which pods ask for them, if it has one.
#[derive(Clone, Debug, Default)]
pub struct Classes(BTreeMap<String, Option<String>>);

impl Classes {
    /// From the DeviceClasses.
    pub fn of<'a>(classes: impl IntoIterator<Item = &'a Value>) -> Classes {
        let one = |class: &Value| {
            let by_name = text_at(class, &["spec", "extendedResourceName"]);
            let by_name = Some(by_name.to_owned()).filter(|name| !name.is_empty());
            (text_at(class, &["metadata", "name"]).to_owned(), by_name)
        };
        Classes(classes.into_iter().map(one).collect())
    }
}

/// Whether a name of a quota may stand for devices, depending on the classes there are.
pub fn may_be_devices(name: &str) -> bool {
    name.starts_with("requests.") && (!is_native(name) || name.starts_with(BY_IMPLICIT_NAME))
}

pub(super) fn counts(name: &str, Classes(classes): &Classes) -> bool {
    let by_name = || {
        let asked = name.strip_prefix("requests.");
        let class = name.strip_prefix(BY_IMPLICIT_NAME);
        class.is_some_and(|class| classes.contains_key(class))
            || classes.values().any(|known| known.is_some() && known.as_deref() == asked)
    };
    name == "count/resourceclaims.resource.k8s.io"
        || name.ends_with(BY_CLASS)
        || may_be_devices(name) && by_name()
}

/// Devices by class; of alternatives the worst counts.
pub(super) fn usage(claim: &Value, classes: &Classes, world: &dyn World) -> Amounts {
    let mut devices = Amounts::new();
    for request in at(claim, &["spec", "devices"]).map_or(&[][..], |all| list(all, "requests")) {
        let mut worst = Amounts::new();
        let alternatives = list(request, "firstAvailable").iter();
        for (class, count) in alternatives.chain(at(request, &["exactly"])).map(asked) {
            if worst.get(class).is_none_or(|so_far| *so_far < count) {
                worst.insert(class.to_owned(), count);
            }
        }
        add(&mut devices, &worst);
    }
    let mut usage = Amounts::from([(number_of("resource.k8s.io", "resourceclaims"), one())]);
    let by_name = by_name(&devices, classes);
    usage.extend(devices.into_iter().map(|(class, count)| (format!("{class}{BY_CLASS}"), count)));
    if !by_name.is_empty() {
        let counted = usage_of_its_pod(claim, world);
        let more = by_name.into_iter().map(|(name, count)| {
            let count = counted.get(&name).map_or_else(|| count.clone(), |counted| &count - counted);
            (name, count)
        });
        usage.extend(more.filter(|(_, count)| count.signum() > 0));
    }
    usage
}

/// The class of a request, and how many devices it can get.
fn asked(request: &Value) -> (&str, Quantity) {
    let count = match text(request, "allocationMode") {
        "ExactCount" => int(request, "count").unwrap_or(0),
        "All" => DEVICES_MAX,
        _ => 0,
    };
    (text(request, "deviceClassName"), Quantity::from_i64(count))
}

/// The devices under the names by which pods ask for them.
fn by_name(devices: &Amounts, Classes(classes): &Classes) -> Amounts {
    let mut named = Amounts::new();
    for (class, count) in devices {
        named.insert(format!("{BY_IMPLICIT_NAME}{class}"), count.clone());
        if let Some(Some(name)) = classes.get(class) {
            named.insert(format!("requests.{name}"), count.clone());
        }
    }
    named
}

/// What the pod counts for that a claim was made for.
fn usage_of_its_pod(claim: &Value, world: &dyn World) -> Amounts {
    pod_of(claim, world).map(|pod| pods::usage(&pod, world.now())).unwrap_or_default()
}

fn pod_of(claim: &Value, world: &dyn World) -> Option<Value> {
    let owner = owner(claim)?;
    let namespace = text_at(claim, &["metadata", "namespace"]);
    let pod = world.pod(namespace, text(owner, "name"))?;
    let uid = text(owner, "uid");
    if text_at(&pod, &["metadata", "uid"]) != uid {
        return None;
    }
    let name = text_at(claim, &["metadata", "name"]);
    let is_its = match at(&pod, &["status", "extendedResourceClaimStatus"]) {
        Some(status) => text(status, "resourceClaimName") == name,
        // Until the pod says which one it has, that is the first.
        None => {
            let age = |claim: &Value| {
                let of = |field| text_at(claim, &["metadata", field]).to_owned();
                (of("creationTimestamp"), of("name"))
            };
            let own = age(claim);
            let others = world.device_claims(namespace);
            let mut others = others.iter().filter(|other| owner_uid(other) == Some(uid));
            others.all(|other| age(other) >= own)
        }
    };
    is_its.then_some(pod)
}

/// The pod that a claim was made for.
fn owner(claim: &Value) -> Option<&Value> {
    if text_at(claim, &["metadata", "annotations", FOR_A_POD]) != "true" {
        return None;
    }
    let owner = list(&claim["metadata"], "ownerReferences").iter().find(|owner| flag(owner, "controller"))?;
    (text(owner, "kind") == "Pod" && text(owner, "apiVersion") == "v1").then_some(owner)
}

fn owner_uid(claim: &Value) -> Option<&str> {
    owner(claim).map(|owner| text(owner, "uid"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use serde_json::json;

    struct Pods(Vec<Value>);

    impl World for Pods {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn pod(&self, _: &str, name: &str) -> Option<Value> {
            self.0.iter().find(|pod| pod["metadata"]["name"] == name).cloned()
        }

        fn device_claims(&self, _: &str) -> Vec<Value> {
            Vec::new()
        }
    }

    fn told(usage: &Amounts) -> Vec<String> {
        usage.iter().map(|(name, amount)| format!("{name}={amount}")).collect()
    }

    #[test]
    fn devices_count_by_class_and_by_the_name_of_the_class() {
        let classes = json!([
            {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}},
            {"metadata": {"name": "disk"}, "spec": {}},
        ]);
        let classes = Classes::of(classes.as_array().unwrap());
        for (name, is_counted) in [
            ("requests.example.com/gpu", true),
            ("requests.deviceclass.resource.kubernetes.io/disk", true),
            ("requests.deviceclass.resource.kubernetes.io/other", false),
            ("requests.example.com/other", false),
            ("other.deviceclass.resource.k8s.io/devices", true),
            ("requests.cpu", false),
        ] {
            assert_eq!(counts(name, &classes), is_counted, "{name}");
        }
        let mut claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [
            {"name": "one", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
            {"name": "two", "firstAvailable": [
                {"name": "a", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
                {"name": "b", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3},
            ]},
        ]}}});
        let free = [
            "count/resourceclaims.resource.k8s.io=1",
            "gpu.deviceclass.resource.k8s.io/devices=5",
            "requests.deviceclass.resource.kubernetes.io/gpu=5",
            "requests.example.com/gpu=5",
        ];
        let gpus = json!({"requests": {"example.com/gpu": "3"}});
        let pod = json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [{"name": "a", "resources": gpus}]}});
        let world = Pods(vec![pod]);
        assert_eq!(told(&usage(&claim, &classes, &world)), free);
        claim["metadata"]["annotations"] = json!({FOR_A_POD: "true"});
        claim["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true}]);
        let with_pod = told(&usage(&claim, &classes, &world));
        assert_eq!(with_pod[2], "requests.deviceclass.resource.kubernetes.io/gpu=5");
        assert_eq!(with_pod[3], "requests.example.com/gpu=2");
    }
}
