//! Where etcd is, as a careful user follows it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use windlass_etcd::{Client, Error, Options};

/// The members that are asked, one client for each: those that were named, and those that the cluster names.
#[derive(Debug)]
pub struct Endpoints {
    /// Always asked, whatever the cluster says: a Service, or the members of the beginning.
    named: BTreeSet<String>,
    options: Options,
    clients: Mutex<BTreeMap<String, Client>>,
}

impl Endpoints {
    /// Only those that are named, for now.
    ///
    /// # Errors
    /// One is no address.
    pub fn new(named: &[String], options: Options) -> Result<Self, Error> {
        let mut clients = BTreeMap::new();
        for address in named {
            clients.insert(address.clone(), Client::with(address, options.clone())?);
        }
        Ok(Self { named: named.iter().cloned().collect(), options, clients: Mutex::new(clients) })
    }

    /// The `turn`-th client, round and round.
    pub fn at(&self, turn: usize) -> Option<Client> {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.values().nth(turn % clients.len().max(1)).cloned()
    }

    /// All addresses.
    pub fn addresses(&self) -> Vec<String> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Takes over the voters that the cluster has now, as the first member says that answers a linearizable list.
    pub async fn follow(&self) {
        let clients: Vec<_> =
            self.clients.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        for client in clients {
            let Ok(list) = client.member_list(true).await else { continue };
            let voters = list.members.into_iter().filter(|member| !member.is_learner);
            let addresses: BTreeSet<String> = voters.flat_map(|member| member.client_urls).collect();
            let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            clients.retain(|address, _| self.named.contains(address) || addresses.contains(address));
            for address in addresses {
                // What the cluster calls an address of itself and is none cannot be asked; the others can.
                if let Ok(client) = Client::with(&address, self.options.clone()) {
                    clients.entry(address).or_insert(client);
                }
            }
            return;
        }
    }
}
