//! Operators and the functions that are part of the language; all others are the library's.

use std::cmp::Ordering;
use std::rc::Rc;

use cel::common::ast::{CallExpr, Expr, IdedExpr, operators};

use super::eval::{Machine, Scope, order};
use super::value::{Fault, Result, Text, Val};
use super::{bounds, convert::convert, format, library, link, macros, named, semver, spent, traits};
use crate::crd::text;

/// Names that qualify functions: `sets.contains(a, b)`.
pub(super) const NAMESPACES: [&str; 7] =
    ["format", "ip", "jsonpatch", "lists", "optional", "sets", "strings"];

/// The type that a name stands for.
pub(super) fn type_named<'a>(name: &str) -> Option<Val<'a>> {
    const TYPES: [&str; 10] =
        ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type"];
    TYPES.iter().find(|known| **known == name).map(|name| Val::Type(name))
}

/// Calls an operator or a function.
pub(super) fn call<'a>(
    machine: &Machine<'_>,
    id: u64,
    call: &'a CallExpr,
    scope: &Scope<'_, 'a>,
) -> Result<Val<'a>> {
    let name = call.func_name.as_str();
    let namespace = call.target.as_deref().and_then(|target| match &target.expr {
        Expr::Ident(ident) if NAMESPACES.contains(&ident.as_str()) && scope.get(ident).is_none() => {
            Some(ident.as_str())
        }
        _ => None,
    });
    // cel-go does not look at what cannot be found in nothing.
    if name == operators::IN
        && let [_, IdedExpr { expr: Expr::List(list), .. }] = call.args.as_slice()
        && list.elements.is_empty()
    {
        return Ok(Val::Bool(false));
    }
    let overload = machine.overload(id);
    let target = call.target.as_deref().filter(|_| namespace.is_none());
    // All of them are looked at, whether one fails or not; but what is final is told first.
    let mut failed = None;
    let mut values = Vec::with_capacity(call.args.len() + 1);
    for (i, part) in target.into_iter().chain(&call.args).enumerate() {
        match machine.eval(part, scope).map_err(|fault| broken(fault, overload, i)) {
            Ok(value) => values.push(value),
            Err(fault) if fault.is_final() => return Err(fault),
            Err(fault) => failed = failed.or(Some(fault)),
        }
    }
    if let Some(fault) = failed {
        return Err(fault);
    }
    let args = values.split_off(usize::from(target.is_some()));
    let target = values.pop();
    let value = apply(machine, namespace, name, target.as_ref(), &args)
        .map_err(|fault| without_value(fault, call, namespace, overload, target.as_ref(), &args))?;
    let qualified = namespace.map(|namespace| format!("{namespace}.{name}"));
    let args: Vec<Val<'a>> = target.into_iter().chain(args).collect();
    machine.charge(spent::call(qualified.as_deref().unwrap_or(name), overload, &args, &value))?;
    Ok(value)
}

/// What is said of a call that has no value.
fn without_value<'a>(
    fault: Fault,
    call: &CallExpr,
    namespace: Option<&str>,
    overload: &str,
    target: Option<&Val<'a>>,
    args: &[Val<'a>],
) -> Fault {
    match (overload, target, args) {
        // The real server counts the cost of these calls by arguments that they have just refused, and gives up.
        ("list_distinct", Some(target), []) if target.elements().is_err() => {
            let method = if matches!(target, Val::Bool(_) | Val::Null) { "Add" } else { "Contains" };
            let ty = traits::go_type(target);
            return Fault::Broken(format!(
                "interface conversion: {ty} is not traits.Lister: missing method {method}"
            ));
        }
        ("list_flatten_int", _, [depth]) if !matches!(depth, Val::Int(_)) => {
            let ty = traits::go_type(depth);
            return Fault::Broken(format!("interface conversion: ref.Val is {ty}, not types.Int"));
        }
        _ => {}
    }
    if fault != Fault::NoOverload {
        return fault;
    }
    let by_constant = matches!(call.args.as_slice(), [IdedExpr { expr: Expr::Literal(_), .. }, ..]);
    let all: Vec<Val<'a>> = target.into_iter().chain(args).cloned().collect();
    traits::refused(&call.func_name, namespace, by_constant, &all)
}

