//! Objects at random, by the server's own OpenAPI documents: right in form, and wrong in everything else. Whatever is in
//! them, the server answers, never with a fault of its own; and to write back what was read changes nothing.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::world::{Answer, World};

/// What may be created, where, and as what.
struct Target {
    path: String,
    schema: Value,
    kind: Value,
    document: usize,
}

/// A server that nobody has written to, its documents, and what they say can be created.
struct Documents {
    world: World,
    schemas: Vec<Map<String, Value>>,
    targets: Vec<Target>,
}

static DOCUMENTS: LazyLock<Documents> = LazyLock::new(|| {
    let mut world = World::new();
    let index = world.get("/openapi/v3").expect(200);
    let mut all = Documents { world: world.fork(), schemas: Vec::new(), targets: Vec::new() };
    for place in index["paths"].as_object().expect("documents").values() {
        let mut document = world.get(place["serverRelativeURL"].as_str().expect("a place")).expect(200);
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            let post = &item["post"];
            let schema = &post["requestBody"]["content"]["*/*"]["schema"];
            if !schema.is_null() && !path.ends_with("proxy") {
                let path = path.replace("{namespace}", "default").replace("{name}", "x");
                let kind = post["x-kubernetes-group-version-kind"].clone();
                all.targets.push(Target { path, schema: schema.clone(), kind, document: all.schemas.len() });
            }
        }
        let schemas = document["components"]["schemas"].take();
        all.schemas.push(if let Value::Object(schemas) = schemas { schemas } else { Map::new() });
    }
    assert!(all.targets.len() > 60, "only {} kinds can be created", all.targets.len());
    all
});

/// Texts that mean something somewhere, and that mean nothing anywhere.
const TEXTS: &[&str] = &[
    "",
    "a",
    "x",
    "-",
    "é",
    "é-",
    "a-",
    ".",
    "..",
    "/",
    "//",
    "a/b",
    "a/b/c",
    "/abs",
    "../up",
    "a.b",
    "A_b",
    "1",
    "-1",
    "*",
    "*.a.b",
    "a b",
    "\u{1}",
    "\n",
    "€€€",
    "ſ",
    "𝒳",
    "10.0.0.1",
    "010.0.0.1",
    "fd00::1",
    "10.0.0.0/8",
    "::/0",
    "1.2.3.4/33",
    "http://é:99/",
    "https://a.b/c?d",
    "kubernetes.io/é",
    "kubernetes.io/x",
    "v1",
    "apps/v1",
    "/v1",
    "v1/",
    "Pod",
    "ConfigMap",
    "TCP",
    "SCTP",
    "None",
    "Always",
    "Never",
    "OnFailure",
    "Localhost",
    "RuntimeDefault",
    "unconfined",
    "localhost/é",
    "Exists",
    "In",
    "DoesNotExist",
    "Gt",
    "hugepages-é",
    "hugepages-2Mi",
    "requests.é",
    "count/é",
    "count/pods",
    "pods",
    "cpu",
    "* * * * *",
    "/*/5 * * * *",
    "*/é * * * *",
    "TZ=é * * * * *",
    "@every 1é",
    "@every 1s",
    "100%",
    "%",
    "1é%",
    "self.a == 'é",
    "object.é",
    "has(",
    "true",
    "[",
    "{",
    "$.a[",
    ".a['é']",
    "-----BEGIN CERTIFICATE-----",
    "sha256:é",
    "image@sha256:é",
    "image:é",
    "registry:99/é",
    "2026-11-15T12:00:00Z",
    "KEY=é",
    "${é}",
];

const NUMBERS: &[i64] =
    &[0, 1, -1, 2, 7, 80, 100, 101, 1000, 65535, 65536, i32::MAX as i64, i32::MIN as i64, i64::MAX, i64::MIN];

