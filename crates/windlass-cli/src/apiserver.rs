//! `windlass apiserver`: the API server as a process.

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use windlass_apiserver::api::Config;

use crate::api::{Api, Failure, filter, log, quoted, stop_signal};

/// Run a Kubernetes API server in the foreground, until Ctrl-C.
///
/// It serves the API of Kubernetes 1.36 over HTTPS and writes a kubeconfig for its administrator. No controller runs
/// beside it: a Deployment that you create stays as you wrote it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  ended by Ctrl-C or SIGTERM
  1  failed while it was running
  2  the arguments make no sense
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

    /// What to log to stderr: error, warn, info, debug, trace, or a filter like `windlass_apiserver=debug`
    #[arg(long, value_name = "FILTER", default_value = "warn", value_parser = filter)]
    log: String,
}

/// Runs the server.
pub fn main(args: Args) -> Result<(), Failure> {
    log(&args.log);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::Runtime)?;
    runtime.block_on(run(args))
}

async fn run(args: Args) -> Result<(), Failure> {
    // Before anything is announced: whoever reads the announcement may send the signal.
    let stop = stop_signal().map_err(Failure::Runtime)?;
    let address = SocketAddr::new(args.bind_address, args.port);
    let api = Api::open(address, args.data_dir.as_deref(), |_| Config::default()).await?;
    let kubeconfig = Kubeconfig::write(&args, &api)?;
    announce(&api.url(), &kubeconfig.path);
    let server = api.server.clone();
    api.https.serve(server.clone(), &api.credentials, stop).await;
    kubeconfig.remove_if_temporary();
    match server.failure() {
        Some(lost) => Err(Failure::Lost(lost.clone())),
        None => Ok(()),
    }
}

/// A kubeconfig that was written.
struct Kubeconfig {
    path: PathBuf,
    temporary: bool,
}

impl Kubeconfig {
    fn write(args: &Args, api: &Api) -> Result<Kubeconfig, Failure> {
        let chosen = args.kubeconfig.clone().or_else(|| Some(args.data_dir.as_ref()?.join("kubeconfig")));
        let temporary = chosen.is_none();
        let name = || std::env::temp_dir().join(format!("windlass-{}.kubeconfig", api.address.port()));
        let path = api.write_kubeconfig(&chosen.unwrap_or_else(name))?;
        Ok(Kubeconfig { path, temporary })
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
