//! Checks that many kinds share.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::meta::{self, NOT_NEGATIVE};
use super::names::{self, Rule};
use super::tree::{entries, get, int, is_zero, list, text};
use crate::field::{Errors, Path, Reason};

pub(crate) use windlass_core::amounts::amount as quantity;

/// The text of `field` follows `rule`, if there is any.
pub(crate) fn text_by(object: &Value, field: &str, rule: Rule, path: &Path<'_>, errors: &mut Errors) {
    let value = text(object, field);
    if !value.is_empty() {
        by_rule(value, rule, &path.child(field), errors);
    }
}

/// A text follows `rule`.
pub(crate) fn by_rule(value: &str, rule: Rule, path: &Path<'_>, errors: &mut Errors) {
    for fault in rule(value) {
        errors.invalid(path, &json!(value), &fault);
    }
}

/// The text of `field` is there.
pub(crate) fn required(
    object: &Value,
    field: &str,
    detail: &str,
    path: &Path<'_>,
    errors: &mut Errors,
) -> bool {
    let missing = is_zero(object.get(field));
    if missing {
        errors.required(&path.child(field), detail);
    }
    !missing
}

/// The text of `field` is there and follows `rule`.
pub(crate) fn required_by(object: &Value, field: &str, rule: Rule, path: &Path<'_>, errors: &mut Errors) {
    if required(object, field, "", path, errors) {
        text_by(object, field, rule, path, errors);
    }
}

/// The text of `field`, if there is any, is one of `allowed`.
pub(crate) fn one_of(object: &Value, field: &str, allowed: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if let Some(value) = get(object, field)
        && !value.as_str().is_some_and(|value| allowed.contains(&value))
    {
        errors.not_supported(&path.child(field), value, allowed);
    }
}

/// The number of each of these fields, if it is there, is not negative.
pub(crate) fn not_negative(object: &Value, fields: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for field in fields {
        if let Some(value) = int(object, field).filter(|value| *value < 0) {
            errors.invalid(&path.child(field), &json!(value), NOT_NEGATIVE);
        }
    }
}

/// The number of `field`, if it is there, is within a range.
pub(crate) fn within(object: &Value, field: &str, low: i64, high: i64, path: &Path<'_>, errors: &mut Errors) {
    if let Some(value) = int(object, field) {
        in_range(value, low, high, &path.child(field), errors);
    }
}

/// A number is within a range.
pub(crate) fn in_range(value: i64, low: i64, high: i64, path: &Path<'_>, errors: &mut Errors) {
    if !(low..=high).contains(&value) {
        errors.invalid(path, &json!(value), &format!("must be between {low} and {high}, inclusive"));
    }
}

/// A port by number or name.
pub(crate) fn port_or_name(port: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    match port {
        Some(Value::String(name)) => by_rule(name, names::port_name, path, errors),
        port => in_range(port.and_then(Value::as_i64).unwrap_or(0), 1, 65_535, path, errors),
    }
}

/// A count or a percentage, neither of them negative.
pub(crate) fn count_or_percent(object: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    match get(object, field) {
        Some(Value::String(value)) => by_rule(value, names::percent, &path.child(field), errors),
        Some(_) => not_negative(object, &[field], path, errors),
        None => {}
    }
}

/// A percentage is at most 100.
pub(crate) fn at_most_all(object: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    let percent = text(object, field).strip_suffix('%').and_then(|digits| digits.parse::<i64>().ok());
    if percent.is_some_and(|percent| percent > 100) {
        errors.invalid(&path.child(field), &object[field], "must not be greater than 100%");
    }
}

/// Whether a field holds zero, as a count or as a percentage.
pub(crate) fn is_none_of(object: &Value, field: &str) -> bool {
    match get(object, field) {
        // A text that is neither a percentage nor a number counts as nothing, a negative percentage as well.
        Some(Value::String(value)) => {
            let digits = match value.strip_suffix('%') {
                Some(digits) => digits,
                None => value.strip_prefix(['+', '-']).unwrap_or(value),
            };
            !digits.bytes().all(|digit| digit.is_ascii_digit()) || digits.bytes().all(|digit| digit == b'0')
        }
        Some(value) => value.as_i64() == Some(0),
        None => true,
    }
}

/// An address of any family.
pub(crate) fn ip(value: &str, path: &Path<'_>, errors: &mut Errors) {
    let detail = match value.parse::<IpAddr>() {
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_some() => "must not be an IPv4-mapped IPv6 address",
        Ok(_) => return,
        Err(_) if sloppy_ip(value).is_some() => "must not have leading 0s",
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    errors.invalid(path, &json!(value), detail);
}

/// An address as old versions of Go read it: with leading zeros, and IPv4 in IPv6 as IPv4.
pub(crate) fn sloppy_ip(value: &str) -> Option<IpAddr> {
    if let Ok(address) = value.parse::<IpAddr>() {
        return Some(match address {
            IpAddr::V6(six) => six.to_ipv4_mapped().map_or(address, IpAddr::V4),
            four => four,
        });
    }
    let octets = value.split('.').map(|octet| octet.parse::<u8>().ok()).collect::<Option<Vec<_>>>()?;
    Some(IpAddr::from(<[u8; 4]>::try_from(octets).ok()?))
}

/// A block of addresses.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    bits: u128,
    /// How many bits an address of its family has.
    pub(crate) width: u32,
    prefix: u32,
}

