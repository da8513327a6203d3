//! Services, ingresses and the addresses behind them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Printer;
use super::object::{Object, int, text, texts};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "Ingress" => ingress,
        "IngressClass" => ingress_class,
        "IPAddress" => ip_address,
        "NetworkPolicy" => network_policy,
        "ServiceCIDR" => service_cidr,
        _ => return None,
    })
}

pub(super) fn service(object: &Object<'_>) -> Vec<Value> {
    let cluster_ip = texts(object.value, &["spec", "clusterIPs"]).first().copied().unwrap_or("<none>");
    let port = |port: &Value| {
        let (number, protocol) = (int(port, &["port"]), text(port, &["protocol"]));
        match int(port, &["nodePort"]) {
            1.. => format!("{number}:{}/{protocol}", int(port, &["nodePort"])),
            _ => format!("{number}/{protocol}"),
        }
    };
    let ports = object.list(&["spec", "ports"]).iter().map(port).collect::<Vec<_>>().join(",");
    vec![
        json!(object.name()),
        json!(object.text(&["spec", "type"])),
        json!(cluster_ip),
        json!(external_ip(object)),
        json!(if ports.is_empty() { "<none>".to_owned() } else { ports }),
        json!(object.age()),
        json!(object.labels(&["spec", "selector"])),
    ]
}

fn external_ip(object: &Object<'_>) -> String {
    let external = texts(object.value, &["spec", "externalIPs"]);
    match object.text(&["spec", "type"]) {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        "LoadBalancer" => {
            let balancer = load_balancer(object);
            let all = balancer.into_iter().chain(external).collect::<Vec<_>>();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => object.text(&["spec", "externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// The addresses or names at which a load balancer is reached, sorted.
fn load_balancer<'a>(object: &Object<'a>) -> BTreeSet<&'a str> {
    let points = object.list(&["status", "loadBalancer", "ingress"]).iter();
    let address = |point: &'a Value| match text(point, &["ip"]) {
        "" => text(point, &["hostname"]),
        ip => ip,
    };
    points.map(address).filter(|address| !address.is_empty()).collect()
}

fn ingress(object: &Object<'_>) -> Vec<Value> {
    let address = load_balancer(object).into_iter().collect::<Vec<_>>().join(",");
    let ports = if object.count(&["spec", "tls"]) > 0 { "80, 443" } else { "80" };
    vec![
        json!(object.name()),
        json!(object.text_or(&["spec", "ingressClassName"], "<none>")),
        json!(hosts(object.list(&["spec", "rules"]))),
        json!(address),
        json!(ports),
        json!(object.age()),
    ]
}

/// Three hosts at most. What is counted as more are rules, whether they name a host or not.
fn hosts(rules: &[Value]) -> String {
    const MAX: usize = 3;
    let (mut hosts, mut more) = (Vec::new(), false);
    for rule in rules {
        if hosts.len() == MAX {
            more = true;
            break;
        }
        let host = text(rule, &["host"]);
        if !host.is_empty() {
            hosts.push(host);
        }
    }
    match hosts.join(",") {
        none if none.is_empty() => "*".to_owned(),
        shown if more => format!("{shown} + {} more...", rules.len() - MAX),
        shown => shown,
    }
}

fn ingress_class(object: &Object<'_>) -> Vec<Value> {
    let default = object.annotation("ingressclass.kubernetes.io/is-default-class") == Some("true");
    let parameters = object.get(&["spec", "parameters"]).map(|parameters| {
        let group = parameters.get("apiGroup").and_then(Value::as_str).map(|group| format!(".{group}"));
        format!(
            "{}{}/{}",
            text(parameters, &["kind"]),
            group.unwrap_or_default(),
            text(parameters, &["name"])
        )
    });
    vec![
        json!(format!("{}{}", object.name(), if default { " (default)" } else { "" })),
        json!(object.text(&["spec", "controller"])),
        json!(parameters.unwrap_or_else(|| "<none>".to_owned())),
        json!(object.age()),
    ]
}

fn ip_address(object: &Object<'_>) -> Vec<Value> {
    let parent = object.get(&["spec", "parentRef"]).map(|parent| {
        let resource = match text(parent, &["group"]) {
            "" => text(parent, &["resource"]).to_owned(),
            group => format!("{}.{group}", text(parent, &["resource"])),
        };
        let namespace = match text(parent, &["namespace"]) {
            "" => String::new(),
            namespace => format!("/{namespace}"),
        };
        format!("{}{namespace}/{}", resource.to_lowercase(), text(parent, &["name"]))
    });
    vec![json!(object.name()), json!(parent.unwrap_or_else(|| "<none>".to_owned())), json!(object.age())]
}

fn network_policy(object: &Object<'_>) -> Vec<Value> {
    vec![json!(object.name()), json!(object.selector(&["spec", "podSelector"])), json!(object.age())]
}

fn service_cidr(object: &Object<'_>) -> Vec<Value> {
    vec![json!(object.name()), json!(texts(object.value, &["spec", "cidrs"]).join(",")), json!(object.age())]
}
