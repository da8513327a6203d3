//! Addresses, networks and URLs that are none, in Go's words. The library has words of its own, and takes some of these
//! for good.

use super::value::{Fault, Result, Val};

type Checked = std::result::Result<(), String>;

/// The outcome of a function of one text, if the text alone decides it.
pub(super) fn by_text<'a>(name: &str, text: &str) -> Option<Result<Val<'a>>> {
    let checked = match name {
        "ip" | "isIP" => ip(text),
        "cidr" | "isCIDR" => cidr(text),
        "url" | "isURL" => url(text)
            .map_err(|why| format!("URL parse error during conversion from string: parse {text:?}: {why}")),
        _ => return None,
    };
    match (checked, name.starts_with("is")) {
        (checked, true) => Some(Ok(Val::Bool(checked.is_ok()))),
        (Ok(()), false) if name == "url" => Some(Ok(Val::Url(text.into()))),
        (Ok(()), false) => None,
        (Err(why), false) => Some(Err(Fault::Other(why))),
    }
}

fn ip(text: &str) -> Checked {
    let address = address(text)
        .map_err(|why| format!("IP Address {text:?} parse error during conversion from string: {why}"))?;
    match address {
        Address::V6 { zone: true, .. } => Err(format!("IP address {text:?} with zone value is not allowed")),
        Address::V6 { mapped: true, .. } => Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed")),
        _ => Ok(()),
    }
}

fn cidr(text: &str) -> Checked {
    const WHAT: &str = "network address parse error during conversion from string";
    let refused = |why: String| format!("{WHAT}: {WHAT}: netip.ParsePrefix({text:?}): {why}");
    let (before, bits) = text.rsplit_once('/').ok_or_else(|| refused("no '/'".to_owned()))?;
    let address = address(before).map_err(refused)?;
    if matches!(address, Address::V6 { zone: true, .. }) {
        return Err(refused("IPv6 zones cannot be present in a prefix".to_owned()));
    }
    let bad = || refused(format!("bad bits after slash: {bits:?}"));
    if bits.len() > 1 && !bits.starts_with(|c: char| ('1'..='9').contains(&c)) {
        return Err(bad());
    }
    let most = if matches!(address, Address::V4) { 32 } else { 128 };
    match bits.parse::<i64>() {
        Err(_) => Err(bad()),
        Ok(bits) if !(0..=most).contains(&bits) => Err(refused("prefix length out of range".to_owned())),
        Ok(_) if matches!(address, Address::V6 { mapped: true, .. }) => {
            Err(format!("{WHAT}: IPv4-mapped IPv6 address {text:?} is not allowed"))
        }
        Ok(_) => Ok(()),
    }
}

enum Address {
    V4,
    V6 { zone: bool, mapped: bool },
}

/// Go's `netip.ParseAddr`.
fn address(text: &str) -> std::result::Result<Address, String> {
    let parsed = match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => four(text).map(|()| Address::V4),
        Some(b':') => six(text),
        Some(_) => Err(("missing IPv6 address", "")),
        None => Err(("unable to parse IP", "")),
    };
    parsed.map_err(|(why, at)| match at {
        "" => format!("ParseAddr({text:?}): {why}"),
        at => format!("ParseAddr({text:?}): {why} (at {at:?})"),
    })
}

/// Why it is no address, and from where on.
type Why<'t> = (&'static str, &'t str);

fn four(text: &str) -> std::result::Result<(), Why<'_>> {
    let (mut value, mut digits, mut dots) = (0, 0, 0);
    for (i, c) in text.char_indices() {
        match c {
            '0'..='9' => {
                if digits == 1 && value == 0 {
                    return Err(("IPv4 field has octet with leading zero", ""));
                }
                value = value * 10 + u32::from(c) - u32::from('0');
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", ""));
                }
            }
            '.' => {
                if i == 0 || i + 1 == text.len() || text[..i].ends_with('.') {
                    return Err(("IPv4 field must have at least one digit", &text[i..]));
                }
                if dots == 3 {
                    return Err(("IPv4 address too long", ""));
                }
                (value, digits, dots) = (0, 0, dots + 1);
            }
            _ => return Err(("unexpected character", &text[i..])),
        }
    }
    if dots < 3 { Err(("IPv4 address too short", "")) } else { Ok(()) }
}