impl Block {
    /// Whether it is written with an address inside of it, and not with its first one.
    fn has_host_bits(&self) -> bool {
        let host = 1_u128.checked_shl(self.width - self.prefix).map_or(u128::MAX, |size| size - 1);
        self.bits & host != 0
    }

    /// Whether another block lies within this one and is smaller.
    pub(crate) fn strictly_contains(&self, other: &Block) -> bool {
        let shift = self.width - self.prefix;
        let head = |bits: u128| bits.checked_shr(shift).unwrap_or(0);
        self.width == other.width && self.prefix < other.prefix && head(self.bits) == head(other.bits)
    }
}

/// A block of addresses of any family; one that is told badly is one all the same.
pub(crate) fn cidr(value: &str, path: &Path<'_>, errors: &mut Errors) -> Option<Block> {
    let parsed = value.split_once('/').and_then(|(address, prefix)| {
        let prefix = prefix.parse::<u32>().ok()?;
        let address = address.parse::<IpAddr>().ok().or_else(|| sloppy_ip(address))?;
        let (bits, width) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        (prefix <= width).then_some(Block { bits, width, prefix })
    });
    let Some(block) = parsed else {
        let detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        errors.invalid(path, &json!(value), detail);
        return None;
    };
    let (address, prefix) = value.split_once('/').unwrap_or((value, ""));
    let detail = match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_some() => "must not have an IPv4-mapped IPv6 address",
        Ok(_) if prefix.len() == 1 || !prefix.starts_with('0') => match block.has_host_bits() {
            true => "must not have bits set beyond the prefix length",
            false => return Some(block),
        },
        _ => "must not have leading 0s in IP or prefix length",
    };
    errors.invalid(path, &json!(value), detail);
    Some(block)
}

/// A path within a domain: `acme.io/foo`.
pub(crate) fn domain_path(object: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    let value = text(object, field);
    if !required(object, field, "", path, errors) {
        return;
    }
    let path = path.child(field);
    let (host, rest) = match value.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => (host, rest),
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.invalid(&path, &json!(value), detail);
            return;
        }
    };
    by_rule(host, names::dns_subdomain, &path, errors);
    let allowed = |c: char| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c);
    if !rest.chars().all(allowed) {
        let detail = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        errors.invalid(&path, &json!(rest), detail);
    }
}

/// What is referred to does not exist.
pub(crate) fn not_found(value: &str, path: &Path<'_>, errors: &mut Errors) {
    errors.push(Reason::NotFound, path, format!("Not found: {}", json!(value)));
}

/// A label selector is well formed.
pub(crate) fn selector(holder: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(selector) = get(holder, field) {
        selector_at(selector, &path.child(field), errors);
    }
}

/// A label selector is well formed; `path` is its own.
pub(crate) fn selector_at(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    meta::labels(selector, "matchLabels", path, errors);
    for (index, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions");
        let path = path.index(index);
        let values = list(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.required(&path.child("values"), detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&path.child("values"), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(&path.child("operator"), &json!(other), "not a valid selector operator"),
        }
        by_rule(text(expression, "key"), names::label_key, &path.child("key"), errors);
        for (index, value) in values.iter().enumerate() {
            let values = path.child("values");
            by_rule(value.as_str().unwrap_or(""), names::label_value, &values.index(index), errors);
        }
    }
}

/// Whether a label selector selects anything at all: an absent one does not, an empty one is well formed.
pub(crate) fn is_valid_selector(selector: &Value) -> bool {
    let mut errors = Errors::default();
    self::selector(&json!({"s": selector}), "s", &Path::Root, &mut errors);
    errors.is_empty()
}

/// Whether labels match a label selector; nothing matches an absent one.
pub(crate) fn matches(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    let Some(selector) = selector else { return false };
    let of = |key: &str| labels.and_then(|labels| get(labels, key)).and_then(Value::as_str);
    entries(selector, "matchLabels").all(|(key, value)| of(key) == value.as_str())
        && list(selector, "matchExpressions").iter().all(|expression| {
            let value = of(text(expression, "key"));
            let listed = value.is_some_and(|value| list(expression, "values").iter().any(|v| v == value));
            match text(expression, "operator") {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// No two elements of a list have the same text in `field`.
pub(crate) fn unique(items: &[Value], field: &str, path: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let value = text(item, field);
        if !value.is_empty() && !seen.insert(value) {
            errors.duplicate(&path.index(index).child(field), &json!(value));
        }
    }
}
