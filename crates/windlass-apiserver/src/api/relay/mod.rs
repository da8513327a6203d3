//! Requests that somebody else answers: a node about its containers, a pod or a service about itself.
//!
//! This finds out where such a request goes and how it is worded there. Going there is the front's. All but logs pass
//! admission first, as operation `CONNECT` on an object that holds what the client asks for (`options`).

mod node;
mod options;
mod proxy;

use http::{HeaderMap, Method};
use serde_json::Value;

use super::authorize::Attributes;
use super::object::load;
use super::route::{self, Target, Verb};
use super::server::{Call, Server};
use super::webhooks::{Operation, Write};
use crate::json::{at, str_at};
use crate::status::{Result, Status};

/// Where a request goes, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relay {
    /// Whom it is for.
    pub peer: Peer,
    /// The name or address to connect to.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// Path and query, as the other side knows them.
    pub path: String,
    /// What is done with the answer.
    pub answer: Relayed,
    /// What the client is warned of.
    pub warnings: Vec<String>,
}

/// Whom a request is relayed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A node's own endpoint, which has to be told who asks.
    Node,
    /// A program in the cluster, which is told nothing about the client.
    Program,
}

/// What is done with the answer to a relayed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relayed {
    /// It is a text. A refusal becomes one of ours, about this pod.
    Log {
        /// The pod's name.
        pod: String,
    },
    /// It changes the protocol of the connection, or is a refusal, which is passed on.
    Upgrade,
    /// It is passed on, whatever it is.
    Proxy,
}

/// What becomes of a request that is relayed.
pub(super) enum Going {
    /// It goes there.
    There(Relay),
    /// Nobody could say anything yet: the pod has no node.
    Nowhere,
    /// The client should ask at another path.
    Elsewhere(String),
}

/// kubelet's port, where a node does not say another.
const KUBELET_PORT: u16 = 10250;

/// The addresses of a node in the order in which they are tried.
const PREFERRED: [&str; 5] = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];

/// Whether somebody else answers requests to this target.
pub(super) fn is_relayed(target: &Target) -> bool {
    let subresource = target.subresource.as_str();
    match &*target.resource.plural {
        _ if !target.resource.group.is_empty() => false,
        "pods" => matches!(subresource, "log" | "exec" | "attach" | "portforward" | "proxy"),
        "services" | "nodes" => subresource == "proxy",
        _ => false,
    }
}

/// The verb that such a request counts as, if the method is one that the subresource knows.
pub(super) fn verb(target: &Target, method: &Method) -> Result<Verb> {
    match (target.subresource.as_str(), method) {
        ("log", &Method::GET) => Ok(Verb::Get),
        ("exec" | "attach" | "portforward", &Method::GET | &Method::POST) => Ok(Verb::Connect),
        ("log" | "exec" | "attach" | "portforward", _) => Err(route::method_not_allowed()),
        (
            _,
            &(Method::GET
            | Method::POST
            | Method::PUT
            | Method::PATCH
            | Method::DELETE
            | Method::HEAD
            | Method::OPTIONS),
        ) => Ok(Verb::Connect),
        _ => Err(route::method_not_allowed()),
    }
}

impl Server {
    /// Where a request goes, if it may.
    pub(super) fn relay(&self, call: &mut Call<'_>) -> Result<Going> {
        let (request, target) = (call.request, call.target);
        if target.subresource == "log" {
            return self.log(target, call.query);
        }
        if !call.query.all("dryRun").is_empty() {
            return Err(Status::bad_request("dryRun is not supported"));
        }
        let random = call.ids.next();
        let asked = options::of(call)?;
        let options = self.admitted(call, asked.clone())?;
        let relay = match (&*target.resource.plural, target.subresource.as_str()) {
            ("pods", what @ ("exec" | "attach" | "portforward")) => {
                self.demand_create(call)?;
                match what {
                    "portforward" => self.forward(target, &options)?,
                    _ => self.stream(target, &options, what)?,
                }
            }
            (resource, _) => {
                // As the client wrote it, unless somebody has changed it since.
                let path = match options == asked {
                    true => proxy::rest_of(request, target),
                    false => options::changed_path(request, &options),
                };
                match resource {
                    "pods" => self.pod_proxy(target, path)?,
                    "services" => self.service_proxy(target, path, random)?,
                    _ => self.node_proxy(target, path)?,
                }
            }
        };
        if relay.answer == Relayed::Upgrade && !asks_upgrade(&request.headers) {
            return Err(Status::bad_request("Upgrade request required"));
        }
        // Links of a page are relative to its folder: without the slash, they would lead out of it.
        let is_read = matches!(request.method, Method::GET | Method::HEAD);
        let no_slash = relay.path.is_empty() || relay.path.starts_with('?');
        if no_slash && is_read && relay.answer == Relayed::Proxy && !asks_upgrade(&request.headers) {
            return Ok(Going::Elsewhere(format!("{}/{}", request.uri.path(), relay.path)));
        }
        let slash = if relay.path.starts_with('/') { "" } else { "/" };
        Ok(Going::There(Relay { path: format!("{slash}{}", relay.path), ..relay }))
    }

