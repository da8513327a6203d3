//! The cluster in this process: started in order, ended in the opposite one.

use std::net::{Ipv4Addr, SocketAddr};

use windlass::Env;
use windlass_apiserver::api::Config;
use windlass_apiserver::front::ApiServer;
use windlass_cluster::Controllers;

use super::folder::{Cluster, Folder};
use super::progress::Progress;
use super::{Args, Failure, apply};
use crate::api::{self, Api, quoted, stop_signal};

/// Runs the cluster until it is told to stop.
pub async fn run(args: Args) -> Result<(), Failure> {
    let stop = stop_signal().map_err(api::Failure::Runtime)?;
    let folder = Folder::at(args.data_dir.as_deref())?;
    let manifests = apply::read(&args.apply)?;
    let claim = folder.claim()?;
    let version = Config::default().version;
    let progress = Progress::start(&format!("A Kubernetes {version} cluster in {}", folder.path().display()));
    if args.fresh {
        folder.empty(&claim)?;
    }

    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), args.port);
    let api = Api::open(address, Some(&folder.api()), |_| Config::default()).await?;
    let kubeconfig = args.kubeconfig.clone().unwrap_or_else(|| folder.kubeconfig());
    let kubeconfig = api.write_kubeconfig(&kubeconfig)?;
    let mut cluster = Cluster { pid: std::process::id(), url: api.url(), kubeconfig, ready: false };
    folder.set_cluster(&cluster)?;
    let (server, url) = (api.server.clone(), api.url());
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn({
        let server = server.clone();
        async move {
            let ended = async { drop(ended.await) };
            api.https.serve(server, &api.credentials, ended).await;
        }
    });
    progress.line(&format!("Kubernetes {version} API at {url}"));

    let env = Env::system();
    let controllers = Controllers::all().start(client(&server), &env);
    progress.done("controllers", &Controllers::names().len().to_string());
    let applied = apply::apply(&server, &manifests).await?;
    if applied > 0 {
        progress.done("applied", &format!("{applied} objects"));
    }
    cluster.ready = true;
    folder.set_cluster(&cluster)?;
    progress.line(&format!("\n    export KUBECONFIG={}\n\nCtrl-C ends it.", quoted(&cluster.kubeconfig)));

    tokio::select! {
        biased;
        () = stop => {}
        () = server.closed() => {}
    }
    controllers.stop().await;
    let _ = end.send(());
    // It has an answer for every panic of its own; what is left is the end of the runtime.
    let _ = serving.await;
    folder.clear_cluster();
    match server.failure() {
        Some(lost) => Err(api::Failure::Lost(lost.clone()).into()),
        None => Ok(()),
    }
}

/// A client of the administrator in this process.
fn client(server: &ApiServer) -> kube::Client {
    kube::Client::new(server.service(), "default")
}
