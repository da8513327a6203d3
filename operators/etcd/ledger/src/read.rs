//! What etcd has, read when the load is over.

use std::time::{Duration, Instant};

use windlass_etcd::{Client, EventKind, KeyValue, Range, Watch};

use crate::ledger::{Change, History, Key};
use crate::load::Options;

/// Why the history could not be read. Nothing is proved then, neither way.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no address to ask.
    #[error("there is no member to ask")]
    Nobody,
    /// The mark of the end could not be written.
    #[error("no member took the write that marks the end, within {within:?}")]
    Mark {
        /// How long was tried.
        within: Duration,
        /// What the last one said.
        #[source]
        source: windlass_etcd::Error,
    },
    /// The history is not told.
    #[error("the history cannot be read from {address}; where it has been compacted, nothing can be said")]
    History {
        /// Who was asked.
        address: String,
        /// What it said.
        #[source]
        source: windlass_etcd::Error,
    },
}

/// How long the cluster may take until it serves again when the load has ended.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long each part of the history may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// Reads all changes of the keys of a load, from a watch at revision 1 up to a mark that is written first; the state and the
/// hash of every member that answers are read at the mark.
///
/// # Errors
/// The cluster does not serve, or has forgotten its history.
pub async fn history(options: &Options, endpoints: &[String]) -> Result<History, Error> {
    let client = |address: &String| Client::with(address, options.client.clone());
    let clients: Vec<Client> = endpoints.iter().filter_map(|address| client(address).ok()).collect();
    let end = format!("{}/end", options.prefix);
    let (client, mark) = mark(&clients, &end).await?;
    let failed = |source| Error::History { address: client.address(), source };
    let patient = client.within(DEADLINE);
    let mut history = History::default();
    let mut events = patient.watch(Watch::prefix(format!("{}/", options.prefix), 1)).await.map_err(failed)?;
    loop {
        let event = events.next().await.map_err(failed)?;
        // The mark of an earlier reading is none of this one.
        if event.kv.key == end.as_bytes() {
            match event.kv.mod_revision < mark {
                true => continue,
                false => break,
            }
        }
        let number = number(&event.kv).filter(|_| event.kind() == EventKind::Put);
        let (revision, version) = (event.kv.mod_revision, event.kv.version);
        history.changes.push(Change { key: key(options, &event.kv), number, revision, version });
    }
    let keys = Range::prefix(format!("{}/k", options.prefix)).at(mark);
    for kv in patient.range(keys).await.map_err(failed)?.kvs {
        if let (Some(key), Some(number)) = (key(options, &kv), number(&kv)) {
            history.state.insert(key, (number, kv.mod_revision));
        }
    }
    for client in &clients {
        // A linearizable read first: then the member has all that the others have.
        let Ok(_) = client.get(end.clone()).await else { continue };
        if let Ok(hash) = client.hash_kv(mark).await {
            history.hashes.insert(client.address(), hash.hash);
        }
    }
    Ok(history)
}

/// Writes the mark, by the first member that takes it.
async fn mark<'a>(clients: &'a [Client], end: &str) -> Result<(&'a Client, i64), Error> {
    let started = Instant::now();
    loop {
        let mut last = None;
        for client in clients {
            match client.put(end, "").await {
                Ok(header) => return Ok((client, header.revision)),
                Err(error) => last = Some(error),
            }
        }
        let source = last.ok_or(Error::Nobody)?;
        if started.elapsed() > PATIENCE {
            return Err(Error::Mark { within: PATIENCE, source });
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn key(options: &Options, kv: &KeyValue) -> Option<Key> {
    let key = std::str::from_utf8(&kv.key).ok()?;
    key.strip_prefix(&options.prefix)?.strip_prefix("/k")?.parse().ok()
}

fn number(kv: &KeyValue) -> Option<u64> {
    std::str::from_utf8(&kv.value).ok()?.trim_end().parse().ok()
}
