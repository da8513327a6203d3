//! The objects that a new cluster has.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::create::uid;
use super::object::meta_mut;
use super::server::{Ids, Server};
use crate::codec::scalar::time::{self, Precision};
use crate::managed;

impl Server {
    /// Makes them, as kube-apiserver's own controllers would. Once, on an empty store.
    pub fn bootstrap(&mut self, now: Timestamp, ids: &mut dyn Ids) {
        let text = time::format(now, Precision::Seconds);
        let address =
            self.config.address.rsplit_once(':').map_or(self.config.address.as_str(), |(host, _)| host);
        let table = include_str!("../../table/bootstrap.jsonl")
            .replace("{{now}}", &text)
            .replace("{{today}}", &text[..10])
            .replace("{{advertise-address}}", address)
            .replace("{{client-ca}}", &self.config.client_ca.replace('\n', "\\n"));
        for line in table.lines() {
            let mut tree: Value =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("bootstrap.jsonl: {e}: {line}"));
            let resource = self
                .registry
                .by_kind(&tree)
                .unwrap_or_else(|| panic!("bootstrap.jsonl: unknown kind: {line}"));
            let meta = meta_mut(&mut tree);
            meta.insert("uid".into(), json!(uid(ids)));
            meta.insert("creationTimestamp".into(), json!(text));
            let (types, root) = resource.types();
            let write = managed::Write {
                manager: "kube-apiserver",
                api_version: &resource.api_version(),
                kind: &resource.kind,
                subresource: "",
                now,
                reset: managed::Reset::Exclude(&[&["status"]]),
            };
            managed::update(&managed::Schema::builtin(types, root), None, &mut tree, &write);
            self.put(&resource, None, tree, false).expect("the table is sound");
        }
    }
}
