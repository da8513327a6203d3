//! `windlass apiserver`: the API server as a process.

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use thiserror::Error;
use windlass_apiserver::api::admission::{Plugins, UnknownPlugin};
use windlass_apiserver::api::{Authorization, Config};
use windlass_apiserver::front::credentials::{self, Credentials};
use windlass_apiserver::front::durable::{self, Durable};
use windlass_apiserver::front::https::Https;
use windlass_apiserver::front::{ApiServer, Options, Relaying, TrustError, kubeconfig, write_private};

use crate::common::{self, filter, hint, quoted, reachable, stop_signal};

/// Run a Kubernetes API server in the foreground, until Ctrl-C.
///
/// It serves the API of Kubernetes 1.36 over HTTPS and writes a kubeconfig for its administrator. No controller runs
/// beside it: a Deployment that you create stays as you wrote it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  ended by Ctrl-C or SIGTERM
  1  failed while it was running
  2  the arguments make no sense, or a file that they name
  3  cannot listen at the address
  4  cannot write the kubeconfig
  5  cannot use the data folder")]
pub struct Args {
    /// The port to listen at; 0 is any that is free
    #[arg(long, value_name = "N", default_value_t = 6443)]
    port: u16,

    /// The address to listen at
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind_address: IpAddr,

    /// Where to write the administrator's kubeconfig [default: `kubeconfig` in the data folder, or a temporary file]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Keep everything in this folder, and start with what is there; without it, what was created ends with the server
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// A certificate by which nodes know this server, when it asks them for logs and the like
    #[arg(long, value_name = "FILE", requires = "kubelet_client_key")]
    kubelet_client_certificate: Option<PathBuf>,

    /// The private key of that certificate
    #[arg(long, value_name = "FILE", requires = "kubelet_client_certificate")]
    kubelet_client_key: Option<PathBuf>,

    /// The authority of the nodes' own certificates; without it they are not looked at
    #[arg(long, value_name = "FILE")]
    kubelet_certificate_authority: Option<PathBuf>,

    /// Who may do what: what roles and their bindings allow (RBAC), or everybody who is known everything (AlwaysAllow)
    #[arg(long, value_name = "MODE", default_value = "RBAC")]
    authorization_mode: Authorization,

    /// Admission plugins to have besides: ServiceAccount, OwnerReferencesPermissionEnforcement
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = plugin)]
    enable_admission_plugins: Vec<String>,

    /// Admission plugins to do without, by the names that kube-apiserver has for them
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = plugin)]
    disable_admission_plugins: Vec<String>,

    /// What to log to stderr: error, warn, info, debug, trace, or a filter like `windlass_apiserver=debug`
    #[arg(long, value_name = "FILTER", default_value = "warn", value_parser = filter)]
    log: String,
}

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
    /// A file for connections to nodes could not be read.
    #[error("cannot read {}", .path.display())]
    Kubelet {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The files for connections to nodes are of no use.
    #[error("cannot connect to nodes so")]
    Relaying(#[source] TrustError),
    /// The data folder failed while the server was running.
    #[error("ended, since the data folder failed")]
    Lost(#[source] durable::Lost),
}

impl Failure {
    /// The exit code, as the help lists it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Runtime(_) | Failure::Credentials(_) | Failure::Lost(_) => 1,
            Failure::Kubelet { .. } | Failure::Relaying(_) => 2,
            Failure::Listen { .. } => 3,
            Failure::Kubeconfig { .. } => 4,
            Failure::Data { .. } | Failure::KeptCredentials { .. } => 5,
        }
    }
}

/// The name of an admission plugin.
fn plugin(name: &str) -> Result<String, UnknownPlugin> {
    Plugins::default().with([name]).map(|_| name.to_owned())
}

impl Args {
    fn plugins(&self) -> Plugins {
        let on = Config::default().plugins.with(self.enable_admission_plugins.iter().map(String::as_str));
        let on = on.and_then(|on| on.without(self.disable_admission_plugins.iter().map(String::as_str)));
        on.expect("the arguments were read")
    }
}

