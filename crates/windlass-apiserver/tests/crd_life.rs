//! The life of a definition and of what it defines: establishing, publishing, pruning, forgiving, bounded rules.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use windlass_apiserver::crd::{self, Definition, Names, Version};
use windlass_apiserver::field::Errors;
use windlass_apiserver::kinds::Noted;
use windlass_apiserver::schema::{ListType, Type};

fn unchecked(schema: &Value) -> Value {
    json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn definition(schema: &Value) -> Definition {
    let crd = unchecked(schema);
    let mut errors = Errors::default();
    let mut checked = crd.clone();
    crd::default_definition(&mut checked);
    crd::prepare_create(&mut checked);
    crd::validate_create(&checked, Noted::default(), &mut errors);
    assert_eq!(errors, Errors::default());
    Definition::compile(&crd).expect("a definition that was validated")
}

fn version(schema: &Value) -> Version {
    definition(schema).versions.remove(0)
}

fn spec(properties: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}})
}

fn faults(version: &Version, new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut errors = Errors::default();
    version.validate_form(new, old, &mut errors);
    version.validate_rules(new, old, &mut errors);
    errors.0.iter().map(ToString::to_string).collect()
}

#[test]
fn names_are_accepted_and_the_definition_is_established() {
    let now = "2026-01-02T03:04:05.6Z".parse().expect("a time");
    let names =
        json!({"plural": "as", "singular": "a", "kind": "A", "listKind": "AList", "shortNames": ["x"]});
    let mut crd = json!({"spec": {"group": "example.com", "names": names}, "status": {}});
    crd::establish(&mut crd, &[], now);
    assert_eq!(crd["status"]["acceptedNames"], names);
    let since = "2026-01-02T03:04:05Z";
    assert_eq!(
        crd["status"]["conditions"],
        json!([
            {"type": "NamesAccepted", "status": "True", "lastTransitionTime": since, "reason": "NoConflicts",
             "message": "no conflicts found"},
            {"type": "Established", "status": "True", "lastTransitionTime": since, "reason": "InitialNamesAccepted",
             "message": "the initial names have been accepted"},
        ])
    );
    let before = crd.clone();
    crd::establish(&mut crd, &[], "2027-01-02T03:04:05Z".parse().expect("a time"));
    assert_eq!(crd, before, "times stay as long as nothing changes");
}

#[test]
fn names_that_are_taken_keep_a_definition_from_being_established() {
    let taken = Names { plural: "bs".into(), singular: "b".into(), kind: "A".into(), ..Names::default() };
    let names =
        json!({"plural": "as", "singular": "b", "kind": "A", "listKind": "AList", "shortNames": ["bs", "y"]});
    let mut crd = json!({"spec": {"group": "example.com", "names": names}, "status": {}});
    crd::establish(&mut crd, &[&taken], "2026-01-02T03:04:05Z".parse().expect("a time"));
    assert_eq!(crd["status"]["acceptedNames"], json!({"plural": "as", "listKind": "AList"}));
    assert!(!crd::is_condition_true(&crd, "NamesAccepted"));
    assert!(!crd::is_condition_true(&crd, "Established"));
    assert_eq!(crd["status"]["conditions"][0]["reason"], "KindConflict");
    assert_eq!(crd["status"]["conditions"][1]["reason"], "NotAccepted");
}

#[test]
fn the_schema_is_published_as_by_the_real_server() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/crd/openapi.json");
    let recorded: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("recorded")).expect("JSON");
    let mut crd = recorded["crd"].clone();
    crd::default_definition(&mut crd);
    let definition = Definition::compile(&crd).expect("a definition that the real server took");
    let version = &definition.versions[0];
    assert_eq!(version.open_api_name(), "com.example.crdcases.v1.A");
    assert_eq!(version.open_api(), recorded["schemas"]["com.example.crdcases.v1.A"]);
    assert_eq!(version.open_api_list(), recorded["schemas"]["com.example.crdcases.v1.AList"]);
}