/// What an argument without a value does to a call: where the real server counts the cost by a list or a number that is
/// not there, it gives up.
pub(super) fn broken(fault: Fault, overload: &str, arg: usize) -> Fault {
    const NO_LIST: &str = "interface conversion: *types.Err is not traits.Lister: missing method Add";
    const NO_NUMBER: &str = "interface conversion: ref.Val is *types.Err, not types.Int";
    let counts = match arg {
        0 => overload == "list_distinct" || overload.ends_with("_sort"),
        _ => overload.ends_with("_sortByAssociatedKeys"),
    };
    match () {
        () if fault.is_final() => fault,
        () if counts => Fault::Broken(NO_LIST.to_owned()),
        () if arg == 1 && overload == "list_flatten_int" => Fault::Broken(NO_NUMBER.to_owned()),
        () => fault,
    }
}

fn apply<'a>(
    machine: &Machine<'_>,
    namespace: Option<&str>,
    name: &str,
    target: Option<&Val<'a>>,
    args: &[Val<'a>],
) -> Result<Val<'a>> {
    let all: Vec<&Val<'a>> = target.into_iter().chain(args).collect();
    if !traits::takes(name, namespace, target.is_some(), &all) {
        return Err(Fault::NoOverload);
    }
    let own = match (namespace, target) {
        (Some("optional"), _) => optional(name, args),
        (Some("format"), _) => Some(named::call(name, args)),
        (Some("jsonpatch"), _) => match (name, args) {
            ("escapeKey", [Val::Text(key)]) => Some(Ok(Val::text(key.replace('~', "~0").replace('/', "~1")))),
            _ => None,
        },
        (Some("lists"), _) => match (name, args) {
            // Nothing but the cost keeps the list from filling all memory.
            ("range", [Val::Int(size)]) => {
                let cost = machine.affords(usize::try_from(*size).unwrap_or_default());
                Some(cost.map(|()| Val::list((0..*size).map(Val::Int).collect())))
            }
            _ => None,
        },
        (Some(_), _) => None,
        (None, Some(target)) => method(machine, name, target, args),
        (None, None) => {
            operator(machine, name, args).or_else(|| convert(name, args)).or_else(|| semver::call(name, args))
        }
    };
    if let Some(value) = own {
        return value;
    }
    let volume: usize = target.into_iter().chain(args).map(volume).sum();
    machine.work(volume)?;
    let value = library::call(namespace, name, target, args)?;
    machine.work(self::volume(&value))?;
    Ok(match (name, value) {
        ("add" | "sub", Val::Foreign(sum)) if target.is_some() => Val::Sum(sum),
        (_, value) => value,
    })
}

/// What passing a value to the library costs: it is copied whole.
fn volume(value: &Val<'_>) -> usize {
    match value {
        Val::Text(text) => text.len() / 10,
        Val::Bytes(bytes) => bytes.len() / 10,
        Val::List(list) | Val::Merged(list, _) => list.iter().map(|value| 1 + volume(value)).sum(),
        Val::Map(map) => map.values().map(|value| 1 + volume(value)).sum(),
        Val::Node(node) => json_volume(node.value),
        _ => 0,
    }
}

fn json_volume(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::String(text) => 1 + text.len() / 10,
        serde_json::Value::Array(list) => 1 + list.iter().map(json_volume).sum::<usize>(),
        serde_json::Value::Object(map) => 1 + map.values().map(json_volume).sum::<usize>(),
        _ => 1,
    }
}

