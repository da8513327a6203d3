//! The string formats that kube-apiserver checks; all others are ignored.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use super::duration;
use super::props::Props;

/// Whether a string is of a format.
pub(super) type Check = fn(&str) -> bool;

/// The format of a schema as far as it counts: one that is not known for its type is as if it were not there.
pub(super) fn of(props: &Props) -> &str {
    let ty = if props.int_or_string { "integer,string" } else { props.ty.as_str() };
    let known = match ty {
        "" | "string" => check(&props.format).is_some(),
        "integer" => matches!(props.format.as_str(), "int32" | "int64"),
        "number" => matches!(props.format.as_str(), "float" | "double"),
        _ => false,
    };
    if known { &props.format } else { "" }
}

/// The formats of a schema that the server does not know, which it warns of.
pub(super) fn unrecognized(props: &Props) -> Vec<String> {
    let mut found = Vec::new();
    props.walk(&mut |node| {
        let plain = if node.int_or_string { check(&node.format).is_some() } else { !of(node).is_empty() };
        if !node.format.is_empty() && !plain {
            found.push(node.format.clone());
        }
    });
    found
}

/// The check of a format; `None` if the format is not known. Dashes in the name do not count.
pub(super) fn check(format: &str) -> Option<Check> {
    let name = format.replace('-', "");
    Some(match name.as_str() {
        "bsonobjectid" => |s| s.len() == 24 && s.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => is_request_uri,
        "email" => is_email,
        "hostname" => is_hostname,
        "ipv4" => |s| s.contains('.') && parse_ip(s).is_some(),
        "ipv6" => |s| s.contains(':') && s.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr,
        "mac" => is_mac,
        "uuid" => |s| UUID.is_match(s),
        "uuid3" => |s| UUID3.is_match(s),
        "uuid4" => |s| UUID4.is_match(s),
        "uuid5" => |s| UUID5.is_match(s),
        "isbn" => |s| is_isbn10(s) || is_isbn13(s),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => |s| s.len() == 11 && SSN.is_match(s),
        "hexcolor" => |s| HEX_COLOR.is_match(s),
        "rgbcolor" => |s| RGB_COLOR.is_match(s),
        "byte" => |s| BASE64.is_match(s),
        "password" => |_| true,
        "date" => is_date,
        "duration" => |s| duration::parse_format(s).is_some(),
        "datetime" => is_date_time,
        "k8sshortname" => |s| s.len() <= 63 && LABEL.is_match(s),
        "k8slongname" => |s| s.len() <= 253 && SUBDOMAIN.is_match(s),
        _ => return None,
    })
}

macro_rules! patterns {
    ($($name:ident = $pattern:expr;)*) => {
        $(static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).expect("a fixed pattern"));)*
    };
}

patterns! {
    UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID3 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID4 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    UUID5 = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    SSN = "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    HEX_COLOR = "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = r"^rgb\( *(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9]) *(?:, *(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9]) *){2}\)$";
    BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
    LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
    SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
    CREDIT_CARD = "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}\
                   |3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$";
    HOST_LABEL = r"^[a-zA-Z0-9\p{S}\p{L}](?:-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?$";
    HOST_NAME = r"^(?:[a-zA-Z0-9\p{S}\p{L}](?:[a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?\.)+[a-zA-Z\p{L}]{2,63}$";
    TIME = r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$";
}

fn is_hostname(s: &str) -> bool {
    let shaped = HOST_LABEL.is_match(s) || HOST_NAME.is_match(s);
    shaped && s.len() <= 255 && s.split('.').all(|label| label.len() <= 63)
}

/// An address as Go's older parser took it: leading zeros are fine.
fn parse_ip(s: &str) -> Option<IpAddr> {
    if s.contains(':') {
        return s.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let mut octets = [0u8; 4];
    let mut parts = s.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?;
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then(|| IpAddr::from(octets))
}

fn is_cidr(s: &str) -> bool {
    let Some((address, length)) = s.split_once('/') else { return false };
    let bits = match parse_ip(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    length.bytes().all(|b| b.is_ascii_digit()) && length.parse::<u32>().is_ok_and(|length| length <= bits)
}

fn is_mac(s: &str) -> bool {
    let parts = |separator: char, width: usize| {
        let parts: Vec<&str> = s.split(separator).collect();
        let hex = |part: &&str| part.len() == width && part.bytes().all(|b| b.is_ascii_hexdigit());
        parts.iter().all(hex).then_some(parts.len() * width / 2)
    };
    let bytes = match s.as_bytes().get(2) {
        Some(b':') => parts(':', 2),
        Some(b'-') => parts('-', 2),
        _ => parts('.', 4),
    };
    matches!(bytes, Some(6 | 8 | 20))
}

/// What Go's `url.ParseRequestURI` takes: an absolute path, or a scheme and anything well-formed after it.
fn is_request_uri(s: &str) -> bool {
    if s.is_empty() || s.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if s == "*" {
        return true;
    }
    let (scheme, rest) = match s.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)) {
        Some(end) if s[end..].starts_with(':') && s.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            (&s[..end], &s[end + 1..])
        }
        Some(end) if s[end..].starts_with(':') => return false,
        _ => ("", s),
    };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let (host, path) = match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() => after.split_at(after.find('/').unwrap_or(after.len())),
        _ => ("", rest),
    };
    let host = host.rsplit('@').next().unwrap_or_default();
    let port_ok = match host.rsplit_once(':') {
        Some((before, port)) if !before.contains('[') || before.ends_with(']') => {
            port.bytes().all(|b| b.is_ascii_digit())
        }
        _ => true,
    };
    port_ok && !host.contains([' ', '<', '>', '"', '%']) && escapes_are_whole(path)
}

