//! What the nodes of one machine share: the sandbox that all pods are in, the network, names, and folders for volumes.
//!
//! ```text
//! Site::start ─► sandbox, network, rules of Services, DNS, ports of this machine, folders of volumes
//!      └─ Site::node ─► Node ─ Node::start ─► Running: pods, endpoint, heartbeat
//! ```
//!
//! It knows the API server as a client does. Where pods reach that server, at [`Network::listen_api`], is for the caller to
//! answer.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio_util::sync::CancellationToken;
use windlass::Env;
use windlass::cache::Cache;
use windlass::env::Task;
use windlass::events::Recorder;
use windlass::metrics::Metrics;
use windlass_sandbox::{Options, Sandbox};

use crate::folders::{self, Folders};
use crate::image::Images;
use crate::network::{self, Host, Network, dns, run_rules};
use crate::node::{Node, Settings};
use crate::pod::Ground;

/// Why there are no nodes.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Pods cannot run here.
    #[error("the sandbox of pods cannot be made")]
    Sandbox(#[source] windlass_sandbox::Error),
    /// There is no network.
    #[error("nodes have no network")]
    Network(#[source] network::Error),
    /// A node did not start.
    #[error("node {name} cannot start")]
    Node {
        /// Which.
        name: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The ground of nodes. Dropping it ends everything on it at once.
pub struct Site {
    sandbox: Sandbox,
    network: Network,
    recorder: Recorder,
    folder: PathBuf,
    env: Env,
    tasks: Vec<Task<()>>,
    events: Task<()>,
    told: CancellationToken,
}

impl Site {
    /// Makes it for nodes of these names, with what is theirs in a folder, and tells the API server of its DNS and its
    /// class of volumes.
    ///
    /// # Errors
    /// When this machine has no sandbox or no network for it.
    pub async fn start(
        names: &[String],
        client: kube::Client,
        folder: &Path,
        env: &Env,
    ) -> Result<Site, Error> {
        let sandbox = Sandbox::start(Options::new(folder.join("sandbox"))).await.map_err(Error::Sandbox)?;
        let network = Network::start(sandbox.clone(), names).await.map_err(Error::Network)?;
        let listening = network.listen_dns().await.map_err(Error::Network)?;
        let volumes = folder.join("volumes");
        insist(env, "the Service of DNS", || dns::announce(&client)).await;
        insist(env, "the class of volumes", || folders::ensure_class(&client, &volumes)).await;

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
        let tasks = vec![
            cache.start(client.clone(), env, Arc::new(())),
            env.spawn("rules of Services", run_rules(network.clone(), known.clone(), env.clone())),
            env.spawn("dns", dns::serve(listening, known, env.clone())),
            env.spawn("ports of this machine", host.run()),
            env.spawn("folders of volumes", folders.run(client, env.clone())),
        ];
        let (folder, env) = (folder.to_owned(), env.clone());
        Ok(Site { sandbox, network, recorder, folder, env, tasks, events, told })
    }

    /// A node on it that does not run yet. Its name is one of those that the site was made for.
    ///
    /// # Errors
    /// When there is no such name, or no folder for it.
    pub fn node(&self, settings: Settings) -> Result<Node, Error> {
        let folder = self.folder.join("node").join(&settings.name);
        let made = std::fs::create_dir_all(folder.join("pods"));
        made.map_err(|error| Error::Node { name: settings.name.clone(), source: error.into() })?;
        let addresses = self.network.node(&settings.name).map_err(Error::Network)?;
        let pods =
            self.network.pods(&settings.name, folder.join("addresses.json")).map_err(Error::Network)?;
        let ground = Ground {
            runtime: Arc::new(self.sandbox.clone()),
            network: Arc::new(pods),
            images: Images::of_user(),
            recorder: self.recorder.clone(),
        };
        Ok(Node::new(settings, addresses, folder, ground, self.env.clone()))
    }

    /// The network that joins the nodes.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Resolves when the sandbox has ended, and all pods with it.
    pub async fn ended(&self) {
        self.sandbox.ended().await;
    }

    /// Ends it, and whatever still runs on it.
    pub async fn stop(self) {
        self.sandbox.stop().await;
        drop(self.tasks);
        self.told.cancel();
        if let Err(error) = self.events.await {
            tracing::error!(%error, "events died");
        }
    }
}

/// After an API server that could not be reached, or refused.
const RETRY: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(7);

/// Tries until the API server has taken it: one that has just started may refuse what it takes a moment later.
pub(crate) async fn insist<F>(env: &Env, what: &str, attempt: impl Fn() -> F)
where
    F: Future<Output = Result<(), kube::Error>>,
{
    let mut wait = RETRY;
    while let Err(error) = attempt().await {
        tracing::warn!(what, %error, "the API server did not take what a node has to tell it");
        env.sleep(env.jittered(wait, 0.2)).await;
        wait = (wait * 2).min(RETRY_MAX);
    }
}