    /// What the client asks for, as admission lets it pass.
    fn admitted(&self, call: &mut Call<'_>, mut asked: Value) -> Result<Value> {
        let (resource, shape) = (call.target.resource.clone(), options::shape(call.target));
        let write = Write::new(Operation::Connect, &resource, None, false).shaped(&shape);
        self.admit(call, write, &mut asked)?;
        self.validate(call, write.of(&asked))?;
        Ok(asked)
    }

    /// Whoever runs something in a pod has to be one who may `create` there, by whichever method he asks.
    fn demand_create(&self, call: &Call<'_>) -> Result<()> {
        let Target { resource, namespace, name, subresource, .. } = call.target;
        let attributes = Attributes::resource("create", &resource.group, &resource.plural);
        let attributes =
            attributes.below(subresource.as_str()).within(namespace.as_str()).named(name.as_str());
        let decision = self.decide(&call.request.user, &attributes);
        match call.request.method == Method::POST || decision.is_allowed() {
            true => Ok(()),
            false => Err(Status::forbidden(&resource.group, &resource.plural, name, &decision.reason())),
        }
    }

    /// A request to the endpoint of a node.
    fn node_relay(&self, target: &Target, node: &str, path: String, answer: Relayed) -> Result<Relay> {
        let tree = self.tree(target, "nodes", node)?;
        let addresses = list(&tree, &["status", "addresses"]);
        let preferred = PREFERRED.iter().find_map(|kind| addresses.iter().find(|one| one["type"] == *kind));
        let Some(host) = preferred.and_then(|one| one["address"].as_str()) else {
            let words = |one| format!("{{{} {}}}", str_at(one, &["type"]), str_at(one, &["address"]));
            let known: Vec<_> = addresses.iter().map(words).collect();
            let message = format!("no preferred addresses found; known addresses: [{}]", known.join(" "));
            return Err(Status::new(500, "", message));
        };
        let port = at(&tree, &["status", "daemonEndpoints", "kubeletEndpoint", "Port"]);
        let port =
            port.and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        let (host, port) = (host.to_owned(), port.unwrap_or(KUBELET_PORT));
        Ok(Relay { peer: Peer::Node, host, port, tls: true, path, answer, warnings: Vec::new() })
    }

    /// An object that the way leads over. Whatever is missing on it, kube-apiserver calls it by the resource that was
    /// asked for.
    fn tree(&self, target: &Target, plural: &str, name: &str) -> Result<Value> {
        let not_found = || Status::not_found("", &target.resource.plural, name);
        let resource = self.registry.find("", "v1", plural).ok_or_else(not_found)?;
        let namespace = if resource.namespaced { target.namespace.as_str() } else { "" };
        let object = self.store.get(&resource.storage, namespace, name).ok_or_else(not_found)?;
        Ok(load(&resource, object))
    }
}

fn list<'a>(tree: &'a Value, path: &[&str]) -> &'a [Value] {
    at(tree, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn asks_upgrade(headers: &HeaderMap) -> bool {
    let values = headers.get_all(http::header::CONNECTION).iter();
    let mut values = values.filter_map(|value| value.to_str().ok());
    values.any(|value| value.to_ascii_lowercase().contains("upgrade"))
}
