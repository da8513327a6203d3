//! Reads while writes wait for a webhook that hangs.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::sync::oneshot;

use super::rates;
use crate::hook::{Hook, Manner};
use crate::load::Until;
use crate::objects::{Kind, NAMESPACE};
use crate::server::Server;
use crate::{Numbers, Settings};

/// How many writes wait.
const WAITING: usize = 100;
/// How many objects are read.
const OBJECTS: usize = 1000;

/// Reads for a while, and then once more while writes wait.
pub fn measure(server: &Server, settings: &Settings) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    server.create_namespace(NAMESPACE)?;
    let hook = Hook::start(Manner::Hangs)?;
    hook.configure(server, "slow", "yes")?;
    rates::create(server, settings.connections, Until::Count(OBJECTS), "read")?;
    let read = || rates::read(server, settings.connections, Until::Passed(settings.time), "read", OBJECTS);
    // Once for the caches of processor, kernel and runtime.
    rates::read(server, settings.connections, Until::Count(OBJECTS), "read", OBJECTS)?;
    let calm = read()?;
    let (stop, stopped) = oneshot::channel();
    let hung = thread::scope(|scope| {
        let writers = scope.spawn(|| wait(server, stopped));
        let deadline = Instant::now() + Duration::from_secs(20);
        while hook.asked() < WAITING && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        let asked = hook.asked();
        let hung = read();
        // Whoever waits no longer has told why by then.
        let _ = stop.send(());
        writers.join().expect("no panic")?;
        ensure!(asked >= WAITING, "only {asked} writes wait for the webhook");
        hung
    })?;
    numbers.insert("calm get p99", calm.p99.as_secs_f64());
    numbers.insert("hung get p99", hung.p99.as_secs_f64());
    numbers.insert("hung get rate", hung.rate());
    Ok(numbers)
}

/// Sends writes that the webhook is asked about, and waits with them.
fn wait(server: &Server, stopped: oneshot::Receiver<()>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let path = Kind::ConfigMap.collection(NAMESPACE);
    let write = async |n: usize| {
        let body = json!({"metadata": {"name": format!("slow-{n}"), "labels": {"slow": "yes"}}});
        let mut request = Vec::new();
        server.requests.post(&path, &body.to_string(), &mut request);
        let (status, _) = server.connector.open().await?.exchange(&request).await?;
        // It has to wait until it is told to stop.
        anyhow::bail!("a write was answered with {status}")
    };
    runtime.block_on(async {
        let writes = futures_util::future::try_join_all((0..WAITING).map(write));
        tokio::select! {
            biased;
            _ = stopped => Ok(()),
            answered = writes => answered.map(|_: Vec<()>| ()),
        }
    })
}
