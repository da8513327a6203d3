//! What the server warns of in pods and pod templates.

mod containers;
mod volumes;

use serde_json::Value;

use crate::field::Path;
use crate::kinds::tree::{at, entries, get, int, list, text, text_at};
use crate::kinds::{names, warn};

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
    maker_name(new, old).into_iter().chain(of_template(new, old, path)).collect()
}

/// The pods of a maker are named after it.
pub(crate) fn maker_name(new: &Value, old: Option<&Value>) -> Option<String> {
    let faults = match old {
        None => names::dns_label(text_at(new, &["metadata", "name"])),
        Some(_) => Vec::new(),
    };
    (!faults.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
             label is recommended: [{}]",
            faults.join(" ")
        )
    })
}

/// Warnings for the pod template at `path`; an update that changes nothing warns of nothing.
pub(crate) fn of_template(new: &Value, old: Option<&Value>, path: &[&str]) -> Vec<String> {
    match at(new, path) {
        Some(template) if grown(new, old) => of_pod(template, &path.join(".")),
        _ => Vec::new(),
    }
}

/// Whether the object is new, or has a new generation.
pub(crate) fn grown(new: &Value, old: Option<&Value>) -> bool {
    let generation = |object: &Value| int(&object["metadata"], "generation");
    old.is_none_or(|old| generation(old) != generation(new))
}

/// Warnings for a pod (`at` is empty), or for the pod template at `at` (`spec.template`).
pub(crate) fn of_pod(pod: &Value, at: &str) -> Vec<String> {
    let root = match at {
        "" => Path::Root,
        at => Path::Child(&Path::Root, at),
    };
    let (spec, path) = (&pod["spec"], root.child("spec"));
    let mut out = Vec::new();
    placement(spec, &path, &mut out);
    annotations(pod, &root, &mut out);
    volumes::sources(spec, &path, &mut out);
    volumes::overlaps(spec, &mut out);
    listed_twice(spec, "hostAliases", "ip", &path, &mut out);
    listed_twice(spec, "imagePullSecrets", "name", &path, &mut out);
    let secrets = path.child("imagePullSecrets");
    for (index, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(secret, "name").is_empty() {
            out.push(format!("{}: invalid empty name \"\"", secrets.index(index).child("name")));
        }
    }
    for name in ["memory", "ephemeral-storage"] {
        warn::fractional(get(spec, "overhead"), name, &path.child("overhead"), &mut out);
    }
    containers::each(pod, &root, &mut out);
    containers::ports(spec, &path, &mut out);
    containers::port_names(spec, &path, &mut out);
    if int(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let path = path.child("terminationGracePeriodSeconds");
        out.push(format!("{path}: must be >= 0; negative values are invalid and will be treated as 1"));
    }
    pod_affinity(spec, &path, &mut out);
    addresses(spec, &path, &mut out);
    out
}

/// Labels of nodes that are no longer in use, and spreading over no pods.
fn placement(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    for (key, _) in entries(spec, "nodeSelector") {
        if let Some(message) = warn::node_label(key) {
            out.push(format!("{}: {message}", path.child("nodeSelector").key(key)));
        }
    }
    let affinity = path.child("affinity");
    let (nodes, affinity) = (&spec["affinity"]["nodeAffinity"], affinity.child("nodeAffinity"));
    let (required, preferred) = (REQUIRED, PREFERRED);
    let terms = affinity.child(required);
    let terms = terms.child("nodeSelectorTerms");
    for (index, term) in list(&nodes[required], "nodeSelectorTerms").iter().enumerate() {
        warn::node_selector_term(term, false, &terms.index(index), out);
    }
    let terms = affinity.child(preferred);
    for (index, term) in list(nodes, preferred).iter().enumerate() {
        warn::node_selector_term(&term["preference"], true, &terms.index(index).child("preference"), out);
    }
    let constraints = path.child("topologySpreadConstraints");
    for (index, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let path = constraints.index(index);
        let key = text(constraint, "topologyKey");
        if let Some(message) = warn::node_label(key) {
            out.push(format!("{}: {key} is {message}", path.child("topologyKey")));
        }
        selects_nothing(constraint, &path, out);
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn selects_nothing(term: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    if get(term, "labelSelector").is_none() {
        let path = path.child("labelSelector");
        out.push(format!("{path}: a null labelSelector results in matching no pod"));
    }
}

fn pod_affinity(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let affinity = path.child("affinity");
    for field in ["podAffinity", "podAntiAffinity"] {
        let (rules, path) = (&spec["affinity"][field], affinity.child(field));
        let terms = path.child(REQUIRED);
        for (index, term) in list(rules, REQUIRED).iter().enumerate() {
            selects_nothing(term, &terms.index(index), out);
        }
        let terms = path.child(PREFERRED);
        for (index, term) in list(rules, PREFERRED).iter().enumerate() {
            selects_nothing(&term["podAffinityTerm"], &terms.index(index).child("podAffinityTerm"), out);
        }
    }
}

/// Annotations that fields have replaced.
fn annotations(pod: &Value, root: &Path<'_>, out: &mut Vec<String>) {
    const GONE: [(&str, &str); 3] = [
        (
            "scheduler.alpha.kubernetes.io/critical-pod",
            "non-functional in v1.16+; use the \"priorityClassName\" field instead",
        ),
        (
            "security.alpha.kubernetes.io/sysctls",
            "non-functional in v1.11+; use the \"sysctls\" field instead",
        ),
        (
            "security.alpha.kubernetes.io/unsafe-sysctls",
            "non-functional in v1.11+; use the \"sysctls\" field instead",
        ),
    ];
    let metadata = root.child("metadata");
    let path = metadata.child("annotations");
    for (key, message) in GONE {
        if at(pod, &["metadata", "annotations", key]).is_some() {
            out.push(format!("{}: {message}", path.key(key)));
        }
    }
}

fn listed_twice(spec: &Value, field: &str, key: &str, path: &Path<'_>, out: &mut Vec<String>) {
    let items = list(spec, field);
    let path = path.child(field);
    for (index, item) in items.iter().enumerate() {
        let value = text(item, key);
        if items[..index].iter().any(|other| text(other, key) == value) {
            out.push(format!("{}: duplicate {key} {value:?}", path.index(index).child(key)));
        }
    }
}

/// Addresses that are written in unusual ways.
fn addresses(spec: &Value, path: &Path<'_>, out: &mut Vec<String>) {
    let config = path.child("dnsConfig");
    let servers = config.child("nameservers");
    for (index, server) in
        list(&spec["dnsConfig"], "nameservers").iter().filter_map(Value::as_str).enumerate()
    {
        warn::ip(server, &servers.index(index), out);
    }
    let aliases = path.child("hostAliases");
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        warn::ip(text(alias, "ip"), &aliases.index(index).child("ip"), out);
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
            of_pod(&json!({"spec": spec}), ""),
            [
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
                "spec.containers[1].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
            ]
        );
    }

    #[test]
    fn the_path_of_a_template_stands_before_all() {
        let template = json!({
            "metadata": {"annotations": {"security.alpha.kubernetes.io/sysctls": "x"}},
            "spec": {"terminationGracePeriodSeconds": -1},
        });
        let warnings = of_pod(&template, "spec.template");
        assert_eq!(warnings.len(), 2);
        assert!(
            warnings[0]
                .starts_with("spec.template.metadata.annotations[security.alpha.kubernetes.io/sysctls]: ")
        );
        assert!(warnings[1].starts_with("spec.template.spec.terminationGracePeriodSeconds: must be >= 0"));
    }
}
