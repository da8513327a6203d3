//! Many small clusters at once.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::etcd::{Healing, manifest};
use crate::host::Usage;
use crate::kubectl::{name_of, until};
use crate::world::World;

/// What was measured.
#[derive(Debug)]
pub struct Fifty {
    clusters: usize,
    /// How long each took until it was available, shortest first.
    ready: Vec<Duration>,
    /// The operator before, when all were ready, and after the rest.
    usage: [Usage; 3],
    rest: Duration,
}

/// Makes so many EtcdClusters of one member at once, waits until all are available, and looks what the operator needs for
/// it, and for doing nothing afterwards.
///
/// # Errors
/// Not all become available.
pub fn fifty(world: &World, clusters: usize, rest: Duration) -> Result<Fifty> {
    let process = world.operator_process()?;
    let before = process.usage()?;
    let names = (0..clusters).map(|number| format!("many-{number}"));
    let items: Vec<Value> = names.map(|name| manifest(&name, 1, Healing::DEFAULT)).collect();
    let started = Instant::now();
    // One kubectl makes one after the other: several make them nearly at once.
    let make = |items: &[Value]| {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        world.kubectl.feed(&["create", "-f", "-"], &list.to_string()).map(|_| ())
    };
    std::thread::scope(|scope| {
        let makers: Vec<_> = items.chunks(10).map(|items| scope.spawn(move || make(items))).collect();
        makers.into_iter().try_for_each(|maker| maker.join().expect("it does not panic"))
    })?;
    let mut ready = BTreeMap::new();
    until("available: all clusters", Duration::from_secs(600), || {
        let all = world.kubectl.json(&["get", "etcdclusters", "-o", "json"])?;
        for cluster in all["items"].as_array().into_iter().flatten().filter(|one| is_available(one)) {
            ready.entry(name_of(cluster).to_owned()).or_insert_with(|| started.elapsed());
        }
        Ok(if ready.len() == clusters { Ok(()) } else { Err(format!("{} of {clusters}", ready.len())) })
    })?;
    let busy = process.usage()?;
    // What was begun ends: labels, events, the last look of each.
    std::thread::sleep(Duration::from_secs(20));
    let still = process.usage()?;
    std::thread::sleep(rest);
    let after = process.usage()?;
    ensure!(world.operator_process()? == process, "the operator was started again meanwhile");
    let idle = Usage { time: after.time - still.time, memory_kib: after.memory_kib };
    let mut ready: Vec<Duration> = ready.into_values().collect();
    ready.sort_unstable();
    let usage = [before, Usage { time: busy.time - before.time, ..busy }, idle];
    world.kubectl.run(&["delete", "etcdclusters", "--all", "--wait=false"])?;
    Ok(Fifty { clusters, ready, usage, rest })
}

impl Fifty {
    /// How much of a core the operator needs at rest, in per cent.
    pub fn idle_percent(&self) -> f64 {
        self.usage[2].time.as_secs_f64() / self.rest.as_secs_f64() * 100.0
    }
}

fn is_available(cluster: &Value) -> bool {
    let conditions = cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|one| one["type"] == "Available" && one["status"] == "True")
}

impl fmt::Display for Fifty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, busy, idle] = &self.usage;
        let seconds = |at: usize| self.ready.get(at).map_or(0.0, Duration::as_secs_f64);
        writeln!(
            f,
            "{} EtcdClusters of one member at once: the first available after {:.1} s, half after {:.1} s, all after {:.1} s",
            self.clusters,
            seconds(0),
            seconds(self.ready.len() / 2),
            seconds(self.ready.len().saturating_sub(1)),
        )?;
        writeln!(
            f,
            "the operator meanwhile: {:.2} s of a core; memory {:.1} MiB before, {:.1} MiB then, {:.1} MiB at rest",
            busy.time.as_secs_f64(),
            before.memory_kib as f64 / 1024.0,
            busy.memory_kib as f64 / 1024.0,
            idle.memory_kib as f64 / 1024.0,
        )?;
        write!(
            f,
            "at rest, over {:.0} s: {:.3} s of a core, {:.2} %",
            self.rest.as_secs_f64(),
            idle.time.as_secs_f64(),
            self.idle_percent()
        )
    }
}
