//! One node of a cluster, as long as it has power, and its ways to the API server and from there.

use std::time::Duration;

use tokio::sync::Mutex;
use windlass::Env;
use windlass::client::{self, layered};
use windlass::metrics::Metrics;
use windlass_node::network::Network;
use windlass_node::node::{Node, Running, Settings};
use windlass_node::serve::Access;
use windlass_node::site::{Error, Site};

use super::dial::Ways;
use super::gate::Gate;
use super::power::Power;
use super::server::Api;

/// A node.
pub struct Member {
    node: Node,
    network: Network,
    /// Its way to the API server.
    gate: Gate,
    /// The API server's way to it.
    ways: Ways,
    running: Mutex<Option<Running>>,
}

impl Member {
    /// A node that does not run yet.
    pub fn new(name: &str, site: &Site, api: &Api, env: &Env) -> Result<Member, Error> {
        let gate = Gate::new();
        let node = site.node(Settings {
            name: name.to_owned(),
            client: layered(gate.client(&api.server), client::Settings::new(env, &Metrics::new())),
            access: Access { tokens: vec![api.node_token.clone()], client_authority: None },
            version: api.version(),
        })?;
        let (network, ways) = (site.network().clone(), api.ways.clone());
        Ok(Member { node, network, gate, ways, running: Mutex::default() })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        self.node.name()
    }

    /// Starts it, and waits until the API server knows it.
    pub async fn start(&self) -> Result<(), Error> {
        let mut running = self.running.lock().await;
        if running.is_none() {
            *running = Some(self.node.start().await?);
        }
        Ok(())
    }

    /// Cuts it off, takes its power, or gives it all back.
    pub async fn switch(&self, to: Power) -> Result<(), Error> {
        let connected = to == Power::On;
        {
            let mut running = self.running.lock().await;
            if let Some(running) = &*running {
                self.ways.set(running.port(), connected);
            }
            self.network.cut_off(self.name(), !connected).await.map_err(Error::Network)?;
            self.gate.set(connected);
            if to == Power::Off
                && let Some(running) = running.take()
            {
                running.stop().await;
            }
        }
        if to == Power::Off { Ok(()) } else { self.start().await }
    }

    /// The pods that run, by their names, each with how long its containers have to end.
    pub async fn pods(&self) -> Vec<(String, Duration)> {
        self.running.lock().await.iter().flat_map(Running::pods).collect()
    }

    /// Ends it, after its pods have had their grace.
    pub async fn shut_down(&self) {
        // What a node that is cut off has to say is said now.
        self.gate.set(true);
        if let Some(running) = self.running.lock().await.take() {
            running.shut_down().await;
        }
    }
}
