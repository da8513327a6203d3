//! A choice of controllers, and what runs them.

use std::sync::Arc;

use kube::Client;
use tokio_util::sync::CancellationToken;
use windlass::Env;
use windlass::cache::Cache;
use windlass::env::Task;
use windlass::events::Recorder;
use windlass::metrics::Metrics;

use crate::controllers::TABLE;
use crate::engine::{Controller, Runner, Sender, Wiring, Work};

/// Some of the built-in controllers.
#[derive(Default)]
pub struct Controllers(Vec<Arc<dyn Controller>>);

/// There is no controller of that name.
#[derive(Debug, thiserror::Error)]
#[error("there is no built-in controller {name:?}; there are: {}", names().collect::<Vec<_>>().join(", "))]
pub struct Unknown {
    /// The name that was given.
    pub name: String,
}

/// The names under which controllers are chosen.
fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

impl Controllers {
    /// None.
    pub fn none() -> Controllers {
        Controllers::default()
    }

    /// All that there are.
    pub fn all() -> Controllers {
        Controllers(TABLE.iter().map(|(_, new)| new()).collect())
    }

    /// Those of these names, such as `deployment` or `garbagecollector`.
    ///
    /// # Errors
    /// When there is none of a name.
    pub fn named<N: AsRef<str>>(chosen: impl IntoIterator<Item = N>) -> Result<Controllers, Unknown> {
        let find = |name: N| {
            let name = name.as_ref();
            let found = TABLE.iter().find(|(known, _)| *known == name);
            found.map(|(_, new)| new()).ok_or_else(|| Unknown { name: name.to_owned() })
        };
        chosen.into_iter().map(find).collect::<Result<_, _>>().map(Controllers)
    }

    /// The names that [`Controllers::named`] takes.
    pub fn names() -> Vec<&'static str> {
        names().collect()
    }

    /// With one more, in place of the one that has its name.
    #[must_use]
    pub fn with(mut self, controller: impl Controller) -> Controllers {
        self.0.retain(|other| other.name() != controller.name());
        self.0.push(Arc::new(controller));
        self
    }

    /// Starts them. They share one cache: a kind is watched once, whoever reads it.
    pub fn start(self, client: Client, env: &Env) -> Running {
        let stop = CancellationToken::new();
        let metrics = Metrics::new();
        let cache = Cache::new("kube-controller-manager");
        let mut events = Vec::new();
        let mut runners = Vec::new();
        for controller in self.0 {
            let work = Arc::new(Work::new(env));
            controller.declare(&mut Wiring::new(cache.clone(), work.clone()));
            let (recorder, task) =
                Recorder::start(client.clone(), env, &metrics, controller.name(), "windlass", stop.clone());
            events.push(task);
            let sender = Sender { client: client.clone(), cache: cache.clone(), recorder };
            runners.push(Arc::new(Runner {
                controller,
                work,
                cache: cache.clone(),
                sender,
                stop: stop.clone(),
            }));
        }
        let watching = cache.start(client, env, Arc::new(()));
        let tasks = runners.into_iter().map(|runner| {
            let (cache, stop) = (cache.clone(), stop.clone());
            env.spawn("controller", async move {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    _ = cache.synced() => {}
                }
                runner.run().await;
            })
        });
        Running { tasks: tasks.collect(), events, watching, cache, stop }
    }
}

/// Controllers that are running. Dropped, they end at once; [stopped](Running::stop), they finish what they are at.
pub struct Running {
    tasks: Vec<Task<()>>,
    events: Vec<Task<()>>,
    watching: Task<()>,
    cache: Cache,
    stop: CancellationToken,
}

impl Running {
    /// Resolves when all that they watch has been listed once.
    pub async fn ready(&self) {
        self.cache.synced().await;
    }

    /// Ends them.
    pub async fn stop(self) {
        self.stop.cancel();
        for task in self.tasks.into_iter().chain(self.events) {
            // Its panics were caught where they happened.
            let _ = task.await;
        }
        self.watching.abort();
    }
}
