//! From a kubeconfig, or from inside of a pod, to a client.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Request;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt as _};
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use thiserror::Error;
use tower::{BoxError, ServiceBuilder};

use super::{Settings, fence, layered, stack};

/// Why there is no client.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A kubeconfig that was named cannot be used.
    #[error("cannot use the kubeconfig {path:?} that --kubeconfig names")]
    Kubeconfig {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: KubeconfigError,
    },
    /// What `$KUBECONFIG` names cannot be used.
    #[error("cannot use the kubeconfig that $KUBECONFIG names")]
    KubeconfigOfEnvironment(#[source] KubeconfigError),
    /// There is nothing to connect to.
    #[error(
        "no cluster: name one by --kubeconfig or $KUBECONFIG; this is no pod ({in_cluster}), and ~/.kube/config cannot be used"
    )]
    NoCluster {
        /// Why this is no pod.
        in_cluster: InClusterError,
        /// Why the file cannot be used.
        source: KubeconfigError,
    },
    /// The configuration does not make a client: its certificates, or how to log in.
    #[error("the configuration of the cluster does not make a client")]
    Client(#[source] kube::Error),
}

/// How to reach the cluster: by the kubeconfig that is named, else by `$KUBECONFIG`, else as a pod of the cluster, else by
/// `~/.kube/config`. The same order as controller-runtime's.
///
/// # Errors
/// When the first of these that there is cannot be used, or when there is none.
pub async fn config(kubeconfig: Option<&Path>) -> Result<kube::Config, ConnectError> {
    let options = KubeConfigOptions::default();
    if let Some(path) = kubeconfig {
        let at = |source| ConnectError::Kubeconfig { path: path.to_owned(), source };
        let file = Kubeconfig::read_from(path).map_err(at)?;
        return kube::Config::from_custom_kubeconfig(file, &options).await.map_err(at);
    }
    if let Some(files) = Kubeconfig::from_env().map_err(ConnectError::KubeconfigOfEnvironment)? {
        let config = kube::Config::from_custom_kubeconfig(files, &options).await;
        return config.map_err(ConnectError::KubeconfigOfEnvironment);
    }
    match kube::Config::incluster() {
        Ok(config) => Ok(config),
        Err(in_cluster) => kube::Config::from_kubeconfig(&options)
            .await
            .map_err(|source| ConnectError::NoCluster { in_cluster, source }),
    }
}

/// A client of a cluster, over HTTP.
///
/// # Errors
/// When the configuration does not make one.
pub fn connect(config: &kube::Config, settings: Settings) -> Result<kube::Client, ConnectError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(config.connect_timeout);
    // A server that went away without a word is noticed on watches too, where nothing is sent.
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_nodelay(true);
    let tls = config.rustls_https_connector_with_connector(tcp).map_err(ConnectError::Client)?;
    let http: legacy::Client<_, fence::FencedBody> = legacy::Client::builder(TokioExecutor::new()).build(tls);
    let wire = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(ConnectError::Client)?)
        .layer(config.extra_headers_layer().map_err(ConnectError::Client)?)
        .map_err(BoxError::from)
        .service(tower::service_fn(move |request: Request<Body>| http.request(fence::fenced(request))));
    let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    Ok(stack(wire, config.default_namespace.clone(), host, settings))
}

const KEEPALIVE: Duration = Duration::from_secs(30);

/// Where an API server is: at the other end of a connection, or in this process.
#[derive(Clone)]
pub enum Server {
    /// Over HTTP.
    Remote(Box<kube::Config>),
    /// Behind a client: a test's server.
    Local(kube::Client),
}

impl Server {
    /// A client of it, with layers.
    ///
    /// # Errors
    /// When the configuration does not make one.
    pub fn client(&self, settings: Settings) -> Result<kube::Client, ConnectError> {
        match self {
            Server::Remote(config) => connect(config, settings),
            Server::Local(client) => Ok(layered(client.clone(), settings)),
        }
    }

    /// The namespace of what names none.
    pub fn default_namespace(&self) -> &str {
        match self {
            Server::Remote(config) => &config.default_namespace,
            Server::Local(client) => client.default_namespace(),
        }
    }
}

impl From<kube::Config> for Server {
    fn from(config: kube::Config) -> Server {
        Server::Remote(Box::new(config))
    }
}

impl From<kube::Client> for Server {
    fn from(client: kube::Client) -> Server {
        Server::Local(client)
    }
}
