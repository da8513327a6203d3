//! Formats with names: what is wrong with a text that is none, in the words of the real server.

use std::rc::Rc;

use super::address;
use super::value::{Fault, Result, Val};
use crate::crd::formats;
use crate::kinds::names;

/// The names, as functions of `format` have them.
const NAMES: [&str; 13] = [
    "byte",
    "date",
    "datetime",
    "dns1035Label",
    "dns1035LabelPrefix",
    "dns1123Label",
    "dns1123LabelPrefix",
    "dns1123Subdomain",
    "dns1123SubdomainPrefix",
    "labelValue",
    "qualifiedName",
    "uri",
    "uuid",
];

/// A function of `format`: one that gives a format, or `named`.
pub(super) fn call<'a>(name: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    let known = |name: &str| NAMES.iter().find(|known| **known == name).map(|name| Val::Format(name));
    match (name, args) {
        ("named", [Val::Text(name)]) => Ok(Val::Optional(known(name).map(Rc::new))),
        (name, []) => known(name).ok_or(Fault::NoOverload),
        _ => Err(Fault::NoOverload),
    }
}

/// What is wrong with a text; nothing if it is of the format.
pub(super) fn validate<'a>(format: &str, text: &str) -> Val<'a> {
    let (rule, text) = match format.strip_suffix("Prefix") {
        // More comes behind what ends with a dash. Go takes two bytes away, wherever characters end.
        Some(rule) if text.len() > 1 && text.ends_with('-') => {
            (rule, format!("{}a", String::from_utf8_lossy(&text.as_bytes()[..text.len() - 2])))
        }
        Some(rule) => (rule, text.to_owned()),
        None => (format, text.to_owned()),
    };
    let text = text.as_str();
    let unless = |format: &str, why: &str| match formats::check(format) {
        Some(check) if !check(text) => vec![why.to_owned()],
        _ => Vec::new(),
    };
    let faults = match rule {
        "dns1123Label" => names::dns_label(text),
        "dns1123Subdomain" => names::dns_subdomain(text),
        "dns1035Label" => names::dns_1035_label(text),
        "qualifiedName" => names::label_key(text),
        "labelValue" => names::label_value(text),
        "uri" => address::url(text).err().map(|why| format!("parse {text:?}: {why}")).into_iter().collect(),
        "uuid" => unless("uuid", "does not match the UUID format"),
        "byte" => unless("byte", "invalid base64"),
        "date" => unless("date", "invalid date"),
        _ => unless("datetime", "invalid datetime"),
    };
    let list = || Rc::new(Val::list(faults.iter().map(Val::text).collect()));
    Val::Optional((!faults.is_empty()).then(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_may_end_with_a_dash_whatever_is_before_it() {
        let is_good = |text: &str| matches!(validate("dns1123LabelPrefix", text), Val::Optional(None));
        assert!(is_good("ab-"));
        assert!(!is_good("\u{e9}-"));
        assert!(!is_good("-"));
    }
}
