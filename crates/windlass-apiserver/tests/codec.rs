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
    include_str!("data/proto.tsv")
        .lines()
        .map(|line| {
            let [gvk, body, json] = line.split('\t').collect::<Vec<_>>().try_into().expect("three columns");
            Sample { gvk, id: id_of(gvk), body: base64(body), json }
        })
        .collect()
}

fn id_of(gvk: &str) -> TypeId {
    let types = schema::builtin();
    let name = types.iter().find(|s| s.gvk.iter().any(|g| g == gvk)).map(|s| &s.name);
    types.id(name.unwrap_or_else(|| panic!("{gvk} is not in the table"))).unwrap()
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

#[test]
fn faulty_bodies_are_read_or_refused_as_go_does() {
    for line in include_str!("data/bodies.tsv").lines() {
        let [gvk, body, want, problems] =
            line.split('\t').collect::<Vec<_>>().try_into().expect("four columns");
        let mut parsed = codec::parse(body.as_bytes(), Format::Json).unwrap();
        let mut unknown = Vec::new();
        let read = parsed.settle(schema::builtin(), id_of(gvk)).and_then(|()| {
            codec::canonical(schema::builtin(), id_of(gvk), parsed.value.clone(), &mut unknown)
        });
        let Some(message) = want.strip_prefix('!') else {
            let value = read.unwrap_or_else(|e| panic!("{gvk}: {e}\n{body}"));
            assert_eq!(written(&value), want, "{gvk} {body}");
            let found = parsed.problems(&unknown);
            let mut found: Vec<_> = found.warnings().collect();
            found.sort_unstable();
            assert_eq!(found, serde_json::from_str::<Vec<String>>(problems).unwrap(), "{gvk} {body}");
            continue;
        };
        let error = read.expect_err(body).to_string();
        assert!(same_message(&error, message), "{gvk} {body}\nours: {error}\nGo:   {message}");
    }
}

/// Whether two messages are the same but for what the table does not know: the names of Go's string types and of
/// embedded structures (`Volume.spec.volumes.VolumeSource.hostPath`).
fn same_message(ours: &str, go: &str) -> bool {
    let (Some((our_path, our_type)), Some((go_path, go_type))) =
        (ours.split_once(" of type "), go.split_once(" of type "))
    else {
        return ours == go;
    };
    let embedded = |(i, word): &(usize, &str)| *i == 0 || !word.starts_with(char::is_uppercase);
    let short: Vec<&str> = go_path.split('.').enumerate().filter(embedded).map(|(_, word)| word).collect();
    let named = our_type.ends_with("string") && go_type.contains('.');
    (our_path == go_path || our_path == short.join(".")) && (our_type == go_type || named)
}

#[test]
fn yaml_is_what_go_makes_of_it() {
    for line in include_str!("data/yaml.tsv").lines() {
        let [text, want, strict] = line.split('\t').collect::<Vec<_>>().try_into().expect("three columns");
        let text: String = serde_json::from_str(text).unwrap();
        match (codec::parse(text.as_bytes(), Format::Yaml), want.strip_prefix('!')) {
            (Ok(parsed), None) => {
                // The data is the JSON that Go makes of it; reading that in turn, Go finds an integer without a sign.
                let want = if want == r#"{"a":-0}"# { r#"{"a":0}"# } else { want };
                assert_eq!(written(&parsed.value), want, "{text:?}");
                let found = parsed.problems(&[]).strict().unwrap_or_default().replace('\n', "\\n");
                assert_eq!(found.trim_start_matches("strict decoding error: "), strict, "{text:?}");
            }
            (Err(_), Some(_)) => {}
            (got, _) => panic!("{text:?}: {got:?}, but Go says {want}"),
        }
    }
}

/// Answers of a real kube-apiserver 1.36.4 for a custom kind.
#[test]
fn metadata_of_custom_objects_is_canonical_and_sorted() {
    let types = schema::builtin();
    let read = |metadata: Value| {
        let mut object = serde_json::json!({"spec": {"z": 1, "a": 2}, "metadata": metadata});
        let mut unknown = Vec::new();
        codec::canonical_meta(types, "spec.t", &mut object, &mut unknown)
            .map(|()| (written(&object), unknown))
            .map_err(|e| e.to_string())
    };
    let metadata = serde_json::json!({"name": "a", "foo": 1, "labels": {"b": "x", "a": "y"}, "creationTimestamp": null,
        "finalizers": []});
    let (object, unknown) = read(metadata).unwrap();
    assert_eq!(object, r#"{"spec":{"z":1,"a":2},"metadata":{"labels":{"a":"y","b":"x"},"name":"a"}}"#);
    assert_eq!(unknown, ["spec.t.metadata.foo"]);
    assert_eq!(read(Value::Null).unwrap().0, r#"{"spec":{"z":1,"a":2},"metadata":{}}"#);
    for (metadata, message) in [
        (
            serde_json::json!({"labels": 1}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string",
        ),
        (
            serde_json::json!({"labels": {"a": 1}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        ),
        (serde_json::json!("x"), "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
    ] {
        assert_eq!(read(metadata).unwrap_err(), message);
    }
}

/// Schemas contain schemas, in JSON and in protobuf: neither may exhaust the stack.
#[test]
fn deep_schemas_are_read_or_refused() {
    let id = id_of("apiextensions.k8s.io/v1/CustomResourceDefinition");
    let types = schema::builtin();
    let nested = |levels: usize| {
        let schema = (0..levels)
            .fold(serde_json::json!({}), |inner, _| serde_json::json!({"properties": {"a": inner}}));
        serde_json::json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}})
    };
    let body = nested(55);
    let mut read = codec::parse(body.to_string().as_bytes(), Format::Json).unwrap().value;
    read = codec::canonical(types, id, read, &mut Vec::new()).unwrap();
    assert_eq!(read["spec"]["versions"][0]["schema"], body["spec"]["versions"][0]["schema"]);
    assert!(codec::parse(nested(200).to_string().as_bytes(), Format::Json).is_err());

    // 28 is `not`, and the message around it has a length of up to three bytes.
    let message = |levels: usize| (0..levels).fold(Vec::new(), |inner, _| field(28, &inner));
    let wrap = |schema: Vec<u8>| field(2, &field(7, &field(4, &field(1, &schema))));
    for (levels, fits) in [(100, true), (10_000, false)] {
        let raw = wrap(message(levels));
        let envelope = codec::Envelope { raw: &raw, ..codec::Envelope::default() };
        let read = codec::decode_proto(types, id, &envelope);
        assert_eq!(read.is_ok(), fits, "{levels}: {read:?}");
    }
}

/// A length-delimited protobuf field.
fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let varint = |mut value: usize| {
        let mut out = Vec::new();
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
        out
    };
    [varint((number << 3 | 2) as usize), varint(content.len()), content.to_vec()].concat()
}
