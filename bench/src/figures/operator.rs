//! An operator with many objects: what a start costs, what they weigh, and whether anybody has to wait.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use foobar_operator::api::{FooBar, FooBarSpec};
use foobar_operator::goal;
use kube::api::{Api, PostParams};
use serde_json::Value;
use windlass_apiserver::api::audit::Record;
use windlass_testing::TestCluster;

use super::median;
use crate::cluster::Cluster;
use crate::operator::Operator;
use crate::server::Programs;
use crate::{Numbers, Settings};

/// How long to watch that nothing more happens.
const REST: Duration = Duration::from_secs(2);

/// How long the creation of all may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Makes the objects, then starts the operator on them again and again.
pub fn measure(programs: &Programs, settings: &Settings, numbers: &mut Numbers) -> Result<()> {
    let folder = programs.scratch.join("operator");
    let mut bench = Bench {
        cluster: Cluster::start(&folder)?,
        program: programs.foobar_operator.clone(),
        folder,
        count: settings.foobars,
    };
    bench.create_all(numbers)?;
    bench.start(numbers)?;
    bench.count_passes(numbers)?;
    bench.newcomers(numbers)
}

struct Bench {
    cluster: Cluster,
    program: PathBuf,
    folder: PathBuf,
    /// How many FooBars.
    count: usize,
}

impl Bench {
    fn operator(&self, name: &str, arguments: &[&str]) -> Result<Operator> {
        let log = self.folder.join(format!("{name}.log"));
        Operator::start(&self.program, &self.cluster.kubeconfig, &log, arguments)
    }

    /// From nothing: the operator is there, and all objects come at once.
    fn create_all(&mut self, numbers: &mut Numbers) -> Result<()> {
        let mut operator = self.operator("create", &["--install-crds"])?;
        operator.wait_ready()?;
        thread::sleep(REST);
        numbers.insert("operator idle", operator.resident_bytes()? as f64);
        self.cluster.requests()?;
        let (before, spent) = (Instant::now(), operator.cpu_seconds()?);
        let creating = thread::spawn({
            let (cluster, count) = (self.cluster.cluster.clone(), self.count);
            move || create(&cluster, (0..count).map(|n| format!("many-{n:05}")))
        });
        let mut written = 0;
        // To look at all of them is dear, so first they are only counted; and not too often, which costs the operator.
        while operator.settled()? < self.count as u64 || self.unready() > 0 {
            written += writes(&self.cluster.requests()?);
            ensure!(before.elapsed() < PATIENCE, "{} FooBars are not ready", self.unready());
            thread::sleep(Duration::from_millis(100));
        }
        let took = before.elapsed();
        creating.join().expect("the creating thread panicked")?;
        let spent = operator.cpu_seconds()? - spent;
        thread::sleep(REST);
        written += writes(&self.cluster.requests()?);
        let each = |total: f64| total / self.count as f64;
        numbers.insert("operator create", took.as_secs_f64());
        numbers.insert("operator create cpu", each(spent));
        numbers.insert("operator create passes", each(operator.passes()? as f64));
        numbers.insert("operator create writes", each(written as f64));
        Ok(())
    }

    fn unready(&self) -> usize {
        let foobars = self.cluster.cluster.world().list::<FooBar>(None);
        self.count - foobars.iter().filter(|foobar| goal::is_ready(foobar)).count()
    }

    /// A new process, and nothing to do for it.
    fn start(&mut self, numbers: &mut Numbers) -> Result<()> {
        self.cluster.requests()?;
        let mut operator = self.operator("start", &[])?;
        let took = operator.wait_settled(self.count as u64)?;
        let spent = operator.cpu_seconds()?;
        thread::sleep(REST);
        let requests = self.cluster.requests()?;
        let resident = operator.resident_bytes()? as f64;
        let idle = *numbers.get("operator idle").context("measured before")?;
        numbers.insert("operator start", took.as_secs_f64());
        numbers.insert("operator start cpu", spent / self.count as f64);
        numbers.insert("operator start requests", requests.len() as f64);
        numbers.insert("operator start writes", writes(&requests) as f64);
        numbers.insert("operator memory", resident);
        numbers.insert("operator memory each", (resident - idle) / self.count as f64);
        Ok(())
    }

    /// The same, with a log that has a line for each pass.
    fn count_passes(&mut self, numbers: &mut Numbers) -> Result<()> {
        let arguments = ["--log-format", "json", "--log-level", "windlass::controller=debug"];
        let mut operator = self.operator("passes", &arguments)?;
        operator.wait_settled(self.count as u64)?;
        thread::sleep(REST);
        let mut passes: BTreeMap<String, u64> = BTreeMap::new();
        for line in operator.log()?.lines() {
            let line: Value = serde_json::from_str(line)?;
            if line["message"] == "reconciled" {
                let object = line["span"]["object"].as_str().context("a pass without an object")?;
                *passes.entry(object.to_owned()).or_default() += 1;
            }
        }
        numbers.insert("operator unseen", self.count as f64 - passes.len() as f64);
        numbers.insert("operator passes most", passes.into_values().max().unwrap_or_default() as f64);
        Ok(())
    }

    /// Objects that come one after the other while the first list is worked through.
    fn newcomers(&mut self, numbers: &mut Numbers) -> Result<()> {
        let mut operator = self.operator("newcomers", &[])?;
        operator.wait_settled(1)?;
        let started = Instant::now();
        let cluster = &self.cluster.cluster;
        let mut waits = Vec::new();
        // The last one is left out: it may have come when the list was done.
        while operator.settled()? < self.count as u64 {
            let name = format!("new-{:05}", waits.len());
            let created = Instant::now();
            create(cluster, std::iter::once(name.clone()))?;
            while !cluster.world().get("default", &name).is_some_and(|foobar| goal::is_ready(&foobar)) {
                ensure!(created.elapsed() < PATIENCE, "{name} is not ready");
                thread::sleep(Duration::from_micros(200));
            }
            waits.push(created.elapsed().as_secs_f64());
        }
        let list = started.elapsed();
        waits.pop();
        ensure!(!waits.is_empty(), "the first list was worked through before anything else came");
        numbers.insert("operator newcomers", waits.len() as f64);
        numbers.insert("operator list", list.as_secs_f64());
        numbers.insert("operator newcomer worst", waits.iter().copied().fold(0.0, f64::max));
        numbers.insert("operator newcomer", median(waits));
        Ok(())
    }
}

/// How many requests would change something, whether they did or not.
fn writes(requests: &[Record]) -> usize {
    requests.iter().filter(|request| !matches!(request.verb, "get" | "list" | "watch")).count()
}

/// Creates FooBars, from inside of this process.
fn create(cluster: &TestCluster, names: impl Iterator<Item = String>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let api: Api<FooBar> = Api::default_namespaced(cluster.client());
        for name in names {
            let spec = FooBarSpec { target: format!("{name}.example.com"), type_: Some("host".to_owned()) };
            api.create(&PostParams::default(), &FooBar::new(&name, spec)).await?;
        }
        Ok(())
    })
}
