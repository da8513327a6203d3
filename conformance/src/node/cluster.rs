//! A real kube-apiserver with our controllers and our node beside it.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use windlass::Env;
use windlass::client::{self, layered};
use windlass::env::Task;
use windlass::metrics::Metrics;
use windlass_apiserver::api::Config;
use windlass_apiserver::front::credentials;
use windlass_cluster::Controllers;
use windlass_node::network::addresses::FABRIC;
use windlass_node::node::{self, Settings};
use windlass_node::serve::Access;
use windlass_node::site::Site;

use crate::controllers::side;
use crate::servers::{self, Extra, Server};

/// The node.
const NODE: &str = "windlass-1";

/// All of it. What is dropped without being stopped leaves nothing running.
pub struct Cluster {
    node: node::Running,
    site: Site,
    controllers: windlass_cluster::Running,
    /// Pods' way to the server.
    relay: Task<()>,
    server: Server,
}

impl Cluster {
    /// Starts it with its data in a folder, which is emptied.
    ///
    /// # Errors
    /// When a program is missing or does not come up, or pods cannot run on this machine.
    pub async fn start(folder: &Path) -> Result<Cluster> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder)?;
        let authority = write_client(folder)?;
        let server = servers::reference_with(folder, &beside_nodes(folder)).await?;
        let env = Env::system();
        let client =
            layered(side::client(&server.kubeconfig).await?, client::Settings::new(&env, &Metrics::new()));

        let read = |name: &str| fs::read_to_string(folder.join(name)).with_context(|| name.to_owned());
        let issuer = credentials::issuer(&read("sa.key")?)?;
        let all = side::controllers(&Controllers::names(), issuer, &read("certificates/apiserver.crt")?)?;
        let controllers = all.start(client.clone(), &env);
        controllers.ready().await;

        let site = Site::start(&[NODE.to_owned()], client.clone(), &folder.join("site"), &env).await?;
        let port = server.https.address().rsplit(':').next().context("a port")?.parse()?;
        let listener = site.network().listen_api(port).await?;
        let relay = env.spawn("relay to the API server", relay(listener, port));
        let settings = Settings {
            name: NODE.to_owned(),
            client,
            access: Access { tokens: Vec::new(), client_authority: Some(authority) },
            version: Config::default().version,
        };
        let node = site.node(settings)?.start().await?;
        Ok(Cluster { node, site, controllers, relay, server })
    }

    /// A kubeconfig of its administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.server.kubeconfig
    }

    /// Ends it, the last first.
    pub async fn stop(self) {
        self.node.shut_down().await;
        drop(self.relay);
        self.site.stop().await;
        self.controllers.stop().await;
    }
}

/// What kube-apiserver is told where there are nodes: pods reach it within the cluster's network, and it reaches nodes on
/// this machine, where the first thing they are asked for is who asks.
fn beside_nodes(folder: &Path) -> Extra {
    let file = |flag: &str, name: &str| format!("--{flag}={}", folder.join(name).display());
    let arguments = vec![
        format!("--advertise-address={FABRIC}"),
        "--kubelet-preferred-address-types=Hostname".to_owned(),
        file("kubelet-client-certificate", CERTIFICATE),
        file("kubelet-client-key", KEY),
    ];
    Extra { beside_nodes: Some(arguments), ..Extra::default() }
}

const CERTIFICATE: &str = "kubelet-client.crt";
const KEY: &str = "kubelet-client.key";

/// Writes the certificate by which nodes know the server; returns that of its authority.
fn write_client(folder: &Path) -> Result<String> {
    let named = |name: &str| -> Result<CertificateParams> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        Ok(params)
    };
    let mut authority = named("conformance")?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let certificate = named("kube-apiserver-kubelet-client")?.signed_by(&key, &authority)?;
    fs::write(folder.join(CERTIFICATE), certificate.pem())?;
    fs::write(folder.join(KEY), key.serialize_pem())?;
    Ok(authority.pem())
}

/// Carries every connection to a port of this machine, until it is dropped.
async fn relay(listener: TcpListener, port: u16) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = running.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((mut near, _)) => {
                    running.spawn(async move {
                        let mut far = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
                        tokio::io::copy_bidirectional(&mut near, &mut far).await
                    });
                }
                // The network ends with its sandbox.
                Err(_) => return,
            },
        }
    }
}
