//! What webhooks make of objects, and what they see of them, as kube-apiserver 1.36 has it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::world::{Answer, World};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

fn things(version: &str) -> String {
    format!("/apis/example.com/{version}/namespaces/default/things")
}

/// A kind of two versions, each with a default and a field of its own. `v1` is stored.
fn define(world: &mut World) {
    let version = |name: &str, default: &str| {
        let mut spec = json!({"a": {"type": "string", "default": default}});
        spec[format!("only-{name}")] = json!({"type": "integer", "default": 1});
        json!({
            "name": name, "served": true, "storage": name == "v1", "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": spec},
                "status": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
            }}},
        })
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [version("v1", "one"), version("v2", "two")],
        },
    });
    world.post(DEFINITIONS, &definition).expect(201);
}

/// Hooks by name and the version that they want to see.
fn hook(world: &mut World, hooks: &[(&str, &str)]) {
    let hook = |(name, version): &(&str, &str)| {
        json!({
            "name": format!("{name}.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "rules": [{"apiGroups": ["example.com"], "apiVersions": [version], "operations": ["*"], "resources": ["things"]}],
            "clientConfig": {"url": format!("https://127.0.0.1:1/{name}")},
        })
    };
    let hooks: Vec<Value> = hooks.iter().map(hook).collect();
    let body = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "h"}, "webhooks": hooks,
    });
    world.post(HOOKS, &body).expect(201);
}

/// Creates a thing. `patches` says what each hook adds, and where; what they saw is given back.
fn create(
    world: &mut World,
    version: &str,
    spec: &Value,
    patches: &[(&str, &str, Value)],
) -> (Answer, Vec<Value>) {
    let body = json!({"apiVersion": format!("example.com/{version}"), "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
    let mut seen = Vec::new();
    let answer = world.consult("POST", &things(version), &body, |hook, asked| {
        seen.push(asked["object"].clone());
        let patch: Vec<Value> = patches
            .iter()
            .filter(|(name, ..)| hook == format!("h/{name}.example.com"))
            .map(|(_, path, value)| json!({"op": "add", "path": path, "value": value}))
            .collect();
        let patch = STANDARD.encode(Value::from(patch).to_string());
        json!({"uid": asked["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch})
    });
    (answer, seen)
}

/// It was pruned once the first hook had changed the object; kube-apiserver prunes what it stores.
#[test]
fn what_no_schema_knows_is_seen_by_the_next_hook_and_not_stored() {
    let mut world = World::new();
    define(&mut world);
    hook(&mut world, &[("first", "v1"), ("second", "v1"), ("third", "v2")]);
    let patches =
        [("first", "/spec/nosuch", json!({"x": 1})), ("second", "/metadata/labels", json!({"l": 5}))];
    let (answer, seen) = create(&mut world, "v1", &json!({"a": "said"}), &patches);
    assert_eq!(seen[1]["spec"], json!({"a": "said", "only-v1": 1, "nosuch": {"x": 1}}));
    // A field of the other version is one that nobody knows.
    assert_eq!(seen[2]["spec"], seen[1]["spec"]);
    assert_eq!(
        (&seen[2]["apiVersion"], &seen[2]["metadata"]["labels"]),
        (&json!("example.com/v2"), &json!({"l": 5}))
    );
    let made = answer.expect(201);
    assert_eq!(made["spec"], json!({"a": "said", "only-v1": 1}));
    assert_eq!(made["metadata"].get("labels"), None, "labels that are none are dropped");
}

#[test]
fn defaults_are_filled_in_behind_every_hook() {
    let mut world = World::new();
    define(&mut world);
    hook(&mut world, &[("first", "v1"), ("second", "v1")]);
    let patches = [("first", "/spec/a", Value::Null)];
    let (answer, seen) = create(&mut world, "v1", &json!({"a": "said"}), &patches);
    assert_eq!(seen[1]["spec"]["a"], "one");
    assert_eq!(answer.expect(201)["spec"]["a"], "one");
}

#[test]
fn an_object_that_says_it_is_another_one_is_refused() {
    let mut world = World::new();
    define(&mut world);
    hook(&mut world, &[("first", "v1")]);
    let patches = [("first", "/kind", json!("Other"))];
    let (answer, _) = create(&mut world, "v1", &json!({}), &patches);
    let message = r#"Other.example.com "a" is invalid: kind: Invalid value: "Other": must be Thing"#;
    assert_eq!(answer.expect(422)["message"], message);
    let patches = [("first", "/apiVersion", json!("example.com/v7"))];
    let (answer, _) = create(&mut world, "v1", &json!({}), &patches);
    let message = "request to convert CR from an invalid group/version: example.com/v7";
    assert_eq!(answer.expect(500)["message"], message);
}

/// What one version does not know was shown in it; and what it has no default for stayed empty in the stored one.
#[test]
fn versions_that_nobody_converts_show_what_they_know() {
    let mut world = World::new();
    define(&mut world);
    let spec = json!({"only-v2": 7});
    let made = create(&mut world, "v2", &spec, &[]).0.expect(201);
    assert_eq!(made["spec"], json!({"a": "two"}), "it is stored as v1, which does not know the rest");
    let read = |world: &mut World, version: &str| {
        world.get(&format!("{}/a", things(version))).expect(200)["spec"].clone()
    };
    assert_eq!(read(&mut world, "v1"), json!({"a": "two", "only-v1": 1}));
    assert_eq!(read(&mut world, "v2"), json!({"a": "two"}));
    // From now on `v2` is stored: what is written next has its defaults.
    let versions =
        world.get(&format!("{DEFINITIONS}/things.example.com")).expect(200)["spec"]["versions"].clone();
    let mut versions = versions.as_array().unwrap().clone();
    versions.iter_mut().for_each(|version| version["storage"] = json!(version["name"] == "v2"));
    let patch = json!({"spec": {"versions": versions}});
    world.patch("merge", &format!("{DEFINITIONS}/things.example.com"), &patch).expect(200);
    assert_eq!(read(&mut world, "v1"), json!({"a": "two", "only-v1": 1}), "it is still stored as v1");
    let status = json!({"status": {"ok": true}});
    let written = world.patch("merge", &format!("{}/a/status", things("v1")), &status).expect(200);
    assert_eq!(written["spec"], json!({"a": "two"}));
    assert_eq!(read(&mut world, "v2"), json!({"a": "two", "only-v2": 1}));
}

/// A policy with these mutations of new things, which is bound.
fn policy(world: &mut World, mutations: Value) {
    let api = "/apis/admissionregistration.k8s.io/v1";
    let rule = json!({"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["CREATE"]});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "reinvocationPolicy": "Never", "mutations": mutations},
    });
    world.post(&format!("{api}/mutatingadmissionpolicies"), &policy).expect(201);
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "p"}, "spec": {"policyName": "p"},
    });
    world.post(&format!("{api}/mutatingadmissionpolicybindings"), &binding).expect(201);
}

/// What a policy left was pruned before the hooks saw it, and an object without its kind refused as one of no kind.
#[test]
fn what_a_policy_leaves_is_seen_by_hooks_and_not_stored() {
    let mut world = World::new();
    define(&mut world);
    hook(&mut world, &[("first", "v1")]);
    let expression =
        "[JSONPatch{op: 'add', path: '/spec/nosuch', value: 5}, JSONPatch{op: 'remove', path: '/spec/a'}]
        + (object.metadata.name == 'bare' ? [JSONPatch{op: 'remove', path: '/kind'}] : [])";
    policy(&mut world, json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]));
    let (answer, seen) = create(&mut world, "v1", &json!({"a": "said"}), &[]);
    assert_eq!(seen[0]["spec"], json!({"a": "one", "only-v1": 1, "nosuch": 5}), "defaults come back");
    assert_eq!(answer.expect(201)["spec"], json!({"a": "one", "only-v1": 1}));
    let bare =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "bare"}, "spec": {}});
    let message = world.post(&things("v1"), &bare).expect(500)["message"].to_string();
    assert!(message.contains("Internal error occurred: Object 'Kind' is missing in '"), "{message}");
}

