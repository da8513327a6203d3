//! All pods of a node: a task for each, from when it is seen until nothing of it is left.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windlass::Env;
use windlass::cache::{Cache, Declared, Delta, Subscriber};
use windlass::env::{Died, Task};
use windlass::events::Recorder;
use windlass_core::select::FieldSelector;

use super::board::Board;
use super::downward::Capacity;
use super::library::CacheLibrary;
use super::life::patience;
use super::member::Member;
use super::node::Node;
use super::runtime::{Network, Runtime};
use super::work::{Word, Worker};
use crate::image::Images;

/// What a node's pods are like.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the node.
    pub node: String,
    /// Its addresses, the first one first.
    pub host_ips: Vec<String>,
    /// The folder of its pods.
    pub folder: PathBuf,
    /// What it has to give.
    pub capacity: Capacity,
    /// The domain of the cluster's names.
    pub cluster_domain: String,
}

/// What pods run on.
#[derive(Clone)]
pub struct Ground {
    /// Programs.
    pub runtime: Arc<dyn Runtime>,
    /// Networks.
    pub network: Arc<dyn Network>,
    /// Images.
    pub images: Images,
    /// Where events are told.
    pub recorder: Recorder,
}

/// The pods of a node. Dropping it ends their tasks; their containers end with the sandbox.
pub struct Pods {
    node: Arc<Node>,
    task: Task<()>,
    stopping: CancellationToken,
}

impl Pods {
    /// Begins to run the pods that are bound to a node.
    pub fn start(client: kube::Client, env: &Env, options: Options, ground: Ground) -> Pods {
        let cache = Cache::new("kubelet");
        let library = CacheLibrary {
            config_maps: cache.declare(Declared::<ConfigMap>::typed()),
            secrets: cache.declare(Declared::<Secret>::typed()),
            services: cache.declare(Declared::<Service>::typed()),
        };
        let (board, ends) = Board::new();
        let node = Arc::new(Node {
            env: env.clone(),
            client: client.clone(),
            name: options.node,
            host_ips: options.host_ips,
            capacity: options.capacity,
            folder: options.folder,
            cluster_domain: options.cluster_domain,
            images: ground.images,
            runtime: ground.runtime,
            network: ground.network,
            library: Arc::new(library.clone()),
            recorder: ground.recorder,
            board,
        });
        let stopping = CancellationToken::new();
        let task = env.spawn("pods", run(node.clone(), cache, library, ends, stopping.clone()));
        Pods { node, task, stopping }
    }

    /// What the node's endpoint asks.
    pub fn containers(&self) -> Arc<dyn crate::serve::Containers> {
        Arc::new(super::containers::OfBoard(self.node.clone()))
    }

    /// The pods that run, each with how long its containers have to end.
    pub fn running(&self) -> Vec<(Arc<Pod>, Duration)> {
        let running = self.node.board.pods().into_iter().filter(|pod| {
            pod.metadata.uid.as_ref().is_some_and(|uid| !self.node.board.running(Some(uid)).is_empty())
        });
        running.map(|pod| (pod.clone(), patience(&pod))).collect()
    }

    /// Ends all pods as the shutdown of a machine does: each container has its `preStop` hook, its stop signal and the
    /// grace period of its pod, all at the same time. Nothing is said of it, so that the next process starts them again.
    pub async fn shut_down(self) {
        self.stopping.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(node = self.node.name, %error, "the pods of a node died");
        }
        kill(&self.node, None).await;
    }

    /// Ends the tasks of all pods and their containers, as if the machine had lost its power: nothing is said of it.
    pub async fn stop(self) {
        self.task.abort();
        let _ended: Result<(), Died> = self.task.await;
        kill(&self.node, None).await;
    }
}

impl fmt::Debug for Pods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pods").field("node", &self.node.name).finish_non_exhaustive()
    }
}

/// Something that was seen in the API.
enum Seen {
    Pod {
        uid: String,
        pod: Option<Arc<Pod>>,
    },
    /// An object that pods of a namespace may be made from.
    Object(Object),
}

