//! Words of the language.

/// A word, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: Kind,
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Ident(String),
    Int(String),
    UInt(String),
    Double(String),
    Text(String),
    Bytes(Vec<u8>),
    /// An operator, a bracket, or a word that is one: `in`, `true`, `false`, `null`.
    Mark(&'static str),
    /// A literal with an escape that is none. The text says what is wrong.
    Bad(String),
    End,
}

/// Two characters come before one.
const MARKS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")",
    "[", "]", "{", "}",
];

const WORDS: [&str; 4] = ["in", "true", "false", "null"];

/// The words of an expression, and whether these are all of it; `None` if a literal does not end.
pub(super) fn lex(source: &str) -> Option<(Vec<Token>, bool)> {
    let mut out = Vec::new();
    let mut is_whole = true;
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        if matches!(c, '\t' | ' ' | '\r' | '\n' | '\u{c}') {
            at += 1;
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let found = text(rest).or_else(|| number(rest)).or_else(|| word(rest)).or_else(|| {
            MARKS.iter().find(|mark| rest.starts_with(**mark)).map(|mark| (Kind::Mark(mark), mark.len()))
        });
        let Some((kind, length)) = found else {
            if matches!(c, '"' | '\'') {
                return None;
            }
            is_whole = false;
            at += c.len_utf8();
            continue;
        };
        out.push(Token { kind, at });
        at += length;
    }
    out.push(Token { kind: Kind::End, at });
    Some((out, is_whole))
}

fn word(rest: &str) -> Option<(Kind, usize)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let name = &rest[..length];
    let kind = match WORDS.iter().find(|word| **word == name) {
        Some(word) => Kind::Mark(word),
        None => Kind::Ident(name.to_owned()),
    };
    Some((kind, length))
}

fn number(rest: &str) -> Option<(Kind, usize)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    if let Some(hex) = rest.strip_prefix("0x") {
        let length = 2 + hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        if length > 2 {
            return Some(integer(rest, length));
        }
    }
    let whole = digits(rest);
    let mut end = whole;
    let fraction = rest[end..].strip_prefix('.').map_or(0, digits);
    if fraction > 0 {
        end += 1 + fraction;
    }
    if end == 0 {
        return None;
    }
    let mut exponent = 0;
    if let Some(power) = rest[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(power.starts_with(['+', '-']));
        let count = digits(&power[sign..]);
        exponent = if count > 0 { 1 + sign + count } else { 0 };
    }
    if fraction == 0 && exponent == 0 {
        return Some(integer(rest, whole));
    }
    end += exponent;
    Some((Kind::Double(rest[..end].to_owned()), end))
}

fn integer(rest: &str, length: usize) -> (Kind, usize) {
    let text = rest[..length].to_owned();
    match rest[length..].starts_with(['u', 'U']) {
        true => (Kind::UInt(text), length + 1),
        false => (Kind::Int(text), length),
    }
}

/// A string or bytes, with its prefix.
fn text(rest: &str) -> Option<(Kind, usize)> {
    let mut prefix = rest.bytes().take_while(|b| b"rRbB".contains(b)).count();
    let (mut raw, mut bytes) = (false, false);
    match rest[..prefix].to_ascii_lowercase().as_str() {
        "" => {}
        "r" => raw = true,
        "b" => bytes = true,
        "br" => (raw, bytes) = (true, true),
        _ => return None,
    }
    let quote = rest[prefix..].chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let close = if rest[prefix..].starts_with(&triple) { triple } else { quote.to_string() };
    prefix += close.len();
    let body = &rest[prefix..];
    let mut end = 0;
    while !body[end..].starts_with(&close) {
        match body[end..].chars().next()? {
            '\n' | '\r' if close.len() == 1 => return None,
            '\\' if !raw => {
                let escaped = body[end + 1..].chars().next()?;
                end += 1 + escaped.len_utf8();
            }
            c => end += c.len_utf8(),
        }
    }
    let length = prefix + end + close.len();
    let content = body[..end].replace("\r\n", "\n").replace('\r', "\n");
    let kind = match (bytes, raw) {
        (true, true) => Kind::Bytes(content.into_bytes()),
        (false, true) => Kind::Text(content),
        _ => match unescape(&content, bytes) {
            Some(value) if bytes => Kind::Bytes(value),
            Some(value) => String::from_utf8(value)
                .map_or_else(|_| Kind::Bad("invalid unicode code point".to_owned()), Kind::Text),
            None => Kind::Bad("unable to unescape string".to_owned()),
        },
    };
    Some((kind, length))
}

fn unescape(content: &str, bytes: bool) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(content.len());
    let mut rest = content.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.extend(c.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        let escape = rest.next()?;
        let plain = match escape {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '`' | '?' => escape,
            'x' | 'X' | 'u' | 'U' | '0'..='3' => {
                let (digits, radix, first) = match escape {
                    'x' | 'X' => (2, 16, 0),
                    'u' => (4, 16, 0),
                    'U' => (8, 16, 0),
                    digit => (2, 8, digit.to_digit(8)?),
                };
                if bytes && matches!(escape, 'u' | 'U') {
                    return None;
                }
                let mut value = first;
                for _ in 0..digits {
                    value = value * radix + rest.next()?.to_digit(radix)?;
                }
                if bytes {
                    out.push(u8::try_from(value).ok()?);
                    continue;
                }
                char::from_u32(value)?
            }
            _ => return None,
        };
        out.extend(plain.encode_utf8(&mut [0; 4]).bytes());
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<Kind> {
        lex(source).expect(source).0.into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn numbers_and_texts_are_told_apart() {
        let ident = |name: &str| Kind::Ident(name.into());
        let all = kinds("a.b1 >= 0x1F + 2u - .5 * 1e3 // end");
        assert_eq!(
            all,
            [
                ident("a"),
                Kind::Mark("."),
                ident("b1"),
                Kind::Mark(">="),
                Kind::Int("0x1F".into()),
                Kind::Mark("+"),
                Kind::UInt("2".into()),
                Kind::Mark("-"),
                Kind::Double(".5".into()),
                Kind::Mark("*"),
                Kind::Double("1e3".into()),
                Kind::End
            ]
        );
        assert_eq!(
            kinds(r#"'a\n\u00e4' r'\d' b'\xff' """x"y""" br'\x'"#),
            [
                Kind::Text("a\nä".into()),
                Kind::Text("\\d".into()),
                Kind::Bytes(vec![255]),
                Kind::Text("x\"y".into()),
                Kind::Bytes(b"\\x".to_vec()),
                Kind::End
            ]
        );
        assert_eq!(lex("'open"), None);
        assert_eq!(lex("a # b").map(|(tokens, is_whole)| (tokens.len(), is_whole)), Some((3, false)));
    }
}
