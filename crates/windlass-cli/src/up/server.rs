//! The API server of a cluster, and the ways to it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass::Env;
use windlass::client::{self, layered};
use windlass::env::Task;
use windlass::metrics::Metrics;
use windlass_apiserver::api::Config;
use windlass_apiserver::api::admission::Plugins;
use windlass_apiserver::front::credentials::Credentials;
use windlass_apiserver::front::durable::{self, Durable};
use windlass_apiserver::front::https::Https;
use windlass_apiserver::front::{ApiServer, Options, Relaying, kubeconfig, write_private};
use windlass_node::network::addresses::{API_PORT, FABRIC};

use super::dial::Ways;
use super::failure::Failure;
use super::folder::Folder;

/// The API server at work.
pub struct Api {
    /// The server.
    pub server: ApiServer,
    /// Its certificates.
    pub credentials: Arc<Credentials>,
    /// Where it is reached on this machine.
    pub url: String,
    /// The administrator's kubeconfig.
    pub kubeconfig: PathBuf,
    /// The token by which nodes know it.
    pub node_token: String,
    /// How it reaches what is in the cluster.
    pub ways: Ways,
    fronts: Vec<Task<()>>,
    stopping: CancellationToken,
}

impl Api {
    /// Starts it on what the data folder has.
    pub async fn start(
        port: u16,
        kubeconfig: Option<&Path>,
        folder: &Folder,
        env: &Env,
    ) -> Result<Api, Failure> {
        let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        let listening = |source| Failure::Listen { address, source };
        let https = Https::bind(address).await.map_err(listening)?;
        let address = https.local_addr().map_err(listening)?;

        let (store, durable) = open(folder)?;
        let kept = Credentials::keep(&folder.join("pki"), address.ip());
        let path = folder.path().to_owned();
        let credentials = Arc::new(kept.map_err(|source| Failure::Credentials { path, source })?);
        let config = Config {
            // What Services and pods know it by; on this machine, clients have the kubeconfig.
            address: SocketAddr::new(FABRIC.into(), API_PORT).to_string(),
            client_ca: credentials.authority.clone(),
            tokens: Some(credentials.tokens()),
            plugins: Plugins::default(),
            audit_max: 0,
            ..Config::default()
        };
        let (ways, node_token) = (Ways::default(), format!("{:016x}{:016x}", env.random(), env.random()));
        let server = ApiServer::start(Options {
            config,
            durable: Some((store, durable)),
            relaying: Relaying::default().dialer(ways.clone()).node_token(&node_token),
            ..Options::default()
        });

        let url = format!("https://{address}");
        let kubeconfig = write_kubeconfig(kubeconfig, folder, &url, &credentials)?;
        let mut api = Api {
            server,
            credentials,
            url,
            kubeconfig,
            node_token,
            ways,
            fronts: Vec::new(),
            stopping: CancellationToken::new(),
        };
        api.front(https, env);
        Ok(api)
    }

    /// Serves at one more place.
    pub fn serve(&mut self, listener: TcpListener, env: &Env) {
        self.front(Https::over(listener), env);
    }

    fn front(&mut self, https: Https, env: &Env) {
        let (server, credentials) = (self.server.clone(), self.credentials.clone());
        let stopping = self.stopping.clone();
        let serving = async move { https.serve(server, credentials.serving(), stopping.cancelled()).await };
        self.fronts.push(env.spawn("https", serving));
    }

    /// A client in this process, as the administrator.
    pub fn client(&self, env: &Env) -> kube::Client {
        let inner = kube::Client::new(self.server.service(), "default");
        layered(inner, client::Settings::new(env, &Metrics::new()))
    }

    /// The version of Kubernetes.
    pub fn version(&self) -> String {
        Config::default().version
    }

    /// Ends it: watches end, requests under way have a moment.
    pub async fn stop(self) {
        self.stopping.cancel();
        for front in self.fronts {
            if let Err(error) = front.await {
                tracing::error!(%error, "a front of the API server died");
            }
        }
        self.server.close();
    }
}

fn open(folder: &Folder) -> Result<(windlass_apiserver::store::Store, Durable), Failure> {
    let path = folder.join("store");
    let failed = |source| Failure::Store { path: folder.path().to_owned(), source };
    let (store, durable, report) = Durable::open(&path, durable::Options::default()).map_err(failed)?;
    tracing::info!(%report, "data folder opened");
    Ok((store, durable))
}

fn write_kubeconfig(
    chosen: Option<&Path>,
    folder: &Folder,
    url: &str,
    credentials: &Credentials,
) -> Result<PathBuf, Failure> {
    let path = chosen.map_or_else(|| folder.join("kubeconfig"), PathBuf::from);
    let written = write_private(&path, kubeconfig(url, credentials).as_bytes());
    written.and_then(|()| std::path::absolute(&path)).map_err(|source| Failure::Kubeconfig { path, source })
}