/// A ConfigMap or a Secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Object {
    secret: bool,
    namespace: String,
    name: String,
}

struct Teller(mpsc::UnboundedSender<Seen>);

impl Subscriber<Pod> for Teller {
    fn changed(&self, delta: &Delta<Pod>) {
        let uid = |pod: &Option<Arc<Pod>>| pod.as_ref().and_then(|pod| pod.metadata.uid.clone());
        let (old, new) = (uid(&delta.old), uid(&delta.new));
        // Nobody hears it when the node has ended.
        if let Some(old) = old.filter(|old| new.as_ref() != Some(old)) {
            let _ = self.0.send(Seen::Pod { uid: old, pod: None });
        }
        if let Some(new) = new {
            let _ = self.0.send(Seen::Pod { uid: new, pod: delta.new.clone() });
        }
    }
}

impl Subscriber<ConfigMap> for Teller {
    fn changed(&self, delta: &Delta<ConfigMap>) {
        self.object(false, delta.key.namespace(), delta.key.name());
    }
}

impl Subscriber<Secret> for Teller {
    fn changed(&self, delta: &Delta<Secret>) {
        self.object(true, delta.key.namespace(), delta.key.name());
    }
}

impl Teller {
    fn object(&self, secret: bool, namespace: Option<&str>, name: &str) {
        let namespace = namespace.unwrap_or_default().to_owned();
        let _ = self.0.send(Seen::Object(Object { secret, namespace, name: name.to_owned() }));
    }
}

/// A pod that has a task.
struct Tended {
    pod: Arc<Pod>,
    words: mpsc::UnboundedSender<Word>,
    objects: BTreeSet<Object>,
}

/// A pod whose task has failed is taken up again after this long.
const AGAIN: Duration = Duration::from_secs(5);

async fn run(
    node: Arc<Node>,
    cache: Cache,
    library: CacheLibrary,
    mut ends: mpsc::UnboundedReceiver<BoxFuture<'static, ()>>,
    stopping: CancellationToken,
) {
    let (teller, mut seen) = mpsc::unbounded_channel();
    let fields = FieldSelector::parse(&format!("spec.nodeName={}", node.name)).unwrap_or_default();
    let pods = cache.declare(Declared::<Pod>::typed().fields(fields));
    let teller = Arc::new(Teller(teller));
    let reading = cache.start(node.client.clone(), &node.env, Arc::new(()));
    // Pods are made from these: nothing is missing just because nobody has looked yet.
    let complete = || {
        pods.is_synced()
            && library.config_maps.is_synced()
            && library.secrets.is_synced()
            && library.services.is_synced()
    };
    while !complete() {
        if stopping.run_until_cancelled(cache.synced()).await.is_none() {
            return;
        }
        if !complete() {
            // A first try has failed, and the source has said so.
            node.env.sleep(Duration::from_millis(100)).await;
        }
    }
    remove_orphans(&node, &pods.list(None));
    pods.subscribe(teller.clone());
    library.config_maps.subscribe(teller.clone());
    library.secrets.subscribe(teller);

    let mut tended: BTreeMap<String, Tended> = BTreeMap::new();
    let mut tasks: Tasks = FuturesUnordered::new();
    let mut ending = FuturesUnordered::new();
    let mut told = false;
    while !told || !tasks.is_empty() {
        tokio::select! {
            biased;
            Some((uid, died)) = tasks.next(), if !tasks.is_empty() => {
                match (died, tended.remove(&uid)) {
                    (Some(died), Some(old)) if !told => {
                        tracing::error!(pod = old.pod.metadata.name, error = %died, "task of a pod failed; it is taken up again");
                        let now = pods.list(None).into_iter().find(|pod| pod.metadata.uid.as_ref() == Some(&uid));
                        let one = tend(&node, uid.clone(), now.clone().unwrap_or(old.pod), &mut tasks, AGAIN);
                        if now.is_none() {
                            let _ = one.words.send(Word::Gone);
                        }
                        tended.insert(uid, one);
                    }
                    _ => node.board.forget(&uid),
                }
            }
            () = stopping.cancelled(), if !told => {
                told = true;
                for one in tended.values() {
                    let _ = one.words.send(Word::Stop);
                }
            }
            Some(end) = ends.recv() => ending.push(end),
            Some(()) = ending.next(), if !ending.is_empty() => {}
            next = seen.recv() => match next {
                None => break,
                Some(Seen::Object(object)) => {
                    for one in tended.values().filter(|one| one.objects.contains(&object)) {
                        let _ = one.words.send(Word::Refresh);
                    }
                }
                Some(Seen::Pod { uid, pod: None }) => {
                    if let Some(one) = tended.get(&uid) {
                        let _ = one.words.send(Word::Gone);
                    }
                }
                Some(Seen::Pod { uid, pod: Some(pod) }) => match tended.get_mut(&uid) {
                    Some(one) => {
                        one.objects = objects(&pod);
                        one.pod = pod.clone();
                        let _ = one.words.send(Word::Changed(pod));
                    }
                    // None is begun that would be ended at once.
                    None if told => {}
                    None => {
                        let one = tend(&node, uid.clone(), pod, &mut tasks, Duration::ZERO);
                        tended.insert(uid, one);
                    }
                },
            },
        }
    }
    drop(reading);
}