/// It was laid over all the same, and the object's type with it.
#[test]
fn nothing_is_laid_over_what_a_policy_called_something_else() {
    let laid = json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{spec: Object.spec{a: 'laid'}}"}});
    let renaming = "[JSONPatch{op: 'replace', path: '/kind', value: 'Other'}]";
    let renamed = json!({"patchType": "JSONPatch", "jsonPatch": {"expression": renaming}});
    let mut world = World::new();
    define(&mut world);
    policy(&mut world, json!([renamed, laid]));
    let body =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {}});
    let message = world.post(&things("v1"), &body).expect(403)["message"].to_string();
    let why = "failed to convert patch object to typed object: no corresponding type for example.com/v1, Kind=Other";
    assert!(message.contains(why), "{message}");
}

/// Creates a claim that the first hook changes by this patch; what each hook saw is given back.
fn claim(world: &mut World, patch: &Value) -> (Answer, Vec<Value>) {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let mut seen = Vec::new();
    let path = "/api/v1/namespaces/default/persistentvolumeclaims";
    let answer = world.consult("POST", path, &claim, |hook, asked| {
        seen.push(asked["object"].clone());
        let mut said = json!({"uid": asked["uid"], "allowed": true});
        if hook.ends_with("/first.example.com") {
            (said["patchType"], said["patch"]) =
                (json!("JSONPatch"), json!(STANDARD.encode(patch.to_string())));
        }
        said
    });
    (answer, seen)
}

/// Hooks that are asked about claims: the first may change them, the second only looks.
fn hook_claims(world: &mut World) {
    for (kind, path, name) in [
        ("MutatingWebhookConfiguration", HOOKS, "first"),
        ("ValidatingWebhookConfiguration", VALIDATING, "second"),
    ] {
        let hook = json!({
            "name": format!("{name}.example.com"), "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["persistentvolumeclaims"]}],
            "clientConfig": {"url": format!("https://127.0.0.1:1/{name}")},
        });
        let body = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "c"}, "webhooks": [hook],
        });
        world.post(path, &body).expect(201);
    }
}

/// Whoever looked at a claim before it was stored saw it without the status that its type always writes.
#[test]
fn who_only_looks_sees_an_object_as_its_type_writes_it() {
    let mut world = World::new();
    hook_claims(&mut world);
    let (answer, seen) = claim(&mut world, &json!([{"op": "remove", "path": "/spec/volumeMode"}]));
    answer.expect(201);
    assert_eq!(seen[1]["status"], json!({}));
    assert_eq!(seen[1]["spec"]["volumeMode"], "Filesystem", "defaults come back");
}

#[test]
fn a_built_in_object_stays_what_it_was() {
    let mut world = World::new();
    hook_claims(&mut world);
    let (answer, _) = claim(&mut world, &json!([{"op": "add", "path": "/kind", "value": "Other"}]));
    let why = r#"Internal error occurred: no kind "Other" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#;
    assert_eq!(answer.expect(500)["message"], why);
    let (answer, _) = claim(
        &mut world,
        &json!([{"op": "remove", "path": "/kind"}, {"op": "remove", "path": "/apiVersion"}]),
    );
    let made = answer.expect(201);
    assert_eq!((&made["kind"], &made["apiVersion"]), (&json!("PersistentVolumeClaim"), &json!("v1")));
}
