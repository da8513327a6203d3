//! One EtcdCluster, and whether it is well: by its own word and by etcd's.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::host::Process;
use crate::kubectl::{Kubectl, name_of, uid_of, until};
use crate::world::World;

/// The longest that anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(240);

/// When members are given up, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Healing {
    /// A member that is not healthy for so long is restarted.
    pub suspect: u64,
    /// After that it is replaced.
    pub failed: u64,
    /// A learner that is not done by then is replaced.
    pub learner: u64,
}

impl Healing {
    /// Seconds instead of minutes, for whoever breaks members all the time.
    pub const SHORT: Healing = Healing { suspect: 5, failed: 12, learner: 30 };
    /// Those of a cluster that says nothing of it.
    pub const DEFAULT: Healing = Healing { suspect: 300, failed: 600, learner: 600 };
}

/// An EtcdCluster.
#[derive(Clone, Debug)]
pub struct Etcd {
    kubectl: Kubectl,
    /// Its name.
    pub name: String,
    /// Its times.
    pub healing: Healing,
    uid: String,
    limit: Duration,
}

/// A member, as the status has it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its ID in etcd, in hexadecimal.
    pub id: Option<String>,
    /// What it is to the others.
    pub role: String,
    /// Whether it is well.
    pub healthy: bool,
    /// Where it runs.
    pub node: Option<String>,
}

/// A member, as etcd has it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Listed {
    /// Its ID.
    #[serde(rename = "ID")]
    pub id: u64,
    /// Its name, once it has started.
    #[serde(default)]
    pub name: String,
    /// Whether it has no vote.
    #[serde(default, rename = "isLearner")]
    pub learner: bool,
}

impl Etcd {
    /// Makes one. It is not waited for.
    ///
    /// # Errors
    /// The server does not want it.
    pub fn create(world: &World, name: &str, size: usize, healing: Healing) -> Result<Etcd> {
        world.kubectl.apply(&manifest(name, size, healing))?;
        Etcd::there(world, name, healing)
    }

    /// One that is there already.
    ///
    /// # Errors
    /// It is not there.
    pub(crate) fn there(world: &World, name: &str, healing: Healing) -> Result<Etcd> {
        let kubectl = world.kubectl.clone();
        let made = kubectl.get("etcdcluster", name)?.with_context(|| format!("there is no {name}"))?;
        Ok(Etcd { kubectl, name: name.to_owned(), healing, uid: uid_of(&made).to_owned(), limit: LIMIT })
    }

    /// The same, with more time for everything.
    #[must_use]
    pub(crate) fn patient(self, limit: Duration) -> Etcd {
        Etcd { limit, ..self }
    }

    /// Makes one, and waits until it is well; how long that took.
    ///
    /// # Errors
    /// It does not become well.
    pub fn ready(world: &World, name: &str, size: usize, healing: Healing) -> Result<(Etcd, Duration)> {
        let etcd = Etcd::create(world, name, size, healing)?;
        let took = etcd.until_healthy(size)?;
        Ok((etcd, took))
    }

    /// Asks for another size by the scale subresource.
    ///
    /// # Errors
    /// The server does not want it.
    pub fn scale(&self, size: usize) -> Result<()> {
        self.kubectl.run(&["scale", "etcdcluster", &self.name, &format!("--replicas={size}")]).map(|_| ())
    }

    /// Deletes it with all that belongs to it, and waits until it is gone.
    ///
    /// # Errors
    /// It does not go.
    pub fn delete(&self) -> Result<()> {
        self.kubectl.run(&["delete", "etcdcluster", &self.name, "--wait=false"])?;
        let gone = || {
            let left = ["etcdclusters", "etcdmembers", "pods", "pvc"].into_iter().flat_map(|kind| {
                let names = self.names(kind).unwrap_or_else(|error| [format!("{error:#}")].into());
                names.into_iter().map(move |name| format!("{kind}/{name}"))
            });
            let left: Vec<String> = left.collect();
            Ok(if left.is_empty() { Ok(()) } else { Err(left.join(", ")) })
        };
        until(&format!("gone: {}", self.name), self.limit, gone).map(|_| ())
    }

