//! What happens to etcd clusters, each as a value that can be inflicted on one.

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::Signal;

use crate::etcd::{Etcd, Member};
use crate::host::Process;
use crate::kubectl::{uid_of, until};
use crate::random::Random;
use crate::world::World;

/// Something that happens to a cluster of three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Fault {
    /// A member's pod is deleted.
    PodDeleted,
    /// A member's process is killed.
    ProcessKilled,
    /// A member's process hangs; it goes on when everybody has given it up, or never.
    ProcessHung,
    /// A member's data is gone, and its process with it.
    DataWiped,
    /// The same, of the oldest member: if the cluster began with it, it must not begin a second time.
    OldestWiped,
    /// A member's claim and pod are deleted.
    VolumeLost,
    /// A member is removed from etcd by somebody else.
    MemberRemoved,
    /// The cluster grows, and its learner hangs.
    LearnerStuck,
    /// A member's node is cut off from all others.
    NodeCut,
    /// The operator is killed, and then a member's pod is deleted.
    OperatorKilled,
}

/// What a fault leaves: when it was, and what must be different before anybody may speak of healing.
#[derive(Debug)]
pub struct Wound {
    /// When it was inflicted.
    pub at: Instant,
    /// Whose it is.
    pub member: Member,
    /// How many members there should be.
    pub size: usize,
    closes: Closes,
    node: Option<String>,
}

#[derive(Debug)]
enum Closes {
    /// When the pod is another one, or the member has gone.
    PodAnew { uid: String },
    /// When the process is another one.
    ProcessAnew { process: Process },
    /// When etcd has no such member.
    Replaced,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 10] = [
        Fault::PodDeleted,
        Fault::ProcessKilled,
        Fault::ProcessHung,
        Fault::DataWiped,
        Fault::OldestWiped,
        Fault::VolumeLost,
        Fault::MemberRemoved,
        Fault::LearnerStuck,
        Fault::NodeCut,
        Fault::OperatorKilled,
    ];

    /// Whether it concerns every EtcdCluster at once.
    pub fn is_of_all(self) -> bool {
        matches!(self, Fault::NodeCut | Fault::OperatorKilled)
    }

    /// Inflicts it on a healthy cluster of three.
    ///
    /// # Errors
    /// It cannot be done.
    pub fn inflict(self, world: &World, etcd: &Etcd, random: &mut Random) -> Result<Wound> {
        let members = etcd.members()?;
        let operator = world.operator()?;
        // The operator and the load stay where they are; everybody else's node may be cut off.
        let spared = operator["spec"]["nodeName"].as_str();
        let oldest = etcd.oldest()?;
        let fit = |member: &&Member| match self {
            // A node with two of three members would take the quorum with it.
            Fault::NodeCut => {
                let there = members.iter().filter(|other| other.node == member.node).count();
                member.node.as_deref() != spared && there == 1
            }
            Fault::OldestWiped => member.name == oldest,
            _ => true,
        };
        let fit: Vec<Member> = members.iter().filter(fit).cloned().collect();
        let victim = random.one_of(&fit).context("there is no member that it could happen to")?.clone();
        let size = members.len();
        let wound = |closes, member| Wound { at: Instant::now(), member, size, closes, node: None };
        match self {
            Fault::PodDeleted => {
                let uid = delete_pod(world, &victim.name)?;
                Ok(wound(Closes::PodAnew { uid }, victim))
            }
            Fault::OperatorKilled => {
                world.kill_operator()?;
                let uid = delete_pod(world, &victim.name)?;
                Ok(wound(Closes::PodAnew { uid }, victim))
            }
            Fault::ProcessKilled => {
                let process = process_of(etcd, &victim)?;
                process.signal(Signal::SIGKILL)?;
                Ok(wound(Closes::ProcessAnew { process }, victim))
            }
            Fault::ProcessHung => {
                let (process, uid) = (process_of(etcd, &victim)?, pod_uid(world, &victim.name)?);
                process.signal(Signal::SIGSTOP)?;
                let wound = wound(Closes::PodAnew { uid }, victim);
                if random.below(2) == 0 {
                    given_up(world, &wound)?;
                    // By now it may have been killed.
                    let _ = process.signal(Signal::SIGCONT);
                }
                Ok(wound)
            }
            Fault::DataWiped | Fault::OldestWiped => {
                let process = process_of(etcd, &victim)?;
                empty(&world.folder_of(&claim_of(&victim))?)?;
                process.signal(Signal::SIGKILL)?;
                Ok(wound(Closes::Replaced, victim))
            }
            Fault::VolumeLost => {
                let wound = wound(Closes::Replaced, victim.clone());
                world.kubectl.run(&["delete", "pvc", &claim_of(&victim), "--wait=false"])?;
                delete_pod(world, &victim.name)?;
                Ok(wound)
            }
            Fault::MemberRemoved => {
                let wound = wound(Closes::Replaced, victim.clone());
                let id = victim.id.as_deref().context("a member has an ID")?;
                etcd.etcdctl(Some(&victim.name), &["member", "remove", id])?;
                Ok(wound)
            }
            Fault::LearnerStuck => {
                etcd.scale(size + 2)?;
                let learner = stop_learner(etcd, &members)?;
                Ok(Wound { size: size + 2, ..wound(Closes::Replaced, learner) })
            }
            Fault::NodeCut => {
                let node = victim.node.clone().context("a member has a node")?;
                let wound = Wound { node: Some(node.clone()), ..wound(Closes::Replaced, victim) };
                world.connect(&node, false)?;
                Ok(wound)
            }
        }
    }
}

