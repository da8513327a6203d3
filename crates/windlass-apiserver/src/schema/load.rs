//! Reading the generated table.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Field, ListType, Omit, Str, Struct, Type, TypeId, Wire};

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

/// The lines of `types.jsonl`, each read when its type is first asked for: of 592 types a server that is starting needs
/// a dozen. The table is part of the program, so a fault in it is a fault of the build: it panics.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    lines: Vec<&'static str>,
    ids: HashMap<&'static str, TypeId>,
}

impl Table {
    pub fn new(table: &'static str) -> Table {
        let lines: Vec<&str> = table.lines().collect();
        let ids = lines.iter().zip(0..).map(|(line, index)| (name(line), TypeId(index))).collect();
        Table { lines, ids }
    }

    /// How many types it has.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn id(&self, name: &str) -> Option<TypeId> {
        self.ids.get(name).copied()
    }

    /// Reads the type of this index; an index past the last line is a type of [`Table::parts`].
    pub fn read(&self, index: usize) -> Struct {
        match index.checked_sub(self.len()) {
            Some(whole) => Struct { atomic: false, ..self.read(whole) },
            None => self.structure(&self.row(index)),
        }
    }

    fn row(&self, index: usize) -> TypeRow<'static> {
        let line = self.lines[index];
        serde_json::from_str(line).unwrap_or_else(|e| panic!("types.jsonl: {e}: {line}"))
    }

    fn structure(&self, row: &TypeRow<'static>) -> Struct {
        let mut fields = Vec::with_capacity(row.fields.len());
        let mut wire = HashMap::new();
        for field in &row.fields {
            if field.inline {
                if field.pb != 0 {
                    wire.insert(field.pb, Wire::Inline(self.type_id(field.t)));
                }
                fields.extend(self.read(self.type_id(field.t).0 as usize).fields);
            } else {
                if field.pb != 0 {
                    wire.insert(field.pb, Wire::Field(fields.len()));
                }
                fields.push(self.field(field));
            }
        }
        let mut out = Struct::new(Str::Borrowed(row.name), fields);
        out.gvk = row.gvk.iter().map(|&gvk| Str::Borrowed(gvk)).collect();
        out.atomic = row.mt == "atomic";
        out.wire = wire;
        out
    }

    fn field(&self, row: &FieldRow<'static>) -> Field {
        Field {
            name: Str::Borrowed(row.n),
            ty: match self.type_of(row.t) {
                Type::Struct(id) if row.mt == "granular" => Type::Struct(self.parts(id)),
                ty => ty,
            },
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

    /// The same type, but not one value to server-side apply, though the type as such is one: a field has the last
    /// word on that.
    fn parts(&self, whole: TypeId) -> TypeId {
        TypeId(whole.0 + u32::try_from(self.len()).expect("fewer than 2^32 types"))
    }

    fn type_id(&self, name: &str) -> TypeId {
        self.id(name).unwrap_or_else(|| panic!("types.jsonl: no type {name}"))
    }

    fn type_of(&self, expression: &str) -> Type {
        if let Some(element) = expression.strip_prefix("[]") {
            return Type::List(Box::new(self.type_of(element)));
        }
        if let Some(value) = expression.strip_prefix("map[string]") {
            return Type::Map(Box::new(self.type_of(value)));
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
            name => Type::Struct(self.type_id(name)),
        }
    }
}

/// The name in a line, with which every line begins.
fn name(line: &'static str) -> &'static str {
    let name = line.strip_prefix(r#"{"name":""#).and_then(|rest| Some(rest.split_once('"')?.0));
    name.unwrap_or_else(|| panic!("types.jsonl: no name at the beginning: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Types;

    const TABLE: &str = r#"{"name":"m.TypeMeta","fields":[{"n":"kind","t":"string","omit":"empty","pb":1}]}
{"name":"v.Source","fields":[{"n":"path","t":"string","ptr":true,"omit":"empty","pb":1}]}
{"name":"v.Volume","gvk":["/v1/Volume"],"fields":[{"n":"","t":"m.TypeMeta","inline":true},{"n":"name","t":"string","pb":1,"req":true},{"n":"","t":"v.Source","inline":true,"pb":2},{"n":"ports","t":"[]v.Source","omit":"empty","pb":3,"lt":"map","lk":["path"],"ps":"merge","pk":"path"}]}"#;

    #[test]
    fn the_embedded_table_can_be_read() {
        let types = crate::schema::builtin();
        // Types are read when they are asked for: this asks for all.
        assert!(types.iter().all(|one| types.id(&one.name).is_some()));
        let pod = types.get(types.id("io.k8s.api.core.v1.Pod").unwrap());
        assert_eq!(pod.gvk, ["/v1/Pod"]);
    }

    #[test]
    fn a_field_may_take_apart_what_is_one_value_elsewhere() {
        let types = crate::schema::builtin();
        let of = |name: &str, field: &str| {
            let holder = types.get(types.id(name).unwrap());
            let Type::Struct(id) = holder.field(field).unwrap().ty else { panic!("{field} is no structure") };
            types.get(id)
        };
        let claim = of("io.k8s.api.core.v1.PersistentVolumeSpec", "claimRef");
        let involved = of("io.k8s.api.core.v1.Event", "involvedObject");
        assert_eq!((&claim.name, claim.atomic), (&involved.name, false));
        assert!(involved.atomic);
        assert_eq!(claim.fields.len(), involved.fields.len());
    }

    #[test]
    fn inline_structures_are_written_in_their_place_but_nested_on_the_wire() {
        let types = Types::of_table(Table::new(TABLE));
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
