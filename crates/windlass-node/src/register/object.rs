//! The Node object and its status. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeStatus};
use serde_json::{Value, json};

use super::Machine;
use crate::network::addresses::{NodeAddresses, PODS_MAX};

/// What a node says of itself.
#[derive(Clone, Debug)]
pub struct Registration {
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub addresses: NodeAddresses,
    /// Where its HTTPS endpoint listens, at 127.0.0.1.
    pub port: u16,
    /// The machine that it is on.
    pub machine: Machine,
    /// The version of Kubernetes that it behaves like.
    pub version: String,
}

/// What is kept free before pods are evicted, as kubelet has it: 100 MiB of memory and a tenth of the storage.
const RESERVED_KIB: u64 = 100 * 1024;

/// The Node object of a node that is new.
pub fn node(registration: &Registration) -> Node {
    let Registration { name, addresses, machine, .. } = registration;
    let node = json!({
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": machine.architecture,
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": machine.architecture,
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
            },
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"podCIDR": addresses.pods(), "podCIDRs": [addresses.pods()]},
    });
    serde_json::from_value(node).expect("this is a Node")
}

/// The status of a node, as a patch of the one that is there; and whether it says anything new.
pub fn status(registration: &Registration, there: &NodeStatus, now: Timestamp) -> (Value, bool) {
    let Registration { addresses, port, machine, version, .. } = registration;
    let resources = |memory: u64, storage: u64| {
        json!({
            "cpu": machine.cores.to_string(),
            "ephemeral-storage": format!("{storage}Ki"),
            "memory": format!("{memory}Ki"),
            "pods": PODS_MAX.to_string(),
        })
    };
    let facts = json!({
        "addresses": [
            {"type": "InternalIP", "address": addresses.own().to_string()},
            {"type": "Hostname", "address": "localhost"},
        ],
        "allocatable": resources(
            machine.memory_kib.saturating_sub(RESERVED_KIB),
            machine.storage_kib - machine.storage_kib / 10
        ),
        "capacity": resources(machine.memory_kib, machine.storage_kib),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": {
            "architecture": machine.architecture,
            "bootID": machine.boot_id,
            "containerRuntimeVersion": concat!("windlass://", env!("CARGO_PKG_VERSION")),
            "kernelVersion": machine.kernel,
            "kubeProxyVersion": "",
            "kubeletVersion": version,
            "machineID": machine.machine_id,
            "operatingSystem": "linux",
            "osImage": machine.os,
            "systemUUID": machine.machine_id,
        },
    });
    let mut changed = !is_said(&facts, &serde_json::to_value(there).expect("a status is JSON"));
    let mut patch = facts;
    let conditions = CONDITIONS.map(|(kind, value, reason, message)| {
        let before = there.conditions.iter().flatten().find(|one| one.type_ == kind && one.status == value);
        changed |= before.is_none();
        let since = before.and_then(|one| one.last_transition_time.as_ref()).map_or(now, |time| time.0);
        json!({
            "type": kind, "status": value, "reason": reason, "message": message,
            "lastHeartbeatTime": second(now), "lastTransitionTime": second(since),
        })
    });
    patch["conditions"] = Value::from(conditions.to_vec());
    (patch, changed)
}

/// As kubelet words them, in its order.
const CONDITIONS: [(&str, &str, &str, &str); 4] = [
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
];

/// Whether a tree has everything that another says.
fn is_said(what: &Value, by: &Value) -> bool {
    match (what, by) {
        (Value::Object(what), Value::Object(by)) => {
            what.iter().all(|(name, value)| by.get(name).is_some_and(|by| is_said(value, by)))
        }
        _ => what == by,
    }
}

/// A time of metadata: whole seconds.
fn second(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time of leases: microseconds.
pub(super) fn micro(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registration() -> Registration {
        Registration {
            name: "windlass-2".into(),
            addresses: NodeAddresses::of(1).unwrap(),
            port: 10250,
            version: "v1.36.4".into(),
            machine: Machine {
                cores: 2,
                memory_kib: 8_000_000,
                storage_kib: 100_000,
                os: "Debian GNU/Linux 12 (bookworm)".into(),
                kernel: "6.1.0".into(),
                machine_id: "m".into(),
                boot_id: "b".into(),
                architecture: "amd64",
            },
        }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_new_node() {
        let (status, changed) =
            status(&registration(), &NodeStatus::default(), at("2026-01-01T00:00:00.123456789Z"));
        assert!(changed);
        insta::assert_json_snapshot!([serde_json::to_value(node(&registration())).unwrap(), status]);
    }

    #[test]
    fn a_condition_keeps_the_time_since_when_it_is_so() {
        let (first, second) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:05:00Z"));
        let (said, _) = status(&registration(), &NodeStatus::default(), first);
        let mut there: NodeStatus = serde_json::from_value(said).unwrap();
        let (again, changed) = status(&registration(), &there, second);
        assert!(!changed, "{again}");
        assert_eq!(again["conditions"][3]["lastTransitionTime"], "2026-01-01T00:00:00Z");
        assert_eq!(again["conditions"][3]["lastHeartbeatTime"], "2026-01-01T00:05:00Z");

        there.conditions.as_mut().unwrap()[3].status = "Unknown".into();
        let (healed, changed) = status(&registration(), &there, second);
        assert!(changed);
        assert_eq!(healed["conditions"][3]["lastTransitionTime"], "2026-01-01T00:05:00Z");
        assert_eq!(micro(first), "2026-01-01T00:00:00.000000Z");

        let moved = Registration { port: 10251, ..registration() };
        assert!(status(&moved, &there, second).1, "a new port is news");
    }
}
