//! Which pod has which address of its node, and still has it after a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::addresses::{NodeAddresses, PODS_MAX};

/// The addresses of a node's pods, by uid. A pod that keeps running through a restart of the node keeps its address,
/// and one that is new does not get the address of one that is still known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leases {
    pods: BTreeMap<String, Ipv4Addr>,
    last: Option<Ipv4Addr>,
}

/// Why a pod has no address.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// Every address is taken.
    #[error(
        "all {PODS_MAX} addresses of {subnet} are taken: pods have to go first, or another node has to take them"
    )]
    Full {
        /// The addresses of the node.
        subnet: String,
    },
    /// What was given could not be noted.
    #[error("the addresses of pods could not be written to {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Leases {
    /// The address of a pod: the one that it has, or else one that nobody has.
    ///
    /// # Errors
    /// When there is none left.
    pub fn take(&mut self, node: NodeAddresses, uid: &str) -> Result<Ipv4Addr, Error> {
        if let Some(address) = self.pods.get(uid) {
            return Ok(*address);
        }
        let taken: BTreeSet<_> = self.pods.values().copied().collect();
        let free = node.after(self.last).find(|address| !taken.contains(address));
        let address = free.ok_or_else(|| Error::Full { subnet: node.pods() })?;
        self.pods.insert(uid.to_owned(), address);
        self.last = Some(address);
        Ok(address)
    }

    /// The pod is gone, and its address free. Whether it had one.
    pub fn release(&mut self, uid: &str) -> Option<Ipv4Addr> {
        self.pods.remove(uid)
    }

    /// Frees the addresses of all pods but these.
    pub fn retain(&mut self, known: &BTreeSet<String>) {
        self.pods.retain(|uid, _| known.contains(uid));
    }

    /// What an earlier run noted. Nothing depends on it but that pods keep their addresses: a file that is missing,
    /// damaged or of another node's addresses is as good as an empty one.
    pub fn load(path: &Path, node: NodeAddresses) -> Leases {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Leases::default(),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "addresses of pods are unknown");
                return Leases::default();
            }
        };
        let mut leases: Leases = serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "addresses of pods are unknown");
            Leases::default()
        });
        let mut seen = BTreeSet::new();
        leases.pods.retain(|_, address| node.contains(*address) && seen.insert(*address));
        leases
    }

    /// Notes it for the next run, in one step.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn store(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec(self).expect("texts and addresses are JSON");
        let new = path.with_extension("new");
        let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
        written.map_err(|source| Error::Write { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> NodeAddresses {
        NodeAddresses::of(0).unwrap()
    }

    #[test]
    fn an_address_has_one_pod_and_a_pod_one_address() {
        let mut leases = Leases::default();
        let one = leases.take(node(), "one").unwrap();
        let two = leases.take(node(), "two").unwrap();
        assert_ne!(one, two);
        assert_eq!(leases.take(node(), "one").unwrap(), one);
        assert_eq!(leases.release("one"), Some(one));
        assert_eq!(leases.release("one"), None);
        assert_ne!(leases.take(node(), "three").unwrap(), one, "it rests for a round");
    }

    #[test]
    fn a_full_node_says_so_and_takes_the_next_when_one_went() {
        let mut leases = Leases::default();
        for number in 0..PODS_MAX {
            leases.take(node(), &format!("pod-{number}")).unwrap();
        }
        let refused = leases.take(node(), "late").unwrap_err().to_string();
        assert!(refused.starts_with("all 253 addresses of 10.244.0.0/24 are taken"), "{refused}");
        let freed = leases.release("pod-7");
        assert_eq!(Some(leases.take(node(), "late").unwrap()), freed);
    }

    #[test]
    fn pods_keep_their_addresses_through_a_restart() {
        let path = std::env::temp_dir().join(format!("windlass-leases-{}", std::process::id()));
        let mut leases = Leases::default();
        let one = leases.take(node(), "one").unwrap();
        let two = leases.take(node(), "two").unwrap();
        leases.store(&path).unwrap();
        let mut again = Leases::load(&path, node());
        again.retain(&BTreeSet::from(["two".to_owned()]));
        assert_eq!(again.take(node(), "two").unwrap(), two);
        assert!(![one, two].contains(&again.take(node(), "three").unwrap()));

        assert_eq!(Leases::load(&path, NodeAddresses::of(1).unwrap()).pods, BTreeMap::new());
        std::fs::write(&path, r#"{"pods": {"a": "10.244.0.9", "b": "10.244.0.9"}, "last": null}"#).unwrap();
        assert_eq!(Leases::load(&path, node()).pods.len(), 1, "no address twice");
        std::fs::write(&path, "torn").unwrap();
        assert_eq!(Leases::load(&path, node()), Leases::default());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(Leases::load(&path, node()), Leases::default());
    }
}
