//! What is asked of etcd, and who answers.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use windlass_etcd::{Client, Error, Member, Options, Status};

/// What is asked of etcd. The operator asks real processes; a test may answer itself.
///
/// Every call goes to the one member at `address`, and ends within a deadline.
pub trait Etcd: Send + Sync + 'static {
    /// What a member says of itself.
    fn status<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Result<Status, Error>>;
    /// The cluster's ID and its members: linearizable, or as the member has them on its disk.
    fn members<'a>(
        &'a self,
        address: &'a str,
        linearizable: bool,
    ) -> BoxFuture<'a, Result<(u64, Vec<Member>), Error>>;
    /// Adds a learner.
    fn add_learner<'a>(&'a self, address: &'a str, peer_url: &'a str) -> BoxFuture<'a, Result<(), Error>>;
    /// Gives a learner its vote.
    fn promote<'a>(&'a self, address: &'a str, id: u64) -> BoxFuture<'a, Result<(), Error>>;
    /// Removes a member.
    fn remove<'a>(&'a self, address: &'a str, id: u64) -> BoxFuture<'a, Result<(), Error>>;
    /// Lets another member lead. Only the leader does that.
    fn move_leader<'a>(&'a self, address: &'a str, to: u64) -> BoxFuture<'a, Result<(), Error>>;
}

/// How long a member may take to say how it is: one that takes longer is not healthy. Every look waits for the slowest.
const LOOK: Duration = Duration::from_secs(1);
/// How long a list may take: it needs an answer of a quorum.
const LIST: Duration = Duration::from_secs(3);
/// How long a change may take: etcd itself gives up after seven seconds.
const CHANGE: Duration = Duration::from_secs(10);
/// How many connections are kept. Addresses of pods come and go: when there are more, all are made anew.
const KEPT: usize = 1000;

/// Asks over the network, one client for each member.
#[derive(Debug, Default)]
pub struct Network {
    options: Options,
    clients: Mutex<BTreeMap<String, Client>>,
}

impl Network {
    /// Connections made this way.
    pub fn with(options: Options) -> Network {
        Network { options, clients: Mutex::default() }
    }

    fn client(&self, address: &str) -> Result<Client, Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(address) {
            return Ok(client.clone());
        }
        let client = Client::with(address, self.options.clone())?;
        if clients.len() >= KEPT {
            clients.clear();
        }
        clients.insert(address.to_owned(), client.clone());
        Ok(client)
    }
}

impl Etcd for Network {
    fn status<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Result<Status, Error>> {
        Box::pin(async move { self.client(address)?.within(LOOK).status().await })
    }

    fn members<'a>(
        &'a self,
        address: &'a str,
        linearizable: bool,
    ) -> BoxFuture<'a, Result<(u64, Vec<Member>), Error>> {
        Box::pin(async move {
            let listed = self.client(address)?.within(LIST).member_list(linearizable).await?;
            Ok((listed.header.cluster_id, listed.members))
        })
    }

    fn add_learner<'a>(&'a self, address: &'a str, peer_url: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let added = self.client(address)?.within(CHANGE).member_add(&[peer_url], true).await;
            added.map(|_| ())
        })
    }

    fn promote<'a>(&'a self, address: &'a str, id: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.client(address)?.within(CHANGE).member_promote(id).await.map(|_| ()) })
    }

    fn remove<'a>(&'a self, address: &'a str, id: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.client(address)?.within(CHANGE).member_remove(id).await.map(|_| ()) })
    }

    fn move_leader<'a>(&'a self, address: &'a str, to: u64) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { self.client(address)?.within(CHANGE).move_leader(to).await })
    }
}
