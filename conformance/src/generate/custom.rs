//! Custom kinds: random schemas, and objects against them.

use serde_json::{Map, Value, json};

use super::mutate;
use crate::rng::Rng;
use crate::sequence::{Step, Until};

pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(super) const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{id}.example.com";
pub(super) const THINGS: &str = "/apis/{id}.example.com/v1/namespaces/{ns}/things";

/// A definition whose objects have `spec` of this schema.
pub(super) fn definition(spec: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.{id}.example.com"},
        "spec": {
            "group": "{id}.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": spec, "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]
        }
    })
}

/// Creates a definition, does something with it, and takes it away.
pub(super) fn with(definition: Value, steps: Vec<Step>) -> Vec<Step> {
    // The end of the sequence waits for nobody: what others see of a definition that goes is not compared here.
    let mut out = vec![
        Step::with("POST", DEFINITIONS, definition).quiet(),
        Step::new("GET", THINGS).until(200).quiet(),
    ];
    out.extend(steps);
    out.push(Step::new("DELETE", DEFINITION).quiet());
    out
}

pub(super) fn thing(spec: Value) -> Value {
    json!({"apiVersion": "{id}.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec})
}

fn create(spec: Value) -> Step {
    Step::with("POST", THINGS, thing(spec))
}

/// A schema and what it is for, of bounded depth.
fn schema(rng: &mut Rng, depth: usize) -> Value {
    let mut out = match rng.below(if depth == 0 { 6 } else { 10 }) {
        0 => json!({"type": "string"}),
        1 => json!({"type": "integer"}),
        2 => json!({"type": "boolean"}),
        3 => json!({"type": "number"}),
        4 => json!({"x-kubernetes-int-or-string": true}),
        5 => json!({"type": "string", "enum": ["a", "b"]}),
        6 => json!({"type": "array", "items": schema(rng, depth - 1)}),
        7 => json!({"type": "object", "additionalProperties": schema(rng, depth - 1)}),
        _ => object(rng, depth - 1),
    };
    let kind = out["type"].as_str().unwrap_or_default().to_owned();
    if rng.chance(35) {
        let (key, value) = match kind.as_str() {
            "string" => match rng.below(4) {
                0 => ("maxLength", json!(3)),
                1 => ("minLength", json!(2)),
                2 => ("pattern", json!("^[a-c]+$")),
                _ => (
                    "format",
                    json!(rng.pick(&["date-time", "ipv4", "byte", "uuid", "email", "duration", "unknown"])),
                ),
            },
            "integer" | "number" => match rng.below(4) {
                0 => ("minimum", json!(1)),
                1 => ("maximum", json!(10)),
                2 => ("multipleOf", json!(2)),
                _ => ("format", json!(rng.pick(&["int32", "int64", "double"]))),
            },
            "array" => match rng.below(3) {
                0 => ("minItems", json!(1)),
                1 => ("maxItems", json!(2)),
                _ => ("x-kubernetes-list-type", json!(rng.pick(&["atomic", "set"]))),
            },
            "object" => match rng.below(3) {
                0 => ("maxProperties", json!(2)),
                1 => ("minProperties", json!(1)),
                _ => ("nullable", json!(true)),
            },
            _ => ("nullable", json!(true)),
        };
        out[key] = value;
    }
    if rng.chance(15) {
        out["nullable"] = json!(true);
    }
    out
}

fn object(rng: &mut Rng, depth: usize) -> Value {
    let mut properties = Map::new();
    for name in ["a", "b", "c"] {
        if rng.chance(70) {
            properties.insert(name.into(), schema(rng, depth));
        }
    }
    let mut out = json!({"type": "object", "properties": properties});
    if rng.chance(30) {
        out["required"] = json!(["a"]);
    }
    if rng.chance(15) {
        out["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    out
}

/// A value that fits the schema, most of the time.
fn value(rng: &mut Rng, schema: &Value) -> Value {
    if rng.chance(8) {
        return [json!(null), json!("x"), json!(5), json!([]), json!({}), json!(true), json!(2.5)]
            [rng.below(7)]
        .clone();
    }
    match schema["type"].as_str() {
        Some("string") => json!(rng.pick(&["a", "b", "abc", "abcd", "", "2024-01-01T00:00:00Z", "1.2.3.4"])),
        Some("integer") => json!([0, 1, 2, 5, 10, 11, -1][rng.below(7)]),
        Some("number") => [json!(0), json!(1.5), json!(2), json!(10.0), json!(-3)][rng.below(5)].clone(),
        Some("boolean") => json!(rng.chance(50)),
        Some("array") => (0..rng.below(4)).map(|_| value(rng, &schema["items"])).collect(),
        Some("object") => {
            let mut out = Map::new();
            if let Some(properties) = schema["properties"].as_object() {
                for (name, property) in properties {
                    if rng.chance(70) {
                        out.insert(name.clone(), value(rng, property));
                    }
                }
                if rng.chance(25) {
                    out.insert("unknown".into(), json!({"x": 1}));
                }
            } else {
                out.insert("k".into(), value(rng, &schema["additionalProperties"]));
            }
            Value::Object(out)
        }
        _ => [json!(5), json!("50%"), json!("")][rng.below(3)].clone(),
    }
}

pub fn life(rng: &mut Rng) -> Vec<Step> {
    let mut definition = definition(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    if rng.chance(50) {
        definition["spec"]["names"]["shortNames"] = json!(["th"]);
        definition["spec"]["names"]["categories"] = json!(["all"]);
    }
    let established = Until { status: 200, at: "/status/conditions/1/status".into(), is: json!("True") };
    let mut steps = vec![Step::with("POST", DEFINITIONS, definition)];
    steps.push(Step { until: Some(established), ..Step::new("GET", DEFINITION) });
    steps.push(Step::new("GET", THINGS).until(200));
    steps.push(Step::new("GET", "/apis/{id}.example.com/v1").until(200));
    steps.push(Step::new("GET", "/apis/{id}.example.com").until(200));
    steps.push(create(json!({"x": 1})));
    steps.push(
        Step::new("GET", format!("{THINGS}/a"))
            .header("accept", &crate::sequence::accept(rng.pick(&["json", "table", "partial"]))),
    );
    steps.push(Step::patch("strategic", format!("{THINGS}/a"), json!({"spec": {"x": 2}})));
    steps.push(Step::patch("merge", format!("{THINGS}/a"), json!({"spec": {"x": 2}})));
    steps.push(Step::with("PUT", format!("{THINGS}/a"), thing(json!({"x": 3}))));
    steps.push(Step::new("DELETE", DEFINITION));
    steps.push(Step::new("GET", DEFINITION).until(404));
    steps.push(Step::new("GET", THINGS).until(404));
    steps
}

pub fn structural(rng: &mut Rng) -> Vec<Step> {
    let mut definition = definition(object(rng, 2));
    for _ in 0..=rng.below(2) {
        let base = "/spec/versions/0/schema/openAPIV3Schema";
        let (pointer, value) = match rng.below(18) {
            0 => (format!("{base}/properties/spec/properties/n"), json!({})),
            1 => (format!("{base}/type"), json!("string")),
            2 => (format!("{base}/properties/spec/properties/n"), json!({"type": "nothing"})),
            3 => (format!("{base}/properties/spec/properties/n"), json!({"type": "array"})),
            4 => (
                format!("{base}/properties/spec/properties/n"),
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            ),
            5 => (
                format!("{base}/properties/spec/properties/n"),
                json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
            ),
            6 => (format!("{base}/properties/spec/properties/n"), json!({"type": "string", "default": 5})),
            7 => (
                format!("{base}/properties/spec/properties/n"),
                json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            ),
            8 => (
                format!("{base}/properties/spec/properties/n"),
                json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            ),
            9 => (
                format!("{base}/properties/metadata"),
                json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}),
            ),
            10 => (
                format!("{base}/properties/metadata"),
                json!({"type": "object", "properties": {"labels": {"type": "object"}}}),
            ),
            11 => ("/spec/names/plural".into(), json!("Things")),
            12 => ("/spec/names/kind".into(), json!("thing thing")),
            13 => ("/spec/scope".into(), json!("Other")),
            14 => ("/spec/versions/0/storage".into(), json!(false)),
            15 => ("/spec/versions/0/name".into(), json!("1")),
            16 => ("/spec/preserveUnknownFields".into(), json!(true)),
            _ => ("/spec/group".into(), json!("other.example.com")),
        };
        mutate::set(&mut definition, &pointer, value);
    }
    vec![Step::with("POST", format!("{DEFINITIONS}?dryRun=All"), definition)]
}

pub fn prune(rng: &mut Rng) -> Vec<Step> {
    let mut spec = object(rng, 2);
    spec["properties"]["e"] = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    spec["properties"]["p"] = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"q": {"type": "object", "properties": {"r": {"type": "string"}}}}});
    let mut body = value(rng, &spec);
    if let Value::Object(map) = &mut body {
        map.insert(
            "e".into(),
            json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "n", "odd": 1}, "other": 2}),
        );
        map.insert("p".into(), json!({"q": {"r": "s", "t": 1}, "u": 2}));
        map.insert("gone".into(), json!([1, {"x": 2}]));
    }
    let validation =
        rng.pick(&["", "?fieldValidation=Strict", "?fieldValidation=Ignore", "?fieldValidation=Warn"]);
    let post = Step::with("POST", format!("{THINGS}{validation}"), thing(body));
    with(definition(spec), vec![post, Step::new("GET", format!("{THINGS}/a"))])
}