fn operator<'a>(machine: &Machine<'_>, name: &str, args: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    let compare =
        |is: fn(Ordering) -> bool, a: &Val<'a>, b: &Val<'a>| order(a, b).map(|order| Val::Bool(is(order)));
    Some(match (name, args) {
        (operators::EQUALS, [a, b]) if a.cannot_tell(b) => Err(Fault::NoOverload),
        (operators::NOT_EQUALS, [a, b]) if a.cannot_tell(b) => Ok(Val::Bool(true)),
        (operators::EQUALS, [a, b]) => equal(machine, a, b).map(Val::Bool),
        (operators::NOT_EQUALS, [a, b]) => equal(machine, a, b).map(|same| Val::Bool(!same)),
        (operators::LESS, [a, b]) => compare(Ordering::is_lt, a, b),
        (operators::LESS_EQUALS, [a, b]) => compare(Ordering::is_le, a, b),
        (operators::GREATER, [a, b]) => compare(Ordering::is_gt, a, b),
        (operators::GREATER_EQUALS, [a, b]) => compare(Ordering::is_ge, a, b),
        (operators::LOGICAL_NOT, [Val::Bool(value)]) => Ok(Val::Bool(!value)),
        (operators::NEGATE, [Val::Int(value)]) => checked(value.checked_neg().map(Val::Int)),
        (operators::NEGATE, [Val::Double(value)]) => Ok(Val::Double(-value)),
        (operators::ADD, [a, b]) => add(machine, a, b),
        (operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO, [a, b]) => {
            arithmetic(name, a, b)
        }
        (operators::IN, [a, b]) => contained(machine, a, b),
        (macros::MAP_INSERT, [map, rest @ ..]) => insert(map.clone(), rest),
        (name, _) if name.contains('_') && !name.contains(|c: char| c.is_ascii_alphanumeric()) => {
            Err(Fault::NoOverload)
        }
        _ => return None,
    })
}

/// A map with an entry more, or with those of another map. None may be there already.
pub(super) fn insert<'a>(map: Val<'a>, entries: &[Val<'a>]) -> Result<Val<'a>> {
    let Val::Map(mut map) = map else { return Err(Fault::NoOverload) };
    let entries = match entries {
        [key, value] => vec![(key.clone(), value.clone())],
        [other] => {
            let value = |key: Val<'a>| Ok((key.clone(), other.index(&key)?.unwrap_or(Val::Null)));
            other.keys()?.into_iter().map(value).collect::<Result<Vec<_>>>()?
        }
        _ => return Err(Fault::NoOverload),
    };
    for (key, value) in entries {
        let shown = key_text(&key);
        if Rc::make_mut(&mut map).insert(key.key()?, value).is_some() {
            return Err(Fault::other(format!("insert failed: key {shown} already exists")));
        }
    }
    Ok(Val::Map(map))
}

/// The elements of a list in the order of their keys.
fn sort_by<'a>(list: &Val<'a>, keys: &Val<'a>) -> Result<Val<'a>> {
    let mut pairs: Vec<(Val<'a>, Val<'a>)> = keys.elements()?.into_iter().zip(list.elements()?).collect();
    if pairs.iter().any(|(key, _)| key.compare(key).is_none()) {
        return Err(Fault::NoOverload);
    }
    pairs.sort_by(|(a, _), (b, _)| a.compare(b).unwrap_or(Ordering::Equal));
    Ok(Val::list(pairs.into_iter().map(|(_, value)| value).collect()))
}

fn equal<'a>(machine: &Machine<'_>, a: &Val<'a>, b: &Val<'a>) -> Result<bool> {
    machine.work(volume(a).min(volume(b)))?;
    a.equals(b)
}

fn checked(value: Option<Val<'_>>) -> Result<Val<'_>> {
    value.ok_or_else(|| Fault::other("integer overflow"))
}

fn unsigned<'a>(value: Option<u64>) -> Result<Val<'a>> {
    value.map(Val::UInt).ok_or_else(|| Fault::other("unsigned integer overflow"))
}

fn add<'a>(machine: &Machine<'_>, a: &Val<'a>, b: &Val<'a>) -> Result<Val<'a>> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => checked(a.checked_add(*b).map(Val::Int)),
        (Val::UInt(a), Val::UInt(b)) => unsigned(a.checked_add(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a + b)),
        (Val::Text(a), Val::Text(b)) => {
            machine.affords((a.len() + b.len()) / 10)?;
            Ok(Val::text(format!("{}{}", &**a, &**b)))
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            machine.affords((a.len() + b.len()) / 10)?;
            Ok(Val::Bytes([&**a, &**b].concat().into()))
        }
        (Val::Foreign(a), Val::Foreign(b)) => foreign(a.clone() + b.clone()),
        _ => {
            let (mut left, right) = (a.elements()?, b.elements()?);
            machine.work(left.len() + right.len())?;
            let props = a.list_props().filter(|props| props.is_list("set") || props.is_list("map"));
            for value in right {
                let place = match props.and_then(|props| props.list_type.as_deref()) {
                    Some("set") => position(&left, |other| other.equals(&value))?,
                    Some("map") => {
                        let keys = &props.expect("it has a list type").list_map_keys;
                        position(&left, |other| same_keys(other, &value, keys))?
                    }
                    _ => None,
                };
                match place {
                    Some(i) => left[i] = value,
                    None => left.push(value),
                }
            }
            Ok(match props {
                Some(props) => Val::Merged(Rc::new(left), props),
                None => Val::list(left),
            })
        }
    }
}