impl Wound {
    /// Waits until it is closed and the cluster is healthy; how long that took since it was inflicted. What is left of it
    /// is then undone, and it is waited until nothing reminds of it.
    ///
    /// # Errors
    /// It does not heal.
    pub fn heal(&self, world: &World, etcd: &Etcd) -> Result<Duration> {
        let member = &self.member.name;
        // While a node is cut off, what is left on it cannot be tidied up.
        let tidy = self.node.is_none();
        let healed = etcd.until_so(self.size, |etcd| match self.is_closed(world, etcd)? {
            true => etcd.look(self.size, Some(member), tidy),
            false => Ok(Err(format!("nobody has noticed what happened to {member}"))),
        });
        let took = self.at.elapsed();
        // Healed or not: others need the node.
        if let Some(node) = &self.node {
            world.connect(node, true)?;
        }
        healed?;
        if self.node.is_some() {
            etcd.until_healthy(self.size)?;
        }
        Ok(took)
    }

    fn is_closed(&self, world: &World, etcd: &Etcd) -> Result<bool> {
        let name = &self.member.name;
        match &self.closes {
            Closes::PodAnew { uid } => {
                Ok(world.kubectl.get("pod", name)?.is_none_or(|pod| uid_of(&pod) != uid))
            }
            Closes::ProcessAnew { process } => Ok(!process.is_alive()),
            Closes::Replaced => {
                let id = self.member.id.as_deref().and_then(|id| u64::from_str_radix(id, 16).ok());
                let is_it = |listed: &crate::etcd::Listed| Some(listed.id) == id || listed.name == *name;
                Ok(!etcd.list(Some(name))?.iter().any(is_it))
            }
        }
    }
}

/// Waits until the operator has asked for the end of a member's pod.
fn given_up(world: &World, wound: &Wound) -> Result<()> {
    let name = &wound.member.name;
    until("given up", Duration::from_secs(120), || {
        let pod = world.kubectl.get("pod", name)?;
        let runs = pod.is_some_and(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        Ok(if runs { Err(format!("pod {name} is left alone")) } else { Ok(()) })
    })?;
    Ok(())
}

/// Stops the process of the first member that is none of these, as soon as it is there.
fn stop_learner(etcd: &Etcd, before: &[Member]) -> Result<Member> {
    let (learner, _) = until("a learner", Duration::from_secs(60), || {
        let new = etcd.members()?.into_iter().find(|member| before.iter().all(|old| old.name != member.name));
        Ok(new.ok_or_else(|| "there is no new member".to_owned()))
    })?;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(60) {
        if let Some(process) = etcd.process(&learner.name) {
            process.signal(Signal::SIGSTOP)?;
            return Ok(learner);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    bail!("the learner {} does not start", learner.name)
}

fn delete_pod(world: &World, pod: &str) -> Result<String> {
    let uid = pod_uid(world, pod)?;
    world.kubectl.run(&["delete", "pod", pod, "--wait=false"])?;
    Ok(uid)
}

fn pod_uid(world: &World, pod: &str) -> Result<String> {
    let pod = world.kubectl.get("pod", pod)?.context("the member has no pod")?;
    Ok(uid_of(&pod).to_owned())
}

fn process_of(etcd: &Etcd, member: &Member) -> Result<Process> {
    etcd.process(&member.name).with_context(|| format!("{} has no process on this machine", member.name))
}

fn claim_of(member: &Member) -> String {
    format!("data-{}", member.name)
}

/// Removes what is in a folder.
fn empty(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) }
            .with_context(|| path.display().to_string())?;
    }
    Ok(())
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::PodDeleted => "pod deleted",
            Fault::ProcessKilled => "process killed",
            Fault::ProcessHung => "process hung",
            Fault::DataWiped => "data directory wiped",
            Fault::OldestWiped => "data directory of the oldest wiped",
            Fault::VolumeLost => "volume lost",
            Fault::MemberRemoved => "member removed behind our back",
            Fault::LearnerStuck => "learner stuck",
            Fault::NodeCut => "node cut off",
            Fault::OperatorKilled => "operator killed, pod deleted",
        })
    }
}
