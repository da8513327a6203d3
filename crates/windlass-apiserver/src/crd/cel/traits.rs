//! What values can do, as cel-go sees it, and what it says where they cannot: its types have traits, and a function takes
//! the types that its overloads name.

use cel::common::ast::operators;

use super::overloads;
use super::types::Ty;
use super::value::{Fault, Val};

/// What is said of a function or an operator that does not take its arguments. Most say nothing but that.
pub(super) fn refused(name: &str, namespace: Option<&str>, by_constant: bool, args: &[Val<'_>]) -> Fault {
    // These take what they are given and look at it then.
    const UNNAMED: [&str; 6] = ["contains", "startsWith", "endsWith", "matches", "type", "dyn"];
    let types: Vec<&str> = args.iter().map(Val::type_name).collect();
    let first = types.first().copied().unwrap_or_default();
    match name {
        "size" | "sort" if !RECEIVERS.contains(&first) => Fault::other(format!("no such overload: {name}")),
        "flatten" if types.len() < 3 => {
            Fault::other(format!("no such overload: {first}.flatten({})", types[1..].join(", ")))
        }
        "size" => Fault::NoOverload,
        // A pattern that is a constant is compiled beforehand.
        "find" | "findAll" if by_constant => Fault::NoOverload,
        _ if UNNAMED.contains(&name) && namespace.is_none() => Fault::NoOverload,
        _ if name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            let namespace = namespace.map(|namespace| format!("{namespace}.")).unwrap_or_default();
            Fault::other(format!("no such overload: {namespace}{name}({})", types.join(", ")))
        }
        _ if lacks(name, first) => Fault::other(format!("no such overload: {name}")),
        _ => Fault::NoOverload,
    }
}

/// Types that are asked by name for what they have no trait for, and say that there is no such thing.
const RECEIVERS: [&str; 3] = ["string", "google.protobuf.Duration", "google.protobuf.Timestamp"];

/// Whether values of a type have not what an operator needs of its left side.
fn lacks(operator: &str, name: &str) -> bool {
    let numbers = ["double", "int", "uint"];
    let has = match operator {
        operators::ADD => numbers.contains(&name) || matches!(name, "bytes" | "list"),
        operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE => numbers.contains(&name),
        operators::MODULO => matches!(name, "int" | "uint"),
        operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS => {
            numbers.contains(&name) || matches!(name, "bool" | "bytes")
        }
        _ => true,
    };
    !has && !RECEIVERS.contains(&name)
}

/// Whether an overload of a function takes the arguments, as far as that shows.
pub(super) fn takes(name: &str, namespace: Option<&str>, is_member: bool, args: &[&Val<'_>]) -> bool {
    // These look at their arguments themselves.
    const OPEN: [&str; 8] =
        ["contains", "startsWith", "endsWith", "matches", "type", "dyn", "sort", "flatten"];
    if OPEN.contains(&name) && namespace.is_none() {
        return true;
    }
    let all = match namespace {
        Some(namespace) => overloads::of(&format!("{namespace}.{name}")),
        None => overloads::of(name),
    };
    let fits = |overload: &overloads::Overload| {
        overload.is_member == is_member
            && overload.args.len() == args.len()
            && overload.args.iter().zip(args).all(|(ty, value)| fits(ty, value))
    };
    all.is_none_or(|all| all.iter().any(fits))
}

/// Whether a value is of a type. Of a list and a map, only the first element is looked at.
fn fits(ty: &Ty, value: &Val<'_>) -> bool {
    let name = value.type_name();
    match ty {
        Ty::Bool => name == "bool",
        Ty::Int => name == "int",
        Ty::UInt => name == "uint",
        Ty::Double => name == "double",
        Ty::Text => name == "string",
        Ty::Bytes => name == "bytes",
        Ty::Duration => name == "google.protobuf.Duration",
        Ty::Timestamp => name == "google.protobuf.Timestamp",
        Ty::List(element) => {
            let first = || value.index(&Val::Int(0)).ok().flatten();
            name == "list" && first().is_none_or(|first| fits(element, &first))
        }
        Ty::Map(..) => name == "map",
        Ty::Optional(_) => name == "optional_type",
        Ty::Struct(wanted) | Ty::Opaque(wanted) => name == *wanted || !is_plain(name),
        _ => true,
    }
}

fn is_plain(name: &str) -> bool {
    matches!(name, "null_type" | "bool" | "int" | "uint" | "double" | "string" | "bytes" | "list" | "map")
        || name.starts_with("google.protobuf.")
}

/// The type of a value by the name that Go has for it.
pub(super) fn go_type(value: &Val<'_>) -> &'static str {
    match value {
        Val::Null => "types.Null",
        Val::Bool(_) => "types.Bool",
        Val::Int(_) => "types.Int",
        Val::UInt(_) => "types.Uint",
        Val::Double(_) => "types.Double",
        Val::Text(_) => "types.String",
        Val::Bytes(_) => "types.Bytes",
        Val::Foreign(cel::Value::Duration(_)) => "types.Duration",
        Val::Foreign(cel::Value::Timestamp(_)) => "types.Timestamp",
        Val::Optional(_) => "*types.Optional",
        Val::Type(_) => "*types.Type",
        _ => "ref.Val",
    }
}
