//! An OpenAPI v2 document as protobuf, by gnostic's `openapi.v2.Document`: what client-go asks for.

use serde_json::{Map, Value};

use super::super::yaml;

/// How a field is written.
enum Kind {
    Text,
    Flag,
    Whole,
    Float,
    Texts,
    Any,
    Anys,
    /// A message of its own.
    Message(fn(&Value) -> Vec<u8>),
    /// Several.
    Messages(fn(&Value) -> Vec<u8>),
}

use Kind::{Any, Anys, Flag, Float, Message, Messages, Text, Texts, Whole};

/// The fields of a message: their keys in JSON, their numbers, how they are written.
type Fields = [(&'static str, u32, Kind)];

/// The document.
pub(super) fn document(tree: &Value) -> Vec<u8> {
    message(
        tree,
        &[
            ("swagger", 1, Text),
            ("info", 2, Message(|info| message(info, &[("title", 1, Text), ("version", 2, Text)], 7))),
            ("paths", 8, Message(|paths| named(paths, 2, path))),
            ("definitions", 9, Message(|all| named(all, 1, schema))),
            ("parameters", 10, Message(|all| named(all, 1, parameter))),
            ("security", 12, Messages(|one| named(one, 1, |texts| strings(1, texts)))),
            ("securityDefinitions", 13, Message(|all| named(all, 1, |one| field(2, &api_key(one))))),
        ],
        16,
    )
}

fn api_key(value: &Value) -> Vec<u8> {
    message(value, &[("type", 1, Text), ("name", 2, Text), ("in", 3, Text), ("description", 4, Text)], 5)
}

fn path(value: &Value) -> Vec<u8> {
    message(
        value,
        &[
            ("get", 2, Message(operation)),
            ("put", 3, Message(operation)),
            ("post", 4, Message(operation)),
            ("delete", 5, Message(operation)),
            ("options", 6, Message(operation)),
            ("head", 7, Message(operation)),
            ("patch", 8, Message(operation)),
            ("parameters", 9, Messages(parameters_item)),
        ],
        10,
    )
}

fn operation(value: &Value) -> Vec<u8> {
    message(
        value,
        &[
            ("tags", 1, Texts),
            ("summary", 2, Text),
            ("description", 3, Text),
            ("operationId", 5, Text),
            ("produces", 6, Texts),
            ("consumes", 7, Texts),
            ("parameters", 8, Messages(parameters_item)),
            ("responses", 9, Message(|all| named(all, 1, |one| field(1, &response(one))))),
            ("schemes", 10, Texts),
            ("deprecated", 11, Flag),
        ],
        13,
    )
}

fn response(value: &Value) -> Vec<u8> {
    message(value, &[("description", 1, Text), ("schema", 2, Message(|one| field(1, &schema(one))))], 5)
}

fn parameters_item(value: &Value) -> Vec<u8> {
    match value.get("$ref") {
        Some(_) => field(2, &message(value, &[("$ref", 1, Text)], 0)),
        None => field(1, &parameter(value)),
    }
}

fn parameter(value: &Value) -> Vec<u8> {
    let place = value["in"].as_str().unwrap_or_default();
    if place == "body" {
        let body: &Fields = &[
            ("description", 1, Text),
            ("name", 2, Text),
            ("in", 3, Text),
            ("required", 4, Flag),
            ("schema", 5, Message(schema)),
        ];
        return field(1, &message(value, body, 6));
    }
    let first: &Fields =
        &[("required", 1, Flag), ("in", 2, Text), ("description", 3, Text), ("name", 4, Text)];
    // A parameter of a query has one field more in the middle.
    let (number, rest): (u32, &Fields) = match place {
        "query" => (3, &[("type", 6, Text), ("uniqueItems", 20, Flag)]),
        _ => (4, &[("type", 5, Text), ("uniqueItems", 19, Flag)]),
    };
    let body = [message(value, first, 0), message(value, rest, 0)].concat();
    field(2, &field(number, &body))
}

fn schema(value: &Value) -> Vec<u8> {
    message(
        value,
        &[
            ("$ref", 1, Text),
            ("format", 2, Text),
            ("title", 3, Text),
            ("description", 4, Text),
            ("default", 5, Any),
            ("multipleOf", 6, Float),
            ("maximum", 7, Float),
            ("exclusiveMaximum", 8, Flag),
            ("minimum", 9, Float),
            ("exclusiveMinimum", 10, Flag),
            ("maxLength", 11, Whole),
            ("minLength", 12, Whole),
            ("pattern", 13, Text),
            ("maxItems", 14, Whole),
            ("minItems", 15, Whole),
            ("uniqueItems", 16, Flag),
            ("maxProperties", 17, Whole),
            ("minProperties", 18, Whole),
            ("required", 19, Texts),
            ("enum", 20, Anys),
            ("additionalProperties", 21, Message(additional)),
            ("type", 22, Message(|kind| strings(1, kind))),
            ("items", 23, Message(|items| field(1, &schema(items)))),
            ("allOf", 24, Messages(schema)),
            ("properties", 25, Message(|all| named(all, 1, schema))),
            ("example", 30, Any),
        ],
        31,
    )
}

fn additional(value: &Value) -> Vec<u8> {
    match value.as_bool() {
        Some(flag) => number(2, u64::from(flag)),
        None => field(1, &schema(value)),
    }
}

/// A message by its fields; what begins with `x-` goes to the field of extensions.
fn message(value: &Value, fields: &Fields, extensions: u32) -> Vec<u8> {
    let empty = Map::new();
    let map = value.as_object().unwrap_or(&empty);
    let mut out = Vec::new();
    for (key, place, kind) in fields {
        let Some(value) = map.get(*key) else { continue };
        match kind {
            Text => out.extend(field(*place, value.as_str().unwrap_or_default().as_bytes())),
            Flag if *value == true => out.extend(number(*place, 1)),
            Flag => {}
            Whole => out.extend(number(*place, value.as_i64().unwrap_or_default().cast_unsigned())),
            Float => {
                out.extend(varint(u64::from(*place) << 3 | 1));
                out.extend(value.as_f64().unwrap_or_default().to_le_bytes());
            }
            Texts => out.extend(strings(*place, value)),
            Any => out.extend(field(*place, &any(value))),
            Anys => {
                value.as_array().into_iter().flatten().for_each(|one| out.extend(field(*place, &any(one))))
            }
            Message(write) => out.extend(field(*place, &write(value))),
            Messages(write) => {
                value.as_array().into_iter().flatten().for_each(|one| out.extend(field(*place, &write(one))));
            }
        }
    }
    if extensions > 0 {
        for (key, value) in map.iter().filter(|(key, _)| key.starts_with("x-")) {
            let named = [field(1, key.as_bytes()), field(2, &any(value))].concat();
            out.extend(field(extensions, &named));
        }
    }
    out
}

/// Names and values, as a repeated field of a message.
fn named(map: &Value, place: u32, write: fn(&Value) -> Vec<u8>) -> Vec<u8> {
    let entries = map.as_object().into_iter().flatten();
    entries
        .flat_map(|(name, value)| {
            field(place, &[field(1, name.as_bytes()), field(2, &write(value))].concat())
        })
        .collect()
}

/// A text, or several.
fn strings(place: u32, value: &Value) -> Vec<u8> {
    let one = value.as_str().into_iter();
    let all = one.chain(value.as_array().into_iter().flatten().filter_map(Value::as_str));
    all.flat_map(|text| field(place, text.as_bytes())).collect()
}

/// Any value, which is YAML inside.
fn any(value: &Value) -> Vec<u8> {
    field(2, &yaml::write(value))
}

fn field(place: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = varint(u64::from(place) << 3 | 2);
    out.extend(varint(bytes.len() as u64));
    out.extend_from_slice(bytes);
    out
}

fn number(place: u32, value: u64) -> Vec<u8> {
    let mut out = varint(u64::from(place) << 3);
    out.extend(varint(value));
    out
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_written_as_gnostic_writes_it() {
        let tree = json!({"type": "string", "x-kubernetes-patch-strategy": "merge"});
        let expected =
            b"\xb2\x01\x08\n\x06string\xfa\x01'\n\x1bx-kubernetes-patch-strategy\x12\x08\x12\x06merge\n";
        assert_eq!(schema(&tree), expected);
    }

    #[test]
    fn lengths_and_numbers_take_as_many_bytes_as_they_need() {
        assert_eq!(varint(1), [1]);
        assert_eq!(varint(300), [0xac, 2]);
        assert_eq!(number(4, 1), [0x20, 1]);
    }
}
