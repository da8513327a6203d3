//! Trees made of choices: any tree, and trees that nearly fit a type.

use std::collections::HashMap;
use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use serde_json::{Map, Value, json};
use windlass_apiserver::schema::{self, Type, TypeId, Types};

/// Texts that mean something somewhere.
const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "c",
    "default",
    "web",
    "v1",
    "0",
    "1",
    "-1",
    "-",
    "A_b",
    "app",
    "x.io/y",
    "10.0.0.1",
    "fd00::1",
    "10.0.0.0/8",
    "1Gi",
    "100m",
    "1e3",
    "25%",
    "http",
    "TCP",
    "UDP",
    "80",
    "Always",
    "Never",
    "delete",
    "replace",
    "merge",
    "2026-11-15T12:00:00Z",
    "2026-11-15T12:00:00.123456Z",
    "0001-01-01T00:00:00Z",
    "1h2m",
    "metadata.name",
    "nginx",
    "*",
    "*/5 * * * *",
    "{}",
    "[]",
    "null",
    "true",
    "YQ==",
    "\0",
    "é",
    "\u{fffd}",
    "a/b/c",
    "..",
    "~1",
    "$patch",
    "kubernetes.io/os",
    "9223372036854775808",
    "1e400",
    "ConfigMap",
    "apps/v1",
    ".spec.replicas",
    ".spec.*",
    "f:spec",
    "k:{\"name\":\"a\"}",
    "self.size > 0",
    "^[a-z]+$",
    "^(a+)+$",
    "date-time",
    "int32",
    "string",
    "object",
    "array",
    "integer",
];

/// Keys that mean something somewhere.
const KEYS: &[&str] = &[
    "a",
    "b",
    "name",
    "namespace",
    "metadata",
    "spec",
    "status",
    "data",
    "containers",
    "volumes",
    "env",
    "ports",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "uid",
    "strategy",
    "template",
    "selector",
    "matchLabels",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$setElementOrder/finalizers",
    "$deleteFromPrimitiveList/finalizers",
    "apiVersion",
    "kind",
    "managedFields",
    "resourceVersion",
    "",
    "size",
    "items",
    "x/y",
    "0",
];

/// A text.
pub fn text(u: &mut Unstructured<'_>) -> Result<String> {
    if u.ratio(1, 8)? {
        return Ok(u.arbitrary::<&str>()?.chars().take(40).collect());
    }
    if u.ratio(1, 64)? {
        return Ok("x".repeat(u.int_in_range(50..=400)?));
    }
    Ok((*u.choose(TEXTS)?).to_owned())
}

/// A number.
pub fn number(u: &mut Unstructured<'_>) -> Result<Value> {
    Ok(match u.int_in_range(0..=9)? {
        0 => json!(u.arbitrary::<i64>()?),
        1 => json!(u.arbitrary::<f64>()?),
        2 => json!(i64::MAX),
        3 => json!(i64::MIN),
        4 => json!(1.5),
        5 => json!(i32::MAX),
        _ => json!(u.int_in_range(-2i64..=70)?),
    })
}

/// Any tree.
pub fn any(u: &mut Unstructured<'_>, depth: usize) -> Result<Value> {
    let most = if depth == 0 { 6 } else { 11 };
    Ok(match u.int_in_range(0..=most)? {
        0 => Value::Null,
        1 => json!(u.arbitrary::<bool>()?),
        2 | 3 => number(u)?,
        4..=6 => json!(text(u)?),
        7 | 8 => Value::Array(several(u, 4, |u| any(u, depth - 1))?),
        _ => Value::Object(several(u, 5, |u| Ok((key(u)?, any(u, depth - 1)?)))?.into_iter().collect()),
    })
}

fn key(u: &mut Unstructured<'_>) -> Result<String> {
    match u.ratio(7, 8)? {
        true => Ok((*u.choose(KEYS)?).to_owned()),
        false => text(u),
    }
}