pub fn defaults(rng: &mut Rng) -> Vec<Step> {
    let mut spec = object(rng, 1);
    let properties = &mut spec["properties"];
    properties["s"] = json!({"type": "string", "default": "d"});
    properties["i"] = json!({"type": "integer", "default": 5, "nullable": rng.chance(50)});
    properties["o"] =
        json!({"type": "object", "default": {}, "properties": {"x": {"type": "string", "default": "y"}}});
    properties["l"] = json!({"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string", "default": "v"}}}});
    properties["m"] = json!({"type": "object", "additionalProperties": {"type": "object", "properties": {"k": {"type": "integer", "default": 1}}}});
    let mut body = json!({});
    for (key, choices) in [
        ("s", "[null,\"x\",\"\"]"),
        ("i", "[null,0]"),
        ("o", "[null,{},{\"x\":null}]"),
        ("l", "[[{}],[],[{\"k\":null}]]"),
        ("m", "[{\"a\":{}},null]"),
    ] {
        if rng.chance(60) {
            let choices: Vec<Value> = serde_json::from_str(choices).expect("choices");
            body[key] = choices[rng.below(choices.len())].clone();
        }
    }
    let patch =
        Step::patch("merge", format!("{THINGS}/a"), json!({"spec": {"s": null, "l": [{}, {"k": "z"}]}}));
    with(definition(spec), vec![create(body), patch])
}

