//! One random thing wrong with an object, guided by the types of its fields and by the values of other objects.
//!
//! Where a value stands, a wrong one of its type is put: another word of an enumeration, a name that is none, a port
//! that is too high. Where fields are missing, one is put in from an object that has it, so that fields meet that
//! exclude each other.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use windlass_apiserver::schema::{self, Field, Type, TypeId};

use crate::rng::Rng;

/// What spoils objects.
pub struct Spoiler {
    /// By type and field, the values that objects have there.
    seen: BTreeMap<(TypeId, String), Vec<Value>>,
}

/// A place in an object.
struct Place {
    pointer: String,
    ty: Type,
    /// The structure and the field that hold the value, or the list or map of it.
    holder: Option<(TypeId, &'static Field)>,
}

impl Spoiler {
    /// One that knows the values of these objects, each with the name of its type.
    pub fn new<'a>(objects: impl Iterator<Item = (&'a str, &'a Value)>) -> Spoiler {
        let mut seen: BTreeMap<(TypeId, String), Vec<Value>> = BTreeMap::new();
        for (type_name, object) in objects {
            for place in places(type_name, object) {
                let (Some((id, field)), Some(value)) = (place.holder, object.pointer(&place.pointer)) else {
                    continue;
                };
                let whole = place.pointer.ends_with(&format!("/{}", field.name));
                let values = seen.entry((id, field.name.to_string())).or_default();
                if whole && !values.contains(value) {
                    values.push(value.clone());
                }
            }
        }
        Spoiler { seen }
    }

    /// Puts one thing wrong.
    pub fn spoil(&self, rng: &mut Rng, type_name: &str, object: &mut Value) {
        let places = places(type_name, object);
        if places.is_empty() {
            return;
        }
        let place = &places[rng.below(places.len())];
        let Some(value) = object.pointer(&place.pointer) else { return };
        if rng.chance(12) {
            take_away(object, &place.pointer);
            return;
        }
        let wrong = self.wrong(rng, place, value);
        if let Some(at) = object.pointer_mut(&place.pointer) {
            *at = wrong;
        }
    }

    fn wrong(&self, rng: &mut Rng, place: &Place, value: &Value) -> Value {
        match &place.ty {
            Type::String => json!(self.text(rng, place, value.as_str().unwrap_or_default())),
            Type::Bool => json!(value != true),
            Type::Int32 => json!(*rng.pick(&NUMBERS.each_ref())),
            Type::Int64 => json!(*rng.pick(&LARGE_NUMBERS.each_ref())),
            Type::Quantity => json!(rng.pick(&QUANTITIES)),
            Type::IntOrString if rng.chance(50) => json!(*rng.pick(&NUMBERS.each_ref())),
            Type::IntOrString => json!(rng.pick(&PORTS)),
            Type::Duration => json!(rng.pick(&["0s", "-1s", "1h"])),
            Type::Bytes => json!(rng.pick(&["", "AAEC", "e30="])),
            Type::Float64 => [json!(-1), json!(0), json!(1.5), json!(1e10), json!(3)][rng.below(5)].clone(),
            Type::Any => [json!(null), json!("x"), json!(1), json!({"a": 1}), json!([1]), json!(true)]
                [rng.below(6)]
            .clone(),
            Type::SchemaOrBool if rng.chance(50) => json!(rng.chance(50)),
            Type::SchemaOrArray if rng.chance(30) => json!([value]),
            Type::SchemaOrBool | Type::SchemaOrArray => self.structure(rng, schema_of_schemas(), value),
            Type::List(_) => self.list(rng, place, value.as_array().cloned().unwrap_or_default()),
            Type::Map(_) => map(rng, value.as_object().cloned().unwrap_or_default()),
            Type::Struct(id) => self.structure(rng, *id, value),
            _ => value.clone(),
        }
    }

