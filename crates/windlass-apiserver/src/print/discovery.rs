//! Endpoints and their slices.

use serde_json::{Value, json};

use super::Printer;
use super::object::{Object, get, int, list, list_with_more, text, texts};

const MAX: usize = 3;

pub(super) fn printer(kind: &str) -> Option<Printer> {
    (kind == "EndpointSlice").then_some(endpoint_slice)
}

pub(super) fn endpoints(object: &Object<'_>) -> Vec<Value> {
    vec![json!(object.name()), json!(addresses(object.list(&["subsets"]))), json!(object.age())]
}

fn addresses(subsets: &[Value]) -> String {
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let (mut shown, mut count) = (Vec::new(), 0);
    for subset in subsets {
        let ips = list(subset, &["addresses"]).iter().map(|address| text(address, &["ip"]));
        let ports = list(subset, &["ports"]);
        count += ips.len() * ports.len().max(1);
        // Headless services may have no ports.
        if ports.is_empty() {
            shown.extend(ips.clone().map(str::to_owned));
        }
        for port in ports {
            shown.extend(ips.clone().map(|ip| host_port(ip, int(port, &["port"]))));
        }
    }
    shown.truncate(MAX);
    let text = shown.join(",");
    if count > MAX { format!("{text} + {} more...", count - MAX) } else { text }
}

fn host_port(ip: &str, port: i64) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

fn endpoint_slice(object: &Object<'_>) -> Vec<Value> {
    let port = |port: &Value| match (get(port, &["port"]), get(port, &["name"])) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.as_str().unwrap_or_default().to_owned(),
        (None, None) => "*".to_owned(),
    };
    let ports = object.list(&["ports"]).iter().map(port).collect::<Vec<_>>();
    let endpoints = object.list(&["endpoints"]).iter().flat_map(|endpoint| texts(endpoint, &["addresses"]));
    let endpoints = endpoints.map(str::to_owned).collect::<Vec<_>>();
    vec![
        json!(object.name()),
        json!(object.text(&["addressType"])),
        json!(list_with_more(&ports, MAX)),
        json!(list_with_more(&endpoints, MAX)),
        json!(object.age()),
    ]
}
