//! Keys and values.

use crate::client::Leader;
use crate::proto::kv::{CompactionRequest, DeleteRangeRequest, HeaderOnly, PutRequest};
use crate::{Client, Compare, Deleted, Error, Header, KeyValue, Op, Range, Ranged, Txn, TxnAnswer};

impl Client {
    /// The keys of a range. Linearizable unless the range says otherwise.
    ///
    /// # Errors
    /// The member does not answer, or refuses.
    pub async fn range(&self, range: Range) -> Result<Ranged, Error> {
        let leader = if range.serializable { Leader::Any } else { Leader::Required };
        self.unary("/etcdserverpb.KV/Range", range, leader).await
    }

    /// One key, linearizable.
    ///
    /// # Errors
    /// The member does not answer, or refuses.
    pub async fn get(&self, key: impl Into<Vec<u8>>) -> Result<Option<KeyValue>, Error> {
        Ok(self.range(Range::key(key)).await?.kvs.pop())
    }

    /// Writes a key. The header has the revision of the write.
    ///
    /// # Errors
    /// The member does not answer, or refuses; see [`Error::is_definite`].
    pub async fn put(&self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Result<Header, Error> {
        let put = PutRequest { key: key.into(), value: value.into() };
        let answer: HeaderOnly = self.unary("/etcdserverpb.KV/Put", put, Leader::Required).await?;
        Ok(answer.header)
    }

    /// Deletes the keys from `key` to before `end`, or the one key where `end` is empty.
    ///
    /// # Errors
    /// The member does not answer, or refuses; see [`Error::is_definite`].
    pub async fn delete(&self, key: impl Into<Vec<u8>>, end: impl Into<Vec<u8>>) -> Result<Deleted, Error> {
        let delete = DeleteRangeRequest { key: key.into(), range_end: end.into() };
        self.unary("/etcdserverpb.KV/DeleteRange", delete, Leader::Required).await
    }

    /// If all comparisons hold, the operations of `success`, else those of `failure`: all or none.
    ///
    /// # Errors
    /// The member does not answer, or refuses; see [`Error::is_definite`].
    pub async fn txn(&self, txn: Txn) -> Result<TxnAnswer, Error> {
        self.unary("/etcdserverpb.KV/Txn", txn, Leader::Required).await
    }

    /// Forgets what is older than a revision, and waits until it is gone from the database.
    ///
    /// # Errors
    /// The member does not answer, or refuses ([`Error::Compacted`]: it is gone already).
    pub async fn compact(&self, revision: i64) -> Result<Header, Error> {
        let compact = CompactionRequest { revision, physical: true };
        let answer: HeaderOnly = self.unary("/etcdserverpb.KV/Compact", compact, Leader::Required).await?;
        Ok(answer.header)
    }
}

impl Range {
    /// One key.
    #[must_use]
    pub fn key(key: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into(), ..Self::default() }
    }

    /// All keys that begin with `prefix`; all keys there are for an empty one.
    #[must_use]
    pub fn prefix(prefix: impl Into<Vec<u8>>) -> Self {
        let (key, range_end) = prefix_bounds(prefix.into());
        Self { key, range_end, ..Self::default() }
    }

    /// As it was at a revision.
    #[must_use]
    pub fn at(mut self, revision: i64) -> Self {
        self.revision = revision;
        self
    }

    /// At most so many.
    #[must_use]
    pub fn limit(mut self, limit: i64) -> Self {
        self.limit = limit;
        self
    }

    /// What the member itself has, however old; it answers without a leader.
    #[must_use]
    pub fn serializable(mut self) -> Self {
        self.serializable = true;
        self
    }
}

impl Compare {
    /// The key was last changed at this revision; 0: it is not there.
    #[must_use]
    pub fn mod_revision(key: impl Into<Vec<u8>>, revision: i64) -> Self {
        const EQUAL: i32 = 0;
        const MOD: i32 = 2;
        Self { result: EQUAL, target: MOD, key: key.into(), mod_revision: revision }
    }
}

impl Op {
    /// Writes a key.
    #[must_use]
    pub fn put(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self::from_put(PutRequest { key: key.into(), value: value.into() })
    }

    /// Deletes a key.
    #[must_use]
    pub fn delete(key: impl Into<Vec<u8>>) -> Self {
        Self::from_delete(DeleteRangeRequest { key: key.into(), range_end: Vec::new() })
    }
}

/// The first key after all keys that begin with `prefix`: what a range, a watch and a deletion take as their end.
#[must_use]
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    match prefix.iter().rposition(|byte| *byte < u8::MAX) {
        Some(last) => {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            end
        }
        // etcd's word for "to the end of all keys".
        None => vec![0],
    }
}

/// Key and end of all keys that begin with `prefix`.
pub(crate) fn prefix_bounds(prefix: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let end = prefix_end(&prefix);
    // An empty key is refused; the zero byte is the first key there can be.
    (if prefix.is_empty() { vec![0] } else { prefix }, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_after_all_its_keys() {
        assert_eq!(prefix_end(b"a"), b"b");
        assert_eq!(prefix_end(b"a/"), b"a0");
        assert_eq!(prefix_end(b"a\xff"), b"b");
        assert_eq!(prefix_end(b"\xff\xff"), [0]);
        assert_eq!(prefix_end(b""), [0]);
    }
}
