//! The sealed table is what the long way makes of the plain one.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::api::Config;
use crate::api::object::meta_mut;
use crate::store::{Pair, Store};

struct Counter(u64);

impl Ids for Counter {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }
}

/// Values that occur nowhere else in the table.
const NOW: &str = "2001-02-03T04:05:06Z";
const ADDRESS: &str = "192.0.2.77";
const CLIENT_CA: &str = "the-authority-of-clients";

#[test]
fn the_sealed_table_is_what_the_long_way_makes() {
    let made = seal_all();
    if std::env::var_os("WINDLASS_UPDATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/table/sealed.jsonl");
        std::fs::write(path, &made).unwrap();
        return;
    }
    let differs = made.lines().zip(SEALED.lines()).find(|(made, kept)| made != kept);
    let same = differs.is_none() && made.len() == SEALED.len();
    assert!(
        same,
        "run `WINDLASS_UPDATE=1 cargo test -p windlass-apiserver sealed_table`, and look at the difference: {differs:?}"
    );
}

#[test]
fn servers_start_with_the_same_objects_either_way() {
    let configs = [
        ("127.0.0.1:6443", "-----BEGIN CERTIFICATE-----\nMIIB+/=\n-----END CERTIFICATE-----\n"),
        ("10.20.30.40:1", ""),
    ];
    for (address, client_ca) in configs {
        let config = Config { address: address.into(), client_ca: client_ca.into(), ..Config::default() };
        let now: Timestamp = "2026-11-15T09:08:07.654321Z".parse().unwrap();
        let mut quick = Server::restore(config.clone(), Store::default());
        quick.bootstrap(now, &mut Counter(7));
        let slow = by_the_book(config, now);
        assert_eq!(quick.store().revision(), slow.store().revision());
        let (quick, slow) = (objects(&quick), objects(&slow));
        assert_eq!(quick.len(), slow.len());
        for (quick, slow) in quick.iter().zip(&slow) {
            let text = |object: &Object| String::from_utf8(object.body().to_vec()).unwrap();
            let pairs = |pairs: &[Pair]| format!("{pairs:?}");
            assert_eq!(text(quick), text(slow));
            assert_eq!(quick.key(), slow.key());
            assert_eq!(quick.uid(), slow.uid());
            assert_eq!(quick.offsets(), slow.offsets());
            assert_eq!(pairs(quick.labels()), pairs(slow.labels()));
            assert_eq!(pairs(quick.fields()), pairs(slow.fields()));
        }
    }
}

/// In the order of their revisions, which is that of the table.
fn objects(server: &Server) -> Vec<Arc<Object>> {
    let store = server.store();
    let mut objects: Vec<_> = store
        .kinds()
        .flat_map(|kind| store.list(kind).range(None, None).cloned().collect::<Vec<_>>())
        .collect();
    objects.sort_by_key(|object| object.revision());
    objects
}

/// A server whose objects went the way of every write.
fn by_the_book(config: Config, now: Timestamp) -> Server {
    let mut server = Server::restore(config, Store::default());
    let mut ids = Counter(7);
    let text = time::format(now, Precision::Seconds);
    let table = include_str!("../../../table/bootstrap.jsonl")
        .replace("{{now}}", &text)
        .replace("{{today}}", &text[..10])
        .replace("{{advertise-address}}", advertised(&server.config.address))
        .replace("{{client-ca}}", &server.config.client_ca.replace('\n', "\\n"));
    for line in table.lines() {
        let mut tree: Value = serde_json::from_str(line).unwrap();
        let resource = server.registry.by_kind(&tree).unwrap();
        let meta = meta_mut(&mut tree);
        meta.insert("uid".into(), json!(uid(&mut ids)));
        meta.insert("creationTimestamp".into(), json!(text));
        server.put(&resource, None, tree, false).unwrap();
    }
    server
}

fn seal_all() -> String {
    let config = Config { address: format!("{ADDRESS}:1"), client_ca: CLIENT_CA.into(), ..Config::default() };
    let server = by_the_book(config, NOW.parse().unwrap());
    objects(&server).iter().map(|object| seal(&server, object)).collect()
}

/// A line of the table: an object of the long way, with marks for what is a server's own.
fn seal(server: &Server, object: &Object) -> String {
    let tree: Value = serde_json::from_slice(object.body()).unwrap();
    let resource = server.registry.by_kind(&tree).unwrap();
    let offsets = object.offsets();
    let head = Head {
        group: &resource.group,
        version: &resource.version,
        plural: &resource.plural,
        namespace: object.namespace(),
        name: object.name(),
        labels: object.labels().iter().map(|pair| (pair.key(), pair.value())).collect(),
        fields: object.fields().iter().map(|pair| (pair.key(), pair.value())).collect(),
        prefix_len: offsets.prefix_len,
    };
    let mut body = String::from_utf8(object.body().to_vec()).unwrap();
    assert!(!body.contains("{{"), "a mark would be mistaken: {body}");
    body.insert_str(offsets.meta.end, "{{/metadata}}");
    body.replace_range(offsets.revision, "{{revision}}");
    body.insert_str(offsets.meta.start, "{{metadata}}");
    for (value, mark) in [
        (NOW.trim_end_matches('Z'), "{{now}}"),
        (&NOW[..10], "{{today}}"),
        (ADDRESS, "{{advertise-address}}"),
        (CLIENT_CA, "{{client-ca}}"),
        (object.uid(), "{{uid}}"),
    ] {
        body = body.replace(value, mark);
    }
    format!("{}\t{body}\n", serde_json::to_string(&head).unwrap())
}
