//! The rules one by one, on a table of our own; `tests/codec.rs` has the real one.

use super::*;
use crate::schema::{Field, Omit, Struct};
use serde_json::json;

/// A table of two structures in which every field is `name type [omit] [ptr]`.
fn table() -> (Types, TypeId) {
    fn field(text: &str) -> Field {
        let mut words = text.split(' ');
        let name = words.next().unwrap().to_owned();
        let ty = match words.next().unwrap() {
            "string" => Type::String,
            "bool" => Type::Bool,
            "int32" => Type::Int32,
            "float64" => Type::Float64,
            "bytes" => Type::Bytes,
            "time" => Type::Time,
            "duration" => Type::Duration,
            "intorstring" => Type::IntOrString,
            "raw" => Type::Raw,
            "strings" => Type::List(Box::new(Type::String)),
            "quantities" => Type::Map(Box::new(Type::Quantity)),
            "inner" => Type::Struct(TypeId(0)),
            "inners" => Type::List(Box::new(Type::Struct(TypeId(0)))),
            other => panic!("{other}"),
        };
        let rest: Vec<&str> = words.collect();
        let omit = match () {
            () if rest.contains(&"empty") => Omit::Empty,
            () if rest.contains(&"zero") => Omit::Zero,
            () => Omit::Never,
        };
        Field {
            name: name.into(),
            ty,
            pb: 0,
            ptr: rest.contains(&"ptr"),
            omit,
            required: false,
            list: None,
            atomic: false,
            patch_strategy: "".into(),
            merge_key: "".into(),
            default: None,
            enumeration: Vec::new(),
        }
    }
    let mut types = Types::default();
    let fields = ["name string", "on bool empty", "list strings empty"].map(field).to_vec();
    types.add(Struct::new("x.v1.Inner".into(), fields));
    let fields = [
        "never string",
        "text string empty",
        "pointer string empty ptr",
        "count int32 empty ptr",
        "plain int32 empty",
        "share float64 empty",
        "bytes bytes empty",
        "time time empty ptr",
        "stamp time",
        "wait duration",
        "port intorstring empty",
        "raw raw empty ptr",
        "strings strings",
        "some strings empty",
        "amounts quantities empty",
        "inner inner empty",
        "maybe inner empty ptr",
        "zero inner zero",
        "inners inners empty",
    ];
    let id = types.add(Struct::new("x.v1.Outer".into(), fields.map(field).to_vec()));
    (types, id)
}

fn run(value: Value) -> Result<(Value, Vec<String>), String> {
    let (types, id) = table();
    let mut unknown = Vec::new();
    let value = canonical(&types, id, value, &mut unknown).map_err(|e| e.to_string())?;
    Ok((value, unknown))
}

/// The fields that are written for an empty object, with `more` put over them.
#[track_caller]
fn check(input: Value, more: Value) {
    let mut want =
        json!({"never": "", "stamp": null, "wait": "0s", "port": 0, "strings": null, "inner": {"name": ""}});
    for (key, value) in more.as_object().unwrap() {
        want[key] = value.clone();
    }
    assert_eq!(run(input).unwrap().0, want);
}

#[test]
fn zero_values_follow_the_tags() {
    check(json!({}), json!({}));
    check(json!({"text": "", "plain": 0, "bytes": "", "some": [], "amounts": {}, "share": 0.0}), json!({}));
    check(json!({"pointer": "", "count": 0}), json!({"pointer": "", "count": 0}));
    check(json!({"pointer": null, "strings": null, "some": null, "maybe": null, "never": null}), json!({}));
    check(json!({"strings": [], "maybe": {}}), json!({"strings": [], "maybe": {"name": ""}}));
    check(json!({"zero": {}}), json!({}));
    check(json!({"zero": {"list": []}}), json!({"zero": {"name": ""}}));
    check(json!({"strings": ["a", null]}), json!({"strings": ["a", ""]}));
    check(json!({"time": "0001-01-01T00:00:00Z"}), json!({"time": null}));
}

#[test]
fn scalars_get_their_canonical_text() {
    check(
        json!({"amounts": {"b": "1000m", "a": 0.5, "c": null}, "stamp": "2026-01-02T03:04:05+01:00", "wait": "90s",
            "bytes": [104, 105], "port": "http", "raw": {"z": 1, "a": [null]}, "share": 1.0}),
        json!({"amounts": {"a": "500m", "b": "1", "c": "0"}, "stamp": "2026-01-02T02:04:05Z", "wait": "1m30s",
            "bytes": "aGk=", "port": "http", "raw": {"z": 1, "a": [null]}, "share": 1}),
    );
}

#[test]
fn the_order_is_that_of_the_structure_and_maps_are_sorted() {
    let body = json!({"amounts": {"b": "1", "a": "2"}, "text": "t", "never": "n"});
    let (value, _) = run(body).unwrap();
    assert_eq!(
        value.to_string(),
        r#"{"never":"n","text":"t","stamp":null,"wait":"0s","port":0,"strings":null,"amounts":{"a":"2","b":"1"},"inner":{"name":""}}"#
    );
}

#[test]
fn unknown_fields_are_named_in_the_order_of_the_body() {
    let body =
        json!({"b": 1, "inners": [{"name": "a"}, {"Name": "x", "foo": {"bar": 1}}], "a": 1, "Text": 1});
    let (_, unknown) = run(body).unwrap();
    assert_eq!(unknown, ["b", "inners[1].Name", "inners[1].foo", "a", "Text"]);
}

#[test]
fn mismatches_read_as_gos() {
    for (body, want) in [
        (
            json!({"count": "x"}),
            "json: cannot unmarshal string into Go struct field Outer.count of type int32",
        ),
        (
            json!({"count": 3.5}),
            "json: cannot unmarshal number 3.5 into Go struct field Outer.count of type int32",
        ),
        (
            json!({"count": 3_000_000_000_i64}),
            "json: cannot unmarshal number 3000000000 into Go struct field Outer.count of type int32",
        ),
        (
            json!({"inner": []}),
            "json: cannot unmarshal array into Go struct field Outer.inner of type v1.Inner",
        ),
        (
            json!({"inners": {}}),
            "json: cannot unmarshal object into Go struct field Outer.inners of type []v1.Inner",
        ),
        (
            json!({"inners": [{"name": 1}]}),
            "json: cannot unmarshal number into Go struct field Inner.inners.name of type string",
        ),
        (
            json!({"amounts": 1}),
            "json: cannot unmarshal number into Go struct field Outer.amounts of type v1.ResourceList",
        ),
        (json!({"time": 1}), "json: cannot unmarshal number into Go struct field Outer.time of type string"),
        (json!({"port": true}), "json: cannot unmarshal bool into Go struct field Outer.port of type int32"),
        (json!({"bytes": "!!"}), "illegal base64 data at input byte 0"),
        (
            json!({"bytes": [1, "x"]}),
            "json: cannot unmarshal string into Go struct field Outer.bytes of type uint8",
        ),
        (json!({"bytes": "aGk"}), "illegal base64 data at input byte 0"),
        (json!({"wait": "1"}), r#"time: missing unit in duration "1""#),
        (json!({"wait": null}), r#"time: invalid duration """#),
        (json!({"count": "x", "wait": "1"}), r#"time: missing unit in duration "1""#),
        (
            json!({"count": "x", "never": 1}),
            "json: cannot unmarshal string into Go struct field Outer.count of type int32",
        ),
        (json!([]), "json: cannot unmarshal array into Go value of type v1.Outer"),
    ] {
        assert_eq!(run(body.clone()).unwrap_err(), want, "{body}");
    }
}
