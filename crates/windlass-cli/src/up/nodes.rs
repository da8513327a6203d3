//! The nodes of a cluster: the sandbox that all pods are in, the network, and each node's pods, endpoint and heartbeat.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api as Resources, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass::Env;
use windlass::cache::Cache;
use windlass::env::Task;
use windlass::events::Recorder;
use windlass::metrics::Metrics;
use windlass_node::folders::{self, Folders};
use windlass_node::image::Images;
use windlass_node::network::addresses::{DNS_SERVICE, FABRIC};
use windlass_node::network::{DOMAIN, Host, Network, dns, run_rules};
use windlass_node::pod::downward::Capacity;
use windlass_node::pod::{self, Ground, Pods};
use windlass_node::register::{Machine, Registrar, Registration};
use windlass_node::serve::{Access, Certificate, Endpoint};
use windlass_sandbox::{Options, Sandbox};

use super::apply::{self, Document};
use super::failure::Failure;
use super::folder::Folder;
use super::server::Api;

/// Nodes at work.
pub struct Nodes {
    sandbox: Sandbox,
    network: Network,
    recorder: Recorder,
    names: Vec<String>,
    pods: Vec<Pods>,
    /// What serves all of them: the network's rules, DNS, ports of this machine.
    ground: Vec<Task<()>>,
    /// Each node's endpoint and heartbeat.
    own: Vec<Task<()>>,
    events: Task<()>,
    told: CancellationToken,
}

/// The names of nodes.
fn names(count: u16) -> Vec<String> {
    (1..=count).map(|number| format!("{PREFIX}{number}")).collect()
}

const PREFIX: &str = "windlass-";

impl Nodes {
    /// Starts so many, and waits until the API server knows them.
    pub async fn start(count: u16, api: &mut Api, folder: &Folder, env: &Env) -> Result<Nodes, Failure> {
        let names = names(count);
        let sandbox = Sandbox::start(Options::new(folder.join("sandbox"))).await.map_err(Failure::Sandbox)?;
        let network = Network::start(sandbox.clone(), &names).await.map_err(Failure::Network)?;
        api.ways.open(network.clone());
        api.serve(network.listen_api().await.map_err(Failure::Network)?, env);
        let listening = network.listen_dns().await.map_err(Failure::Network)?;
        apply::apply(&api.server, &dns_service()).await?;
        let volumes = folder.join("volumes");
        let client = api.client(env);
        ensure_class(&client, &volumes).await;
        let told = CancellationToken::new();
        let (recorder, events) =
            Recorder::start(client.clone(), env, &Metrics::new(), "kubelet", "windlass", told.clone());
        let cache = Cache::new("windlass-node");
        let known = dns::Cached::declare(&cache);
        let folders = Folders::declare(&cache, volumes);
        let host = Host {
            network: network.clone(),
            known: known.clone(),
            client: client.clone(),
            recorder: recorder.clone(),
            env: env.clone(),
        };
        let ground = vec![
            cache.start(client.clone(), env, Arc::new(())),
            env.spawn("rules of Services", run_rules(network.clone(), known.clone(), env.clone())),
            env.spawn("dns", dns::serve(listening, known, env.clone())),
            env.spawn("ports of this machine", host.run()),
            env.spawn("folders of volumes", folders.run(client, env.clone())),
        ];
        let mut nodes = Nodes {
            sandbox,
            network,
            recorder,
            names,
            pods: Vec::new(),
            ground,
            own: Vec::new(),
            events,
            told,
        };
        for name in nodes.names.clone() {
            nodes.add(&name, api, folder, env).await?;
        }
        Ok(nodes)
    }

    async fn add(&mut self, name: &str, api: &Api, folder: &Folder, env: &Env) -> Result<(), Failure> {
        let failed = |source: BoxError| Failure::Node { name: name.to_owned(), source };
        let own = folder.join("node").join(name);
        std::fs::create_dir_all(own.join("pods")).map_err(|error| failed(error.into()))?;
        let addresses = self.network.node(name).map_err(Failure::Network)?;
        let machine = Machine::this(&own);
        let ground = Ground {
            runtime: Arc::new(self.sandbox.clone()),
            network: Arc::new(self.network.pods(name, own.join("addresses.json")).map_err(Failure::Network)?),
            images: images(),
            recorder: self.recorder.clone(),
        };
        let options = pod::Options {
            node: name.to_owned(),
            host_ips: vec![addresses.own().to_string()],
            folder: own.join("pods"),
            capacity: capacity(&machine),
            cluster_domain: DOMAIN.to_owned(),
        };
        let pods = Pods::start(api.client(env), env, options, ground);

        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(|error| failed(error.into()))?;
        let port = listener.local_addr().map_err(|error| failed(error.into()))?.port();
        let known_at = [IpAddr::from(Ipv4Addr::LOCALHOST), addresses.own().into()];
        let certificate = Certificate::self_signed(name, &known_at).map_err(|error| failed(error.into()))?;
        let access = Access { tokens: vec![api.node_token.clone()], client_authority: None };
        let endpoint = Endpoint::new(env.clone(), pods.containers(), &certificate, &access);
        let endpoint = endpoint.map_err(|error| failed(error.into()))?;
        self.pods.push(pods);
        self.own.push(env.spawn("node endpoint", async move { endpoint.serve(listener).await }));

        let registration =
            Registration { name: name.to_owned(), addresses, port, machine, version: api.version() };
        let registrar = Registrar::new(api.client(env), env.clone(), registration);
        registrar.register().await;
        untaint(&api.client(env), name).await;
        self.own.push(env.spawn("heartbeat", async move { registrar.heartbeat().await }));
        Ok(())
    }

