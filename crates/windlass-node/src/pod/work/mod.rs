//! One pod at work: a task that lets its [`Life`](super::life::Life) decide, does what it says, and tells it what came of it.
//!
//! Everything that takes time is a job of this one task, so that whoever ends the task ends them all.

mod prepare;
mod start;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus, Volume};
use nix::sys::signal::Signal;
use tokio::sync::mpsc;

use super::ask::Asked;
use super::launch::Place;
use super::life::{Action, Finish, Hook, Host, Life, NotStarted, Report, Turn};
use super::node::Node;
use super::probe::Finding;
use super::runtime::Signaller;
use super::volume;
pub(crate) use prepare::remove;
use prepare::{Prepared, Tokens};
use start::Live;

/// Something that the task of a pod is told.
#[derive(Clone, Debug)]
pub(crate) enum Word {
    /// The pod is this now.
    Changed(Arc<Pod>),
    /// The pod is no longer in the API.
    Gone,
    /// An object that it is made from has changed.
    Refresh,
    /// Its node is being shut down.
    Stop,
}

/// What a job came to.
enum Done {
    Report(Report),
    Prepared(Result<Prepared, Unprepared>),
    Refreshed(Prepared),
    Started { container: String, result: Result<Box<Live>, NotStarted> },
    Written(Box<PodStatus>, bool),
    Deleted(bool),
    Nothing,
}

/// Why a pod has no place.
struct Unprepared {
    reason: &'static str,
    note: String,
    /// What there is of it already.
    prepared: Prepared,
}

/// When a request that failed is made again.
const AGAIN: Duration = Duration::from_secs(1);

/// The task of one pod.
pub(crate) struct Worker {
    node: Arc<Node>,
    uid: String,
    life: Life,
    inbox: mpsc::UnboundedReceiver<Word>,
    jobs: FuturesUnordered<BoxFuture<'static, Done>>,
    place: Arc<Place>,
    tokens: Tokens,
    refreshing: bool,
    refresh_again: bool,
    runs: BTreeMap<String, Running>,
    written: Option<PodStatus>,
    writing: bool,
    deleting: bool,
    stopping: Option<Stopping>,
}

/// A pod whose node is being shut down. Nothing is said of how its containers end: the next process starts them again.
struct Stopping {
    /// What is still to be said: how things were before.
    last: Option<PodStatus>,
}

/// A container that runs.
struct Running {
    asked: Asked,
    signal: Signaller,
    /// What asks it to end.
    stop_signal: Signal,
}

impl Worker {
    pub fn new(node: Arc<Node>, pod: Arc<Pod>, inbox: mpsc::UnboundedReceiver<Word>) -> Worker {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let folder = node.folder.join(&uid);
        node.board.place(&uid, "", folder.clone());
        let host = Host { ips: node.host_ips.clone() };
        let now = node.env.now();
        let written = pod.status.clone();
        Worker {
            life: Life::new(pod, host, now),
            uid,
            inbox,
            jobs: FuturesUnordered::new(),
            place: Arc::new(Place { folder, ..Place::default() }),
            tokens: Tokens::default(),
            refreshing: false,
            refresh_again: false,
            runs: BTreeMap::new(),
            written,
            writing: false,
            deleting: false,
            stopping: None,
            node,
        }
    }

    /// Lets the pod live until nothing of it is left, or nothing of it runs and the node is being shut down.
    pub async fn run(mut self) {
        loop {
            let Turn { actions, status, wake, finish } = self.life.turn(self.node.env.now());
            for action in actions {
                self.act(action);
            }
            if finish == Some(Finish::Forget) {
                self.forget().await;
                return;
            }
            if let Some(stopping) = &mut self.stopping {
                let last = if self.writing { None } else { stopping.last.take() };
                last.into_iter().for_each(|status| self.write(status, None));
                if !self.life.is_active() && !self.writing {
                    return;
                }
            } else {
                self.node.board.show(&self.uid, self.life.pod(), &status);
                self.write(status, finish);
            }
            let renew = self.tokens.renew_at().filter(|_| !self.refreshing && self.life.has_place());
            let wake = [wake, renew].into_iter().flatten().min();
            tokio::select! {
                biased;
                word = self.inbox.recv() => match word {
                    Some(word) => self.hear(word),
                    None => return,
                },
                Some(done) = self.jobs.next(), if !self.jobs.is_empty() => self.done(done),
                () = sleep_until(&self.node, wake), if wake.is_some() => {}
            }
            if !self.refreshing && self.tokens.renew_at().is_some_and(|at| at <= self.node.env.now()) {
                self.refresh();
            }
        }
    }

    fn hear(&mut self, word: Word) {
        match word {
            Word::Changed(pod) => {
                self.take(Report::Changed(pod));
                self.refresh();
            }
            Word::Gone => self.take(Report::Gone),
            Word::Stop => {
                self.stopping = Some(Stopping { last: Some(self.life.said().clone()) });
                self.take(Report::Stop);
            }
            Word::Refresh => {
                self.take(Report::Retry);
                self.refresh();
            }
        }
    }

    fn take(&mut self, report: Report) {
        let actions = self.life.take(report, self.node.env.now());
        for action in actions {
            self.act(action);
        }
    }

