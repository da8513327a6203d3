//! The objects that are created, and the requests for them, as the bytes that go over the wire.

use std::fmt::Write as _;

use serde_json::json;

/// Where the objects go that watchers do not look at.
pub const NAMESPACE: &str = "bench";

/// A kind of object to create and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A small ConfigMap.
    ConfigMap,
    /// A pod with what a Deployment's pod has: about 2 kB when it is stored.
    Pod,
}

impl Kind {
    /// The path of all of them in a namespace.
    pub fn collection(self, namespace: &str) -> String {
        let plural = match self {
            Kind::ConfigMap => "configmaps",
            Kind::Pod => "pods",
        };
        format!("/api/v1/namespaces/{namespace}/{plural}")
    }

    /// The name of the n-th.
    pub fn name(self, prefix: &str, n: usize) -> String {
        format!("{prefix}-{n:07}")
    }

    /// The object as a client sends it.
    pub fn body(self, name: &str) -> String {
        match self {
            Kind::ConfigMap => json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": {"app": "bench"}},
                "data": {"mode": "primary", "endpoint": "10.0.0.17:5432"},
            })
            .to_string(),
            Kind::Pod => json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": {"app": "web", "tier": "front", "pod-template-hash": "6d4cf56db6"}},
                "spec": {
                    "nodeName": format!("node-{}", name.len()),
                    "containers": [{
                        "name": "web",
                        "image": "registry.example/web:1.27",
                        "ports": [{"name": "http", "containerPort": 8080}],
                        "env": [{"name": "MODE", "value": "production"}],
                        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                    }],
                    "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
                },
            })
            .to_string(),
        }
    }
}

/// Requests for one server: they differ between servers only in the host and the token.
#[derive(Clone, Debug)]
pub struct Requests {
    /// `host:port`.
    pub host: String,
    /// The bearer token.
    pub token: String,
}

impl Requests {
    /// A request without a body.
    pub fn get(&self, path: &str, accept: &str, out: &mut Vec<u8>) {
        self.head("GET", path, accept, out);
        out.extend_from_slice(b"\r\n");
    }

    /// Creates an object.
    pub fn post(&self, path: &str, body: &str, out: &mut Vec<u8>) {
        self.head("POST", path, "application/json", out);
        let mut rest = String::with_capacity(body.len() + 80);
        let _ =
            write!(rest, "content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        out.extend_from_slice(rest.as_bytes());
    }

    fn head(&self, method: &str, path: &str, accept: &str, out: &mut Vec<u8>) {
        out.clear();
        for part in [
            method,
            " ",
            path,
            " HTTP/1.1\r\nhost: ",
            &self.host,
            "\r\nauthorization: Bearer ",
            &self.token,
            "\r\nuser-agent: windlass-bench\r\naccept: ",
            accept,
            "\r\n",
        ] {
            out.extend_from_slice(part.as_bytes());
        }
    }
}
