//! What a container can be told of its pod and of itself.

use k8s_openapi::api::core::v1::{Container, ObjectFieldSelector, Pod, ResourceFieldSelector};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::quantity::{millis, whole};

/// What is known only here: addresses, and what the node has to give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The addresses of the pod.
    pub pod_ips: Vec<String>,
    /// The addresses of its node.
    pub host_ips: Vec<String>,
    /// What the node has to give: the limits of containers that have none.
    pub capacity: Capacity,
}

/// What a node has to give.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Thousandths of cores.
    pub cpu_millis: i128,
    /// Bytes of memory.
    pub memory: i128,
    /// Bytes of disk.
    pub storage: i128,
}

/// A field of a pod as text. Maps of labels and annotations are lines of `key="value"`.
pub fn field(selector: &ObjectFieldSelector, pod: &Pod, facts: &Facts) -> Result<String, String> {
    let path = selector.field_path.as_str();
    let meta = &pod.metadata;
    let spec = pod.spec.as_ref();
    let text = |value: Option<&String>| Ok(value.cloned().unwrap_or_default());
    if let Some((map, key)) = path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        let map = match map {
            "metadata.labels" => meta.labels.as_ref(),
            "metadata.annotations" => meta.annotations.as_ref(),
            _ => return Err(format!("field label does not support subscript: {path}")),
        };
        return text(map.and_then(|map| map.get(key)));
    }
    let lines = |map: Option<&std::collections::BTreeMap<String, String>>| {
        let lines = map.into_iter().flatten().map(|(key, value)| format!("{key}={}", quoted(value)));
        Ok(lines.collect::<Vec<_>>().join("\n"))
    };
    match path {
        "metadata.name" => text(meta.name.as_ref()),
        "metadata.namespace" => text(meta.namespace.as_ref()),
        "metadata.uid" => text(meta.uid.as_ref()),
        "metadata.labels" => lines(meta.labels.as_ref()),
        "metadata.annotations" => lines(meta.annotations.as_ref()),
        "spec.nodeName" => text(spec.and_then(|spec| spec.node_name.as_ref())),
        "spec.serviceAccountName" => text(spec.and_then(|spec| spec.service_account_name.as_ref())),
        "status.hostIP" => text(facts.host_ips.first()),
        "status.hostIPs" => Ok(facts.host_ips.join(",")),
        "status.podIP" => text(facts.pod_ips.first()),
        "status.podIPs" => Ok(facts.pod_ips.join(",")),
        _ => Err(format!("field label not supported: {path}")),
    }
}

/// A resource of a container as text, in units of the selector's divisor, rounded up.
pub fn resource(
    selector: &ResourceFieldSelector,
    container: &Container,
    facts: &Facts,
) -> Result<String, String> {
    let unsupported = || format!("unsupported container resource : {}", selector.resource);
    let (kind, name) = selector.resource.split_once('.').ok_or_else(unsupported)?;
    let resources = container.resources.as_ref();
    let amounts = match kind {
        "limits" => resources.and_then(|resources| resources.limits.as_ref()),
        "requests" => resources.and_then(|resources| resources.requests.as_ref()),
        _ => return Err(unsupported()),
    };
    let said = amounts.and_then(|amounts| amounts.get(name)).filter(|amount| millis(amount) != Some(0));
    let one = Quantity("1".to_owned());
    let divisor = selector.divisor.as_ref().filter(|divisor| millis(divisor) != Some(0)).unwrap_or(&one);
    let unlimited = if kind == "limits" { facts.capacity } else { Capacity::default() };
    let (amount, unit) = match name {
        "cpu" => (said.and_then(millis).unwrap_or(unlimited.cpu_millis), millis(divisor)),
        "memory" => (said.and_then(whole).unwrap_or(unlimited.memory), whole(divisor)),
        "ephemeral-storage" => (said.and_then(whole).unwrap_or(unlimited.storage), whole(divisor)),
        _ if name.starts_with("hugepages-") => (said.and_then(whole).unwrap_or(0), whole(divisor)),
        _ => return Err(unsupported()),
    };
    let unit = unit.filter(|unit| *unit > 0).ok_or_else(unsupported)?;
    Ok(((amount + unit - 1) / unit).to_string())
}

/// A text as Go quotes it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() && u32::from(c) < 0x80 => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn facts() -> Facts {
        Facts {
            pod_ips: vec!["10.244.0.2".to_owned()],
            host_ips: vec!["10.243.0.10".to_owned()],
            capacity: Capacity { cpu_millis: 4000, memory: 8 << 30, storage: 1 << 40 },
        }
    }

    #[test]
    fn fields_are_told() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "labels": {"app": "a \"b\"", "zone": "x"}},
            "spec": {"nodeName": "n", "serviceAccountName": "sa", "containers": []},
        }))
        .unwrap();
        let of = |path: &str| {
            let selector = ObjectFieldSelector { field_path: path.to_owned(), ..Default::default() };
            field(&selector, &pod, &facts())
        };
        for (path, expected) in [
            ("metadata.name", "web"),
            ("metadata.labels['app']", "a \"b\""),
            ("metadata.annotations['none']", ""),
            ("metadata.labels", "app=\"a \\\"b\\\"\"\nzone=\"x\""),
            ("spec.nodeName", "n"),
            ("status.podIP", "10.244.0.2"),
            ("status.hostIP", "10.243.0.10"),
        ] {
            assert_eq!(of(path).as_deref(), Ok(expected), "{path}");
        }
        assert!(of("spec.priority").is_err());
    }

    #[test]
    fn resources_are_told_and_the_node_is_the_limit() {
        let container: Container = serde_json::from_value(json!({
            "name": "web", "resources": {"requests": {"cpu": "250m"}, "limits": {"memory": "64Mi"}},
        }))
        .unwrap();
        let of = |resource_name: &str, divisor: &str| {
            let selector = ResourceFieldSelector {
                resource: resource_name.to_owned(),
                divisor: Some(Quantity(divisor.to_owned())),
                ..Default::default()
            };
            resource(&selector, &container, &facts())
        };
        assert_eq!(of("requests.cpu", "0").as_deref(), Ok("1"));
        assert_eq!(of("requests.cpu", "1m").as_deref(), Ok("250"));
        assert_eq!(of("limits.memory", "1Mi").as_deref(), Ok("64"));
        assert_eq!(of("limits.cpu", "1").as_deref(), Ok("4"));
        assert_eq!(of("requests.memory", "1").as_deref(), Ok("0"));
        assert!(of("limits.gpu", "1").is_err());
    }
}
