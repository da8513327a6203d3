//! The API server as a process: what `windlass apiserver` and `windlass up` share.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use windlass_apiserver::api::Config;
use windlass_apiserver::front::credentials::{self, Credentials};
use windlass_apiserver::front::durable::{self, Durable};
use windlass_apiserver::front::https::Https;
use windlass_apiserver::front::{ApiServer, Options, kubeconfig, write_private};

/// Why the server ended, or did not start.
#[derive(Debug, Error)]
pub enum Failure {
    /// There is no runtime.
    #[error("cannot start")]
    Runtime(#[source] io::Error),
    /// There are no certificates.
    #[error("cannot make certificates")]
    Credentials(#[source] credentials::Error),
    /// The port is taken, or the address not ours.
    #[error("cannot listen at {address}{}", hint(.source))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The kubeconfig could not be written.
    #[error("cannot write the kubeconfig {}", .path.display())]
    Kubeconfig {
        /// Where it should be.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The data folder does not open.
    #[error("cannot use the data folder {}", .path.display())]
    Data {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: durable::Error,
    },
    /// The credentials in the data folder are of no use.
    #[error("cannot use the data folder {}", .path.display())]
    KeptCredentials {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: credentials::Error,
    },
    /// The data folder failed while the server was running.
    #[error("ended, since the data folder failed")]
    Lost(#[source] durable::Lost),
}

impl Failure {
    /// The exit code, as the help lists it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Runtime(_) | Failure::Credentials(_) | Failure::Lost(_) => 1,
            Failure::Listen { .. } => 3,
            Failure::Kubeconfig { .. } => 4,
            Failure::Data { .. } | Failure::KeptCredentials { .. } => 5,
        }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => " (--port 0 takes any port that is free)",
        _ => "",
    }
}

/// A server with its socket, before it serves.
pub struct Api {
    /// The server.
    pub server: ApiServer,
    /// Its front.
    pub https: Https,
    /// Its keys.
    pub credentials: Credentials,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Api {
    /// Binds the address, then opens the data folder where there is one, and starts the server.
    pub async fn open(
        address: SocketAddr,
        data: Option<&Path>,
        config: impl FnOnce(&Credentials) -> Config,
    ) -> Result<Api, Failure> {
        let listening = |source| Failure::Listen { address, source };
        let https = Https::bind(address).await.map_err(listening)?;
        let address = https.local_addr().map_err(listening)?;
        let (credentials, durable) = match data {
            None => (Credentials::generate(address.ip()).map_err(Failure::Credentials)?, None),
            Some(path) => {
                let opened = Durable::open(path, durable::Options::default());
                let (store, durable, report) =
                    opened.map_err(|source| Failure::Data { path: path.to_owned(), source })?;
                tracing::info!(%report, "data folder opened");
                let kept = Credentials::keep(&path.join("pki"), address.ip());
                let kept =
                    kept.map_err(|source| Failure::KeptCredentials { path: path.to_owned(), source })?;
                (kept, Some((store, durable)))
            }
        };
        let config = Config {
            address: address.to_string(),
            client_ca: credentials.authority.clone(),
            ..config(&credentials)
        };
        let server = ApiServer::start(Options { config, durable, ..Options::default() });
        Ok(Api { server, https, credentials, address })
    }

    /// Where clients on this machine reach it.
    pub fn url(&self) -> String {
        format!("https://{}", reachable(self.address))
    }

    /// Writes the administrator's kubeconfig, and says where it is.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<PathBuf, Failure> {
        let written = write_private(path, kubeconfig(&self.url(), &self.credentials).as_bytes());
        let written = written.and_then(|()| std::path::absolute(path));
        written.map_err(|source| Failure::Kubeconfig { path: path.to_owned(), source })
    }
}

/// Logs to standard error what passes the filter.
pub fn log(filter: &str) {
    use std::io::IsTerminal as _;
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}

/// Resolves at Ctrl-C or SIGTERM.
pub fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Who listens at all addresses is reached at the loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        ip if !ip.is_unspecified() => address,
        IpAddr::V4(_) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), address.port()),
        IpAddr::V6(_) => SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), address.port()),
    }
}

/// A path as a shell reads it.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// A filter of logs that makes sense.
pub fn filter(text: &str) -> Result<String, String> {
    text.parse::<EnvFilter>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}
