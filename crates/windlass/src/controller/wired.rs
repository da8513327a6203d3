//! A controller in its place: what it listens to is declared, and it can run.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use windlass_core::queue::Wake;
use windlass_core::{Cause, Kind, ObjectKey};

use super::Controller;
use super::wire::Primary;
use super::work::Work;
use super::worker::Worker;
use crate::cache::{Cached, Informer};
use crate::context::Shared;
use crate::env::Task;
use crate::executor::Executor;
use crate::{Error, Rules};

/// A controller of any kind.
pub(crate) trait AnyController: Send {
    fn name(&self) -> String;
    fn rules(&self) -> &Rules;
    /// Declares what it reads and listens to it. Nothing runs before the cache is started.
    fn wire(self: Box<Self>, shared: &Arc<Shared>) -> Wired;
}

/// A controller that has its place.
pub(crate) struct Wired {
    pub kind: Kind,
    /// Works until the operator is told to stop.
    pub run: BoxFuture<'static, ()>,
    /// Says what it would do for an object.
    pub preview: Preview,
}

type Preview = Box<dyn Fn(Target) -> BoxFuture<'static, Result<Vec<String>, Error>> + Send>;

/// What to preview.
pub(crate) enum Target {
    /// The object as it is in the cluster.
    Named(ObjectKey),
    /// An object as somebody wrote it.
    Written(serde_json::Value),
}

impl<K> AnyController for Controller<K>
where
    K: Cached,
{
    fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.kind.resource.kind.to_lowercase())
    }

    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn wire(self: Box<Self>, shared: &Arc<Shared>) -> Wired {
        let name: Arc<str> = self.name().into();
        let work = Work::new(name.clone(), shared, self.queue);
        let executor = Executor::new(shared.writer.clone(), shared.cache.clone(), shared.env.clone(), &name);
        let executor =
            self.owned.into_iter().fold(executor, |executor, (kind, prune)| executor.owns(kind, prune));
        let executor = self.finalizer.into_iter().fold(executor, Executor::finalizer);
        let executor = Arc::new(executor);
        let informer = shared.cache.declare(self.declared);
        informer.subscribe(Arc::new(Primary {
            work: work.clone(),
            executor: executor.clone(),
            kind: self.kind.to_string().into(),
            predicates: self.predicates,
        }));
        let others = self.others.into_iter().map(|other| other(&shared.cache, &work));
        let others: Vec<Box<dyn Settles>> = others.collect();
        let worker = Arc::new(Worker {
            work,
            kind: self.kind.clone(),
            informer,
            reconciler: self.reconciler,
            shared: shared.clone(),
            executor,
            concurrency: self.concurrency,
            timeout: self.timeout,
            every: self.every,
        });
        let previewed = worker.clone();
        Wired {
            kind: self.kind,
            run: Box::pin(run(worker, others, self.channels)),
            preview: Box::new(move |target| Box::pin(previewed.clone().preview(target))),
        }
    }
}

/// Waits for the caches, then works.
async fn run<K>(worker: Arc<Worker<K>>, others: Vec<Box<dyn Settles>>, channels: Vec<Channel>)
where
    K: Cached,
{
    let shared = worker.shared.clone();
    let forwarding: Vec<Task<()>> = channels
        .into_iter()
        .map(|channel| shared.env.spawn("channel", channel.forward(worker.work.clone())))
        .collect();
    tokio::select! {
        biased;
        () = shared.shutdown.cancelled() => return,
        // Without its own kind there is nothing to do. A kind beside it that the server refuses to show must not stop
        // it: who reads that kind is told so.
        () = async {
            worker.informer.listed().await;
            for other in &others {
                other.settled().await;
            }
        } => {}
    }
    tracing::info!(controller = &*worker.work.name, workers = worker.concurrency, "controller started");
    worker.run().await;
    drop(forwarding);
}

/// Something that comes to a first answer, good or bad.
pub(super) trait Settles: Send + Sync {
    fn settled(&self) -> BoxFuture<'_, ()>;
}

impl<C: Cached> Settles for Informer<C> {
    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { drop(self.synced().await) })
    }
}

/// A source of keys outside of the cluster.
pub(super) struct Channel {
    pub name: Arc<str>,
    pub keys: mpsc::Receiver<ObjectKey>,
}

impl Channel {
    async fn forward(mut self, work: Arc<Work>) {
        while let Some(key) = self.keys.recv().await {
            work.wake(key, Wake::new(Cause::Outside(self.name.clone())));
        }
    }
}