fn escapes_are_whole(path: &str) -> bool {
    let hex = |part: &str| part.len() >= 2 && part.bytes().take(2).all(|b| b.is_ascii_hexdigit());
    path.split('%').skip(1).all(hex)
}

/// What Go's `mail.ParseAddress` takes, without comments and folded lines.
fn is_email(s: &str) -> bool {
    let s = s.trim();
    let address = match s.strip_suffix('>').and_then(|s| s.rsplit_once('<')) {
        Some((_, address)) => address,
        None => s,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii();
    let dotted = |s: &str| s.split('.').all(|part| !part.is_empty() && part.chars().all(atom));
    let quoted = local.len() >= 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']');
    (dotted(local) || quoted) && (dotted(domain) || literal)
}

fn without(s: &str, dropped: impl Fn(char) -> bool) -> Vec<u8> {
    s.chars().filter(|c| !dropped(*c)).collect::<String>().into_bytes()
}

fn is_isbn10(s: &str) -> bool {
    let digits = without(s, |c| c == '-' || c.is_ascii_whitespace());
    if digits.len() != 10 || !digits[..9].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match digits[9] {
        b'X' => 10,
        d if d.is_ascii_digit() => u32::from(d - b'0'),
        _ => return false,
    };
    let sum: u32 = (1..).zip(&digits[..9]).map(|(i, d)| i * u32::from(d - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(s: &str) -> bool {
    let digits = without(s, |c| c == '-' || c.is_ascii_whitespace());
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weighted = [1, 3].iter().cycle().zip(&digits).map(|(factor, d)| factor * u32::from(d - b'0'));
    weighted.sum::<u32>().is_multiple_of(10)
}

fn is_credit_card(s: &str) -> bool {
    let digits = without(s, |c| !c.is_ascii_digit());
    let text = String::from_utf8_lossy(&digits);
    let luhn = |(i, d): (usize, &u8)| match (i % 2, u32::from(d - b'0')) {
        (1, d) if d >= 5 => d * 2 - 9,
        (1, d) => d * 2,
        (_, d) => d,
    };
    CREDIT_CARD.is_match(&text) && digits.iter().rev().enumerate().map(luhn).sum::<u32>().is_multiple_of(10)
}

fn is_date(s: &str) -> bool {
    let shaped = s.len() == 10
        && s.bytes().enumerate().all(|(i, b)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() });
    shaped && s.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(s: &str) -> bool {
    let lower = s.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let within = |part: Option<regex::Match<'_>>, max: &str| part.is_some_and(|part| part.as_str() <= max);
    is_date(date)
        && TIME.captures(time).is_some_and(|found| {
            within(found.get(1), "23") && within(found.get(2), "59") && within(found.get(3), "59")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("date", &["2024-02-29"], &["2023-02-29", "2024-2-1", "x"]),
            (
                "date-time",
                &["2024-01-01T00:00:00Z", "2024-01-01t10:00:00.5+01:00"],
                &["2024-01-01", "2024-01-01T25:00:00Z"],
            ),
            ("uuid", &["5a8d1f0e-1f43-4d9a-8a0e-0b1c2d3e4f50"], &["5a8d"]),
            ("uuid4", &["5a8d1f0e-1f43-4d9a-8a0e-0b1c2d3e4f50"], &["5a8d1f0e-1f43-3d9a-8a0e-0b1c2d3e4f50"]),
            ("ipv4", &["10.0.0.1", "010.0.0.1"], &["10.0.0", "::1", "1.2.3.256"]),
            ("ipv6", &["::1", "fe80::1"], &["10.0.0.1", ":::"]),
            ("cidr", &["10.0.0.0/8", "::/0"], &["10.0.0.0/33", "10.0.0.0"]),
            ("mac", &["01:23:45:67:89:ab", "0123.4567.89ab"], &["01:23", "zz:23:45:67:89:ab"]),
            ("hostname", &["a", "example.com", "1a.example.com"], &["-a", "a_b", "example.c0m"]),
            ("uri", &["https://a.b/c", "/path", "urn:x:y"], &["a/b", "", "http://a b/"]),
            ("email", &["a@b.c", "A <a@b.c>"], &["a", "a@", "a b@c"]),
            ("byte", &["YQ==", "YWJj"], &["YQ", "%"]),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751044"]),
            ("creditcard", &["4111 1111 1111 1111"], &["4111111111111112"]),
            ("ssn", &["123-45-6789"], &["123456789", "12-345-6789"]),
            ("hexcolor", &["#fff", "A0B1C2"], &["#ffff"]),
            ("rgbcolor", &["rgb(1, 2,255)"], &["rgb(1,2,256)"]),
            ("k8s-short-name", &["a-b"], &["A", "a.b"]),
            ("k8s-long-name", &["a.b-c"], &["a..b"]),
            ("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]),
        ];
        for (format, yes, no) in cases {
            let is_valid = check(format).unwrap_or_else(|| panic!("no format {format}"));
            yes.iter().for_each(|s| assert!(is_valid(s), "{s} is a {format}"));
            no.iter().for_each(|s| assert!(!is_valid(s), "{s} is no {format}"));
        }
        assert!(check("int32").is_none());
    }
}
