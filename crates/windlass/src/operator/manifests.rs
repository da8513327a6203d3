//! What installs an operator, as objects.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::Rules;

/// What the manifests are made of.
#[derive(Clone, Debug)]
pub struct Install {
    /// The operator's name, and that of everything it is installed with.
    pub name: String,
    /// Where it runs.
    pub namespace: String,
    /// Watch only the namespace that it runs in: a Role instead of a ClusterRole.
    pub namespaced: bool,
    /// The container image.
    pub image: String,
    /// How many replicas; one leads, the others stand by.
    pub replicas: u32,
    /// The kinds it brings.
    pub crds: Vec<CustomResourceDefinition>,
    /// What it may ask of the server.
    pub rules: Rules,
    /// The lease of the leader.
    pub lease: String,
}

/// The documents, in the order in which they have to be applied.
///
/// # Panics
/// Never: Kubernetes types are JSON.
pub fn documents(install: &Install) -> Vec<Value> {
    let crds = install.crds.iter().map(|crd| serde_json::to_value(crd).expect("a definition is JSON"));
    let mut documents: Vec<Value> = crds.collect();
    documents.push(service_account(install));
    documents.extend(role(install));
    documents.extend(election_role(install));
    documents.push(service(install));
    documents.push(deployment(install));
    documents
}

fn labels(install: &Install) -> Value {
    json!({"app.kubernetes.io/name": install.name, "app.kubernetes.io/managed-by": "windlass"})
}

fn metadata(install: &Install, name: &str) -> Value {
    json!({"name": name, "namespace": install.namespace, "labels": labels(install)})
}

fn service_account(install: &Install) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(install, &install.name)})
}

fn role(install: &Install) -> [Value; 2] {
    let rules = install.rules.policy_rules();
    let (role, binding, metadata) = if install.namespaced {
        ("Role", "RoleBinding", metadata(install, &install.name))
    } else {
        ("ClusterRole", "ClusterRoleBinding", json!({"name": install.name, "labels": labels(install)}))
    };
    [
        json!({"apiVersion": RBAC, "kind": role, "metadata": metadata, "rules": rules}),
        bind(install, binding, role, &install.name, metadata),
    ]
}

/// The lease is in the operator's own namespace, and only ever this one: its name is in the rule.
fn election_role(install: &Install) -> [Value; 2] {
    let name = format!("{}-leader-election", install.name);
    let metadata = metadata(install, &name);
    let rules = json!([
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [install.lease],
            "verbs": ["get", "update"],
        },
        {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
    ]);
    [
        json!({"apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": rules}),
        bind(install, "RoleBinding", "Role", &name, metadata),
    ]
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn bind(install: &Install, kind: &str, role: &str, role_name: &str, metadata: Value) -> Value {
    json!({
        "apiVersion": RBAC,
        "kind": kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": role_name},
        "subjects": [{"kind": "ServiceAccount", "name": install.name, "namespace": install.namespace}],
    })
}

fn service(install: &Install) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(install, &format!("{}-metrics", install.name)),
        "spec": {
            "selector": {"app.kubernetes.io/name": install.name},
            "ports": [{"name": "metrics", "port": 8080, "targetPort": "metrics", "protocol": "TCP"}],
        },
    })
}

/// Passes the *restricted* level of Pod Security; limits as kubebuilder's.
fn deployment(install: &Install) -> Value {
    let mut args = vec![
        "--leader-elect".to_owned(),
        format!("--leader-election-id={}", install.lease),
        "--health-probe-bind-address=:8081".to_owned(),
        "--metrics-bind-address=:8080".to_owned(),
        "--log-format=json".to_owned(),
    ];
    if install.namespaced {
        args.push("--watch-namespaces=$(POD_NAMESPACE)".to_owned());
    }
    let probe = |path: &str, initial: u32, period: u32| {
        let get = json!({"path": path, "port": "probes"});
        json!({"httpGet": get, "initialDelaySeconds": initial, "periodSeconds": period})
    };
    let field = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(install, &install.name),
        "spec": {
            "replicas": install.replicas,
            "selector": {"matchLabels": {"app.kubernetes.io/name": install.name}},
            "template": {
                "metadata": {
                    "labels": labels(install),
                    "annotations": {"kubectl.kubernetes.io/default-container": "operator"},
                },
                "spec": {
                    "serviceAccountName": install.name,
                    "terminationGracePeriodSeconds": 40,
                    "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [{
                        "name": "operator",
                        "image": install.image,
                        "args": args,
                        "env": [
                            {"name": "POD_NAME", "valueFrom": field("metadata.name")},
                            {"name": "POD_NAMESPACE", "valueFrom": field("metadata.namespace")},
                        ],
                        "ports": [
                            {"name": "metrics", "containerPort": 8080, "protocol": "TCP"},
                            {"name": "probes", "containerPort": 8081, "protocol": "TCP"},
                        ],
                        "livenessProbe": probe("/healthz", 15, 20),
                        "readinessProbe": probe("/readyz", 1, 5),
                        "resources": {
                            "requests": {"cpu": "10m", "memory": "64Mi"},
                            "limits": {"cpu": "500m", "memory": "128Mi"},
                        },
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "readOnlyRootFilesystem": true,
                            "runAsNonRoot": true,
                            "runAsUser": 65532,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    })
}
