//! A member's database, part by part, checked against the digest that ends it.

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tonic::Streaming;

use crate::proto::maintenance::SnapshotPart;
use crate::{Client, Error};

/// How long the digest at the end is.
const DIGEST: usize = 32;

/// A snapshot that is being read. All its parts one after the other are the file that `etcdutl snapshot restore` takes.
#[derive(Debug)]
pub struct Snapshot {
    client: Client,
    parts: Streaming<SnapshotPart>,
    check: Check,
    remaining: Option<u64>,
    version: String,
}

impl Snapshot {
    pub(crate) fn new(client: Client, parts: Streaming<SnapshotPart>) -> Self {
        Self { client, parts, check: Check::default(), remaining: None, version: String::new() }
    }

    /// The next part, or nothing when the snapshot is whole: the end is told only after the digest was found right.
    ///
    /// # Errors
    /// The next part did not come within the deadline, the stream broke, or [`Error::BadSnapshot`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let parts = &mut self.parts;
        let next = async { parts.message().await.map_err(|status| Error::from_status(&status)) };
        match self.client.in_time(next).await? {
            Some(part) => {
                self.check.take(&part.blob);
                self.remaining = Some(part.remaining_bytes);
                if !part.version.is_empty() {
                    self.version = part.version;
                }
                Ok(Some(part.blob))
            }
            None if self.remaining.is_some_and(|remaining| remaining > 0) => {
                let remaining = self.remaining.unwrap_or_default();
                Err(Error::BadSnapshot { reason: format!("{remaining} bytes are missing at its end") })
            }
            None => self.check.finish().map(|()| None),
        }
    }

    /// How many bytes of the database are still to come, as the last part said.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        self.remaining
    }

    /// The version of etcd's storage that it is of; empty before the first part, and from etcd below 3.6.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// Digests all but the last bytes, which are the digest.
#[derive(Debug, Default)]
struct Check {
    digest: Sha256,
    /// The last bytes so far, [`DIGEST`] of them as soon as there are so many.
    tail: Vec<u8>,
}

impl Check {
    fn take(&mut self, part: &[u8]) {
        self.tail.extend_from_slice(part);
        let body = self.tail.len().saturating_sub(DIGEST);
        self.digest.update(&self.tail[..body]);
        self.tail.drain(..body);
    }

    fn finish(&mut self) -> Result<(), Error> {
        let found = std::mem::take(&mut self.digest).finalize();
        if found.as_slice() == self.tail.as_slice() {
            return Ok(());
        }
        Err(Error::BadSnapshot {
            reason: "the digest at its end is another one than that of its bytes".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let body: Vec<u8> = (0..1000u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let mut file = body.clone();
        file.extend_from_slice(&Sha256::digest(&body));
        file
    }

    fn check(file: &[u8], part: usize) -> Result<(), Error> {
        let mut check = Check::default();
        file.chunks(part).for_each(|part| check.take(part));
        check.finish()
    }

    #[test]
    fn a_whole_file_is_right_however_it_is_cut_into_parts() {
        for part in [1, 7, 31, 32, 33, 500, 5000] {
            assert_eq!(check(&file(), part), Ok(()), "in parts of {part}");
        }
    }

    #[test]
    fn a_changed_byte_and_a_missing_end_are_found() {
        for byte in [0, 500, 999, 1000, 1031] {
            let mut file = file();
            file[byte] ^= 1;
            assert!(check(&file, 100).is_err(), "byte {byte}");
        }
        let file = file();
        assert!(check(&file[..file.len() - 1], 100).is_err());
        assert!(check(&[], 100).is_err());
    }
}
