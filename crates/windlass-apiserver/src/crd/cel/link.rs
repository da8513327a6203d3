//! URLs, taken apart as Go's `net/url` does it: what is written stays as it is written.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::value::{Fault, Key, Result, Val};

/// The parts of a URL.
struct Parts<'t> {
    scheme: String,
    host: &'t str,
    path: &'t str,
    query: &'t str,
}

fn parts(text: &str) -> Parts<'_> {
    let text = text.split_once('#').map_or(text, |(text, _)| text);
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.'));
    let end = end
        .filter(|end| text[*end..].starts_with(':') && text.starts_with(|c: char| c.is_ascii_alphabetic()));
    let (scheme, rest) = end.map_or(("", text), |end| (&text[..end], &text[end + 1..]));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (host, path) =
        match rest.strip_prefix("//").filter(|rest| !scheme.is_empty() || !rest.starts_with('/')) {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (authority.rsplit_once('@').map_or(authority, |(_, host)| host), path)
            }
            // What has a scheme and no slash has no path either.
            None if !scheme.is_empty() && !rest.starts_with('/') => ("", ""),
            None => ("", rest),
        };
    Parts { scheme: scheme.to_ascii_lowercase(), host, path, query }
}

/// Calls a function on a URL.
pub(super) fn call<'a>(text: &str, name: &str, args: &[Val<'a>]) -> Result<Val<'a>> {
    let url = parts(text);
    let (hostname, port) = match url.host.rsplit_once(':') {
        Some((hostname, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (hostname, port),
        _ => (url.host, ""),
    };
    Ok(match (name, args) {
        ("getScheme", []) => Val::text(url.scheme),
        ("getHost", []) => Val::text(url.host),
        ("getHostname", []) => {
            let bare = hostname.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            Val::text(bare.unwrap_or(hostname))
        }
        ("getPort", []) => Val::text(port),
        ("getEscapedPath", []) => Val::text(escaped(url.path)),
        ("getQuery", []) => query(url.query),
        _ => return Err(Fault::NoOverload),
    })
}

/// Whether two URLs are written alike. The case of a scheme does not count.
pub(super) fn same(a: &str, b: &str) -> bool {
    let (first, second) = (parts(a).scheme, parts(b).scheme);
    first == second && a[first.len()..] == b[second.len()..]
}

/// A path that holds nothing that has to be escaped.
fn escaped(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b);
    if path.bytes().all(|b| plain(b) || b"!'()*[]%".contains(&b)) {
        return path.to_owned();
    }
    let byte = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    unescaped(path, false).unwrap_or_default().into_iter().map(byte).collect()
}

/// The bytes that a text with escapes stands for; in queries, `+` stands for a space.
fn unescaped(text: &str, is_query: bool) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let digit = |b: Option<u8>| char::from(b?).to_digit(16);
                let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if is_query => b' ',
            byte => byte,
        });
    }
    Some(out)
}

fn query<'a>(text: &str) -> Val<'a> {
    let mut all: BTreeMap<Key, Vec<Val<'a>>> = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(key), Some(value)) = (unescaped(key, true), unescaped(value, true)) else { continue };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        all.entry(Key::Text(Rc::from(text(&key)))).or_default().push(Val::text(text(&value)));
    }
    Val::Map(Rc::new(all.into_iter().map(|(key, values)| (key, Val::list(values))).collect()))
}
