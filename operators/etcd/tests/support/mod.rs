//! A cluster without nodes: pods get an address as soon as they are there, and a stand-in answers for their etcd.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etcd_operator::api::{EtcdCluster, EtcdMember, START_ANNOTATION};
use etcd_operator::observe::Etcd;
use etcd_operator::{goal, operator_with};
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use windlass::{Env, Running, Settings};
use windlass_etcd::{Error, Header, Member, Status};
use windlass_testing::TestCluster;

/// What the stand-in knows.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The members, as agreed.
    pub members: Vec<Member>,
    /// Who runs, by address: the member's name.
    pub running: BTreeMap<String, String>,
    pub leader: u64,
    /// Who takes the others for gone, and refuses to add and to remove.
    pub blind: BTreeSet<u64>,
    last_id: u64,
    /// Every change, in order.
    pub changes: Vec<String>,
}

/// Answers for etcd.
#[derive(Clone, Debug, Default)]
pub struct StandIn(pub Arc<Mutex<State>>);

const CLUSTER: u64 = 0xc1;

impl StandIn {
    pub fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Pods come and go. A process that starts makes of itself what its pod says.
    fn pods(&self, pods: &[Pod]) {
        self.with(|state| {
            state.running.clear();
            for pod in pods {
                let Some(ip) = pod.status.as_ref().and_then(|status| status.pod_ip.clone()) else { continue };
                let name = pod.name_any();
                state.running.insert(format!("http://{ip}:2379"), name.clone());
                let url = peer_url(pod);
                if pod.annotations()[START_ANNOTATION] == "new" && state.members.is_empty() {
                    state.last_id += 1;
                    let id = state.last_id;
                    state.members.push(Member {
                        id,
                        name: name.clone(),
                        peer_urls: vec![url.clone()],
                        ..Member::default()
                    });
                }
                if let Some(member) =
                    state.members.iter_mut().find(|member| member.peer_urls == [url.as_str()])
                {
                    member.name = name;
                }
            }
            if !state.is_live(state.leader) {
                let live =
                    state.members.iter().filter(|member| !member.is_learner && state.is_live(member.id));
                state.leader = live.map(|member| member.id).next().unwrap_or(0);
            }
            if !state.has_quorum() {
                state.leader = 0;
            }
        });
    }
}

impl State {
    fn is_live(&self, id: u64) -> bool {
        let name = self.members.iter().find(|member| member.id == id).map(|member| &member.name);
        name.is_some_and(|name| self.running.values().any(|running| running == name))
    }

    fn has_quorum(&self) -> bool {
        let voters = || self.members.iter().filter(|member| !member.is_learner);
        voters().filter(|member| self.is_live(member.id)).count() > voters().count() / 2
    }

    fn at(&self, address: &str) -> Result<&Member, Error> {
        let name = self.running.get(address);
        let member = name.and_then(|name| self.members.iter().find(|member| member.name == *name));
        member.ok_or(Error::Unreachable { reason: "connection refused".to_owned() })
    }

    fn change(&mut self, address: &str, what: String) -> Result<(), Error> {
        let id = self.at(address)?.id;
        if self.blind.contains(&id) && (what == "add" || what == "remove") {
            return Err(Error::UnhealthyCluster);
        }
        if !self.has_quorum() {
            return Err(Error::NoLeader);
        }
        self.changes.push(what);
        Ok(())
    }
}

fn peer_url(pod: &Pod) -> String {
    let spec = pod.spec.as_ref().unwrap();
    let args = spec.containers[0].args.as_ref().unwrap();
    let flag = "--initial-advertise-peer-urls=";
    args.iter().find_map(|arg| arg.strip_prefix(flag)).unwrap().to_owned()
}

impl Etcd for StandIn {
    fn status<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Result<Status, Error>> {
        let answer = self.with(|state| {
            let member = state.at(address)?;
            Ok(Status {
                header: Header { cluster_id: CLUSTER, member_id: member.id, ..Header::default() },
                version: "3.7.3".to_owned(),
                db_size: 20_480,
                leader: state.leader,
                raft_index: 100,
                raft_term: 2,
                raft_applied_index: 100,
                is_learner: member.is_learner,
                ..Status::default()
            })
        });
        Box::pin(async move { answer })
    }