#[test]
fn types_for_server_side_apply_follow_the_schema() {
    let version = version(&spec(&json!({
        "n": {"type": "integer", "format": "int32"},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "properties": {"k": {"type": "string", "default": "d"}}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
        "free": {"x-kubernetes-preserve-unknown-fields": true},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "port": {"x-kubernetes-int-or-string": true},
    })));
    let root = version.types.get(version.root);
    assert_eq!(root.gvk, ["example.com/v1/Thing"]);
    let Type::Struct(id) = root.field("spec").expect("spec").ty else { panic!("spec is a structure") };
    let spec = version.types.get(id);
    assert_eq!(spec.field("n").expect("n").ty, Type::Int32);
    assert_eq!(spec.field("set").expect("set").list, Some(ListType::Set));
    assert_eq!(spec.field("map").expect("map").list, Some(ListType::Map(vec!["k".into()])));
    assert!(spec.field("labels").expect("labels").atomic);
    assert_eq!(spec.field("free").expect("free").ty, Type::Any);
    assert_eq!(spec.field("port").expect("port").ty, Type::IntOrString);
    let Type::Struct(open) = spec.field("open").expect("open").ty else { panic!("open is a structure") };
    assert!(version.types.get(open).preserve_unknown);
}

#[test]
fn what_was_wrong_before_is_forgiven_until_it_is_touched() {
    let rule = json!([{"rule": "self.a > 0"}]);
    let version = version(&spec(&json!({
        "s": {"type": "string", "maxLength": 2},
        "o": {"type": "object", "x-kubernetes-validations": rule, "properties": {"a": {"type": "integer"}}},
        "list": {"type": "array", "items": {"type": "string", "maxLength": 2}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"],
                          "properties": {"k": {"type": "string"}, "v": {"type": "integer", "minimum": 5}}}},
    })));
    let old = json!({"spec": {"s": "long", "o": {"a": 0}, "list": ["long"], "map": [{"k": "a", "v": 1}]}});
    let change = |path: &str, value: Value| {
        let mut new = old.clone();
        *new.pointer_mut(path).expect("a path") = value;
        faults(&version, &new, Some(&old))
    };
    assert!(faults(&version, &old, None).len() >= 3, "all of it is wrong in a new object");
    assert_eq!(faults(&version, &old, Some(&old)), [""; 0]);
    assert_eq!(change("/spec/map", json!([{"k": "b", "v": 6}, {"k": "a", "v": 1}])), [""; 0]);
    let touched = change("/spec/map/0/v", json!(2));
    assert_eq!(
        touched[0],
        "spec.map[0].v: Invalid value: 2: spec.map[0].v in body should be greater than or equal to 5"
    );
    assert!(change("/spec/s", json!("longer"))[0].starts_with("spec.s: Too long"));
    assert!(change("/spec/list", json!(["long", "b"]))[0].starts_with("spec.list[0]: Too long"));
    let failed = "spec.o: Invalid value: failed rule: self.a > 0";
    assert_eq!(change("/spec/o", json!({"a": -1})), [failed]);
    // Rules say what they found nevertheless.
    let mut errors = Errors::default();
    version.validate_form(&old, Some(&old), &mut errors);
    assert_eq!(version.validate_rules(&old, Some(&old), &mut errors), [failed]);
    assert_eq!(errors, Errors::default());
}

#[test]
fn a_hostile_rule_ends_with_an_error_instead_of_running_on() {
    let rules = |rule: &str| {
        let mut schema = spec(&json!({
            "l": {"type": "array", "items": {"type": "integer"}},
            "s": {"type": "string"},
        }));
        schema["properties"]["spec"]["x-kubernetes-validations"] = json!([{"rule": rule}]);
        // Who creates such a definition is refused by the estimate; one that was stored before is served.
        Definition::compile(&unchecked(&schema)).expect("rules without faults").versions.remove(0)
    };
    let list: Vec<i64> = (0..2000).collect();
    let object = json!({"spec": {"l": list, "s": "x".repeat(100_000)}});
    for rule in [
        "self.l.all(a, self.l.all(b, self.l.all(c, a + b + c >= 0)))",
        "self.l.map(a, self.s + self.s).size() > 0",
        "self.s.replace('', self.s).size() > 0",
        "self.l.map(a, self.l.map(b, [a, b])).size() > 0",
        "lists.range(9223372036854775807).size() > 0",
        "self.l.all(a, self.s.matches('(x+x+)+y') == false)",
        "self.l.map(a, self.s.split('')).size() > 0",
    ] {
        let found = faults(&rules(rule), &object, None);
        assert_eq!(found.len(), 1, "{rule}");
        assert!(found[0].contains("actual cost limit exceeded"), "{rule}: {}", found[0]);
    }
    let fine = "self.l.map(a, a + 1).filter(a, a > 5).size() == 1995";
    assert_eq!(faults(&rules(fine), &object, None), [""; 0]);
}

