//! The two sides: a real kube-apiserver with the real controllers, and one with ours; and our own server with ours.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::task::JoinSet;
use windlass::Env;
use windlass_apiserver::api::Issuer;
use windlass_apiserver::front::credentials;
use windlass_cluster::controllers::{RootCa, Tokens};
use windlass_cluster::{Controllers, Running};
use windlass_testing::{Clock, TestCluster};

use super::api::Api;
use super::mirror::Mirror;
use super::normal;
use super::play::{Node, Stage};
use super::scenario::{Group, Scenario};
use super::strings::Strings;
use super::troupe::Troupe;
use super::{chance, heart};
use crate::servers::{self, Server};

/// A stage, and what has to live as long as it.
pub struct Side {
    /// Where scenarios are played.
    pub stage: Stage,
    running: Option<Running>,
    nodes: Option<Troupe>,
    _server: Option<Server>,
    _cluster: Option<TestCluster>,
}

impl Side {
    /// A real kube-apiserver with kube-controller-manager, only the controllers of this group; with our nodes where there
    /// are strings for their pods, and the scenarios that need them.
    ///
    /// # Errors
    /// When a program is missing or does not come up.
    pub async fn real(group: &Group, folder: &Path, on: Option<OnStrings<'_>>) -> Result<Side> {
        let mut server = fresh(folder).await?;
        let mut args = vec![
            format!("--controllers={}", group.kcm.join(",")),
            "--kube-api-qps=1000".to_owned(),
            "--kube-api-burst=2000".to_owned(),
        ];
        let folder_text = folder.display().to_string();
        let puppet_flags = group.puppet_flags.iter().filter(|_| on.is_none());
        args.extend(
            group.flags.iter().chain(puppet_flags).map(|flag| flag.replace("${folder}", &folder_text)),
        );
        if !group.kcm.is_empty() {
            server.controller_manager(folder, &args).await?;
        }
        if group.scheduler {
            server.scheduler(folder).await?;
        }
        let client = client(&server.kubeconfig).await?;
        let (stage, nodes) = live(client, group, on, folder).await?;
        Ok(Side { stage, running: None, nodes, _server: Some(server), _cluster: None })
    }

    /// A real kube-apiserver with our controllers in place of kube-controller-manager, and the same nodes.
    ///
    /// # Errors
    /// When a program is missing or does not come up, or a controller is not there.
    pub async fn ours(group: &Group, folder: &Path, on: Option<OnStrings<'_>>) -> Result<Side> {
        let server = fresh(folder).await?;
        let client = client(&server.kubeconfig).await?;
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).with_context(|| name.to_owned());
        let issuer = credentials::issuer(&read("sa.key")?)?;
        let controllers = controllers(&group.ours, issuer, &read("certificates/apiserver.crt")?)?;
        let running = controllers.start(client.clone(), &Env::system());
        let (stage, nodes) = live(client, group, on, folder).await?;
        Ok(Side { stage, running: Some(running), nodes, _server: Some(server), _cluster: None })
    }

    /// Our server in this process with our controllers, on the clock of the runtime: paused, it takes no time.
    ///
    /// # Errors
    /// When a controller is not there.
    pub async fn embedded(group: &Group) -> Result<Side> {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().context("a time")?;
        let env = Env::seeded(1, start);
        let cluster = TestCluster::builder().seed(1).clock(Clock::runtime(start)).tokens(true).start().await;
        let issuer = cluster.tokens().context("the cluster signs tokens")?;
        let controllers = controllers(&group.ours, issuer, "-----BEGIN CERTIFICATE-----\n")?;
        let running = controllers.start(cluster.client(), &env);
        let stage = puppet_stage(cluster.client(), group, move || env.now());
        Ok(Side { stage, running: Some(running), nodes: None, _server: None, _cluster: Some(cluster) })
    }

    /// Ends it.
    pub async fn stop(self) {
        if let Some(nodes) = self.nodes {
            nodes.stop().await;
        }
        if let Some(running) = self.running {
            running.stop().await;
        }
    }
}

/// Pods that our nodes run.
#[derive(Clone, Copy, Debug)]
pub struct OnStrings<'a> {
    /// Where the strings are, the same folder for both sides: it is named in what they are given.
    pub folder: &'a Path,
    /// What is played.
    pub scenarios: &'a [Scenario],
}

/// A stage on a real server, with our nodes or with the puppet.
async fn live(
    client: kube::Client,
    group: &Group,
    on: Option<OnStrings<'_>>,
    folder: &Path,
) -> Result<(Stage, Option<Troupe>)> {
    let Some(OnStrings { folder: strings, scenarios }) = on else {
        return Ok((puppet_stage(client, group, Timestamp::now), None));
    };
    let api = Api::new(client.clone());
    let mirror = Mirror::start(&api);
    let troupe = Troupe::start(client, &mirror, scenarios, group.scheduler, &folder.join("site")).await?;
    let stage = Stage {
        api,
        mirror,
        now: Box::new(Timestamp::now),
        node: Node::OnStrings(Strings::new(strings, !group.scheduler)?),
        picture: chance::picture,
        _heartbeats: JoinSet::new(),
    };
    Ok((stage, Some(troupe)))
}

fn puppet_stage(
    client: kube::Client,
    group: &Group,
    now: impl Fn() -> Timestamp + Send + Sync + 'static,
) -> Stage {
    let node = if group.scheduler { Node::ScheduledPuppet } else { Node::Puppet };
    let api = Api::new(client);
    let mirror = Mirror::start(&api);
    let now = Arc::new(now);
    let heartbeats = heart::start(&api, &mirror, now.clone());
    Stage {
        api,
        mirror,
        now: Box::new(move || now()),
        node,
        picture: normal::picture,
        _heartbeats: heartbeats,
    }
}

/// Our controllers of these names. Those that hand out what only the server has are given it: its certificate and its key.
pub(crate) fn controllers<N: AsRef<str>>(
    names: &[N],
    issuer: Issuer,
    authority: &str,
) -> Result<Controllers> {
    let mut controllers = Controllers::named(names)?;
    let has = |wanted: &str| names.iter().any(|name| name.as_ref() == wanted);
    if has("root-ca-certificate-publisher") {
        controllers = controllers.with(RootCa::new(authority));
    }
    if has("serviceaccount-token") {
        let tokens = Tokens::new(move |claims| issuer.sign(claims));
        controllers = controllers.with(tokens.authority(authority));
    }
    Ok(controllers)
}

async fn fresh(folder: &Path) -> Result<Server> {
    let _ = std::fs::remove_dir_all(folder);
    servers::reference(folder).await
}

/// A client of the administrator of a kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> Result<kube::Client> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // An eviction that is refused is an answer that is compared, and not to be asked for again for five minutes.
    config.default_retry = false;
    Ok(kube::Client::try_from(config)?)
}
