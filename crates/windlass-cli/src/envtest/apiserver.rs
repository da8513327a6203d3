//! The `kube-apiserver` that envtest starts: its flags, its files, its certificates.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use thiserror::Error;
use windlass::Env;
use windlass_apiserver::api::admission::{Plugins, UnknownPlugin};
use windlass_apiserver::api::{Authorization, Config, Issuer};
use windlass_apiserver::front::credentials::{self, Credentials, Serving};
use windlass_apiserver::front::https::Https;
use windlass_apiserver::front::{ApiServer, Options};
use windlass_cluster::{Controllers, Unknown};

use super::flags::Flags;
use crate::common::{self, stop_signal};

/// Names the built-in controllers to run, with commas; `all` for every one. None runs by default, as in envtest.
const CONTROLLERS: &str = "WINDLASS_CONTROLLERS";

const HELP: &str = "\
Stands in for kube-apiserver where controller-runtime's envtest starts one. Nothing but this program is needed: it keeps
its objects in memory. All flags of kube-apiserver are accepted; these mean something:

Usage:
  kube-apiserver [flags]

Flags:
      --authorization-mode strings               RBAC or AlwaysAllow (default AlwaysAllow)
      --bind-address ip                          Where to listen (default 0.0.0.0)
      --cert-dir string                          Where apiserver.crt and apiserver.key are (default \"/var/run/kubernetes\")
      --client-ca-file string                    The authority of client certificates
      --disable-admission-plugins strings        Admission plugins to do without, such as ServiceAccount
      --enable-admission-plugins strings         Admission plugins to have besides, such as OwnerReferencesPermissionEnforcement
      --secure-port int                          Where to listen (default 6443)
      --service-account-issuer strings           Who issues tokens
      --service-account-signing-key-file string  The key that signs tokens: P-256, PKCS #8
      --tls-cert-file string                     In place of apiserver.crt
      --tls-private-key-file string              In place of apiserver.key
      --version                                  Print the version and end

Environment:
  WINDLASS_CONTROLLERS   Built-in controllers to run, such as garbagecollector,namespace; all for every one (default none)
  WINDLASS_LOG           What to log to stderr: error, warn, info, debug, or a filter (default error)
";

/// Why it ended, or did not start.
#[derive(Debug, Error)]
pub enum Failure {
    /// There is no runtime.
    #[error("cannot start")]
    Runtime(#[source] io::Error),
    /// A flag has a value that it cannot have.
    #[error("--{flag}={value}: {expected}")]
    Flag {
        /// Its name.
        flag: &'static str,
        /// What was given.
        value: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A file cannot be read.
    #[error("--{flag}: cannot read {}", .path.display())]
    File {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The certificates or keys are of no use.
    #[error("the certificates or keys are of no use")]
    Credentials(#[source] credentials::Error),
    /// There is no such controller.
    #[error("WINDLASS_CONTROLLERS")]
    Controllers(#[source] Unknown),
    /// The port is taken, or the address not ours.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

impl Failure {
    /// The exit code: as kube-apiserver's, which knows only one.
    pub fn exit_code(&self) -> u8 {
        1
    }
}

/// Runs it.
pub fn main(arguments: &[String]) -> Result<(), Failure> {
    let flags = Flags::parse(arguments);
    if flags.answers(HELP, format_args!("Kubernetes {}", Config::default().version)) {
        return Ok(());
    }
    common::log(&std::env::var("WINDLASS_LOG").unwrap_or_else(|_| "error".to_owned()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(Failure::Runtime)?.block_on(run(&flags))
}

async fn run(flags: &Flags) -> Result<(), Failure> {
    let stop = stop_signal().map_err(Failure::Runtime)?;
    let controllers = controllers()?;
    let address = listen_at(flags)?;
    let listening = |source| Failure::Listen { address, source };
    let https = Https::bind(address).await.map_err(listening)?;
    let address = https.local_addr().map_err(listening)?;

    let (serving, tokens, client_ca) = credentials_of(flags, address.ip())?;
    let config = Config {
        address: address.to_string(),
        client_ca,
        tokens: Some(tokens),
        plugins: plugins(flags)?,
        authorization: authorization(flags)?,
        audit_max: 0,
        ..Config::default()
    };
    let server = ApiServer::start(Options { config, ..Options::default() });
    let client = kube::Client::new(server.service(), "default");
    let running = controllers.start(client, &Env::system());
    https.serve(server.clone(), &serving, stop).await;
    running.stop().await;
    server.close();
    Ok(())
}

fn controllers() -> Result<Controllers, Failure> {
    let chosen = std::env::var(CONTROLLERS).unwrap_or_default();
    let chosen: Vec<&str> = chosen.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if chosen == ["all"] {
        return Ok(Controllers::all());
    }
    Controllers::named(chosen).map_err(Failure::Controllers)
}

fn listen_at(flags: &Flags) -> Result<SocketAddr, Failure> {
    let ip = flags.last("bind-address").map_or(Ok(Ipv4Addr::UNSPECIFIED.into()), |value| {
        let wrong = |_| wrong("bind-address", value, "not an IP address");
        value.parse::<IpAddr>().map_err(wrong)
    })?;
    let port = flags.last("secure-port").map_or(Ok(6443), |value| {
        let wrong = |_| wrong("secure-port", value, "not a port");
        value.parse::<u16>().map_err(wrong)
    })?;
    Ok(SocketAddr::new(ip, port))
}

fn authorization(flags: &Flags) -> Result<Authorization, Failure> {
    let modes = flags.list("authorization-mode");
    // Whoever is allowed by one of several is allowed, so that of these all but two may be missing, and nobody gets more. One
    // of the two has to be there.
    let known = |mode: &&str| ["AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node"].contains(mode);
    match modes.iter().find(|mode| !known(mode)) {
        Some(unknown) => Err(wrong("authorization-mode", unknown, "not a mode of authorization")),
        None if modes.is_empty() || modes.contains(&"AlwaysAllow") => Ok(Authorization::AlwaysAllow),
        None if modes.contains(&"RBAC") => Ok(Authorization::Rbac),
        None => Err(wrong(
            "authorization-mode",
            &modes.join(","),
            "name RBAC or AlwaysAllow among the modes, the others are not there",
        )),
    }
}

/// The admission plugins: those of kube-apiserver, with some more and without others.
fn plugins(flags: &Flags) -> Result<Plugins, Failure> {
    let more = Plugins::default().with(flags.list("enable-admission-plugins"));
    let unknown = |UnknownPlugin(name)| wrong("enable-admission-plugins", &name, "no such admission plugin");
    let less = more.map_err(unknown)?.without(flags.list("disable-admission-plugins"));
    less.map_err(|UnknownPlugin(name)| wrong("disable-admission-plugins", &name, "no such admission plugin"))
}

fn wrong(flag: &'static str, value: &str, expected: &'static str) -> Failure {
    Failure::Flag { flag, value: value.to_owned(), expected }
}

/// How the server is known and knows its clients, who signs tokens, and the authority of clients. What is not given is made
/// up, as kube-apiserver does.
fn credentials_of(flags: &Flags, ip: IpAddr) -> Result<(Serving, Issuer, String), Failure> {
    let own = Credentials::generate(ip).map_err(Failure::Credentials)?;
    let folder = Path::new(flags.last("cert-dir").unwrap_or("/var/run/kubernetes"));
    let in_folder = |name: &str| Some(folder.join(name)).filter(|path| path.exists());
    let read = |flag: &'static str, fallback: Option<&str>| {
        let path = flags.last(flag).map(PathBuf::from).or_else(|| in_folder(fallback?));
        let Some(path) = path else { return Ok(None) };
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(source) => Err(Failure::File { flag, path, source }),
        }
    };
    let certificate = read("tls-cert-file", Some("apiserver.crt"))?;
    let key = read("tls-private-key-file", Some("apiserver.key"))?;
    let clients = read("client-ca-file", None)?.unwrap_or_else(|| own.authority.clone());
    let serving = match certificate.zip(key) {
        Some((certificate, key)) => Serving::given(&certificate, &key, &clients),
        None => own.serving().trusting(&clients),
    }
    .map_err(Failure::Credentials)?;
    let mut tokens = match read("service-account-signing-key-file", None)? {
        Some(key) => credentials::issuer(&key).map_err(Failure::Credentials)?,
        None => own.tokens(),
    };
    if let Some(issuer) = flags.list("service-account-issuer").first() {
        tokens.url = (*issuer).to_owned();
        tokens.audiences = vec![tokens.url.clone()];
    }
    let audiences = flags.list("api-audiences");
    if !audiences.is_empty() {
        tokens.audiences = audiences.into_iter().map(str::to_owned).collect();
    }
    Ok((serving, tokens, clients))
}
