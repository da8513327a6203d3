//! The ways in from this machine: node ports and load balancers, at 127.0.0.1.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::net::{TcpListener, UdpSocket};
use windlass::Env;
use windlass::env::Task;
use windlass::events::{Event, Recorder, reference};
use windlass_core::Kind;

use super::dns::Cached;
use super::doors::{BALANCER, Behind, Door, doors, is_balanced, is_balancer};
use super::fabric::Network;
use super::proxy::Wake;
use super::relay;
use super::services::{Protocol, ports};

/// How long a port that could not be opened is left alone: whoever has it may let it go.
const RETRY: Duration = Duration::from_secs(5);

/// What the host's side of Services works with.
pub struct Host {
    /// The cluster's network.
    pub network: Network,
    /// The Services.
    pub known: Cached,
    /// The API server, for where a load balancer is reached.
    pub client: kube::Client,
    /// What people are told.
    pub recorder: Recorder,
    /// Clock and tasks.
    pub env: Env,
}

impl Host {
    /// Keeps doors open as Services want them, until it is dropped.
    pub async fn run(self) {
        let wake = Wake::of(&self.known);
        let mut open: BTreeMap<Door, (Behind, Task<()>)> = BTreeMap::new();
        let mut told = BTreeSet::new();
        self.known.services.listed().await;
        loop {
            let services = self.known.services.list(None);
            let wanted = doors(services.iter().map(|one| &**one));
            open.retain(|door, (behind, task)| wanted.get(door) == Some(behind) && !task.is_finished());
            let mut closed = false;
            for (door, behind) in &wanted {
                if open.contains_key(door) {
                    continue;
                }
                match self.open(*door, behind).await {
                    Ok(task) => {
                        open.insert(*door, (behind.clone(), task));
                        told.remove(&(*door, behind.service.clone()));
                    }
                    Err(error) => {
                        closed = true;
                        if told.insert((*door, behind.service.clone())) {
                            self.tell(*door, behind, &error, &services);
                        }
                    }
                }
            }
            told.retain(|(door, _)| wanted.contains_key(door));
            for service in &services {
                self.say_where(service).await;
            }
            tokio::select! {
                biased;
                () = wake.changed() => {}
                () = self.env.sleep(RETRY), if closed => {}
            }
        }
    }

    async fn open(&self, door: Door, behind: &Behind) -> io::Result<Task<()>> {
        let at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), door.port);
        let (network, env, to) = (self.network.clone(), self.env.clone(), behind.to);
        Ok(match door.protocol {
            Protocol::Tcp => {
                let listener = TcpListener::bind(at).await?;
                self.env.spawn("relay", relay::streams(listener, network, to, env))
            }
            Protocol::Udp => {
                let socket = UdpSocket::bind(at).await?;
                self.env.spawn("relay", relay::datagrams(socket, network, to, env))
            }
        })
    }

    /// People hear once of a port that is not open, and what to use instead.
    fn tell(&self, door: Door, behind: &Behind, error: &io::Error, services: &[Arc<Service>]) {
        let (namespace, name) = &behind.service;
        tracing::warn!(port = door.port, %error, namespace, name, "a port of a Service cannot be opened");
        let named = |one: &&Arc<Service>| {
            one.metadata.name.as_ref() == Some(name) && one.metadata.namespace.as_ref() == Some(namespace)
        };
        let Some(service) = services.iter().find(named) else { return };
        let own = ports(service).find(|port| port.port == i32::from(behind.to.port()));
        let instead = match own.and_then(|port| port.node_port) {
            Some(port) if behind.balancer => format!("; it is reached at 127.0.0.1:{port}"),
            _ => String::new(),
        };
        let note = format!("127.0.0.1:{} cannot be opened: {error}{instead}", door.port);
        let regarding = reference(&Kind::of::<Service>(), &service.metadata);
        self.recorder.publish(&regarding, Event::warning("PortNotOpened", "Listen", note));
    }

    /// Writes where a load balancer is reached, and takes it back from what is none any more.
    async fn say_where(&self, service: &Service) {
        let status = match (is_balancer(service), is_balanced(service)) {
            (true, false) => json!({"ingress": [{"ip": BALANCER.to_string(), "ipMode": "Proxy"}]}),
            (false, true) => json!({"ingress": null}),
            _ => return,
        };
        let (Some(namespace), Some(name)) = (&service.metadata.namespace, &service.metadata.name) else {
            return;
        };
        let api: Api<Service> = Api::namespaced(self.client.clone(), namespace);
        let patch = json!({"status": {"loadBalancer": status}});
        let written = api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        if let Err(error) = written {
            // The next change of any Service tries again.
            tracing::warn!(%error, namespace, name, "the status of a load balancer was not written");
        }
    }
}
