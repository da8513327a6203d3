//! The objects that a new cluster has.
//!
//! Every test that starts a server pays for them, so they are not taken through decoding and encoding each time:
//! `table/sealed.jsonl` holds what these make of `table/bootstrap.jsonl`, with marks where a server's own values go. The
//! tests beside this file make that table, and compare it with the long way.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde::Deserialize;

use super::create::uid;
use super::server::{Ids, Server};
use crate::codec::scalar::time::{self, Precision};
use crate::store::{Change, Object, Offsets, Parts};

/// The sealed objects: a line each of [`Head`], a tab, and the body.
const SEALED: &str = include_str!("../../table/sealed.jsonl");

/// What reads need to know of a sealed object beside its body.
#[derive(Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
struct Head<'a> {
    group: &'a str,
    version: &'a str,
    plural: &'a str,
    namespace: &'a str,
    name: &'a str,
    #[serde(borrow)]
    labels: Vec<(&'a str, &'a str)>,
    #[serde(borrow)]
    fields: Vec<(&'a str, &'a str)>,
    prefix_len: usize,
}

impl Server {
    /// Makes them, as kube-apiserver's own controllers would. Once, on an empty store.
    pub fn bootstrap(&mut self, now: Timestamp, ids: &mut dyn Ids) {
        let now = time::format(now, Precision::Seconds);
        let values = Values {
            now: now.trim_end_matches('Z'),
            today: &now[..10],
            address: advertised(&self.config.address),
            client_ca: &self.config.client_ca.replace('\n', "\\n"),
        };
        for line in SEALED.lines() {
            let (head, body) = line.split_once('\t').expect("sealed.jsonl: a head, a tab, a body");
            let head: Head<'_> =
                serde_json::from_str(head).unwrap_or_else(|e| panic!("sealed.jsonl: {e}: {head}"));
            let resource = self
                .registry
                .find(head.group, head.version, head.plural)
                .unwrap_or_else(|| panic!("sealed.jsonl: unknown resource: {}", head.plural));
            let uid = uid(ids);
            let revision = self.store.next_revision().to_string();
            let (body, offsets) = values.fill(body, &uid, &revision, head.prefix_len);
            let Head { namespace, name, labels, fields, .. } = head;
            let parts = Parts { namespace, name, uid: &uid, labels, fields, body, offsets, filled: false };
            let object = Object::new(parts).expect("the table is sound");
            self.store.commit(&resource.storage, Change::Create(object)).expect("the store is empty");
        }
    }
}

/// The host of an address.
fn advertised(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// What a server puts in the place of the marks.
struct Values<'a> {
    /// The time, without its `Z`.
    now: &'a str,
    today: &'a str,
    address: &'a str,
    client_ca: &'a str,
}

impl Values<'_> {
    /// A body with its marks replaced; some marks only tell where something is.
    fn fill(&self, sealed: &str, uid: &str, revision: &str, prefix_len: usize) -> (Vec<u8>, Offsets) {
        let mut body = Vec::with_capacity(sealed.len() + 64);
        let mut offsets = Offsets { prefix_len, meta: 0..0, revision: 0..0 };
        let mut rest = sealed;
        while let Some((before, after)) = rest.split_once("{{") {
            let (mark, after) = after.split_once("}}").expect("sealed.jsonl: a mark ends");
            body.extend_from_slice(before.as_bytes());
            let at = body.len();
            let value = match mark {
                "now" => self.now,
                "today" => self.today,
                "advertise-address" => self.address,
                "client-ca" => self.client_ca,
                "uid" => uid,
                "revision" => {
                    offsets.revision = at..at + revision.len();
                    revision
                }
                "metadata" => {
                    offsets.meta.start = at;
                    ""
                }
                "/metadata" => {
                    offsets.meta.end = at;
                    ""
                }
                mark => panic!("sealed.jsonl: unknown mark: {mark}"),
            };
            body.extend_from_slice(value.as_bytes());
            rest = after;
        }
        body.extend_from_slice(rest.as_bytes());
        (body, offsets)
    }
}