#[test]
fn deep_and_broken_rules_are_refused_without_harm() {
    let deep = |n: usize| format!("{}true{}", "(".repeat(n), ")".repeat(n));
    let chain = |n: usize| vec!["1"; n].join(" + ") + " > 0";
    let long = format!("'{}' == ''", "x".repeat(110_000));
    let broken = [
        "",
        "(",
        "self.",
        "a b",
        "\u{0}",
        "'",
        "\"\\",
        "self[",
        "self.all(",
        "has(",
        "Foo{",
        "{1:",
        "[1,",
        "1 ? 2",
    ];
    let mut rules: Vec<String> = broken.map(str::to_owned).to_vec();
    rules.extend([deep(500), chain(5000), long]);
    for rule in rules {
        let mut schema = spec(&json!({"s": {"type": "string"}}));
        schema["x-kubernetes-validations"] = json!([{"rule": rule, "message": "m"}]);
        let mut crd = json!({
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
                     "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
        });
        crd::default_definition(&mut crd);
        crd::prepare_create(&mut crd);
        let mut errors = Errors::default();
        crd::validate_create(&crd, Noted::default(), &mut errors);
        let shown: String = rule.chars().take(40).collect();
        assert_eq!(errors.0.len(), 1, "{shown}: {errors:?}");
        assert!(errors.0[0].field.ends_with("x-kubernetes-validations[0].rule"), "{shown}");
    }
}

/// Any JSON, with names that schemas below know.
fn json_tree() -> impl Strategy<Value = Value> {
    let name = prop_oneof![Just("a"), Just("b"), Just("spec"), Just("metadata"), Just("kind"), Just("x")];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9:./-]{0,12}".prop_map(Value::from),
        Just(json!("2024-01-01T00:00:00Z")),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..5).prop_map(|entries| {
                let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
                Value::Object(entries.collect::<Map<_, _>>())
            }),
        ]
    })
}

/// A schema that uses every keyword somewhere below `spec`.
fn rich_schema() -> Value {
    let leaf = json!({"type": "object", "x-kubernetes-validations": [{"rule": "!has(self.a) || self.a > timestamp('2000-01-01T00:00:00Z')"}],
    "properties": {
        "a": {"type": "string", "default": "2024-01-01T00:00:00Z", "format": "date-time", "nullable": true,
                  "maxLength": 30},
        "b": {"x-kubernetes-int-or-string": true},
        "x": {"type": "number", "minimum": 0, "maximum": 5.5, "multipleOf": 0.5},
    }});
    spec(&json!({
        "a": {"type": "array", "items": leaf, "default": [{}], "maxItems": 3},
        "b": {"type": "object", "additionalProperties": leaf, "minProperties": 1},
        "spec": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "metadata": {"type": "object", "x-kubernetes-embedded-resource": true,
                     "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": leaf}},
        "kind": {"x-kubernetes-preserve-unknown-fields": true},
        "x": {"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 3}], "not": {"enum": [4]}, "default": 1},
    }))
}

static RICH: LazyLock<Version> = LazyLock::new(|| version(&rich_schema()));

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pruning_and_defaulting_twice_is_as_good_as_once(mut object in json_tree()) {
        let version = &*RICH;
        let mut unknown = Vec::new();
        version.prune(&mut object, &mut unknown);
        let pruned = object.clone();
        unknown.clear();
        version.prune(&mut object, &mut unknown);
        prop_assert_eq!(&object, &pruned);
        prop_assert!(unknown.is_empty());
        version.default(&mut object);
        let defaulted = object.clone();
        version.default(&mut object);
        prop_assert_eq!(&object, &defaulted);
    }

    #[test]
    fn no_object_makes_validation_panic(object in json_tree(), old in prop::option::of(json_tree())) {
        let version = &*RICH;
        let object = json!({"apiVersion": "example.com/v1", "kind": "Thing", "spec": object});
        let old = old.map(|old| json!({"spec": old}));
        version.malformed(&object);
        version.validate_form(&object, old.as_ref(), &mut Errors::default());
        version.validate_status_form(&object, old.as_ref().unwrap_or(&object), &mut Errors::default());
        version.validate_rules(&object, old.as_ref(), &mut Errors::default());
    }

    #[test]
    fn no_definition_makes_validation_panic(schema in json_tree(), status in any::<bool>()) {
        let mut crd = json!({"metadata": {"name": "x"}, "spec": {"versions": [
            {"name": "v1", "schema": {"openAPIV3Schema": schema}, "subresources": {"status": status}},
            {"name": "v2", "schema": schema},
        ]}});
        crd::default_definition(&mut crd);
        crd::prepare_create(&mut crd);
        crd::validate_create(&crd, Noted::default(), &mut Errors::default());
    }
}