    /// What they are called.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Resolves when all pods are lost.
    pub async fn ended(&self) -> Failure {
        self.sandbox.ended().await;
        Failure::PodsLost
    }

    /// The pods that run, by their names, each with how long its containers have to end.
    pub fn running(&self) -> Vec<(String, Duration)> {
        let name = |pod: &Pod| {
            let part = |part: &Option<String>| part.clone().unwrap_or_default();
            format!("{}/{}", part(&pod.metadata.namespace), part(&pod.metadata.name))
        };
        let all = self.pods.iter().flat_map(Pods::running);
        all.map(|(pod, patience)| (name(&pod), patience)).collect()
    }

    /// Ends them, after all pods have had their grace at the same time. As with kubelet, nothing is said of it: leases run
    /// out.
    pub async fn stop(self) {
        join_all(self.pods.into_iter().map(Pods::shut_down)).await;
        drop(self.own);
        self.sandbox.stop().await;
        drop(self.ground);
        self.told.cancel();
        if let Err(error) = self.events.await {
            tracing::error!(%error, "events died");
        }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

fn capacity(machine: &Machine) -> Capacity {
    Capacity {
        cpu_millis: machine.cores as i128 * 1000,
        memory: i128::from(machine.memory_kib) * 1024,
        storage: i128::from(machine.storage_kib) * 1024,
    }
}

/// A node that is new has the taint of one that is not ready. It is ready, so pods need not wait until a controller has seen
/// that.
async fn untaint(client: &kube::Client, name: &str) {
    let nodes: Resources<Node> = Resources::all(client.clone());
    let untainted = async {
        let node = nodes.get(name).await?;
        let mut taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        taints.retain(|taint| taint.key != "node.kubernetes.io/not-ready");
        // Of this version: a taint that somebody adds meanwhile stays.
        let patch = json!({"metadata": {"resourceVersion": node.metadata.resource_version}, "spec": {"taints": taints}});
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await
    };
    if let Err(error) = untainted.await {
        tracing::warn!(%error, name, "a node keeps the taint of one that is not ready");
    }
}

/// Takes away Node objects of an earlier run that had more of them: nobody will come back for their pods.
pub async fn forget_others(client: &kube::Client, count: u16) {
    let nodes: Resources<Node> = Resources::all(client.clone());
    let keep = names(count);
    let ours = |name: &str| name.strip_prefix(PREFIX).is_some_and(|number| number.parse::<u16>().is_ok());
    let there = match nodes.list(&ListParams::default()).await {
        Ok(there) => there,
        Err(error) => return tracing::warn!(%error, "nodes of earlier runs are unknown"),
    };
    for name in there.items.into_iter().filter_map(|node| node.metadata.name) {
        if ours(&name)
            && !keep.contains(&name)
            && let Err(error) = nodes.delete(&name, &DeleteParams::default()).await
        {
            tracing::warn!(%error, name, "a node of an earlier run was not removed");
        }
    }
}

/// The class of volumes that are folders of this machine: that of claims which name none. One that is there stays as it is.
async fn ensure_class(client: &kube::Client, volumes: &Path) {
    let class = json!({
        "metadata": {
            "name": "standard",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": folders::PROVISIONER,
        "parameters": {"path": volumes.join("{volume}")},
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    });
    let class: StorageClass = serde_json::from_value(class).expect("this is a StorageClass");
    let classes: Resources<StorageClass> = Resources::all(client.clone());
    match classes.create(&PostParams::default(), &class).await {
        Err(kube::Error::Api(refused)) if refused.is_already_exists() => {}
        Err(error) => tracing::warn!(%error, "there is no class of volumes"),
        Ok(_) => {}
    }
}

/// The Service by which pods find DNS, and who answers for it: this process.
fn dns_service() -> Vec<Document> {
    let metadata = json!({
        "name": "kube-dns", "namespace": "kube-system",
        "labels": {
            "k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS",
        },
    });
    let ports = json!([
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
    ]);
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"clusterIP": DNS_SERVICE.to_string(), "clusterIPs": [DNS_SERVICE.to_string()], "ports": ports},
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": "kube-dns", "namespace": "kube-system",
            "labels": {
                "kubernetes.io/service-name": "kube-dns",
                "endpointslice.kubernetes.io/managed-by": "windlass",
            },
        },
        "addressType": "IPv4", "ports": ports,
        "endpoints": [{"addresses": [FABRIC.to_string()], "conditions": {"ready": true}}],
    });
    [service, slice].map(|object| Document { source: "windlass up".to_owned(), number: 1, object }).into()
}

/// The images of this machine, where set-up puts them.
pub fn images() -> Images {
    Images::open(Images::default_folder().unwrap_or_default())
}