    fn text(&self, rng: &mut Rng, place: &Place, value: &str) -> String {
        let known = self.known(place.holder);
        let words = place.holder.map_or(&[][..], |(_, field)| field.enumeration.as_slice());
        match rng.below(10) {
            0..3 if !words.is_empty() => words[rng.below(words.len())].to_string(),
            0..2 if !known.is_empty() => match &known[rng.below(known.len())] {
                Value::String(text) => text.clone(),
                _ => value.to_owned(),
            },
            2 => format!("{value}{}", rng.pick(&["-", "_", "/", ".", "x", "\n", ":", "%"])),
            3 => format!("{}{value}", rng.pick(&["-", "_", "/", ".", "X", " ", "../", "9"])),
            4 => rng.pick(&["a", "b"]).repeat([16, 64, 130, 254, 300][rng.below(5)]),
            _ => rng.pick(&TEXTS).to_owned(),
        }
    }

    fn list(&self, rng: &mut Rng, place: &Place, mut items: Vec<Value>) -> Value {
        let known = self.known(place.holder);
        match rng.below(4) {
            0 => items.clear(),
            1 if !items.is_empty() => {
                items.remove(rng.below(items.len()));
            }
            2 if !known.is_empty() => {
                let others = known[rng.below(known.len())].as_array().cloned().unwrap_or_default();
                items.extend(others);
            }
            _ if !items.is_empty() => items.push(items[rng.below(items.len())].clone()),
            _ => {}
        }
        Value::Array(items)
    }

    fn structure(&self, rng: &mut Rng, id: TypeId, value: &Value) -> Value {
        let mut map = value.as_object().cloned().unwrap_or_default();
        let missing: Vec<(&str, &Vec<Value>)> = schema::builtin()
            .get(id)
            .fields
            .iter()
            .filter(|field| !map.contains_key(field.name.as_ref()))
            .filter_map(|field| Some((field.name.as_ref(), self.seen.get(&(id, field.name.to_string()))?)))
            .filter(|(_, values)| !values.is_empty())
            .collect();
        if missing.is_empty() || rng.chance(10) {
            return json!({});
        }
        let (name, values) = missing[rng.below(missing.len())];
        map.insert(name.to_owned(), values[rng.below(values.len())].clone());
        Value::Object(map)
    }

    fn known(&self, holder: Option<(TypeId, &Field)>) -> &[Value] {
        let values = holder.and_then(|(id, field)| self.seen.get(&(id, field.name.to_string())));
        values.map_or(&[], Vec::as_slice)
    }
}

const NUMBERS: [i64; 14] = [-1, 0, 1, 2, 3, 10, 99, 101, 511, 512, 65535, 65536, 2147483647, -2147483648];
const LARGE_NUMBERS: [i64; 11] =
    [-1, 0, 1, 5, 600, 3601, 2147483647, 2147483648, 4294967296, -2147483649, 9223372036854775807];
const QUANTITIES: [&str; 12] =
    ["-1", "0", "1", "2", "1m", "1500m", "1Gi", "3Mi", "0.5", "100Gi", "1e3", "-500m"];
const PORTS: [&str; 14] = [
    "http",
    "10%",
    "150%",
    "x%",
    "",
    "-",
    "Http",
    "a-long-port-name-x",
    "80",
    "a--b",
    "-1%",
    "0%",
    "0",
    "a b",
];
const TEXTS: [&str; 44] = [
    "",
    "x",
    "default",
    "Bad_Name",
    "UPPER",
    "-a",
    "a-",
    "a.b",
    "a.b.c",
    "a..b",
    "a/b",
    "a/b/c",
    "/",
    "/abs",
    "/abs/../x",
    "../up",
    "..data",
    "..",
    ".",
    "a:b",
    "a b",
    " a",
    "é",
    "1",
    "-1",
    "100",
    "1.2.3.4",
    "127.0.0.1",
    "01.2.3.4",
    "0.0.0.0",
    "169.254.1.1",
    "::1",
    "::ffff:1.2.3.4",
    "2001:db8::1",
    "10.0.0.0/8",
    "10.0.0.1/8",
    "10.0.0.0/33",
    "2001:db8::/32",
    "*",
    "*.example.com",
    "kubernetes.io/x",
    "example.com/x",
    "https://example.com/x?y=z",
    "$(A)",
];

