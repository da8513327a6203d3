//! The nodes of a cluster: the sandbox that all pods are in, the network, and each node's pods, endpoint and heartbeat.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api as Resources, DeleteParams, ListParams, PostParams};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass::Env;
use windlass::cache::{Cache, Declared};
use windlass::env::Task;
use windlass::events::Recorder;
use windlass::metrics::Metrics;
use windlass_node::folders::{self, Folders};
use windlass_node::image::Images;
use windlass_node::network::addresses::{DNS_SERVICE, FABRIC};
use windlass_node::network::{Host, Network, dns, run_rules};
use windlass_sandbox::{Options, Sandbox};

use super::apply::{self, Document};
use super::failure::Failure;
use super::folder::Folder;
use super::member::Member;
use super::power;
use super::server::Api;

/// Nodes at work.
pub struct Nodes {
    sandbox: Sandbox,
    names: Vec<String>,
    members: Vec<Arc<Member>>,
    /// What serves all of them: the network's rules, DNS, ports of this machine.
    ground: Vec<Task<()>>,
    /// What cuts them off and switches them off.
    power: Task<()>,
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
        let objects = cache.declare(Declared::<Node>::typed());
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
        let of = |name: &String| {
            Member::new(name, (&sandbox, &network, &recorder), api, folder, env).map(Arc::new)
        };
        let members: Vec<Arc<Member>> = names.iter().map(of).collect::<Result<_, _>>()?;
        for member in &members {
            member.start().await?;
        }
        let power = env.spawn("power of nodes", power::follow(objects, members.clone(), env.clone()));
        Ok(Nodes { sandbox, names, members, ground, power, events, told })
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
    pub async fn running(&self) -> Vec<(String, Duration)> {
        join_all(self.members.iter().map(|member| member.pods())).await.concat()
    }

    /// Ends them, after all pods have had their grace at the same time.
    pub async fn stop(self) {
        drop(self.power);
        join_all(self.members.iter().map(|member| member.shut_down())).await;
        self.sandbox.stop().await;
        drop(self.ground);
        self.told.cancel();
        if let Err(error) = self.events.await {
            tracing::error!(%error, "events died");
        }
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
