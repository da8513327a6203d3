//! What the server warns of in pod specs.

use serde_json::Value;

use crate::kinds::names;
use crate::kinds::tree::{get, list};

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

/// Warnings for the pod spec at `path` (`spec`, `spec.template.spec`).
pub(crate) fn of_spec(spec: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        for (source, why) in GONE {
            if get(volume, source).is_some() {
                warnings.push(format!("{path}.volumes[{index}].{source}: {why}"));
            }
        }
    }
    warnings
}