    /// Waits until it is well with so many members, and has nothing else; how long that took.
    ///
    /// # Errors
    /// It does not become well in time: with what is wrong.
    pub fn until_healthy(&self, size: usize) -> Result<Duration> {
        self.until_so(size, |etcd| etcd.look(size, None, true))
    }

    /// Waits for `look`.
    pub(crate) fn until_so(
        &self,
        size: usize,
        look: impl Fn(&Etcd) -> Result<Result<(), String>>,
    ) -> Result<Duration> {
        let what = format!("{} healthy with {size} members", self.name);
        until(&what, self.limit, || look(self)).map(|(_, took)| took)
    }

    /// Whether it is well: its status says so, and etcd says the same. `tidy`: and nothing is left of members that went.
    /// `avoid` is a pod that nothing is asked of.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn look(&self, size: usize, avoid: Option<&str>, tidy: bool) -> Result<Result<(), String>> {
        let cluster = self.object()?;
        let mut members = members_of(&cluster)?;
        if !tidy {
            members.retain(|member| member.role != "Removed" && member.role != "Pending");
        }
        if let Some(why) = unwell(&cluster, &members, size, tidy) {
            return Ok(Err(why));
        }
        let listed = self.list(avoid)?;
        let names: BTreeSet<String> = members.into_iter().map(|member| member.name).collect();
        let known: BTreeSet<String> = listed.iter().map(|listed| listed.name.clone()).collect();
        if known != names || listed.len() != size || listed.iter().any(|listed| listed.learner) {
            return Ok(Err(format!("etcd has {listed:?}, the status {names:?}")));
        }
        if let Err(error) = self.etcdctl(avoid, &["endpoint", "health", "--cluster"]) {
            return Ok(Err(format!("{error:#}")));
        }
        for kind in ["pods", "etcdmembers", "pvc"].into_iter().filter(|_| tidy) {
            let there = self.names(kind)?;
            let wanted =
                names.iter().map(|name| if kind == "pvc" { format!("data-{name}") } else { name.clone() });
            if there != wanted.collect() {
                return Ok(Err(format!("{kind} are {there:?}, members {names:?}")));
            }
        }
        Ok(Ok(()))
    }

    /// The EtcdCluster.
    ///
    /// # Errors
    /// It is not there.
    pub fn object(&self) -> Result<Value> {
        self.kubectl.get("etcdcluster", &self.name)?.with_context(|| format!("{} is gone", self.name))
    }

    /// The members, as the status has them.
    ///
    /// # Errors
    /// It is not there.
    pub fn members(&self) -> Result<Vec<Member>> {
        members_of(&self.object()?)
    }

    /// The name of the member that has been there for longest.
    ///
    /// # Errors
    /// There is none.
    pub fn oldest(&self) -> Result<String> {
        let members = self.kubectl.list("etcdmembers", &self.label())?;
        let oldest = members.iter().min_by_key(|member| member["spec"]["serial"].as_u64());
        Ok(oldest
            .and_then(|member| member["metadata"]["name"].as_str())
            .context("there is no member")?
            .to_owned())
    }

    /// The members, as etcd has them.
    ///
    /// # Errors
    /// No member answers.
    pub fn list(&self, avoid: Option<&str>) -> Result<Vec<Listed>> {
        #[derive(Deserialize)]
        struct List {
            members: Vec<Listed>,
        }
        let said = self.etcdctl(avoid, &["member", "list", "--write-out=json"])?;
        Ok(serde_json::from_str::<List>(&said).context("etcdctl prints no list")?.members)
    }

    /// Runs etcdctl in a pod that has it and answers, but not in `avoid`.
    ///
    /// # Errors
    /// None does.
    pub fn etcdctl(&self, avoid: Option<&str>, arguments: &[&str]) -> Result<String> {
        let label = self.label();
        let pods = self.kubectl.list("pods", &label)?;
        let mut last = anyhow!("no pod of {} runs", self.name);
        let fit = |pod: &&Value| {
            Some(name_of(pod)) != avoid
                && pod["status"]["phase"] == "Running"
                && pod["metadata"]["labels"]["etcd.cloud.io/voter"] == "true"
                && pod["metadata"]["deletionTimestamp"].is_null()
        };
        for pod in pods.iter().filter(fit) {
            let mut exec = vec!["exec", name_of(pod), "--", "etcdctl"];
            exec.extend(arguments);
            match self.kubectl.run(&exec) {
                Ok(said) => return Ok(said),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The process of a member, on the host.
    pub fn process(&self, member: &str) -> Option<Process> {
        Process::with_arguments("etcd", &[&format!("--name={member}"), &self.uid])
    }

    /// The names of its objects of a kind.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn names(&self, kind: &str) -> Result<BTreeSet<String>> {
        if kind == "etcdclusters" {
            let there = self.kubectl.get("etcdcluster", &self.name)?;
            return Ok(there.iter().map(|object| name_of(object).to_owned()).collect());
        }
        let objects = match kind {
            // The operator's own kind says in its spec whose it is.
            "etcdmembers" => {
                let all = self.kubectl.json(&["get", kind, "-o", "json"])?;
                let all = all["items"].as_array().cloned().unwrap_or_default();
                all.into_iter().filter(|member| member["spec"]["cluster"] == self.name.as_str()).collect()
            }
            _ => self.kubectl.list(kind, &self.label())?,
        };
        Ok(objects.iter().map(|object| name_of(object).to_owned()).collect())
    }

    /// How many members were ever made.
    ///
    /// # Errors
    /// It is not there.
    pub fn serial(&self) -> Result<u64> {
        self.object()?["status"]["memberSerial"].as_u64().context("the status has no serial")
    }

    fn label(&self) -> String {
        format!("etcd.cloud.io/cluster={}", self.name)
    }
}

/// An EtcdCluster as it is applied. The whole history is kept, since the ledger is compared with it.
pub(crate) fn manifest(name: &str, size: usize, healing: Healing) -> Value {
    json!({
        "apiVersion": "etcd.cloud.io/v1",
        "kind": "EtcdCluster",
        "metadata": {"name": name},
        "spec": {
            "size": size,
            "options": {"autoCompactionRetention": "0"},
            "healing": {
                "suspectAfterSeconds": healing.suspect,
                "failedAfterSeconds": healing.failed,
                "learnerDeadlineSeconds": healing.learner,
                "maxReplacementsPerHour": 100,
            },
        },
    })
}

/// What is wrong with a cluster, by its own word.
pub(crate) fn unwell(cluster: &Value, members: &[Member], size: usize, tidy: bool) -> Option<String> {
    let status = &cluster["status"];
    if status["observedGeneration"] != cluster["metadata"]["generation"] {
        return Some("the status is of another generation".to_owned());
    }
    let voters = members.iter().filter(|member| matches!(&*member.role, "Voter" | "Leader"));
    let well = voters.filter(|member| member.healthy).count();
    if well != size || members.len() != size {
        return Some(format!(
            "{well} of {} members are healthy voters: {}",
            members.len(),
            status["nextAction"]
        ));
    }
    let of = |kind: &str| {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        conditions.filter(|one| one["type"] == kind).map(|one| one["status"] == "True").next()
    };
    let mut wanted = vec![("Available", true), ("QuorumAtRisk", false)];
    if tidy {
        wanted.extend([("Progressing", false), ("Degraded", false)]);
    }
    let wrong = wanted.into_iter().find(|(kind, value)| of(kind) != Some(*value));
    wrong.map(|(kind, _)| {
        format!("{kind} is {:?}: {}, {}", of(kind), status["nextAction"], status["blockedReason"])
    })
}

fn members_of(cluster: &Value) -> Result<Vec<Member>> {
    match &cluster["status"]["members"] {
        Value::Null => Ok(Vec::new()),
        members => Ok(serde_json::from_value(members.clone())?),
    }
}
