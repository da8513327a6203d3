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

/// The words of an expression, and whether these are all of it.
pub(super) fn lex(source: &str) -> (Vec<Token>, bool) {
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
            is_whole = false;
            at += if matches!(c, '"' | '\'') { broken(rest) } else { c.len_utf8() };
            continue;
        };
        out.push(Token { kind, at });
        at += length;
    }
    out.push(Token { kind: Kind::End, at });
    (out, is_whole)
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
    let prefix = rest.bytes().take_while(|b| b"rRbB".contains(b)).count();
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
    // What begins like a long text and does not end is an empty one, and something else behind it.
    let long = rest[prefix..].starts_with(&triple).then(|| content(&rest[prefix..], &triple, raw));
    let quote = quote.to_string();
    let (content, length) = long.flatten().or_else(|| content(&rest[prefix..], &quote, raw))?;
    let content = content.replace("\r\n", "\n").replace('\r', "\n");
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
    Some((kind, prefix + length))
}

/// What stands between these quotes, and how long it is with them.
fn content<'s>(rest: &'s str, quotes: &str, raw: bool) -> Option<(&'s str, usize)> {
    let body = &rest[quotes.len()..];
    let mut end = 0;
    while !body[end..].starts_with(quotes) {
        match body[end..].chars().next()? {
            '\n' | '\r' if quotes.len() == 1 => return None,
            '\\' if !raw => end += escape(&body[end..]).ok()?,
            c => end += c.len_utf8(),
        }
    }
    Some((&body[..end], end + 2 * quotes.len()))
}

/// How long the escape at the beginning is; or, if it is none that the language knows, how much of it could have been one.
fn escape(rest: &str) -> Result<usize, usize> {
    let (digits, radix) = match rest.chars().nth(1) {
        Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\' | '\'' | '"' | '`' | '?') => (0, 0),
        Some('x' | 'X') => (2, 16),
        Some('u') => (4, 16),
        Some('U') => (8, 16),
        Some('0'..='3') => (2, 8),
        _ => return Err(1),
    };
    match rest.chars().skip(2).take(digits).take_while(|c| c.is_digit(radix)).count() {
        count if count == digits => Ok(2 + digits),
        count => Err(2 + count),
    }
}

/// How much of a text that does not end is passed over: all that could be part of it, and what could not.
fn broken(rest: &str) -> usize {
    let mut end = 1;
    let mut chars = rest[end..].chars();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\r' => return end + 1,
            '\\' => match escape(&rest[end..]) {
                Ok(length) => {
                    end += length;
                    chars = rest[end..].chars();
                }
                Err(length) => {
                    end += length;
                    return end + rest[end..].chars().next().map_or(0, char::len_utf8);
                }
            },
            c => end += c.len_utf8(),
        }
    }
    end
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
        lex(source).0.into_iter().map(|token| token.kind).collect()
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
        assert_eq!(lex("a # b").0.len(), 3);
    }

    #[test]
    fn broken_text_is_passed_over_as_far_as_it_could_have_been_one() {
        let rest = |source: &str| {
            let (tokens, is_whole) = lex(source);
            assert!(!is_whole, "{source}");
            source[tokens[0].at..].to_owned()
        };
        let all = [
            ("'open", ""),
            ("'a\nx'b'", "x'b'"),
            (r"'\d{3}'", "{3}'"),
            (r"'\x1ga'", "a'"),
            (r"'\400'", "00'"),
            (r#"'é\u12"#, ""),
            ("\"\"\"a\"\\d", "\"\"\"a\"\\d"),
            ("'''a\nb", "'''a\nb"),
        ];
        for (source, want) in all {
            assert_eq!(rest(source), want, "{source}");
        }
    }
}
