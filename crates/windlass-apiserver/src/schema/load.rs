//! Reading the generated table.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Field, ListType, Omit, Str, Struct, Type, TypeId, Types, Wire};

/// A line of `types.jsonl`; `tools/table/README.md` describes the keys.
#[derive(Deserialize)]
struct TypeRow<'a> {
    #[serde(borrow)]
    name: &'a str,
    #[serde(borrow, default)]
    gvk: Vec<&'a str>,
    #[serde(borrow, default)]
    mt: &'a str,
    #[serde(borrow)]
    fields: Vec<FieldRow<'a>>,
}

#[derive(Deserialize)]
struct FieldRow<'a> {
    #[serde(borrow)]
    n: &'a str,
    #[serde(borrow)]
    t: &'a str,
    #[serde(default)]
    inline: bool,
    #[serde(default)]
    ptr: bool,
    #[serde(borrow, default)]
    omit: &'a str,
    #[serde(default)]
    pb: u32,
    #[serde(default)]
    req: bool,
    #[serde(borrow, default)]
    lt: &'a str,
    #[serde(borrow, default)]
    lk: Vec<&'a str>,
    #[serde(borrow, default)]
    mt: &'a str,
    #[serde(borrow, default)]
    ps: &'a str,
    #[serde(borrow, default)]
    pk: &'a str,
    #[serde(default)]
    def: Option<Value>,
    #[serde(borrow, default, rename = "enum")]
    enumeration: Vec<&'a str>,
}

/// Parses the table. It is part of the program, so a fault in it is a fault of the build: it panics.
pub(super) fn types(table: &'static str) -> Types {
    let rows: Vec<TypeRow<'static>> = table
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("types.jsonl: {e}: {line}")))
        .collect();
    let ids: HashMap<&str, usize> = rows.iter().enumerate().map(|(i, row)| (row.name, i)).collect();
    let mut types = Types::default();
    for row in &rows {
        types.add(structure(row, &rows, &ids));
    }
    for (index, row) in rows.iter().enumerate() {
        for field in row.fields.iter().filter(|field| field.mt == "granular") {
            part(&mut types, index, field.n);
        }
    }
    types
}

/// Gives a field a type of its own that is not one value to server-side apply, though the type as such is one: the
/// field has the last word.
fn part(types: &mut Types, holder: usize, name: &str) {
    let id = TypeId(u32::try_from(types.structs.len()).expect("fewer than 2^32 types"));
    let field = types.structs[holder].fields.iter_mut().find(|field| field.name == name);
    let Some(Field { ty: Type::Struct(whole), .. }) = field else { return };
    let whole = std::mem::replace(whole, id);
    let parts = Struct { atomic: false, ..types.get(whole).clone() };
    types.structs.push(parts);
}

fn structure(row: &TypeRow<'static>, rows: &[TypeRow<'static>], ids: &HashMap<&str, usize>) -> Struct {
    let mut fields = Vec::with_capacity(row.fields.len());
    let mut wire = HashMap::new();
    for field in &row.fields {
        if field.inline {
            if field.pb != 0 {
                wire.insert(field.pb, Wire::Inline(type_id(field.t, ids)));
            }
            flatten(field.t, rows, ids, &mut fields);
        } else {
            if field.pb != 0 {
                wire.insert(field.pb, Wire::Field(fields.len()));
            }
            fields.push(convert(field, ids));
        }
    }
    let mut out = Struct::new(Str::Borrowed(row.name), fields);
    out.gvk = row.gvk.iter().map(|&gvk| Str::Borrowed(gvk)).collect();
    out.atomic = row.mt == "atomic";
    out.wire = wire;
    out
}

