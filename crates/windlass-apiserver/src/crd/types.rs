//! The types of a custom kind in the form that server-side apply reads.

use super::props::{Additional, Props};
use crate::schema::{Field, ListType, Omit, Str, Struct, Type, TypeId, Types};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Builds the types of one version of a kind.
pub(super) fn build(props: &Props, group: &str, version: &str, kind: &str) -> (Types, TypeId) {
    let mut builder = Builder { types: Types::default() };
    let mut root = builder.structure(props, super::openapi::name(group, version, kind), true);
    root.gvk = vec![Str::Owned(format!("{group}/{version}/{kind}"))];
    let id = builder.types.add(root);
    (builder.types, id)
}

struct Builder {
    types: Types,
}

impl Builder {
    fn structure(&mut self, props: &Props, name: String, is_resource: bool) -> Struct {
        let mut fields = Vec::new();
        if is_resource {
            fields.push(field("apiVersion", Type::String));
            fields.push(field("kind", Type::String));
            fields.push(field("metadata", self.metadata()));
        }
        for (key, schema) in &props.properties {
            if is_resource && super::prune::META.contains(&key.as_str()) {
                continue;
            }
            let mut field = field(key, self.type_of(schema, &format!("{name}.{key}")));
            field.required = props.required.contains(key);
            field.list = list_type(schema);
            field.atomic = schema.map_type.as_deref() == Some("atomic");
            field.default = schema.default.clone();
            let values = schema.enumeration.iter().filter_map(|value| value.as_str());
            field.enumeration = values.map(|value| Str::Owned(value.to_owned())).collect();
            fields.push(field);
        }
        let mut out = Struct::new(Str::Owned(name), fields);
        out.atomic = props.map_type.as_deref() == Some("atomic");
        out.preserve_unknown = props.preserves();
        out
    }

    fn type_of(&mut self, props: &Props, name: &str) -> Type {
        if props.int_or_string {
            return Type::IntOrString;
        }
        match props.ty.as_str() {
            "string" => Type::String,
            "boolean" => Type::Bool,
            "integer" if props.format == "int32" => Type::Int32,
            "integer" => Type::Int64,
            "number" => Type::Float64,
            "array" => match &props.items {
                Some(items) => Type::List(Box::new(self.type_of(items, &format!("{name}.item")))),
                None => Type::List(Box::new(Type::Any)),
            },
            "object" => match &props.additional {
                Some(Additional::Schema(schema)) => {
                    Type::Map(Box::new(self.type_of(schema, &format!("{name}.value"))))
                }
                Some(Additional::Bool(true)) if props.properties.is_empty() => Type::Map(Box::new(Type::Any)),
                _ => {
                    let structure = self.structure(props, name.to_owned(), props.embedded);
                    Type::Struct(self.types.add(structure))
                }
            },
            _ => Type::Any,
        }
    }

    /// The metadata of the root and of embedded resources: that of built-in kinds.
    fn metadata(&mut self) -> Type {
        Type::Struct(self.copy(OBJECT_META))
    }

    /// Copies a built-in type and those that it refers to.
    fn copy(&mut self, name: &str) -> TypeId {
        if let Some(id) = self.types.id(name) {
            return id;
        }
        let builtin = crate::schema::builtin();
        let original =
            builtin.get(builtin.id(name).expect("the table has ObjectMeta and all that it refers to"));
        let fields = original.fields.iter().map(|field| Field { ty: self.remap(&field.ty), ..field.clone() });
        let fields = fields.collect();
        let mut structure = Struct::new(original.name.clone(), fields);
        structure.atomic = original.atomic;
        self.types.add(structure)
    }

    fn remap(&mut self, ty: &Type) -> Type {
        match ty {
            Type::Struct(id) => Type::Struct(self.copy(&crate::schema::builtin().get(*id).name)),
            Type::List(element) => Type::List(Box::new(self.remap(element))),
            Type::Map(value) => Type::Map(Box::new(self.remap(value))),
            other => other.clone(),
        }
    }
}

fn list_type(props: &Props) -> Option<ListType> {
    match props.list_type.as_deref()? {
        "map" => Some(ListType::Map(props.list_map_keys.iter().map(|key| Str::Owned(key.clone())).collect())),
        "set" => Some(ListType::Set),
        _ => Some(ListType::Atomic),
    }
}

fn field(name: &str, ty: Type) -> Field {
    Field {
        name: Str::Owned(name.to_owned()),
        ty,
        pb: 0,
        ptr: false,
        omit: Omit::Never,
        required: false,
        list: None,
        atomic: false,
        patch_strategy: Str::Borrowed(""),
        merge_key: Str::Borrowed(""),
        default: None,
        enumeration: Vec::new(),
    }
}
