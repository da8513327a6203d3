//! What the server warns of in pod specs.

use serde_json::Value;

use crate::kinds::names;
use crate::kinds::tree::{at, get, int, list, text_at};

/// Volume types that are no longer served, with the release that deprecated them and the one that dropped them.
const GONE: [(&str, &str); 5] = [
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
];

/// The name of a pod is its hostname, too, for which the rules are narrower.
pub(crate) fn of_name(name: &str) -> Option<String> {
    let faults = names::dns_label(name);
    (!faults.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label \
             is recommended: [{}]",
            faults.join(" ")
        )
    })
}

/// Warnings for what makes pods of its own name from `spec.template`.
pub(crate) fn of_workload(new: &Value, old: Option<&Value>) -> Vec<String> {
    of_maker(new, old, &["spec", "template"])
}

/// Warnings for what makes pods of its own name from the template at `path`.
pub(crate) fn of_maker(new: &Value, old: Option<&Value>, path: &[&str]) -> Vec<String> {
    let faults = match old {
        None => names::dns_label(text_at(new, &["metadata", "name"])),
        Some(_) => Vec::new(),
    };
    let name = (!faults.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
             label is recommended: [{}]",
            faults.join(" ")
        )
    });
    name.into_iter().chain(of_template(new, old, path)).collect()
}

/// Warnings for the pod template at `path`; an update that changes nothing warns of nothing.
pub(crate) fn of_template(new: &Value, old: Option<&Value>, path: &[&str]) -> Vec<String> {
    let generation = |object: &Value| int(&object["metadata"], "generation");
    match at(new, path) {
        Some(template) if old.is_none_or(|old| generation(old) != generation(new)) => {
            of_spec(&template["spec"], &format!("{}.spec", path.join(".")))
        }
        _ => Vec::new(),
    }
}

/// Warnings for the pod spec at `path` (`spec`, `spec.template.spec`).
pub(crate) fn of_spec(spec: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        if get(constraint, "labelSelector").is_none_or(Value::is_null) {
            warnings.push(format!(
                "{path}.topologySpreadConstraints[{index}].labelSelector: a null labelSelector results in matching no pod"
            ));
        }
    }
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        for (source, why) in GONE {
            if get(volume, source).is_some() {
                warnings.push(format!("{path}.volumes[{index}].{source}: {why}"));
            }
        }
    }
    warnings.extend(of_ports(spec, path));
    warnings
}

/// Ports of a pod that several of its containers claim, or that one claims twice.
fn of_ports(spec: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut seen: Vec<(String, &Value)> = Vec::new();
    for kind in ["initContainers", "containers"] {
        for (index, container) in list(spec, kind).iter().enumerate() {
            for (i, port) in list(container, "ports").iter().enumerate() {
                let place = format!("{path}.{kind}[{index}].ports[{i}]");
                for (other_place, other) in &seen {
                    if let Some(word) = clash(port, other) {
                        warnings.push(format!("{place}: {word} port definition with {other_place}"));
                    }
                }
                seen.push((place, port));
            }
        }
    }
    warnings
}

/// How two definitions of ports get in each other's way, if they do.
fn clash(port: &Value, other: &Value) -> Option<&'static str> {
    let number = |port: &Value, key: &str| int(port, key).unwrap_or(0);
    let same = number(port, "containerPort") == number(other, "containerPort")
        && text_at(port, &["protocol"]) == text_at(other, &["protocol"]);
    if !same {
        return None;
    }
    let (host, other_host) = (number(port, "hostPort"), number(other, "hostPort"));
    let (ip, other_ip) = (text_at(port, &["hostIP"]), text_at(other, &["hostIP"]));
    match () {
        () if host == other_host && ip == other_ip => Some("duplicate"),
        () if host == 0 || other_host == 0 => Some("overlapping"),
        () if host == other_host && ip.is_empty() != other_ip.is_empty() => Some("dangerously ambiguous"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ports_that_stand_twice_and_selectors_that_match_nothing_are_warned_of() {
        let port = json!({"containerPort": 80, "protocol": "TCP"});
        let spec = json!({
            "topologySpreadConstraints": [{"maxSkew": 1}],
            "containers": [{"ports": [port]}, {"ports": [{"containerPort": 80, "protocol": "UDP"}, port]}],
        });
        assert_eq!(
            of_spec(&spec, "spec"),
            [
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
                "spec.containers[1].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
            ]
        );
    }
}