fn position<'a>(list: &[Val<'a>], is: impl Fn(&Val<'a>) -> Result<bool>) -> Result<Option<usize>> {
    for (i, value) in list.iter().enumerate() {
        if is(value)? {
            return Ok(Some(i));
        }
    }
    Ok(None)
}

fn same_keys<'a>(a: &Val<'a>, b: &Val<'a>, keys: &[String]) -> Result<bool> {
    for key in keys {
        let key = Val::text(key);
        match (a.index(&key)?, b.index(&key)?) {
            (Some(a), Some(b)) if a.equals(&b)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn foreign<'a>(result: std::result::Result<cel::Value, cel::ExecutionError>) -> Result<Val<'a>> {
    let overflow = |error| match error {
        cel::ExecutionError::Overflow(..) => Fault::other("timestamp overflow"),
        _ => Fault::NoOverload,
    };
    match result.map_err(overflow)? {
        cel::Value::Duration(duration) if duration.num_nanoseconds().is_none() => {
            Err(Fault::other("integer overflow"))
        }
        cel::Value::Timestamp(time) if !library::TIMES.contains(&time.timestamp()) => {
            Err(Fault::other("timestamp overflow"))
        }
        value => Ok(Val::from_library(value)),
    }
}

fn arithmetic<'a>(name: &str, a: &Val<'a>, b: &Val<'a>) -> Result<Val<'a>> {
    let zero = |what: &str| Fault::other(format!("{what} by zero"));
    match (name, a, b) {
        (operators::SUBSTRACT, Val::Int(a), Val::Int(b)) => checked(a.checked_sub(*b).map(Val::Int)),
        (operators::MULTIPLY, Val::Int(a), Val::Int(b)) => checked(a.checked_mul(*b).map(Val::Int)),
        (operators::DIVIDE, Val::Int(_), Val::Int(0)) | (operators::DIVIDE, Val::UInt(_), Val::UInt(0)) => {
            Err(zero("division"))
        }
        (operators::MODULO, Val::Int(_), Val::Int(0)) | (operators::MODULO, Val::UInt(_), Val::UInt(0)) => {
            Err(zero("modulus"))
        }
        (operators::DIVIDE, Val::Int(a), Val::Int(b)) => checked(a.checked_div(*b).map(Val::Int)),
        (operators::MODULO, Val::Int(a), Val::Int(b)) => checked(a.checked_rem(*b).map(Val::Int)),
        (operators::SUBSTRACT, Val::UInt(a), Val::UInt(b)) => unsigned(a.checked_sub(*b)),
        (operators::MULTIPLY, Val::UInt(a), Val::UInt(b)) => unsigned(a.checked_mul(*b)),
        (operators::DIVIDE, Val::UInt(a), Val::UInt(b)) => Ok(Val::UInt(a / b)),
        (operators::MODULO, Val::UInt(a), Val::UInt(b)) => Ok(Val::UInt(a % b)),
        (operators::SUBSTRACT, Val::Double(a), Val::Double(b)) => Ok(Val::Double(a - b)),
        (operators::MULTIPLY, Val::Double(a), Val::Double(b)) => Ok(Val::Double(a * b)),
        (operators::DIVIDE, Val::Double(a), Val::Double(b)) => Ok(Val::Double(a / b)),
        (operators::SUBSTRACT, Val::Foreign(a), Val::Foreign(b)) => foreign(a.clone() - b.clone()),
        _ => Err(Fault::NoOverload),
    }
}

fn contained<'a>(machine: &Machine<'_>, value: &Val<'a>, container: &Val<'a>) -> Result<Val<'a>> {
    if container.type_name() == "map" {
        let found = match (container, value) {
            (Val::Map(_), _) | (_, Val::Text(_)) => container.index(value)?.is_some(),
            _ => false,
        };
        return Ok(Val::Bool(found));
    }
    for element in container.elements()? {
        machine.work(1)?;
        if value.is_at(&element)? {
            return Ok(Val::Bool(true));
        }
    }
    Ok(Val::Bool(false))
}

