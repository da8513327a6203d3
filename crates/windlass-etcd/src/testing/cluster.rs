//! Members that are one cluster, grown as a careful hand would grow it.

use std::ops::{Index, IndexMut};

use tempfile::TempDir;

use super::{Failure, Process, Release, Start, eventually};
use crate::{Client, Error};

/// A cluster of real processes. Indexed, it gives its processes, in the order of their starts.
#[derive(Debug)]
pub struct Cluster {
    release: Release,
    args: Vec<String>,
    serial: usize,
    // The processes go before their folders do.
    members: Vec<Process>,
    folder: TempDir,
}

impl Cluster {
    /// A cluster without a member.
    ///
    /// Members do not wait for the disk (`--unsafe-no-fsync`): a process that is killed leaves what it wrote to the kernel, and
    /// tests lose no power. `durable` makes them wait.
    ///
    /// # Errors
    /// No folder.
    pub fn new(release: &Release) -> Result<Self, Failure> {
        let folder = tempfile::tempdir().map_err(|source| Failure::Process {
            step: "make the folder",
            name: "a cluster".to_owned(),
            source,
        })?;
        let args = vec!["--unsafe-no-fsync".to_owned()];
        Ok(Self { release: release.clone(), args, serial: 0, members: Vec::new(), folder })
    }

    /// A cluster of so many voters: a seed, then one learner after the other, each promoted before the next comes.
    ///
    /// # Errors
    /// It did not come to be in time.
    pub async fn of(release: &Release, size: usize) -> Result<Self, Failure> {
        let mut cluster = Self::new(release)?;
        cluster.grow_to(size).await?;
        Ok(cluster)
    }

    /// Its members wait for the disk, as they do in production.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.args.retain(|arg| arg != "--unsafe-no-fsync");
        self
    }

    /// Members that are started from now on have this argument, too.
    #[must_use]
    pub fn with(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Grows until it has so many voters, from none if it has none.
    ///
    /// # Errors
    /// It did not come to be in time.
    pub async fn grow_to(&mut self, size: usize) -> Result<(), Failure> {
        if self.members.is_empty() && size > 0 {
            self.seed().await?;
        }
        while self.members.len() < size {
            let id = self.join().await?;
            self.promote(id).await?;
        }
        Ok(())
    }

    /// Starts the first member and waits until it leads itself.
    ///
    /// # Errors
    /// It does not, in time.
    pub async fn seed(&mut self) -> Result<(), Failure> {
        self.start_seed()?;
        let client = self.members[0].client()?;
        eventually("the seed has a leader", async || client.member_list(true).await).await?;
        Ok(())
    }

    /// Starts the first member and does not wait for it.
    ///
    /// # Errors
    /// The process does not start.
    pub fn start_seed(&mut self) -> Result<(), Failure> {
        let process = self.prepare(&Start::Seed)?;
        self.run(process)
    }

    /// Adds a learner and starts its process; gives its id. It is not promoted.
    ///
    /// # Errors
    /// etcd refuses for too long, or the process does not start.
    pub async fn join(&mut self) -> Result<u64, Failure> {
        let others = self.members.iter().map(|other| (other.name().to_owned(), other.peer_url())).collect();
        let process = self.prepare(&Start::Join(others))?;
        let (client, peer) = (self.leader().await?, process.peer_url());
        let id = eventually("a learner is added", async || match client.member_add(&[&peer], true).await {
            Ok(added) => Ok(added.member.id),
            // An earlier try had no answer, and was done all the same.
            Err(Error::MemberExists) => id_of(&client, &peer).await,
            Err(error) => Err(error),
        })
        .await?;
        self.run(process)?;
        Ok(id)
    }

    /// Promotes a learner as soon as etcd lets it be.
    ///
    /// # Errors
    /// It does not, in time.
    pub async fn promote(&mut self, id: u64) -> Result<(), Failure> {
        let client = self.leader().await?;
        eventually("a learner is promoted", async || match client.member_promote(id).await {
            Ok(_) | Err(Error::NotLearner) => Ok(()),
            Err(error) => Err(error),
        })
        .await
    }

    /// A client of the leader.
    ///
    /// # Errors
    /// There is none, for too long.
    pub async fn leader(&self) -> Result<Client, Failure> {
        let at = self.leader_at().await?;
        Ok(self.members[at].client()?)
    }

    /// Which of its processes is the leader.
    ///
    /// # Errors
    /// There is none, for too long.
    pub async fn leader_at(&self) -> Result<usize, Failure> {
        let clients: Vec<_> = self.members.iter().map(Process::client).collect::<Result<_, _>>()?;
        let short = std::time::Duration::from_millis(500);
        eventually("there is a leader", async || {
            for (at, client) in clients.iter().enumerate() {
                let status = client.within(short).status().await;
                if status.is_ok_and(|status| status.leader == status.header.member_id) {
                    return Ok(at);
                }
            }
            Err("none of the members says that it leads")
        })
        .await
    }

    /// The addresses of all its processes.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(Process::client_url).collect()
    }

    /// How many processes it has, running or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Ends a process and forgets it. What etcd thinks of it is the caller's business.
    pub fn discard(&mut self, at: usize) {
        self.members.remove(at);
    }

    /// Its folder, which goes with it.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    fn prepare(&mut self, start: &Start) -> Result<Process, Failure> {
        self.serial += 1;
        Process::new(&self.release, self.folder.path(), &format!("m{}", self.serial), start, &self.args)
    }

    fn run(&mut self, mut process: Process) -> Result<(), Failure> {
        process.start()?;
        self.members.push(process);
        Ok(())
    }
}

async fn id_of(client: &Client, peer: &String) -> Result<u64, Error> {
    let members = client.member_list(true).await?.members;
    members
        .iter()
        .find(|member| member.peer_urls.contains(peer))
        .map(|member| member.id)
        .ok_or(Error::MemberNotFound)
}

impl Index<usize> for Cluster {
    type Output = Process;

    fn index(&self, at: usize) -> &Process {
        &self.members[at]
    }
}

impl IndexMut<usize> for Cluster {
    fn index_mut(&mut self, at: usize) -> &mut Process {
        &mut self.members[at]
    }
}
