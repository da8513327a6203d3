//! The codec against what Go wrote: `tests/data` comes from `tools/protodata`.

use serde_json::Value;
use windlass_apiserver::codec::scalar::{duration, quantity, time};
use windlass_apiserver::codec::{self, Format};
use windlass_apiserver::schema::{self, TypeId};

struct Sample {
    gvk: &'static str,
    id: TypeId,
    body: Vec<u8>,
    json: &'static str,
}

fn samples() -> Vec<Sample> {
    let types = schema::builtin();
    include_str!("data/proto.tsv")
        .lines()
        .map(|line| {
            let [gvk, body, json] = line.split('\t').collect::<Vec<_>>().try_into().expect("three columns");
            let name = types.iter().find(|s| s.gvk.iter().any(|g| g == gvk)).map(|s| &s.name);
            let id = types.id(name.unwrap_or_else(|| panic!("{gvk} is not in the table"))).unwrap();
            Sample { gvk, id, body: base64(body), json }
        })
        .collect()
}

fn base64(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

fn written(value: &Value) -> String {
    String::from_utf8(codec::write(value).bytes).unwrap()
}

#[test]
fn canonical_json_is_what_go_writes() {
    for sample in samples() {
        let parsed = codec::parse(sample.json.as_bytes(), Format::Json).unwrap();
        let mut unknown = Vec::new();
        let value = codec::canonical(schema::builtin(), sample.id, parsed.value, &mut unknown)
            .unwrap_or_else(|e| panic!("{}: {e}\n{}", sample.gvk, sample.json));
        assert_eq!(written(&value), sample.json, "{}", sample.gvk);
        assert_eq!(unknown, [""; 0], "{}", sample.gvk);
    }
}

#[test]
fn the_order_of_the_body_does_not_matter() {
    for sample in samples() {
        let mut body: Value = serde_json::from_str(sample.json).unwrap();
        body.sort_all_objects();
        // What is raw keeps the order of the body, so sorted is what it is compared with.
        let mut value =
            codec::canonical(schema::builtin(), sample.id, body.clone(), &mut Vec::new()).unwrap();
        value.sort_all_objects();
        assert_eq!(value, body, "{}", sample.gvk);
    }
}

#[test]
fn protobuf_gives_the_same_tree() {
    for sample in samples() {
        let envelope = codec::envelope(&sample.body).unwrap();
        let (group_version, kind) = sample.gvk.rsplit_once('/').unwrap();
        assert_eq!(
            (envelope.api_version.as_str(), envelope.kind.as_str()),
            (group_version.trim_start_matches('/'), kind)
        );
        let value = codec::decode_proto(schema::builtin(), sample.id, &envelope)
            .unwrap_or_else(|e| panic!("{}: {e}\n{}", sample.gvk, sample.json));
        assert_eq!(written(&value), sample.json, "{}", sample.gvk);
    }
}

#[test]
fn a_damaged_body_is_refused_or_read_but_never_panics() {
    for sample in samples() {
        for cut in (0..sample.body.len()).step_by(61) {
            let mut body = sample.body.clone();
            body[cut] ^= 0xa5;
            for body in [&sample.body[..cut], &body] {
                if let Ok(envelope) = codec::envelope(body) {
                    let _ = codec::decode_proto(schema::builtin(), sample.id, &envelope);
                }
            }
        }
    }
}

#[test]
fn scalars_are_what_go_makes_of_them() {
    for line in include_str!("data/scalars.tsv").lines() {
        let [name, text, want] = line.split('\t').collect::<Vec<_>>().try_into().expect("three columns");
        let stamp = |precision| match time::canonical(text, precision) {
            Ok(canonical) => canonical.unwrap_or_else(|| "null".to_owned()),
            Err(error) => format!("!{error}"),
        };
        let got = match name {
            "quantity" => quantity::canonical(text).unwrap_or_else(|e| format!("!{e}")),
            "duration" => duration::parse(text).map_or_else(|e| format!("!{e}"), duration::format),
            "time" => stamp(time::Precision::Seconds),
            "microtime" => stamp(time::Precision::Micros),
            other => panic!("{other}"),
        };
        assert_eq!(got, want, "{name} {text}");
    }
}