/// Runs the server.
pub fn main(args: Args) -> Result<(), Failure> {
    common::log(&args.log);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::Runtime)?;
    runtime.block_on(run(args))
}

async fn run(args: Args) -> Result<(), Failure> {
    // Before anything is announced: whoever reads the announcement may send the signal.
    let stop = stop_signal().map_err(Failure::Runtime)?;
    let address = SocketAddr::new(args.bind_address, args.port);
    let listening = |source| Failure::Listen { address, source };
    let https = Https::bind(address).await.map_err(listening)?;
    let address = https.local_addr().map_err(listening)?;

    let (credentials, durable) = match &args.data_dir {
        None => (Credentials::generate(address.ip()).map_err(Failure::Credentials)?, None),
        Some(path) => {
            let opened = Durable::open(path, durable::Options::default());
            let (store, durable, report) =
                opened.map_err(|source| Failure::Data { path: path.clone(), source })?;
            tracing::info!(%report, "data folder opened");
            let kept = Credentials::keep(&path.join("pki"), address.ip());
            let kept = kept.map_err(|source| Failure::KeptCredentials { path: path.clone(), source })?;
            (kept, Some((store, durable)))
        }
    };
    let config = Config {
        address: address.to_string(),
        client_ca: credentials.authority.clone(),
        tokens: Some(credentials.tokens()),
        authorization: args.authorization_mode,
        plugins: args.plugins(),
        audit_max: 0,
        ..Config::default()
    };
    let relaying = relaying(&args)?;
    let server = ApiServer::start(Options { config, durable, relaying, ..Options::default() });

    let url = format!("https://{}", reachable(address));
    let kubeconfig = Kubeconfig::write(&args, &url, &credentials, address.port())?;
    announce(&url, &kubeconfig.path);
    https.serve(server.clone(), credentials.serving(), stop).await;
    kubeconfig.remove_if_temporary();
    match server.failure() {
        Some(lost) => Err(Failure::Lost(lost.clone())),
        None => Ok(()),
    }
}

/// How nodes are reached.
fn relaying(args: &Args) -> Result<Relaying, Failure> {
    let read = |path: &Option<PathBuf>| match path {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            text.map(Some).map_err(|source| Failure::Kubelet { path: path.clone(), source })
        }
        None => Ok(None),
    };
    let (certificate, key) = (read(&args.kubelet_client_certificate)?, read(&args.kubelet_client_key)?);
    let authority = read(&args.kubelet_certificate_authority)?;
    let certificate = certificate.as_deref().zip(key.as_deref());
    Relaying::default().node_tls(certificate, authority.as_deref()).map_err(Failure::Relaying)
}

/// A kubeconfig that was written.
struct Kubeconfig {
    path: PathBuf,
    temporary: bool,
}

impl Kubeconfig {
    fn write(args: &Args, url: &str, credentials: &Credentials, port: u16) -> Result<Kubeconfig, Failure> {
        let chosen = args.kubeconfig.clone().or_else(|| Some(args.data_dir.as_ref()?.join("kubeconfig")));
        let temporary = chosen.is_none();
        let path = chosen.unwrap_or_else(|| std::env::temp_dir().join(format!("windlass-{port}.kubeconfig")));
        let written = write_private(&path, kubeconfig(url, credentials).as_bytes());
        let written = written.and_then(|()| std::path::absolute(&path));
        match written {
            Ok(path) => Ok(Kubeconfig { path, temporary }),
            Err(source) => Err(Failure::Kubeconfig { path, source }),
        }
    }

    /// It is of no use without its server.
    fn remove_if_temporary(&self) {
        if self.temporary {
            // Somebody else may have been quicker.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Says where the server is and how to reach it. Nobody may be reading any more, which is no reason to end.
fn announce(url: &str, kubeconfig: &Path) {
    let version = Config::default().version;
    let text = format!(
        "Kubernetes {version} API at {url}\n\n    export KUBECONFIG={}\n\nCtrl-C ends it.\n",
        quoted(kubeconfig)
    );
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