fn key_text(key: &Val<'_>) -> String {
    match key {
        Val::Text(text) => text.to_string(),
        Val::Int(value) => value.to_string(),
        Val::UInt(value) => value.to_string(),
        Val::Double(value) => text::float(*value),
        Val::Bool(value) => value.to_string(),
        _ => String::new(),
    }
}

/// What stands at a key; with `[?` as an optional.
pub(super) fn index_by<'a>(operator: &str, of: &Val<'a>, key: &Val<'a>) -> Result<Val<'a>> {
    if operator == operators::INDEX {
        return index(of, key);
    }
    match of {
        Val::Optional(None) => Ok(Val::Optional(None)),
        Val::Optional(Some(inner)) => inner.index(key).map(|value| Val::Optional(value.map(Rc::new))),
        _ => of.index(key).map(|value| Val::Optional(value.map(Rc::new))),
    }
}

fn index<'a>(of: &Val<'a>, key: &Val<'a>) -> Result<Val<'a>> {
    if let Val::Optional(inner) = of {
        let found = inner.as_ref().map(|inner| inner.index(key)).transpose()?.flatten();
        return Ok(Val::Optional(found.map(Rc::new)));
    }
    let missing = || match of.type_name() {
        // What cannot be looked into has nothing at the key.
        "list" => Fault::other(format!("index out of bounds: {}", key_text(key))),
        _ => Fault::other(format!("no such key: {}", key_text(key))),
    };
    match of.type_name() {
        "list" | "map" => of.index(key)?.ok_or_else(missing),
        _ => Err(missing()),
    }
}

fn optional<'a>(name: &str, args: &[Val<'a>]) -> Option<Result<Val<'a>>> {
    Some(Ok(Val::Optional(match (name, args) {
        ("none", []) => None,
        ("of", [value]) => Some(Rc::new(value.clone())),
        ("ofNonZeroValue", [value]) => {
            let zero = match value {
                Val::Null | Val::Bool(false) | Val::Int(0) | Val::UInt(0) => true,
                Val::Double(value) => *value == 0.0,
                Val::Text(_) | Val::Bytes(_) | Val::List(_) | Val::Map(_) | Val::Node(_) => {
                    value.size() == Ok(0)
                }
                _ => false,
            };
            (!zero).then(|| Rc::new(value.clone()))
        }
        _ => return Some(Err(Fault::NoOverload)),
    })))
}