type Tasks = FuturesUnordered<BoxFuture<'static, (String, Option<Died>)>>;

/// Gives a pod its task.
fn tend(node: &Arc<Node>, uid: String, pod: Arc<Pod>, tasks: &mut Tasks, wait: Duration) -> Tended {
    let (words, inbox) = mpsc::unbounded_channel();
    let one = Tended { pod: pod.clone(), words, objects: objects(&pod) };
    let (node, env) = (node.clone(), node.env.clone());
    let of = uid.clone();
    let task = env.spawn("pod", async move {
        // What a task before this one has left runs for nobody.
        kill(&node, Some(&of)).await;
        node.env.sleep(wait).await;
        Worker::new(node, pod, inbox).run().await;
    });
    tasks.push(Box::pin(async move { (uid, task.await.err()) }));
    one
}

/// Ends what runs, of one pod or of all.
async fn kill(node: &Node, uid: Option<&str>) {
    for run in node.board.running(uid) {
        (run.signal)(nix::sys::signal::Signal::SIGKILL as i32).await;
    }
}

/// The objects that a pod is made from: its volumes and its environment.
fn objects(pod: &Pod) -> BTreeSet<Object> {
    let mut all = BTreeSet::new();
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let mut add = |secret: bool, name: &str| {
        all.insert(Object { secret, namespace: namespace.clone(), name: name.to_owned() });
    };
    for member in Member::all(pod) {
        for from in member.spec.env_from.iter().flatten() {
            from.config_map_ref.iter().for_each(|source| add(false, &source.name));
            from.secret_ref.iter().for_each(|source| add(true, &source.name));
        }
        for from in member.spec.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
            from.config_map_key_ref.iter().for_each(|source| add(false, &source.name));
            from.secret_key_ref.iter().for_each(|source| add(true, &source.name));
        }
    }
    for volume in pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten()) {
        if let Some(source) = &volume.config_map {
            add(false, &source.name);
        }
        if let Some(source) = &volume.secret {
            add(true, source.secret_name.as_deref().unwrap_or_default());
        }
        for source in volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten()) {
            if let Some(source) = &source.config_map {
                add(false, &source.name);
            }
            if let Some(source) = &source.secret {
                add(true, &source.name);
            }
        }
    }
    all
}

/// Removes what is left of pods that went while nobody looked.
fn remove_orphans(node: &Node, pods: &[Arc<Pod>]) {
    let known: BTreeSet<String> = pods.iter().filter_map(|pod| pod.metadata.uid.clone()).collect();
    node.network.keep_only(&known);
    let Ok(entries) = std::fs::read_dir(&node.folder) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_str().is_some_and(|uid| known.contains(uid)) {
            super::work::remove(&entry.path());
        }
    }
}
