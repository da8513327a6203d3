//! The type table: what a field is, for built-in kinds and for custom ones.
//!
//! One engine reads it for everything that depends on types: pruning and strict decoding, the order in which
//! fields are written, protobuf, strategic merge, server-side apply, OpenAPI. Built-in types come from the
//! generated data in `table/types.jsonl`; a custom resource definition adds a [`Types`] of its own at run time.

mod load;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::Value;

use self::load::Table;

/// A name: borrowed from the embedded table, or owned by a custom definition.
pub type Str = Cow<'static, str>;

/// Index of a [`Struct`] in its [`Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// What a value is.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// A string, or a named string type.
    String,
    /// A boolean.
    Bool,
    /// A 32-bit signed integer.
    Int32,
    /// A 64-bit signed integer.
    Int64,
    /// A floating-point number.
    Float64,
    /// Bytes, as base64 in JSON.
    Bytes,
    /// RFC 3339 with seconds; `null` when zero.
    Time,
    /// RFC 3339 with microseconds; `null` when zero.
    MicroTime,
    /// A Go duration as text (`1h2m`).
    Duration,
    /// A resource quantity, kept in its canonical form.
    Quantity,
    /// An integer or a string.
    IntOrString,
    /// An embedded object of any kind (`runtime.RawExtension`).
    Raw,
    /// The fields of a `managedFields` entry.
    FieldsV1,
    /// Any JSON at all.
    Any,
    /// `JSONSchemaPropsOrBool`.
    SchemaOrBool,
    /// `JSONSchemaPropsOrArray`.
    SchemaOrArray,
    /// `JSONSchemaPropsOrStringArray`.
    SchemaOrStrings,
    /// A list.
    List(Box<Type>),
    /// A map with string keys.
    Map(Box<Type>),
    /// A structure.
    Struct(TypeId),
}

/// When a field of zero value is left out of JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Omit {
    /// Never: the zero value is written.
    #[default]
    Never,
    /// Go's `omitempty`: zero scalars, nil pointers, empty lists and maps; never structures.
    Empty,
    /// Go's `omitzero`: as `omitempty`, and structures whose fields are all zero.
    Zero,
}

/// How server-side apply merges a list.
#[derive(Clone, Debug, PartialEq)]
pub enum ListType {
    /// Replaced as a whole.
    Atomic,
    /// A set of scalars.
    Set,
    /// A map by these key fields.
    Map(Vec<Str>),
}

/// One field of a [`Struct`].
#[derive(Clone, Debug)]
pub struct Field {
    /// The JSON name.
    pub name: Str,
    /// The type of the value.
    pub ty: Type,
    /// The protobuf field number; 0 if the field has none.
    pub pb: u32,
    /// Whether the Go field is a pointer, so that a zero value differs from an absent one.
    pub ptr: bool,
    /// When the field is left out.
    pub omit: Omit,
    /// Whether the OpenAPI schema requires it.
    pub required: bool,
    /// For lists: how server-side apply merges them. `None` means atomic.
    pub list: Option<ListType>,
    /// For maps and structures: whether server-side apply treats them as one value.
    pub atomic: bool,
    /// The `patchStrategy` tag (`merge`, `replace`, `retainKeys`, `merge,retainKeys`), empty if there is none.
    pub patch_strategy: Str,
    /// The `patchMergeKey` tag, empty if there is none.
    pub merge_key: Str,
    /// The default in the schema. List-map keys use it when they are absent.
    pub default: Option<Value>,
    /// The allowed values of an enumeration; empty if any value is.
    pub enumeration: Vec<Str>,
}

/// What a protobuf field number of a structure stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// The field at this index of [`Struct::fields`].
    Field(usize),
    /// A nested message whose fields are written inline in JSON.
    Inline(TypeId),
}

/// A structure: fields in the order in which they are written.
#[derive(Clone, Debug)]
pub struct Struct {
    /// The OpenAPI name, such as `io.k8s.api.core.v1.Pod`.
    pub name: Str,
    /// `group/version/Kind` for top-level types; the core group is empty (`/v1/Pod`).
    pub gvk: Vec<Str>,
    /// Whether server-side apply treats the whole structure as one value.
    pub atomic: bool,
    /// Custom kinds: whether unknown fields are kept.
    pub preserve_unknown: bool,
    /// All fields, those of inline structures in their place.
    pub fields: Vec<Field>,
    /// Protobuf field numbers, for built-in types.
    pub wire: HashMap<u32, Wire>,
    /// By a hash that is quick for short names: every field of every body is looked up here.
    index: HashMap<Str, usize, foldhash::fast::FixedState>,
}

impl Struct {
    /// A structure without protobuf numbers, as custom definitions have them.
    pub fn new(name: Str, fields: Vec<Field>) -> Struct {
        let index = fields.iter().enumerate().map(|(i, f)| (f.name.clone(), i)).collect();
        let wire = HashMap::new();
        Struct { name, gvk: Vec::new(), atomic: false, preserve_unknown: false, fields, wire, index }
    }

    /// The field of this JSON name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.index.get(name).map(|&i| &self.fields[i])
    }

    /// The position of the field of this JSON name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.index.get(name).copied()
    }
}

/// A set of structures that refer to each other.
#[derive(Clone, Debug, Default)]
pub struct Types {
    /// Those that were added, or have been read from the table.
    structs: Vec<OnceLock<Box<Struct>>>,
    by_name: HashMap<Str, TypeId>,
    table: Table,
}

impl Types {
    /// The types of a table.
    fn of_table(table: Table) -> Types {
        // Each is there twice: the second half is for fields that take their type apart.
        let structs = vec![OnceLock::new(); table.len() * 2];
        Types { structs, by_name: HashMap::new(), table }
    }

    /// The structure with this id.
    pub fn get(&self, id: TypeId) -> &Struct {
        let index = id.0 as usize;
        self.structs[index].get_or_init(|| Box::new(self.table.read(index)))
    }

    /// The id of the structure with this OpenAPI name.
    pub fn id(&self, name: &str) -> Option<TypeId> {
        self.table.id(name).or_else(|| self.by_name.get(name).copied())
    }

    /// Adds a structure and returns its id.
    pub fn add(&mut self, structure: Struct) -> TypeId {
        let id = TypeId(u32::try_from(self.structs.len()).expect("fewer than 2^32 types"));
        self.by_name.insert(structure.name.clone(), id);
        self.structs.push(OnceLock::from(Box::new(structure)));
        id
    }

    /// All structures of the table, in its order.
    pub fn iter(&self) -> impl Iterator<Item = &Struct> {
        (0..).take(self.table.len()).map(|index| self.get(TypeId(index)))
    }
}

/// The types of all built-in kinds, from the embedded table.
pub fn builtin() -> &'static Types {
    static TYPES: OnceLock<Types> = OnceLock::new();
    TYPES.get_or_init(|| Types::of_table(Table::new(include_str!("../../table/types.jsonl"))))
}