fn method<'a>(
    machine: &Machine<'_>,
    name: &str,
    target: &Val<'a>,
    args: &[Val<'a>],
) -> Option<Result<Val<'a>>> {
    if let Val::Check(check) = target {
        return Some(check.call(machine.authorizer(), name, args));
    }
    if let Val::Url(url) = target {
        return Some(link::call(url, name, args));
    }
    if let Val::Optional(inner) = target {
        return Some(match (name, args) {
            ("hasValue", []) => Ok(Val::Bool(inner.is_some())),
            ("value", []) => {
                inner.as_deref().cloned().ok_or_else(|| Fault::other("optional.none() dereference"))
            }
            _ => Err(Fault::NoOverload),
        });
    }
    if let Some(decided) = bounds::by_indices(name, target, args) {
        return Some(decided);
    }
    Some(match (name, target, args) {
        // What is no address is no argument either.
        ("containsIP" | "containsCIDR", _, [Val::Text(_)]) => {
            let parse = if name == "containsIP" { "isIP" } else { "isCIDR" };
            match library::call(None, parse, None, args) {
                Ok(Val::Bool(true)) => return None,
                _ => Err(Fault::NoOverload),
            }
        }
        // Hours and days are those of UTC, whatever offset the time is written with.
        (_, Val::Foreign(cel::Value::Timestamp(time)), []) if name.starts_with("get") => {
            let time = Val::Foreign(cel::Value::Timestamp(time.to_utc().fixed_offset()));
            library::call(None, name, Some(&time), args)
        }
        (_, Val::Foreign(cel::Value::Timestamp(_)), [Val::Text(zone)]) if name.starts_with("get") => {
            library::in_zone(target, zone).and_then(|time| library::call(None, name, Some(&time), &[]))
        }
        ("sum", _, []) if matches!(target.index(&Val::Int(0)), Ok(Some(Val::Foreign(_)))) => {
            sum(machine, target)
        }
        ("validate", Val::Format(format), [Val::Text(text)]) => Ok(named::validate(format, text)),
        (macros::SORT_BY_KEYS, _, [keys]) => sort_by(target, keys),
        ("size", _, []) => size(machine, target),
        ("contains", Val::Text(text), [Val::Text(part)]) => {
            machine.work(text.len() / 10).map(|()| Val::Bool(text.contains(&**part)))
        }
        ("startsWith", Val::Text(text), [Val::Text(part)]) => Ok(Val::Bool(text.starts_with(&**part))),
        ("endsWith", Val::Text(text), [Val::Text(part)]) => Ok(Val::Bool(text.ends_with(&**part))),
        ("matches", Val::Text(text), [Val::Text(pattern)]) => matches(machine, text, pattern),
        ("contains" | "startsWith" | "endsWith" | "matches", _, _) => Err(Fault::NoOverload),
        ("split", Val::Text(text), [Val::Text(by), limit @ ..]) => split(text, by, limit),
        ("replace", Val::Text(text), [Val::Text(old), Val::Text(with), limit @ ..]) => {
            // The result may be as large as the product of the two.
            if let Err(fault) = machine.affords((text.len() + 1).saturating_mul(with.len()) / 10) {
                return Some(Err(fault));
            }
            Ok(Val::text(text.replacen(&**old, with, most(limit))))
        }
        ("join", _, [Val::Text(separator)]) => {
            let elements = target.size().unwrap_or_default();
            if let Err(fault) = machine.affords(elements.saturating_mul(separator.len()) / 10) {
                return Some(Err(fault));
            }
            return None;
        }
        ("format", Val::Text(text), _) => {
            let values = args.first().map_or(Ok(Vec::new()), Val::elements);
            values.and_then(|values| format::format(text, &values)).map(Val::text)
        }
        _ => return None,
    })
}

/// The sum of durations.
fn sum<'a>(machine: &Machine<'_>, list: &Val<'a>) -> Result<Val<'a>> {
    let mut values = list.elements()?.into_iter();
    let first = values.next().ok_or(Fault::NoOverload)?;
    values.try_fold(first, |sum, value| add(machine, &sum, &value))
}

/// How many there may be, if an argument says so; a negative one does not.
fn most(limit: &[Val<'_>]) -> usize {
    match limit {
        [Val::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
        _ => usize::MAX,
    }
}

/// The parts of a text; by nothing, its characters.
fn split<'a>(text: &str, by: &str, limit: &[Val<'a>]) -> Result<Val<'a>> {
    let most = most(limit);
    if !by.is_empty() {
        return Ok(Val::list(text.splitn(most, by).map(Val::text).collect()));
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next().filter(|_| parts.len() < most) {
        let length = if parts.len() + 1 == most { rest.len() } else { first.len_utf8() };
        parts.push(Val::text(&rest[..length]));
        rest = &rest[length..];
    }
    Ok(Val::list(parts))
}

fn size<'a>(machine: &Machine<'_>, value: &Val<'a>) -> Result<Val<'a>> {
    if let Val::Text(text) = value {
        machine.work(text.len() / 10)?;
    }
    Ok(Val::Int(i64::try_from(value.size()?).unwrap_or(i64::MAX)))
}

fn matches<'a>(machine: &Machine<'_>, text: &Text<'a>, pattern: &str) -> Result<Val<'a>> {
    machine.affords((text.len() / 10).saturating_mul(pattern.len() / 4))?;
    let pattern = machine.pattern(pattern);
    match pattern.fault() {
        Some(fault) => Err(Fault::other(format!("error parsing regexp: {fault}"))),
        None => Ok(Val::Bool(pattern.is_match(text))),
    }
}