pub fn validate(rng: &mut Rng) -> Vec<Step> {
    let spec = object(rng, 2);
    let mut steps = Vec::new();
    for _ in 0..3 {
        let mut body = thing(value(rng, &spec));
        body["metadata"] = json!({"name": rng.pick(&["a", "b", "c"])});
        steps.push(Step::with("POST", THINGS, body));
    }
    let again = value(rng, &spec);
    steps.push(Step::patch("merge", format!("{THINGS}/a"), json!({"spec": again})));
    with(definition(spec), steps)
}

pub fn cel(rng: &mut Rng) -> Vec<Step> {
    let rules = [
        json!({"rule": "self.a <= self.b", "message": "a is larger"}),
        json!({"rule": "self.b >= oldSelf.b", "message": "b may not shrink"}),
        json!({"rule": "has(self.s) || self.a > 1"}),
        json!({"rule": "self.s.startsWith('x')", "messageExpression": "'it is ' + self.s", "fieldPath": ".s"}),
        json!({"rule": "self.l.all(i, i > 0)", "reason": "FieldValueForbidden"}),
        json!({"rule": "self.l.exists(i, i == self.a)", "fieldPath": ".l"}),
        json!({"rule": "self.s == oldSelf.s", "reason": "FieldValueInvalid", "message": "immutable"}),
        json!({"rule": "self.s.matches('^[a-z]+$')"}),
        json!({"rule": "size(self.l) < 3"}),
        json!({"rule": "self.nosuch == 1"}),
        json!({"rule": "self.a + self.s == 3"}),
        json!({"rule": "duration(self.s) > duration('1s')"}),
        json!({"rule": "quantity(self.s).isGreaterThan(quantity('1'))"}),
        json!({"rule": "self.l.sum() < 10 && self.l.isSorted()"}),
    ];
    let count = 1 + rng.below(2);
    let chosen: Vec<Value> = (0..count).map(|_| rules[rng.below(rules.len())].clone()).collect();
    let spec = json!({"type": "object", "required": ["a", "b"], "x-kubernetes-validations": chosen, "properties": {
        "a": {"type": "integer"}, "b": {"type": "integer"}, "s": {"type": "string", "maxLength": 10},
        "l": {"type": "array", "maxItems": 5, "items": {"type": "integer"}}}});
    let body = |rng: &mut Rng| {
        let mut spec = json!({"a": rng.below(4), "b": rng.below(4)});
        if rng.chance(75) {
            spec["s"] = json!(rng.pick(&["xa", "abc", "5s", "2", ""]));
        }
        if rng.chance(75) {
            spec["l"] = (0..rng.below(4)).map(|_| json!(rng.below(4))).collect();
        }
        spec
    };
    let dry = Step::with("POST", format!("{DEFINITIONS}?dryRun=All"), definition(spec.clone()));
    let mut steps = vec![create(body(rng))];
    for _ in 0..2 {
        let spec = body(rng);
        steps.push(Step::patch("merge", format!("{THINGS}/a"), json!({"spec": spec})));
    }
    let mut out = vec![dry];
    // A definition that is refused is never served: there is nothing to wait for then.
    let broken = spec.to_string().contains("nosuch") || spec.to_string().contains("self.a + self.s");
    if !broken {
        out.extend(with(definition(spec), steps));
    }
    out
}

