//! One node: its pods, its endpoint and its heartbeat, put together.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio::net::TcpListener;
use windlass::Env;
use windlass::env::Task;

use crate::network::DOMAIN;
use crate::network::addresses::NodeAddresses;
use crate::pod::downward::Capacity;
use crate::pod::{self, Ground, Pods};
use crate::register::{Machine, Registrar, Registration};
use crate::serve::{Access, Certificate, Endpoint};
use crate::site::Error;

/// What a node is told.
#[derive(Clone)]
pub struct Settings {
    /// What it is called.
    pub name: String,
    /// The API server that it belongs to.
    pub client: kube::Client,
    /// Who may ask for logs and run programs in its pods: the API server.
    pub access: Access,
    /// The version of Kubernetes that it says it is.
    pub version: String,
}

/// A node that can be started, more than once: [`crate::site::Site::node`] makes it.
pub struct Node {
    settings: Settings,
    addresses: NodeAddresses,
    folder: PathBuf,
    ground: Ground,
    env: Env,
}

/// What of a node runs. Dropping it ends the tasks; containers end with the sandbox.
pub struct Running {
    pods: Pods,
    port: u16,
    /// Its endpoint and its heartbeat.
    tasks: Vec<Task<()>>,
}

impl Node {
    pub(crate) fn new(
        settings: Settings,
        addresses: NodeAddresses,
        folder: PathBuf,
        ground: Ground,
        env: Env,
    ) -> Node {
        Node { settings, addresses, folder, ground, env }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Starts it, and waits until the API server knows it.
    ///
    /// # Errors
    /// When its endpoint cannot be opened.
    pub async fn start(&self) -> Result<Running, Error> {
        let Settings { name, client, access, version } = &self.settings;
        let machine = Machine::this(&self.folder);
        let options = pod::Options {
            node: name.clone(),
            host_ips: vec![self.addresses.own().to_string()],
            folder: self.folder.join("pods"),
            capacity: capacity(&machine),
            cluster_domain: DOMAIN.to_owned(),
        };
        let pods = Pods::start(client.clone(), &self.env, options, self.ground.clone());
        let opened = self.open(&pods, access).await;
        let (endpoint, listener, port) =
            opened.map_err(|source| Error::Node { name: name.clone(), source })?;
        let serving = self.env.spawn("node endpoint", async move { endpoint.serve(listener).await });

        let (name, version) = (name.clone(), version.clone());
        let registration = Registration { name, addresses: self.addresses, port, machine, version };
        let registrar = Registrar::new(client.clone(), self.env.clone(), registration);
        registrar.register().await;
        let beating = self.env.spawn("heartbeat", async move { registrar.heartbeat().await });
        Ok(Running { pods, port, tasks: vec![serving, beating] })
    }

    /// Its endpoint, and where that listens.
    async fn open(&self, pods: &Pods, access: &Access) -> Result<(Endpoint, TcpListener, u16), BoxError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let known_at = [IpAddr::from(Ipv4Addr::LOCALHOST), self.addresses.own().into()];
        let certificate = Certificate::self_signed(self.name(), &known_at)?;
        let endpoint = Endpoint::new(self.env.clone(), pods.containers(), &certificate, access)?;
        Ok((endpoint, listener, port))
    }
}

impl Running {
    /// Where its endpoint listens, at 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The pods that run, by their names, each with how long its containers have to end.
    pub fn pods(&self) -> Vec<(String, Duration)> {
        let name = |pod: &Pod| {
            let part = |part: &Option<String>| part.clone().unwrap_or_default();
            format!("{}/{}", part(&pod.metadata.namespace), part(&pod.metadata.name))
        };
        self.pods.running().into_iter().map(|(pod, patience)| (name(&pod), patience)).collect()
    }

    /// Ends it, after its pods have had their grace. As with kubelet, nothing is said of it: its lease runs out.
    pub async fn shut_down(self) {
        self.pods.shut_down().await;
        drop(self.tasks);
    }

    /// Ends it as if it had lost its power.
    pub async fn stop(self) {
        drop(self.tasks);
        self.pods.stop().await;
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