/// Random numbers of a case.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    fn text(&mut self) -> String {
        match self.below(40) {
            0 => self.one(TEXTS).repeat(300),
            1 => format!("{}{}", self.one(TEXTS), self.one(TEXTS)),
            _ => (*self.one(TEXTS)).to_owned(),
        }
    }

    /// Any value: where the schema leaves it open.
    fn any(&mut self, deep: usize) -> Value {
        match self.below(if deep == 0 { 4 } else { 6 }) {
            0 => json!(self.text()),
            1 => json!(self.one(NUMBERS)),
            2 => json!(self.below(2) == 0),
            3 => Value::Null,
            4 => json!([self.any(deep - 1)]),
            _ => json!({self.text(): self.any(deep - 1)}),
        }
    }

    /// A value of this form.
    fn value(&mut self, schema: &Value, schemas: &Map<String, Value>, deep: usize) -> Value {
        let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
        if let Some(reference) = reference {
            let name = reference.rsplit('/').next().unwrap_or_default();
            // These are read before anything else is looked at: what is wrong in them hides all other faults.
            return match name.rsplit('.').next().unwrap_or_default() {
                "Quantity" => {
                    json!(self.one(&["0", "1", "-1", "100m", "1Gi", "1e30", "0.0001", "9223372036854775807"]))
                }
                "Time" => {
                    json!(self.one(&["2026-11-15T12:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]))
                }
                "MicroTime" => json!("2026-11-15T12:00:00.000001Z"),
                "Duration" => json!(self.one(&["0s", "-1h", "1h2m3s"])),
                "FieldsV1" => json!({"f:metadata": {}}),
                "IntOrString" if self.below(2) == 0 => json!(self.one(NUMBERS) & 0x7fff_ffff),
                "IntOrString" => json!(self.text()),
                _ => self.value(&schemas[name], schemas, deep),
            };
        }
        if let Some(words) = schema["enum"].as_array().filter(|_| self.below(8) > 0) {
            return self.one(words).clone();
        }
        match schema["type"].as_str() {
            Some("object") => {
                let mut object = Map::new();
                for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                    if deep > 0 && self.below(3) == 0 {
                        object.insert(name.clone(), self.value(schema, schemas, deep - 1));
                    }
                }
                let other = &schema["additionalProperties"];
                if other.is_object() && deep > 0 {
                    for _ in 0..self.below(3) {
                        object.insert(self.text(), self.value(other, schemas, deep - 1));
                    }
                }
                Value::Object(object)
            }
            Some("array") => {
                let count = if deep == 0 { 0 } else { self.below(3) };
                (0..count).map(|_| self.value(&schema["items"], schemas, deep - 1)).collect()
            }
            Some("string") if schema["format"] == "byte" => json!(self.one(&["", "YQ==", "/////w=="])),
            Some("string") => json!(self.text()),
            Some("integer") if schema["format"] == "int32" => {
                json!(self.one(NUMBERS).clamp(&i32::MIN.into(), &i32::MAX.into()))
            }
            Some("integer") => json!(self.one(NUMBERS)),
            Some("number") => json!(0.5),
            Some("boolean") => json!(self.below(2) == 0),
            _ => self.any(deep.min(3)),
        }
    }

    /// An object to send there.
    fn object(&mut self, target: &Target) -> Value {
        let schemas = &DOCUMENTS.schemas[target.document];
        let deep = 2 + self.below(9);
        let mut object = self.value(&target.schema, schemas, deep);
        let (group, version) = (&target.kind["group"], &target.kind["version"]);
        let version = version.as_str().unwrap_or_default();
        object["apiVersion"] = match group.as_str().unwrap_or_default() {
            "" => json!(version),
            group => json!(format!("{group}/{version}")),
        };
        object["kind"] = target.kind["kind"].clone();
        let generated = self.below(4) == 0;
        let metadata = object["metadata"].as_object().filter(|_| self.below(2) == 0).cloned();
        let mut metadata = metadata.unwrap_or_default();
        for odd in ["resourceVersion", "uid", "namespace", "managedFields", "deletionTimestamp"] {
            metadata.remove(odd);
        }
        match generated {
            true => metadata.insert("generateName".to_owned(), json!(self.text())),
            false => metadata.insert("name".to_owned(), json!("x")),
        };
        object["metadata"] = Value::Object(metadata);
        object
    }
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const TABLE: &[(&str, &str)] = &[("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
const APPLY: &[(&str, &str)] = &[("content-type", "application/apply-patch+yaml")];

/// The answer is one that a client did something to get. (kube-apiserver has some of 500 without a reason: a binding without
/// a target, for one.)
fn sound(answer: Option<Answer>, what: &str, body: &Value) -> Result<Option<Answer>, TestCaseError> {
    if let Some(answer) = &answer {
        let is_ours = answer.code >= 500 && answer.text.contains("\"reason\":\"InternalError\"");
        prop_assert!(!is_ours, "{what} {body}: {} {}", answer.code, answer.text);
    }
    Ok(answer)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_in_an_object_it_gets_an_answer(seed: u64) {
        let mut dice = Dice(seed);
        let mut world = DOCUMENTS.world.fork();
        let target = dice.one(&DOCUMENTS.targets);
        let body = dice.object(target);
        let path = &target.path;
        let created = sound(world.try_ask("POST", path, JSON, body.to_string()), path, &body)?;
        sound(world.try_ask("GET", path, TABLE, ""), path, &body)?;
        let place = format!("{path}/x");
        let stored = created.filter(|answer| answer.code == 201 && body["metadata"]["name"] == "x").map(|answer| answer.json());
        if let Some(stored) = stored.filter(|stored| stored["metadata"]["resourceVersion"].is_string()) {
            let again = sound(world.try_ask("PUT", &place, JSON, stored.to_string()), &place, &stored)?;
            // Some rules of kube-apiserver are for updates alone.
            if let Some(again) = again.filter(|again| again.code != 422) {
                let version = &again.expect(200)["metadata"]["resourceVersion"];
                prop_assert_eq!(version, &stored["metadata"]["resourceVersion"], "{} was changed: {}", place, stored);
            }
            let other = dice.object(target);
            sound(world.try_ask("PUT", &place, JSON, other.to_string()), &place, &other)?;
            let other = dice.object(target);
            let applied = format!("{place}?fieldManager=m&force=true");
            sound(world.try_ask("PATCH", &applied, APPLY, other.to_string()), &applied, &other)?;
            sound(world.try_ask("DELETE", &place, &[], ""), &place, &body)?;
        }
    }
}
