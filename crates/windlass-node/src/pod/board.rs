//! What others may know of the pods that run here: the endpoint that serves logs and streams.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use tokio::sync::{broadcast, mpsc, watch};
use windlass_sandbox::Spec;

use super::output::Heard;
use super::runtime::{Input, Signaller};
use crate::serve::Size;

/// The pods of a node and their runs.
pub(crate) struct Board {
    entries: Mutex<BTreeMap<String, Entry>>,
    /// Programs that are to be ended, because nobody has them any more.
    ends: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
}

#[derive(Default)]
struct Entry {
    pod: Option<Arc<Pod>>,
    net: String,
    folder: PathBuf,
    runs: BTreeMap<String, Arc<Shown>>,
}

/// A run of a container.
pub(crate) struct Shown {
    pub container: String,
    /// Its id, as statuses name it.
    pub id: String,
    pub spec: Arc<Spec>,
    pub log: PathBuf,
    pub ended: watch::Receiver<bool>,
    /// Nobody hears more of it once it has ended.
    pub listeners: broadcast::WeakSender<Heard>,
    pub stdin: Mutex<Stdin>,
    /// Whether the end of what somebody writes to its input is the end of its input.
    pub stdin_once: bool,
    pub tty: bool,
    pub resize: Option<mpsc::Sender<Size>>,
    pub signal: Signaller,
}

/// The standard input of a run.
#[derive(Default)]
pub(crate) enum Stdin {
    /// It has none, or had one.
    #[default]
    None,
    /// It can be written to, by one at a time.
    Free(Input),
    /// Somebody writes to it.
    Taken,
}

impl Board {
    /// A board, and the endings that its owner has to see to.
    pub fn new() -> (Board, mpsc::UnboundedReceiver<BoxFuture<'static, ()>>) {
        let (ends, receiver) = mpsc::unbounded_channel();
        (Board { entries: Mutex::default(), ends }, receiver)
    }

    /// Has a program ended. When the node has ended, its programs have as well.
    pub fn end(&self, ending: BoxFuture<'static, ()>) {
        let _ = self.ends.send(ending);
    }

    fn with<T>(&self, uid: &str, act: impl FnOnce(&mut Entry) -> T) -> T {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        act(entries.entry(uid.to_owned()).or_default())
    }

    /// The pod and its status are this now.
    pub fn show(&self, uid: &str, pod: &Pod, status: &PodStatus) {
        let mut pod = pod.clone();
        pod.status = Some(status.clone());
        self.with(uid, |entry| entry.pod = Some(Arc::new(pod)));
    }

    /// The pod has a place.
    pub fn place(&self, uid: &str, net: &str, folder: PathBuf) {
        self.with(uid, |entry| {
            net.clone_into(&mut entry.net);
            entry.folder = folder;
        });
    }

    /// A container of the pod runs. Of each container this run and the one before it are kept.
    pub fn run(&self, uid: &str, run: Arc<Shown>) {
        self.with(uid, |entry| {
            entry.runs.retain(|_, old| old.container != run.container || !*old.ended.borrow());
            entry.runs.insert(run.id.clone(), run);
        });
    }

    pub fn forget(&self, uid: &str) {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    /// The runs that have not ended, of one pod or of all.
    pub fn running(&self, uid: Option<&str>) -> Vec<Arc<Shown>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let chosen = entries.iter().filter(|(of, _)| uid.is_none_or(|uid| uid == *of));
        let runs = chosen.flat_map(|(_, entry)| entry.runs.values());
        runs.filter(|run| !*run.ended.borrow()).cloned().collect()
    }

    pub fn pods(&self) -> Vec<Arc<Pod>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.values().filter_map(|entry| entry.pod.clone()).collect()
    }

    pub fn find(&self, uid: &str, id: &str) -> Option<Arc<Shown>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(uid)?.runs.get(id).cloned()
    }

    /// The network and the folder of a pod.
    pub fn place_of(&self, uid: &str) -> Option<(String, PathBuf)> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(uid)?;
        Some((entry.net.clone(), entry.folder.clone()))
    }
}