fn six(text: &str) -> std::result::Result<Address, Why<'_>> {
    let (mut rest, zone) = text.split_once('%').map_or((text, None), |(rest, zone)| (rest, Some(zone)));
    if zone == Some("") {
        return Err(("zone must be a non-empty string", ""));
    }
    let zone = zone.is_some();
    let mut ellipsis = None;
    if let Some(after) = rest.strip_prefix("::") {
        ellipsis = Some(0);
        rest = after;
        if rest.is_empty() {
            return Ok(Address::V6 { zone, mapped: false });
        }
    }
    // How many bytes there are, and the groups that they come from.
    let (mut length, mut groups, mut has_four) = (0, Vec::new(), false);
    while length < 16 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return Err(("each group must have 4 or less digits", rest));
        }
        if digits == 0 {
            return Err(("each colon-separated field must have at least one digit", rest));
        }
        if rest[digits..].starts_with('.') {
            if ellipsis.is_none() && length != 12 {
                return Err(("embedded IPv4 address must replace the final 2 fields of the address", rest));
            }
            if length + 4 > 16 {
                return Err(("too many hex fields to fit an embedded IPv4 at the end of the address", rest));
            }
            four(rest)?;
            (rest, length, has_four) = ("", length + 4, true);
            break;
        }
        groups.push(u16::from_str_radix(&rest[..digits], 16).unwrap_or_default());
        length += 2;
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(("unexpected character, want colon", rest));
        };
        if after.is_empty() {
            return Err(("colon must be followed by more characters", rest));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return Err(("multiple :: in address", rest));
            }
            ellipsis = Some(groups.len());
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", rest));
    }
    match ellipsis {
        None if length < 16 => Err(("address string too short", "")),
        Some(_) if length == 16 => Err(("the :: must expand to at least one field of zeros", "")),
        _ => {
            let zeros = (16 - length) / 2;
            groups.splice(ellipsis.unwrap_or(0)..ellipsis.unwrap_or(0), std::iter::repeat_n(0, zeros));
            let head = if has_four { &groups[..] } else { &groups[..6] };
            let mapped = head.split_last().is_some_and(|(last, zeros)| {
                *last == 0xffff && zeros.len() == 5 && zeros.iter().all(|group| *group == 0)
            });
            Ok(Address::V6 { zone, mapped })
        }
    }
}

/// Go's `url.ParseRequestURI`.
pub(super) fn url(text: &str) -> Checked {
    if text.contains(|c: char| c.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() {
        return Err("empty url".to_owned());
    }
    let scheme = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'));
    let (has_scheme, rest) = match scheme.filter(|at| text[*at..].starts_with(':')) {
        Some(0) => return Err("missing protocol scheme".to_owned()),
        Some(at) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => (true, &text[at + 1..]),
        _ => (false, text),
    };
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    if !rest.starts_with('/') {
        return if has_scheme || text == "*" { Ok(()) } else { Err("invalid URI for request".to_owned()) };
    }
    let path = match rest.strip_prefix("//").filter(|_| has_scheme) {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            host(authority.rsplit_once('@').map_or(authority, |(_, host)| host))?;
            path
        }
        None => rest,
    };
    escapes(path)
}

fn host(text: &str) -> Checked {
    let port = match text.strip_prefix('[') {
        Some(inner) => match inner.rfind(']') {
            None => return Err("missing ']' in host".to_owned()),
            Some(at) => &inner[at + 1..],
        },
        None => text.rfind(':').map_or("", |at| &text[at..]),
    };
    let is_number = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_number) {
        return Err(format!("invalid port {port:?} after host"));
    }
    match text.find([' ', '\\', '^', '`', '{', '|', '}', '#', '?']) {
        Some(at) => Err(format!("invalid character {:?} in host name", &text[at..=at])),
        None => escapes(text),
    }
}

fn escapes(text: &str) -> Checked {
    for (at, _) in text.match_indices('%') {
        let end = text.len().min(at + 3);
        let escape = text.get(at..end).unwrap_or(&text[at..]);
        if escape.len() < 3 || !escape[1..].bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(format!("invalid URL escape {escape:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, text: &str) -> String {
        match by_text(name, text) {
            Some(Err(Fault::Other(why))) => why,
            _ => "good".to_owned(),
        }
    }

    #[test]
    fn addresses_are_refused_in_the_words_of_go() {
        let why = |text: &str| {
            said("ip", text).rsplit_once("): ").map_or(said("ip", text), |(_, why)| why.to_owned())
        };
        assert_eq!(why("1.2.3"), "IPv4 address too short");
        assert_eq!(why("1.2.3.04"), "IPv4 field has octet with leading zero");
        assert_eq!(why("1..2.3"), "IPv4 field must have at least one digit (at \".2.3\")");
        assert_eq!(why("1::2::3"), "multiple :: in address (at \":3\")");
        assert_eq!(why("12345::"), "each group must have 4 or less digits (at \"12345::\")");
        assert_eq!(why("1:2:3:4:5:6::8"), "good");
        assert_eq!(why("1:2:3:4:5:6:7::8"), "the :: must expand to at least one field of zeros");
        assert_eq!(why("1:2:3:4:5:6:7:8:9"), "trailing garbage after address (at \"9\")");
        assert_eq!(why("::1.2.3.4"), "good");
        assert_eq!(why("::ffff:102:304"), "IPv4-mapped IPv6 address \"::ffff:102:304\" is not allowed");
        assert_eq!(why("fe80::1%e"), "IP address \"fe80::1%e\" with zone value is not allowed");
    }

    #[test]
    fn networks_and_urls_too() {
        assert!(said("cidr", "1.2.3.4/08").ends_with("bad bits after slash: \"08\""));
        assert!(said("cidr", "1.2.3.4/33").ends_with("prefix length out of range"));
        assert_eq!(said("cidr", "::/128"), "good");
        assert!(said("url", "/%zz").ends_with("invalid URL escape \"%zz\""));
        assert!(said("url", "http://a:b/").ends_with("invalid port \":b\" after host"));
        assert!(said("url", "1a:x").ends_with("invalid URI for request"));
        assert_eq!(said("url", "mailto:a"), "good");
    }
}