    fn members<'a>(
        &'a self,
        address: &'a str,
        linearizable: bool,
    ) -> BoxFuture<'a, Result<(u64, Vec<Member>), Error>> {
        let answer = self.with(|state| {
            state.at(address)?;
            match linearizable && !state.has_quorum() {
                true => Err(Error::NoLeader),
                false => Ok((CLUSTER, state.members.clone())),
            }
        });
        Box::pin(async move { answer })
    }

    fn add_learner<'a>(&'a self, address: &'a str, peer_url: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        let answer = self.with(|state| {
            state.change(address, "add".to_owned())?;
            state.last_id += 1;
            let (id, peer_urls) = (state.last_id, vec![peer_url.to_owned()]);
            state.members.push(Member { id, peer_urls, is_learner: true, ..Member::default() });
            Ok(())
        });
        Box::pin(async move { answer })
    }

    fn promote<'a>(&'a self, address: &'a str, id: u64) -> BoxFuture<'a, Result<(), Error>> {
        let answer = self.with(|state| {
            state.change(address, "promote".to_owned())?;
            let member =
                state.members.iter_mut().find(|member| member.id == id).ok_or(Error::MemberNotFound)?;
            member.is_learner = false;
            Ok(())
        });
        Box::pin(async move { answer })
    }

    fn remove<'a>(&'a self, address: &'a str, id: u64) -> BoxFuture<'a, Result<(), Error>> {
        let answer = self.with(|state| {
            state.change(address, "remove".to_owned())?;
            state.members.retain(|member| member.id != id);
            Ok(())
        });
        Box::pin(async move { answer })
    }

    fn move_leader<'a>(&'a self, address: &'a str, to: u64) -> BoxFuture<'a, Result<(), Error>> {
        let answer = self.with(|state| {
            state.change(address, "move leader".to_owned())?;
            state.leader = to;
            Ok(())
        });
        Box::pin(async move { answer })
    }
}

/// A server, with pods that only seem to run.
pub struct World {
    pub cluster: TestCluster,
    pub etcd: StandIn,
    pub clusters: Api<EtcdCluster>,
    pub members: Api<EtcdMember>,
    pub pods: Api<Pod>,
    pub volumes: Api<PersistentVolumeClaim>,
    addresses: Mutex<u8>,
}

impl World {
    /// A server, and the operator on it.
    pub async fn start() -> (World, Running) {
        let world = World::of(TestCluster::new().await);
        let settings = Settings::for_tests(Env::seeded(1, "2026-01-01T00:00:00Z".parse().unwrap()));
        let operator = operator_with(Arc::new(world.etcd.clone()));
        let running = operator.start(world.cluster.client(), settings).await.unwrap();
        (world, running)
    }

    pub fn of(cluster: TestCluster) -> World {
        let client: Client = cluster.client();
        World {
            clusters: Api::default_namespaced(client.clone()),
            members: Api::default_namespaced(client.clone()),
            pods: Api::default_namespaced(client.clone()),
            volumes: Api::default_namespaced(client),
            cluster,
            etcd: StandIn::default(),
            addresses: Mutex::default(),
        }
    }

    /// The same world once more, to go another way from here.
    pub fn fork(&self) -> World {
        let world = World { etcd: StandIn::default(), ..World::of(self.cluster.fork()) };
        world.etcd.with(|state| *state = self.etcd.with(|state| state.clone()));
        *world.addresses.lock().unwrap() = *self.addresses.lock().unwrap();
        world
    }

    pub async fn apply(&self, name: &str, spec: Value) -> kube::Result<EtcdCluster> {
        let object = json!({"apiVersion": "etcd.cloud.io/v1", "kind": "EtcdCluster", "metadata": {"name": name}, "spec": spec});
        self.clusters.patch(name, &PatchParams::apply("user").force(), &Patch::Apply(&object)).await
    }

    pub async fn delete_pod(&self, name: &str) {
        self.pods.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// What a kubelet does, as far as it shows.
    pub async fn run_pods(&self) {
        let mut pods = self.pods.list(&Default::default()).await.unwrap().items;
        for pod in &mut pods {
            if pod.status.as_ref().is_some_and(|status| status.pod_ip.is_some()) {
                continue;
            }
            let ip = {
                let mut last = self.addresses.lock().unwrap();
                *last += 1;
                format!("10.0.0.{last}")
            };
            let status = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}});
            let (name, params) = (pod.name_any(), PatchParams::default());
            if let Ok(patched) = self.pods.patch_status(&name, &params, &Patch::Merge(&status)).await {
                *pod = patched;
            }
        }
        self.etcd.pods(&pods);
        // A volume that somebody deleted goes when no pod uses it.
        for claim in self.volumes.list(&Default::default()).await.unwrap().items {
            let is_used = pods.iter().any(|pod| format!("data-{}", pod.name_any()) == claim.name_any());
            if claim.metadata.deletion_timestamp.is_some() && !is_used {
                let none = json!({"metadata": {"finalizers": null}});
                let _ = self
                    .volumes
                    .patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(&none))
                    .await;
            }
        }
    }

    /// Waits until something holds. On paused time this takes no time.
    pub async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        for _ in 0..5000 {
            self.run_pods().await;
            if holds().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
        let told = self.clusters.list(&Default::default()).await.unwrap().items;
        let told =
            serde_json::to_string_pretty(&told.iter().map(|one| &one.status).collect::<Vec<_>>()).unwrap();
        panic!("it never came: {what}\n{told}\n{:?}", self.etcd.with(|state| format!("{state:#?}")));
    }

    pub async fn until_done(&self, name: &str) {
        self.until("the cluster is as asked for", async || {
            self.clusters.get_opt(name).await.unwrap().is_some_and(|cluster| goal::is_done(&cluster))
        })
        .await;
    }

    pub async fn names(&self) -> Vec<String> {
        self.members.list(&Default::default()).await.unwrap().items.iter().map(|one| one.name_any()).collect()
    }
}
