//! The nodes of a cluster, and what cuts them off and switches them off.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api as Resources, DeleteParams, ListParams};
use windlass::Env;
use windlass::cache::{Cache, Declared};
use windlass::env::Task;
use windlass_node::network::addresses::API_PORT;
use windlass_node::site::{Error, Site};

use super::failure::Failure;
use super::folder::Folder;
use super::member::Member;
use super::power;
use super::server::Api;

/// Nodes at work.
pub struct Nodes {
    site: Site,
    names: Vec<String>,
    members: Vec<Arc<Member>>,
    /// What cuts them off and switches them off, and what it watches.
    power: [Task<()>; 2],
}

/// The names of nodes.
fn names(count: u16) -> Vec<String> {
    (1..=count).map(|number| format!("{PREFIX}{number}")).collect()
}

const PREFIX: &str = "windlass-";

impl Nodes {
    /// Starts so many, and waits until the API server knows them.
    pub async fn start(count: u16, api: &mut Api, folder: &Folder, env: &Env) -> Result<Nodes, Failure> {
        let names = names(count);
        let client = api.client(env);
        let site = Site::start(&names, client.clone(), folder.path(), env).await.map_err(Failure::Nodes)?;
        api.ways.open(site.network().clone());
        let listener = site.network().listen_api(API_PORT).await;
        api.serve(listener.map_err(|error| Failure::Nodes(Error::Network(error)))?, env);
        let of = |name: &String| Member::new(name, &site, api, env).map(Arc::new);
        let members: Vec<Arc<Member>> =
            names.iter().map(of).collect::<Result<_, _>>().map_err(Failure::Nodes)?;
        for member in &members {
            member.start().await.map_err(Failure::Nodes)?;
        }
        let cache = Cache::new("windlass-power");
        let objects = cache.declare(Declared::<Node>::typed());
        let power = [
            env.spawn("power of nodes", power::follow(objects, members.clone(), env.clone())),
            cache.start(client, env, Arc::new(())),
        ];
        Ok(Nodes { site, names, members, power })
    }

    /// What they are called.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Resolves when all pods are lost.
    pub async fn ended(&self) -> Failure {
        self.site.ended().await;
        Failure::PodsLost
    }

    /// The pods that run, by their names, each with how long its containers have to end.
    pub async fn running(&self) -> Vec<(String, Duration)> {
        join_all(self.members.iter().map(|member| member.pods())).await.concat()
    }

    /// Ends them, after all pods have had their grace at the same time.
    pub async fn stop(self) {
        drop(self.power);
        join_all(self.members.iter().map(|member| member.shut_down())).await;
        self.site.stop().await;
    }
}

/// Takes away Node objects of an earlier run that had more of them: nobody will come back for their pods.
pub async fn forget_others(client: &kube::Client, count: u16) {
    let nodes: Resources<Node> = Resources::all(client.clone());
    let keep = names(count);
    let ours = |name: &str| name.strip_prefix(PREFIX).is_some_and(|number| number.parse::<u16>().is_ok());
    let there = match nodes.list(&ListParams::default()).await {
        Ok(there) => there,
        Err(error) => return tracing::warn!(%error, "nodes of earlier runs are unknown"),
    };
    for name in there.items.into_iter().filter_map(|node| node.metadata.name) {
        if ours(&name)
            && !keep.contains(&name)
            && let Err(error) = nodes.delete(&name, &DeleteParams::default()).await
        {
            tracing::warn!(%error, name, "a node of an earlier run was not removed");
        }
    }
}
