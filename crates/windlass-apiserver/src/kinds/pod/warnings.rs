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
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        for (source, why) in GONE {
            if get(volume, source).is_some() {
                warnings.push(format!("{path}.volumes[{index}].{source}: {why}"));
            }
        }
    }
    warnings
}