fn map(rng: &mut Rng, mut map: Map<String, Value>) -> Value {
    let some = map.values().next().cloned().unwrap_or(json!("1"));
    let key = map.keys().nth(rng.below(map.len().max(1))).cloned();
    match (rng.below(4), key) {
        (0, Some(key)) => {
            map.remove(&key);
        }
        (1, Some(key)) => {
            let value = map.remove(&key).unwrap_or_default();
            map.insert(format!("{key}{}", rng.pick(&["x", "-", "/", "/x", "."])), value);
        }
        _ => {
            map.insert((*rng.pick(&KEYS)).to_owned(), some);
        }
    }
    Value::Object(map)
}

const KEYS: [&str; 20] = [
    "x",
    "",
    "a b",
    "-a",
    "a/b/c",
    "/x",
    "x/",
    "Bad_Name/x",
    "kubernetes.io/x",
    "cpu",
    "memory",
    "storage",
    "pods",
    "hugepages-2Mi",
    "ephemeral-storage",
    "example.com/gpu",
    "requests.example.com/gpu",
    "..",
    "..x",
    "a123456789a123456789a123456789a123456789a123456789a123456789a123456789",
];

/// The places of an object that may be spoilt: all but what says which object it is.
fn places(type_name: &str, object: &Value) -> Vec<Place> {
    let mut out = Vec::new();
    let root = schema::builtin().id(type_name).unwrap_or_else(|| panic!("no type {type_name}"));
    walk(&Type::Struct(root), None, object, &mut String::new(), &mut out);
    out.retain(|place| {
        !["", "/apiVersion", "/kind", "/metadata", "/metadata/name"].contains(&place.pointer.as_str())
    });
    out
}

fn schema_of_schemas() -> TypeId {
    const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    schema::builtin().id(SCHEMA).expect("definitions have schemas")
}

fn walk(
    ty: &Type,
    holder: Option<(TypeId, &'static Field)>,
    value: &Value,
    at: &mut String,
    out: &mut Vec<Place>,
) {
    out.push(Place { pointer: at.clone(), ty: ty.clone(), holder });
    let mut visit = |key: &str, ty: &Type, holder, value: &Value| {
        let length = at.len();
        at.push('/');
        at.push_str(&key.replace('~', "~0").replace('/', "~1"));
        walk(ty, holder, value, at, out);
        at.truncate(length);
    };
    let ty = match ty {
        Type::SchemaOrBool | Type::SchemaOrArray => &Type::Struct(schema_of_schemas()),
        ty => ty,
    };
    match (ty, value) {
        (Type::Struct(id), Value::Object(map)) => {
            for field in &schema::builtin().get(*id).fields {
                if let Some(value) = map.get(field.name.as_ref()) {
                    visit(&field.name, &field.ty, Some((*id, field)), value);
                }
            }
        }
        (Type::List(ty), Value::Array(items)) => {
            items.iter().enumerate().for_each(|(index, value)| visit(&index.to_string(), ty, holder, value));
        }
        (Type::Map(ty), Value::Object(map)) => {
            map.iter().for_each(|(key, value)| visit(key, ty, None, value));
        }
        _ => {}
    }
}

fn take_away(tree: &mut Value, pointer: &str) {
    let Some((parent, key)) = pointer.rsplit_once('/') else { return };
    match tree.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Some(index) = key.parse().ok().filter(|index| *index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_another_object_comes_in_and_wrong_values_are_put() {
        let name = "io.k8s.api.core.v1.Service";
        let plain = json!({"spec": {"ports": [{"port": 80}]}});
        let other = json!({"spec": {"ports": [{"port": 81}], "clusterIP": "None"}});
        let spoiler = Spoiler::new([(name, &plain), (name, &other)].into_iter());
        let mut changed = Vec::new();
        for seed in 0..400 {
            let mut object = plain.clone();
            spoiler.spoil(&mut Rng::new(seed), name, &mut object);
            changed.push(object);
        }
        for wanted in [
            json!({"spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
            json!({"spec": {"ports": [{"port": 65536}]}}),
            json!({"spec": {"ports": []}}),
        ] {
            assert!(changed.contains(&wanted), "{wanted}");
        }
    }
}
