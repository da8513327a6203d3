//! Formats that do not take what is put into them, told when they are run: nobody knew the types before.

use super::literals::clause;
use super::value::{Fault, Result, Val};

/// Looks whether each clause of a format takes its argument.
pub(super) fn check(format: &str, args: &[Val<'_>]) -> Result<()> {
    let mut rest = format;
    let mut seen = 0;
    while let Some(start) = rest.find('%') {
        rest = &rest[start + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err(Fault::other("unexpected end of string"));
        }
        let Some(arg) = args.get(seen) else {
            return Err(Fault::other(format!("index {seen} out of range")));
        };
        seen += 1;
        let (letter, after) =
            clause(rest).map_err(|why| Fault::other(format!("could not parse formatting clause: {why}")))?;
        rest = after;
        takes(letter, arg)?;
    }
    match args.len() > seen {
        true => Err(Fault::other(format!(
            "too many arguments supplied to string.format (expected {seen}, got {})",
            args.len()
        ))),
        false => Ok(()),
    }
}

fn takes(clause: char, arg: &Val<'_>) -> Result<()> {
    let name = arg.type_name();
    let special = matches!(arg, Val::Text(text) if matches!(&**text, "NaN" | "Infinity" | "-Infinity"));
    let (fits, wants) = match clause {
        's' => return is_text(arg),
        'd' => (matches!(name, "int" | "uint"), "decimal clause can only be used on integers"),
        'f' => (name == "double" || special, "fixed-point clause can only be used on doubles"),
        'e' => (name == "double" || special, "scientific clause can only be used on doubles"),
        'b' => {
            (matches!(name, "int" | "uint" | "bool"), "only integers and bools can be formatted as binary")
        }
        'x' | 'X' => (
            matches!(name, "int" | "uint" | "string" | "bytes"),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
        _ => (matches!(name, "int" | "uint"), "octal clause can only be used on integers"),
    };
    match fits {
        true => Ok(()),
        false => Err(Fault::other(format!("error during formatting: {wants}, was given {name}"))),
    }
}

fn is_text(arg: &Val<'_>) -> Result<()> {
    match (arg, arg.type_name()) {
        (_, "list") => arg.elements()?.iter().try_for_each(is_text),
        (_, "map") => arg.keys()?.iter().try_for_each(|key| match arg.index(key)? {
            Some(value) => is_text(&value),
            None => Ok(()),
        }),
        (_, "google.protobuf.Duration" | "google.protobuf.Timestamp") => Ok(()),
        (Val::Optional(_) | Val::Made(_) | Val::Check(_) | Val::Foreign(_), name) => {
            let wants = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                         durations, and timestamps";
            Err(Fault::other(format!("error during formatting: {wants}, was given {name}")))
        }
        _ => Ok(()),
    }
}
