//! `windlass up`: a cluster in one process.
//!
//! ```text
//! folder ─► server (API, HTTPS) ─► controllers ─► nodes (sandbox, network, pods) ─► manifests, operators
//! ```
//!
//! What is started last ends first.

mod apply;
mod detach;
mod dial;
mod failure;
pub mod folder;
mod gate;
mod member;
mod nodes;
mod operators;
pub mod power;
mod readiness;
mod server;
mod settle;
mod show;
mod words;

use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use windlass::Env;
use windlass_cluster::Controllers;
use windlass_cluster::controllers::{Certificates, Tokens};
use windlass_node::image::Images;

pub use failure::Failure;
use folder::{Folder, State, Stopping};
use nodes::Nodes;
use server::Api;
use show::Show;

use crate::common::{self, filter, stop_signal};

/// Run a cluster on this machine, until Ctrl-C: the API server, the controllers of Kubernetes, and nodes whose pods are
/// processes.
///
/// No Kubernetes, no container runtime and no root is needed. What is created stays in the data folder, and is there again
/// at the next start. Pods reach each other, Services and the API server, and nothing outside. Ctrl-C gives them their grace
/// periods; a second one ends them at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  ended by Ctrl-C, SIGTERM or `windlass down`; with --detach: the cluster is ready
  1  failed while it was running
  2  the arguments make no sense
  3  cannot listen at the port
  4  cannot write the kubeconfig
  5  cannot use the data folder
  6  a cluster runs on the data folder already
  7  pods cannot run on this machine (--nodes 0 works everywhere)
  8  a manifest or an operator could not be applied")]
pub struct Args {
    /// Keep everything in this folder [default: $XDG_DATA_HOME/windlass, or ~/.local/share/windlass]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// How many nodes; with 0 no pod runs, and nothing is asked of the machine
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=200))]
    nodes: u16,

    /// Operators to run as pods: names of programs NAME-operator beside this one, `all` of them, or `none`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "none")]
    operators: Vec<String>,

    /// Apply these files, or the files of these folders, when the API is ready
    #[arg(long, value_name = "FILE", num_args = 1..)]
    apply: Vec<PathBuf>,

    /// The port of the API server at 127.0.0.1; 0 is any that is free
    #[arg(long, value_name = "P", default_value_t = 6443)]
    port: u16,

    /// Where to write the administrator's kubeconfig [default: `kubeconfig` in the data folder]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Run in the background; returns when the cluster is ready. `windlass down` stops it
    #[arg(long)]
    detach: bool,

    /// Empty the data folder first
    #[arg(long)]
    fresh: bool,

    /// What to log to stderr: error, warn, info, debug, trace, or a filter like `windlass_node=debug`
    #[arg(long, value_name = "FILTER", default_value = "warn,windlass::client::meter=error", value_parser = filter)]
    log: String,

    /// This is the process in the background
    #[arg(long, hide = true)]
    detached: bool,

    /// It ends, at once, when its standard input does: whoever started it is gone
    #[arg(long, hide = true)]
    with_parent: bool,
}

/// Runs the cluster.
pub fn main(args: &Args) -> Result<(), Failure> {
    if args.detach {
        return detach::main(&args.data());
    }
    if args.detached {
        // It outlives the terminal. This fails where it has no terminal to leave.
        let _ = nix::unistd::setsid();
    }
    if args.with_parent {
        std::thread::spawn(end_with_parent);
    }
    let show = Show::new();
    show.line(&format!("windlass {}, data in {}", env!("CARGO_PKG_VERSION"), args.data().display()));
    common::log(&args.log);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::Runtime)?;
    runtime.block_on(run(args, &show))
}

/// A pipe that only the parent writes to ends when that does, however it does. What runs in the sandbox goes with this
/// process.
fn end_with_parent() {
    // Whatever it ends with, it ends.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    std::process::exit(1);
}

impl Args {
    fn data(&self) -> PathBuf {
        self.data_dir.clone().unwrap_or_else(folder::default_path)
    }
}

async fn run(args: &Args, show: &Show) -> Result<(), Failure> {
    // Before anything is announced: whoever reads the announcement may send the signal.
    let mut stop = pin!(stop_signal().map_err(Failure::Runtime)?);
    let operators = operators::choose(&args.operators, &beside())?;
    let documents = apply::read(&args.apply)?;
    if args.nodes == 0 && !operators.is_empty() {
        return Err(Failure::Arguments("operators run as pods, which --nodes 0 has none of".to_owned()));
    }
    let folder = Folder::take(&args.data())?;
    if args.fresh {
        folder.empty()?;
    }
    let mut cluster =
        Cluster { env: Env::system(), folder, state: None, api: None, controllers: None, nodes: None };
    let ended = tokio::select! {
        biased;
        () = &mut stop => Ok(()),
        ended = cluster.run(args, show, operators, documents) => ended,
    };
    let env = cluster.env.clone();
    let again = async {
        // One Ctrl-C may arrive twice, from the terminal and from whoever started us.
        env.sleep(ONE_CTRL_C).await;
        match stop_signal() {
            Ok(stop) => stop.await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cluster.stop(show) => {}
        // Asked twice, it waits for nothing. What is left goes with this process.
        () = again => {}
    }
    ended
}

const ONE_CTRL_C: Duration = Duration::from_millis(500);

/// The folder that this program is in.
fn beside() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.parent().map(PathBuf::from).unwrap_or_default()
}