    fn job(&mut self, job: impl Future<Output = Done> + Send + 'static) {
        self.jobs.push(Box::pin(job));
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Tell(_) if self.stopping.is_some() => {}
            Action::Tell(told) => self.node.tell(self.life.pod(), self.life.members(), told),
            Action::Prepare => {
                let job = prepare::prepare(self.node.clone(), self.life.pod().clone(), self.prepared());
                self.job(async move { Done::Prepared(job.await) });
            }
            Action::Release => {
                let job = prepare::release(self.node.clone(), self.uid.clone(), self.place.clone());
                self.job(async move {
                    job.await;
                    Done::Report(Report::Released)
                });
            }
            Action::Start { container, attempt } => {
                let Some(member) = self.life.member(&container).cloned() else { return };
                let (node, pod, place) = (self.node.clone(), self.life.pod().clone(), self.place.clone());
                let job = start::start(node, pod, member, attempt, place);
                self.job(async move { Done::Started { container, result: job.await.map(Box::new) } });
            }
            Action::Signal { container, id: _, force } => {
                if let Some(running) = self.runs.get(&container) {
                    let number = if force { Signal::SIGKILL } else { running.stop_signal };
                    let sent = (running.signal)(number as i32);
                    self.job(async move {
                        sent.await;
                        Done::Nothing
                    });
                }
            }
            Action::Probe { container, id, kind } => self.probe(container, id, kind),
            Action::Hook { container, id, hook, patience } => self.hook(container, id, hook, patience),
        }
    }

    fn probe(&mut self, container: String, id: String, kind: super::probe::ProbeKind) {
        let probe = self.life.member(&container).and_then(|member| kind.of(&member.spec)).cloned();
        let asked = self.runs.get(&container).map(|running| running.asked.clone());
        self.job(async move {
            let finding = match (asked, probe) {
                (Some(asked), Some(probe)) => asked.probe(probe).await,
                _ => Finding::Errored("the container does not run".to_owned()),
            };
            Done::Report(Report::Probed { container, id, kind, finding })
        });
    }

    fn hook(&mut self, container: String, id: String, hook: Hook, patience: Duration) {
        let hooks = self.life.member(&container).and_then(|member| member.spec.lifecycle.clone());
        let handler = hooks.and_then(|hooks| match hook {
            Hook::PostStart => hooks.post_start,
            Hook::PreStop => hooks.pre_stop,
        });
        let asked = self.runs.get(&container).map(|running| running.asked.clone());
        // Far enough for any hook, and near enough for timers.
        let limit = patience.min(Duration::from_secs(365 * 24 * 3600));
        self.job(async move {
            let result = match (asked, handler) {
                (Some(asked), Some(handler)) => asked.hook(handler, limit).await,
                _ => Err("the container does not run".to_owned()),
            };
            Done::Report(Report::Hooked { container, id, hook, result })
        });
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Nothing => {}
            Done::Report(report) => {
                if let Report::Exited { container, .. } = &report {
                    self.runs.remove(container);
                }
                self.take(report);
            }
            Done::Prepared(Ok(prepared)) => {
                let ips = prepared.place.facts.pod_ips.clone();
                self.settle(prepared);
                self.node.board.place(&self.uid, &self.place.net, self.place.folder.clone());
                self.take(Report::Prepared(ips));
            }
            Done::Prepared(Err(Unprepared { reason, note, prepared })) => {
                self.settle(prepared);
                self.take(Report::NotPrepared { reason, note });
            }
            Done::Refreshed(prepared) => {
                self.refreshing = false;
                self.settle(prepared);
                if std::mem::take(&mut self.refresh_again) {
                    self.refresh();
                }
            }
            Done::Started { container, result: Ok(live) } => self.started(container, *live),
            Done::Started { container, result: Err(why) } => {
                self.take(Report::NotStarted { container, why });
            }
            Done::Written(status, well) => {
                self.writing = false;
                if well {
                    self.written = Some(*status);
                }
            }
            Done::Deleted(well) => self.deleting = well,
        }
    }

    fn started(&mut self, container: String, live: Live) {
        let Live { started, asked, shown, stop_signal, follow } = live;
        self.node.board.run(&self.uid, shown.clone());
        let id = started.id.clone();
        self.runs.insert(container.clone(), Running { asked, signal: shown.signal.clone(), stop_signal });
        self.take(Report::Started { container: container.clone(), run: started });
        self.job(async move {
            let exit = follow.await;
            Done::Report(Report::Exited { container, id, exit })
        });
    }

    fn prepared(&self) -> Prepared {
        Prepared { place: Place::clone(&self.place), tokens: self.tokens.clone() }
    }

    fn settle(&mut self, prepared: Prepared) {
        self.place = Arc::new(prepared.place);
        self.tokens = prepared.tokens;
    }

    /// Makes volumes of objects hold what the objects say now, and those that were not wanted before.
    fn refresh(&mut self) {
        if self.refreshing {
            self.refresh_again = true;
            return;
        }
        let as_it_is = |volume: &Volume| {
            self.place.volumes.get(&volume.name).is_some_and(|ready| ready.payload.is_none())
        };
        if !self.life.has_place() || volume::wanted(self.life.pod()).all(as_it_is) {
            return;
        }
        self.refreshing = true;
        let job = prepare::refresh(self.node.clone(), self.life.pod().clone(), self.prepared());
        self.job(async move { Done::Refreshed(job.await) });
    }

    async fn forget(&mut self) {
        self.node.board.forget(&self.uid);
        remove(&self.place.folder);
    }
}

async fn sleep_until(node: &Node, wake: Option<Timestamp>) {
    let Some(wake) = wake else { return };
    let left = wake.duration_since(node.env.now());
    node.env.sleep(Duration::try_from(left).unwrap_or_default()).await;
}
