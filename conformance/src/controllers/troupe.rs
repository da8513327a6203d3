//! Our nodes on a stage: one for the pods that ask for none, and those that scenarios bring, which run as long as they are
//! labelled alive.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass::Env;
use windlass::client::{self, layered};
use windlass::metrics::Metrics;
use windlass_apiserver::api::Config;
use windlass_node::node::{self, Settings};
use windlass_node::serve::Access;
use windlass_node::site::Site;

use super::heart::ALIVE;
use super::mirror::Mirror;
use super::puppet::NODE;
use super::scenario::{Scenario, Step};

/// How long a change of labels may go unnoticed.
const LOOK: Duration = Duration::from_millis(200);

/// Nodes, and the site that they are on.
pub struct Troupe {
    site: Arc<Site>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Troupe {
    /// Starts what scenarios need, with its data in a folder. Where a scheduler plays, there are no nodes but theirs.
    ///
    /// # Errors
    /// When pods cannot run on this machine.
    pub async fn start(
        client: kube::Client,
        mirror: &Mirror,
        scenarios: &[Scenario],
        scheduler: bool,
        folder: &Path,
    ) -> Result<Troupe> {
        let env = Env::system();
        let client = layered(client, client::Settings::new(&env, &Metrics::new()));
        let always: Vec<String> = (!scheduler).then(|| NODE.to_owned()).into_iter().collect();
        let names = [always.clone(), nodes_of(scenarios)].concat();
        let site = Arc::new(Site::start(&names, client.clone(), folder, &env).await?);
        let mut nodes = Nodes { site: site.clone(), client, running: BTreeMap::new() };
        nodes.follow(&always).await;
        let (stop, mut stopped) = oneshot::channel();
        let mirror = mirror.clone();
        let task = tokio::spawn(async move {
            loop {
                nodes.follow(&[always.clone(), mirror.nodes_with(ALIVE)].concat()).await;
                tokio::select! {
                    biased;
                    _ = &mut stopped => break,
                    () = mirror.changed(LOOK) => {}
                }
            }
            nodes.follow(&[]).await;
        });
        Ok(Troupe { site, stop, task })
    }

    /// Ends all nodes, and what runs on them.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        if let Err(error) = self.task.await {
            println!("nodes died: {error}");
        }
        if let Some(site) = Arc::into_inner(self.site) {
            site.stop().await;
        }
    }
}

/// The names of the nodes that scenarios bring.
fn nodes_of(scenarios: &[Scenario]) -> Vec<String> {
    let mut names = Vec::new();
    for scenario in scenarios {
        let objects = scenario.steps.iter().flat_map(|step| match step {
            Step::Apply(objects) => objects.as_slice(),
            _ => &[],
        });
        let nodes = objects
            .filter(|object| object["kind"] == "Node" && object["metadata"]["labels"][ALIVE].is_string());
        let named = nodes.filter_map(|node| node["metadata"]["name"].as_str());
        names.extend(named.map(|name| name.replace("${ns}", &scenario.namespace())));
    }
    names.sort();
    names.dedup();
    names
}

struct Nodes {
    site: Arc<Site>,
    client: kube::Client,
    running: BTreeMap<String, node::Running>,
}

impl Nodes {
    /// Starts and stops nodes so that these run.
    async fn follow(&mut self, alive: &[String]) {
        let gone: Vec<String> = self.running.keys().filter(|name| !alive.contains(name)).cloned().collect();
        for name in gone {
            if let Some(node) = self.running.remove(&name) {
                node.stop().await;
            }
        }
        for name in alive {
            if !self.running.contains_key(name) {
                self.start(name).await;
            }
        }
    }

    async fn start(&mut self, name: &str) {
        let settings = Settings {
            name: name.to_owned(),
            client: self.client.clone(),
            access: Access { tokens: Vec::new(), client_authority: None },
            version: Config::default().version,
        };
        let started = match self.site.node(settings) {
            Ok(node) => node.start().await,
            Err(error) => Err(error),
        };
        match started {
            Ok(node) => drop(self.running.insert(name.to_owned(), node)),
            // The scenario waits for it in vain, and says so.
            Err(error) => println!("node {name} does not start: {:#}", anyhow::Error::from(error)),
        }
    }
}
