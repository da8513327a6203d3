//! What functions there are, what they take and what they give: the environment of kube-apiserver, function by function.
//!
//! `overloads.txt` has a line for each way to call one: the name, the name of the overload, and the types. Where
//! several fit, their order decides.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::types::{LETTERS, Ty};

/// One way to call a function.
#[derive(Debug)]
pub(super) struct Overload {
    pub id: &'static str,
    /// Whether the first argument stands before the name.
    pub is_member: bool,
    pub args: Vec<Ty>,
    pub result: Ty,
    /// The letters that stand for types.
    pub params: Vec<u32>,
}

/// All functions, by name.
struct Functions(HashMap<&'static str, Vec<Overload>>);

impl Functions {
    fn read(table: &'static str) -> Functions {
        let mut out: HashMap<&'static str, Vec<Overload>> = HashMap::new();
        for line in table.lines() {
            let (name, overload) = read(line).unwrap_or_else(|| panic!("a line of the table: {line}"));
            out.entry(name).or_default().push(overload);
        }
        Functions(out)
    }
}

static FUNCTIONS: LazyLock<Functions> = LazyLock::new(|| Functions::read(include_str!("overloads.txt")));

/// The ways to call a function; none where there is no such function.
pub(super) fn of(name: &str) -> Option<&'static [Overload]> {
    FUNCTIONS.0.get(name).map(Vec::as_slice)
}

/// A line: `NAME ID TARGET.(ARGUMENTS) -> RESULT`.
fn read(line: &'static str) -> Option<(&'static str, Overload)> {
    let (name, rest) = line.split_once(' ')?;
    let (id, rest) = rest.split_once(' ')?;
    let (call, result) = rest.split_once(" -> ")?;
    let call = call.strip_suffix(')')?;
    let (target, list) = match call.strip_prefix('(') {
        Some(list) => (None, list),
        None => call.split_once(".(").map(|(target, list)| (Some(target), list))?,
    };
    let mut params = Vec::new();
    let mut args: Vec<Ty> =
        target.map(|target| read_type(target, &mut params)).into_iter().collect::<Option<_>>()?;
    for arg in split(list) {
        args.push(read_type(arg, &mut params)?);
    }
    let result = read_type(result, &mut params)?;
    Some((name, Overload { id, is_member: target.is_some(), args, result, params }))
}

/// The parts of a list of types, of which each may have a list of its own.
fn split(list: &'static str) -> Vec<&'static str> {
    let (mut out, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, c) in list.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                out.push(list[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    if !list.is_empty() {
        out.push(list[start..].trim());
    }
    out
}

fn read_type(text: &'static str, params: &mut Vec<u32>) -> Option<Ty> {
    if let [letter @ b'A'..=b'Z'] = text.as_bytes() {
        let number = LETTERS + u32::from(*letter);
        if !params.contains(&number) {
            params.push(number);
        }
        return Some(Ty::Param(number));
    }
    if let Some((name, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let mut inner: Vec<Ty> =
            split(inner).into_iter().map(|inner| read_type(inner, params)).collect::<Option<_>>()?;
        let last = inner.pop()?;
        return Some(match (name, inner.pop()) {
            ("list", None) => Ty::list(last),
            ("map", Some(key)) => Ty::map(key, last),
            ("optional_type", None) => Ty::optional(last),
            ("type", None) => Ty::Type(Some(last.into())),
            _ => return None,
        });
    }
    Some(match text {
        "dyn" => Ty::Dyn,
        name if name.starts_with("kubernetes.") => Ty::Struct(name),
        name if name.starts_with("net.") => Ty::Opaque(name),
        name => Ty::named(name)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::library;
    use super::super::value::Val;
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read_as_it_is_written() {
        let written = |name: &str, overload: &Overload| {
            let mut args: Vec<String> = overload.args.iter().map(ToString::to_string).collect();
            let target = if overload.is_member { format!("{}.", args.remove(0)) } else { String::new() };
            format!("{name} {} {target}({}) -> {}", overload.id, args.join(", "), overload.result)
        };
        let mut all: Vec<String> = FUNCTIONS
            .0
            .iter()
            .flat_map(|(name, overloads)| overloads.iter().map(|overload| written(name, overload)))
            .collect();
        let mut lines: Vec<&str> = include_str!("overloads.txt").lines().collect();
        all.sort();
        lines.sort_unstable();
        assert_eq!(all, lines);
    }

    /// A rule may call any function with anything; the library must answer or refuse, but never panic.
    #[test]
    fn no_function_of_the_library_panics_on_odd_arguments() {
        let text = |text: &str| Val::text(text);
        let samples: Vec<Val<'_>> = vec![
            Val::Null,
            Val::Bool(true),
            Val::Int(-1),
            Val::Int(i64::MAX),
            Val::UInt(3),
            Val::Double(f64::NAN),
            text(""),
            text("äß€"),
            text("%d %s %.3f %x %b"),
            text("10.0.0.0/8"),
            Val::list(vec![]),
            Val::list(vec![Val::Int(1), text("x"), Val::list(vec![])]),
            library::duration(i64::MAX).expect("a duration"),
            library::timestamp("9999-12-31T23:59:59Z").expect("a time"),
        ];
        let all = FUNCTIONS.0.iter();
        let calls: Vec<(&str, bool, usize)> = all
            .flat_map(|(name, overloads)| overloads.iter().map(|o| (*name, o.is_member, o.args.len())))
            .collect();
        // A range of that many numbers is what only the cost keeps from being made.
        for (name, is_member, count) in calls.into_iter().filter(|(name, ..)| *name != "lists.range") {
            let (namespace, name) = match name.split_once('.') {
                Some((namespace, name)) => (Some(namespace), name),
                None => (None, name),
            };
            for target in if is_member { &samples[..] } else { &samples[..1] } {
                let target = is_member.then_some(target);
                for first in &samples {
                    for second in &samples {
                        let args = [first.clone(), second.clone(), Val::Int(1)];
                        let count = count - usize::from(is_member);
                        let _answer = library::call(namespace, name, target, &args[..count]);
                        if count < 2 {
                            break;
                        }
                    }
                }
            }
        }
    }
}