fn flatten(name: &str, rows: &[TypeRow<'static>], ids: &HashMap<&str, usize>, fields: &mut Vec<Field>) {
    for field in &rows[type_id(name, ids).0 as usize].fields {
        if field.inline {
            flatten(field.t, rows, ids, fields);
        } else {
            fields.push(convert(field, ids));
        }
    }
}

fn convert(row: &FieldRow<'static>, ids: &HashMap<&str, usize>) -> Field {
    Field {
        name: Str::Borrowed(row.n),
        ty: type_of(row.t, ids),
        pb: row.pb,
        ptr: row.ptr,
        omit: match row.omit {
            "empty" => Omit::Empty,
            "zero" => Omit::Zero,
            _ => Omit::Never,
        },
        required: row.req,
        list: match row.lt {
            "map" => Some(ListType::Map(row.lk.iter().map(|&key| Str::Borrowed(key)).collect())),
            "set" => Some(ListType::Set),
            "atomic" => Some(ListType::Atomic),
            _ => None,
        },
        atomic: row.mt == "atomic",
        patch_strategy: Str::Borrowed(row.ps),
        merge_key: Str::Borrowed(row.pk),
        default: row.def.clone(),
        enumeration: row.enumeration.iter().map(|&value| Str::Borrowed(value)).collect(),
    }
}

fn type_of(expression: &str, ids: &HashMap<&str, usize>) -> Type {
    if let Some(element) = expression.strip_prefix("[]") {
        return Type::List(Box::new(type_of(element, ids)));
    }
    if let Some(value) = expression.strip_prefix("map[string]") {
        return Type::Map(Box::new(type_of(value, ids)));
    }
    match expression {
        "string" => Type::String,
        // A list with a message of its own on the wire, because it is the value of a map (`ExtraValue`).
        "strings" => Type::List(Box::new(Type::String)),
        "bool" => Type::Bool,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "float64" => Type::Float64,
        "bytes" => Type::Bytes,
        "time" => Type::Time,
        "microtime" => Type::MicroTime,
        "duration" => Type::Duration,
        "quantity" => Type::Quantity,
        "intorstring" => Type::IntOrString,
        "raw" => Type::Raw,
        "fieldsv1" => Type::FieldsV1,
        "any" => Type::Any,
        "schemaorbool" => Type::SchemaOrBool,
        "schemaorarray" => Type::SchemaOrArray,
        "schemaorstrings" => Type::SchemaOrStrings,
        name => Type::Struct(type_id(name, ids)),
    }
}

fn type_id(name: &str, ids: &HashMap<&str, usize>) -> TypeId {
    let index = *ids.get(name).unwrap_or_else(|| panic!("types.jsonl: no type {name}"));
    TypeId(u32::try_from(index).expect("fewer than 2^32 types"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"{"name":"m.TypeMeta","fields":[{"n":"kind","t":"string","omit":"empty","pb":1}]}
{"name":"v.Source","fields":[{"n":"path","t":"string","ptr":true,"omit":"empty","pb":1}]}
{"name":"v.Volume","gvk":["/v1/Volume"],"fields":[{"n":"","t":"m.TypeMeta","inline":true},{"n":"name","t":"string","pb":1,"req":true},{"n":"","t":"v.Source","inline":true,"pb":2},{"n":"ports","t":"[]v.Source","omit":"empty","pb":3,"lt":"map","lk":["path"],"ps":"merge","pk":"path"}]}"#;

    #[test]
    fn the_embedded_table_can_be_read() {
        let types = crate::schema::builtin();
        let pod = types.get(types.id("io.k8s.api.core.v1.Pod").unwrap());
        assert_eq!(pod.gvk, ["/v1/Pod"]);
    }

    #[test]
    fn inline_structures_are_written_in_their_place_but_nested_on_the_wire() {
        let types = types(TABLE);
        let volume = types.get(types.id("v.Volume").unwrap());
        let names: Vec<_> = volume.fields.iter().map(|f| f.name.as_ref()).collect();
        assert_eq!(names, ["kind", "name", "path", "ports"]);
        assert_eq!(volume.wire[&2], Wire::Inline(types.id("v.Source").unwrap()));
        assert_eq!(volume.wire[&1], Wire::Field(1));
        assert_eq!(volume.wire[&3], Wire::Field(3));
        let ports = volume.field("ports").unwrap();
        assert_eq!(ports.list, Some(ListType::Map(vec!["path".into()])));
        assert_eq!(ports.ty, Type::List(Box::new(Type::Struct(types.id("v.Source").unwrap()))));
    }
}