/// A cluster, as far as it has been started.
struct Cluster {
    env: Env,
    folder: Folder,
    /// What others are told of it.
    state: Option<State>,
    api: Option<Api>,
    controllers: Option<windlass_cluster::Running>,
    nodes: Option<Nodes>,
}

impl Cluster {
    /// Starts everything and waits for its end, which is a failure: it is told to stop from outside.
    async fn run(
        &mut self,
        args: &Args,
        show: &Show,
        operators: Vec<operators::Operator>,
        mut documents: Vec<apply::Document>,
    ) -> Result<(), Failure> {
        let env = self.env.clone();
        let starting = Api::start(args.port, args.kubeconfig.as_deref(), &self.folder, &env);
        let api = self.api.insert(show.step("API server", starting).await?);
        let state = self.state.insert(State {
            pid: std::process::id(),
            url: api.url.clone(),
            kubeconfig: api.kubeconfig.clone(),
            nodes: usize::from(args.nodes),
            ready: false,
            stopping: None,
        });
        self.folder.note(state)?;
        show.done(&format!("Kubernetes {} API at {}", api.version(), api.url));

        // Tokens that live in Secrets are signed by the key of the server.
        let issuer = api.credentials.tokens();
        let controllers = Controllers::all().with(Tokens::new(move |claims| issuer.sign(claims)));
        // So are certificates of clients, by its authority.
        let (credentials, clock) = (api.credentials.clone(), env.clone());
        let controllers = controllers.with(Certificates::new(move |request, seconds, usages| {
            let lifetime = Duration::from_secs(seconds);
            let signed = credentials.certify(request, clock.now(), lifetime, usages);
            signed.inspect_err(|error| tracing::warn!(%error, "a certificate was not signed")).ok()
        }));
        let controllers = self.controllers.insert(controllers.start(api.client(&env), &env));
        show.step("controllers", controllers.ready()).await;
        show.done(&format!("controllers: {}", Controllers::names().len()));

        nodes::forget_others(&api.client(&env), args.nodes).await;
        if args.nodes > 0 {
            let starting = Nodes::start(args.nodes, api, &self.folder, &env);
            let nodes = self.nodes.insert(show.step("nodes", starting).await?);
            show.done(&format!("nodes: {}", nodes.names().join(", ")));
        }

        // Operators first: they bring the kinds that manifests are of.
        let mut installed = Vec::new();
        for operator in &operators {
            operator.add_image(&Images::of_user())?;
            let own = operator.documents()?;
            show.step(&operator.name, apply::apply(&api.server, &own)).await?;
            show.done(&format!("operator {}: applied", operator.name));
            installed.extend(own);
        }
        let applied = show.step("manifests", apply::apply(&api.server, &documents)).await?;
        if !applied.is_empty() {
            show.done(&format!("applied: {}", applied.join(", ")));
        }
        documents.extend(installed);
        if args.nodes > 0 {
            settle::settle(&api.client(&env), &documents, show, &env).await;
        }
        let summary = words::summary(&documents, &api.kubeconfig, args);
        // Whoever started a cluster in the background shows what it said by the time that it is ready. In the foreground
        // people read first, and ask for its status then.
        if args.detached {
            show.line(&summary);
        }
        state.ready = true;
        self.folder.note(state)?;
        if !args.detached {
            show.line(&summary);
        }

        let lost = async {
            match &self.nodes {
                Some(nodes) => nodes.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = api.server.closed() => match api.server.failure() {
                Some(lost) => Err(Failure::Lost(lost.clone())),
                None => Ok(()),
            },
            failure = lost => Err(failure),
        }
    }

    /// Ends everything, the last first. Pods end with their nodes; the API server is there until nobody needs it.
    async fn stop(&mut self, show: &Show) {
        if let Some(nodes) = self.nodes.take() {
            let running = nodes.running().await;
            if let Some(line) = words::waiting(&running) {
                show.line(&format!("{line}; Ctrl-C again ends them at once"));
                let seconds = running.iter().map(|(_, patience)| patience.as_secs()).max().unwrap_or(0);
                if let Some(state) = &mut self.state {
                    state.stopping = Some(Stopping { what: line, seconds });
                    if let Err(error) = self.folder.note(state) {
                        tracing::warn!(%error, "nobody else can read what is waited for");
                    }
                }
            }
            show.step("stopping", nodes.stop()).await;
        }
        if let Some(controllers) = self.controllers.take() {
            controllers.stop().await;
        }
        if let Some(api) = self.api.take() {
            api.stop().await;
        }
        self.folder.forget();
    }
}
