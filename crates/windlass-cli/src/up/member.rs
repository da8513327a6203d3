//! One node of a cluster: its pods, its endpoint and its heartbeat, as long as it has power.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use windlass::Env;
use windlass::client::{self, layered};
use windlass::env::Task;
use windlass::events::Recorder;
use windlass::metrics::Metrics;
use windlass_node::network::addresses::NodeAddresses;
use windlass_node::network::{DOMAIN, Network};
use windlass_node::pod::downward::Capacity;
use windlass_node::pod::{self, Ground, Pods};
use windlass_node::register::{Machine, Registrar, Registration};
use windlass_node::serve::{Access, Certificate, Endpoint};
use windlass_sandbox::Sandbox;

use super::dial::Ways;
use super::failure::Failure;
use super::folder::Folder;
use super::gate::Gate;
use super::power::Power;
use super::server::Api;

/// A node.
pub struct Member {
    name: String,
    addresses: NodeAddresses,
    folder: PathBuf,
    network: Network,
    ground: Ground,
    /// Its way to the API server, and a client that goes there.
    gate: Gate,
    client: kube::Client,
    /// The API server's way to it.
    ways: Ways,
    token: String,
    version: String,
    env: Env,
    running: Mutex<Option<Running>>,
}

/// What of a node runs.
struct Running {
    pods: Pods,
    port: u16,
    /// Its endpoint and its heartbeat.
    tasks: Vec<Task<()>>,
}

impl Member {
    /// A node that does not run yet.
    pub fn new(
        name: &str,
        (sandbox, network, recorder): (&Sandbox, &Network, &Recorder),
        api: &Api,
        folder: &Folder,
        env: &Env,
    ) -> Result<Member, Failure> {
        let folder = folder.join("node").join(name);
        let made = std::fs::create_dir_all(folder.join("pods"));
        made.map_err(|error| Failure::Node { name: name.to_owned(), source: error.into() })?;
        let of_pods = network.pods(name, folder.join("addresses.json")).map_err(Failure::Network)?;
        let ground = Ground {
            runtime: Arc::new(sandbox.clone()),
            network: Arc::new(of_pods),
            images: super::nodes::images(),
            recorder: recorder.clone(),
        };
        let gate = Gate::new();
        let client = layered(gate.client(&api.server), client::Settings::new(env, &Metrics::new()));
        Ok(Member {
            name: name.to_owned(),
            addresses: network.node(name).map_err(Failure::Network)?,
            folder,
            network: network.clone(),
            ground,
            gate,
            client,
            ways: api.ways.clone(),
            token: api.node_token.clone(),
            version: api.version(),
            env: env.clone(),
            running: Mutex::default(),
        })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts it, and waits until the API server knows it.
    pub async fn start(&self) -> Result<(), Failure> {
        let mut running = self.running.lock().await;
        if running.is_none() {
            *running = Some(self.boot().await?);
        }
        Ok(())
    }

    async fn boot(&self) -> Result<Running, Failure> {
        let failed = |source: BoxError| Failure::Node { name: self.name.clone(), source };
        let machine = Machine::this(&self.folder);
        let options = pod::Options {
            node: self.name.clone(),
            host_ips: vec![self.addresses.own().to_string()],
            folder: self.folder.join("pods"),
            capacity: capacity(&machine),
            cluster_domain: DOMAIN.to_owned(),
        };
        let pods = Pods::start(self.client.clone(), &self.env, options, self.ground.clone());

        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(|error| failed(error.into()))?;
        let port = listener.local_addr().map_err(|error| failed(error.into()))?.port();
        let known_at = [IpAddr::from(Ipv4Addr::LOCALHOST), self.addresses.own().into()];
        let certificate =
            Certificate::self_signed(&self.name, &known_at).map_err(|error| failed(error.into()))?;
        let access = Access { tokens: vec![self.token.clone()], client_authority: None };
        let endpoint = Endpoint::new(self.env.clone(), pods.containers(), &certificate, &access);
        let endpoint = endpoint.map_err(|error| failed(error.into()))?;
        let serving = self.env.spawn("node endpoint", async move { endpoint.serve(listener).await });

        let (name, version) = (self.name.clone(), self.version.clone());
        let registration = Registration { name, addresses: self.addresses, port, machine, version };
        let registrar = Registrar::new(self.client.clone(), self.env.clone(), registration);
        registrar.register().await;
        let beating = self.env.spawn("heartbeat", async move { registrar.heartbeat().await });
        Ok(Running { pods, port, tasks: vec![serving, beating] })
    }

    /// Cuts it off, takes its power, or gives it all back.
    pub async fn switch(&self, to: Power) -> Result<(), Failure> {
        let connected = to == Power::On;
        {
            let mut running = self.running.lock().await;
            if let Some(running) = &*running {
                self.ways.set(running.port, connected);
            }
            self.network.cut_off(&self.name, !connected).await.map_err(Failure::Network)?;
            self.gate.set(connected);
            if to == Power::Off
                && let Some(running) = running.take()
            {
                drop(running.tasks);
                running.pods.stop().await;
            }
        }
        if to == Power::Off { Ok(()) } else { self.start().await }
    }

    /// The pods that run, by their names, each with how long its containers have to end.
    pub async fn pods(&self) -> Vec<(String, Duration)> {
        let name = |pod: &Pod| {
            let part = |part: &Option<String>| part.clone().unwrap_or_default();
            format!("{}/{}", part(&pod.metadata.namespace), part(&pod.metadata.name))
        };
        let running = self.running.lock().await;
        let all = running.iter().flat_map(|running| running.pods.running());
        all.map(|(pod, patience)| (name(&pod), patience)).collect()
    }

    /// Ends it, after its pods have had their grace. As with kubelet, nothing is said of it: its lease runs out.
    pub async fn shut_down(&self) {
        // What a node that is cut off has to say is said now.
        self.gate.set(true);
        if let Some(running) = self.running.lock().await.take() {
            running.pods.shut_down().await;
            drop(running.tasks);
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