/// Up to `most` of something.
pub fn several<T>(
    u: &mut Unstructured<'_>,
    most: usize,
    mut one: impl FnMut(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = u.int_in_range(0..=most)?;
    (0..count).map(|_| one(u)).collect()
}

/// A tree of a structure: now and then something of it does not fit.
pub fn structure(u: &mut Unstructured<'_>, types: &Types, id: TypeId, depth: usize) -> Result<Value> {
    let fields = &types.get(id).fields;
    let mut map = Map::new();
    if depth == 0 || u.is_empty() || fields.is_empty() {
        return Ok(Value::Object(map));
    }
    let mut wanted: Vec<usize> = (0..fields.len()).filter(|i| fields[*i].required).collect();
    wanted.extend(several(u, 5, |u| u.choose_index(fields.len()))?);
    for index in wanted {
        let field = &fields[index];
        let value = match field.enumeration.is_empty() || u.ratio(1, 8)? {
            false => json!(u.choose(&field.enumeration)?),
            true => typed(u, types, &field.ty, depth - 1)?,
        };
        map.insert(field.name.to_string(), value);
    }
    if u.ratio(1, 16)? {
        map.insert(key(u)?, any(u, depth.min(3))?);
    }
    Ok(Value::Object(map))
}

/// A tree of a type: now and then something of it does not fit.
pub fn typed(u: &mut Unstructured<'_>, types: &Types, ty: &Type, depth: usize) -> Result<Value> {
    if u.ratio(1, 24)? {
        return any(u, depth.min(3));
    }
    Ok(match ty {
        Type::Bool => json!(u.arbitrary::<bool>()?),
        Type::Int32 | Type::Int64 | Type::Float64 => number(u)?,
        Type::IntOrString if u.arbitrary()? => number(u)?,
        Type::String | Type::IntOrString => json!(text(u)?),
        Type::Bytes => json!(u.choose(&["", "YQ==", "YWI=", "YQ", "*"])?),
        Type::Time => json!(u.choose(&[
            "2026-11-15T12:00:00Z",
            "0001-01-01T00:00:00Z",
            "2026-11-15T12:00:00+14:00",
            "x"
        ])?),
        Type::MicroTime => json!(u.choose(&["2026-11-15T12:00:00.123456Z", "2026-11-15T12:00:00Z", "x"])?),
        Type::Duration => json!(u.choose(&["1h2m", "-1ns", "0", "2562047h47m16.854775807s", "x"])?),
        Type::Quantity => {
            json!(u.choose(&["1", "100m", "1Gi", "-1", "1e3", "0.5n", "9223372036854775808", "1E", "x"])?)
        }
        Type::Raw | Type::Any | Type::FieldsV1 => any(u, depth.min(4))?,
        Type::SchemaOrBool if u.arbitrary()? => json!(u.arbitrary::<bool>()?),
        Type::SchemaOrBool | Type::SchemaOrArray | Type::SchemaOrStrings => match schema_id(types) {
            Some(id) => structure(u, types, id, depth.saturating_sub(1))?,
            None => any(u, depth.min(3))?,
        },
        Type::List(inner) if depth > 0 => Value::Array(several(u, 3, |u| typed(u, types, inner, depth - 1))?),
        Type::Map(inner) if depth > 0 => {
            let entries = several(u, 3, |u| Ok((key(u)?, typed(u, types, inner, depth - 1)?)))?;
            Value::Object(entries.into_iter().collect())
        }
        Type::List(_) => json!([]),
        Type::Map(_) => json!({}),
        Type::Struct(id) => structure(u, types, *id, depth)?,
    })
}

/// The type of a schema in a custom resource definition.
pub fn schema_id(types: &Types) -> Option<TypeId> {
    types.id("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
}

/// How deep a tree is.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Puts a value at a path of keys; what is in the way and is no object is replaced by one.
pub fn put(tree: &mut Value, path: &[&str], value: Value) {
    let Some((key, rest)) = path.split_first() else {
        *tree = value;
        return;
    };
    if !tree.is_object() {
        *tree = json!({});
    }
    put(&mut tree[*key], rest, value);
}

/// The type of a built-in kind.
pub fn type_named(api_version: &str, kind: &str) -> Option<TypeId> {
    static INDEX: OnceLock<HashMap<String, TypeId>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let types = (0..).map(TypeId).zip(schema::builtin().iter());
        types.flat_map(|(id, found)| found.gvk.iter().map(move |gvk| (gvk.to_string(), id))).collect()
    });
    let group = if api_version.contains('/') { "" } else { "/" };
    index.get(&format!("{group}{api_version}/{kind}")).copied()
}