pub fn versions(rng: &mut Rng) -> Vec<Step> {
    let mut definition = definition(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!(rng.pick(&["v2", "v1beta1", "v1alpha1"]));
    second["storage"] = json!(false);
    second["deprecated"] = json!(rng.chance(50));
    if rng.chance(30) && second["deprecated"] == true {
        second["deprecationWarning"] = json!("do not use it");
    }
    second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["b"] =
        json!({"type": "string", "default": "d"});
    let name = second["name"].as_str().unwrap_or_default().to_owned();
    definition["spec"]["versions"].as_array_mut().expect("a list").push(second);
    let other = format!("/apis/{{id}}.example.com/{name}/namespaces/{{ns}}/things");
    let mut body = thing(json!({"a": "x", "b": "y"}));
    let steps = vec![
        Step::new("GET", other.clone()).until(200).quiet(),
        Step::with("POST", THINGS, body.clone()),
        Step::new("GET", format!("{other}/a")),
        Step::patch("merge", format!("{other}/a"), json!({"spec": {"b": "z"}})),
        Step::new("GET", format!("{THINGS}/a")),
        {
            body["metadata"]["name"] = json!("b");
            body["apiVersion"] = json!(format!("{{id}}.example.com/{name}"));
            Step::with("POST", other.clone(), body)
        },
        Step::new("GET", THINGS),
        Step::new("GET", "/apis/{id}.example.com").until(200),
    ];
    with(definition, steps)
}

pub fn subresources(rng: &mut Rng) -> Vec<Step> {
    let spec = json!({"type": "object", "properties": {"replicas": {"type": "integer"}, "color": {"type": "string"}}});
    let mut definition = definition(spec);
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"] = json!({"status": {}});
    version["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
    version["additionalPrinterColumns"] = json!([
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]);
    version["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
    let item = format!("{THINGS}/a");
    let mut spec = json!({"color": rng.pick(&["red", "blue"])});
    if rng.chance(70) {
        spec["replicas"] = json!(rng.below(3));
    }
    let mut steps = vec![create(spec)];
    for _ in 0..4 {
        let manager = rng.pick(&["s", "s&force=true", "t", "t&force=true"]);
        let replicas = if rng.chance(20) { Value::Null } else { json!(rng.below(5)) };
        steps.push(match rng.below(11) {
            0 => Step::patch(
                "merge",
                format!("{item}/status"),
                json!({"status": {"replicas": rng.below(5)}, "spec": {"color": "green"}}),
            ),
            1 => Step::patch(
                "merge",
                item.clone(),
                json!({"status": {"replicas": 9}, "spec": {"color": "black"}}),
            ),
            2 => Step::new("GET", format!("{item}/scale")),
            3 => Step::patch("merge", format!("{item}/scale"), json!({"spec": {"replicas": rng.below(5)}})),
            4 => Step::new("GET", THINGS).header("accept", &crate::sequence::accept("table")),
            5 => Step::new(
                "GET",
                format!("{THINGS}?fieldSelector=spec.color%3D{}", rng.pick(&["red", "black"])),
            ),
            6 => Step::new("GET", format!("{THINGS}?fieldSelector=spec.replicas%3D1")),
            7 => Step::patch("apply", format!("{item}/scale?fieldManager={manager}"), scale(&replicas)),
            8 => {
                let mut body = thing(json!({}));
                body["status"] = rng.chance(80).then(|| json!({"replicas": replicas})).into();
                Step::patch("apply", format!("{item}/status?fieldManager={manager}"), body)
            }
            9 => Step::with("PUT", format!("{item}/scale"), scale(&replicas)),
            _ => Step::new("GET", item.clone()),
        });
    }
    with(definition, steps)
}

fn scale(replicas: &Value) -> Value {
    let metadata = json!({"name": "a", "namespace": "{ns}"});
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}})
}
