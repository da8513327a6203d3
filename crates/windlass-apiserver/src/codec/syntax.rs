//! What Go says of a text that is not JSON, and how it reads what only Go takes for JSON.
//!
//! Bodies are read by serde_json; this is the way into its errors, never on the way of a good body.

/// Go's message for a text, or `None` if Go would find nothing wrong with its syntax.
pub(super) fn explain(bytes: &[u8]) -> Option<String> {
    let mut scanner = Scanner { state: State::Value { or_end: false }, open: Vec::new() };
    // Go ends the text by a space, which finishes a number, and may be what it complains of.
    for &byte in bytes.iter().chain(b" ") {
        if let Err(place) = scanner.step(byte) {
            return Some(format!("invalid character {} {place}", quote(byte)));
        }
    }
    match scanner.state {
        State::End if scanner.open.is_empty() => None,
        _ => Some("unexpected end of JSON input".to_owned()),
    }
}

/// Replaces escaped halves of surrogate pairs that stand alone by U+FFFD, as Go does.
pub(super) fn mend_surrogates(bytes: &[u8]) -> Vec<u8> {
    let code = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let (taken, alone) = match (bytes[at], code(at)) {
            (b'\\', Some(0xd800..=0xdbff)) => match code(at + 6) {
                Some(0xdc00..=0xdfff) => (12, false),
                _ => (6, true),
            },
            (b'\\', Some(0xdc00..=0xdfff)) => (6, true),
            (b'\\', _) => (2, false),
            _ => (1, false),
        };
        let end = bytes.len().min(at + taken);
        out.extend_from_slice(if alone { br"\ufffd" } else { &bytes[at..end] });
        at = end;
    }
    out
}

#[derive(Clone, Copy)]
enum State {
    /// A value begins; `or_end` after the opening bracket of a list.
    Value {
        or_end: bool,
    },
    /// A key begins; `or_end` after the opening brace of an object.
    Key {
        or_end: bool,
    },
    /// A value or key has ended.
    End,
    String,
    Escape,
    /// In `\u`, so many digits are missing.
    Unicode(u8),
    Minus,
    Zero,
    Digits,
    Point,
    Decimals,
    Exponent,
    ExponentSign,
    ExponentDigits,
    /// In `true`, `false` or `null`: the whole word and what is expected next.
    Word(&'static str, usize),
}

#[derive(Clone, Copy)]
enum Open {
    /// In an object, before the colon.
    Key,
    /// In an object, after the colon.
    Value,
    List,
}

struct Scanner {
    state: State,
    open: Vec<Open>,
}

impl Scanner {
    /// Takes a byte; the error is the place at which it may not stand.
    fn step(&mut self, byte: u8) -> Result<(), String> {
        self.state = match (self.state, byte) {
            (State::Value { .. } | State::Key { .. } | State::End, b' ' | b'\t' | b'\r' | b'\n') => {
                return Ok(());
            }
            (State::Value { or_end: true }, b']') => return self.end(byte),
            (State::Value { .. }, _) => self.begin(byte)?,
            (State::Key { .. }, b'"') => State::String,
            (State::Key { or_end: true }, b'}') => {
                self.open.pop();
                State::End
            }
            (State::Key { .. }, _) => return Err("looking for beginning of object key string".to_owned()),
            (State::End, _) => return self.end(byte),
            (State::String, b'"') => State::End,
            (State::String, b'\\') => State::Escape,
            (State::String, 0..0x20) => return Err("in string literal".to_owned()),
            (State::String, _) => State::String,
            (State::Escape, b'u') => State::Unicode(4),
            (State::Escape, b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => State::String,
            (State::Escape, _) => return Err("in string escape code".to_owned()),
            (State::Unicode(1), _) if byte.is_ascii_hexdigit() => State::String,
            (State::Unicode(left), _) if byte.is_ascii_hexdigit() => State::Unicode(left - 1),
            (State::Unicode(_), _) => return Err(r"in \u hexadecimal character escape".to_owned()),
            (State::Minus, b'0') => State::Zero,
            (State::Minus | State::Digits, b'0'..=b'9') => State::Digits,
            (State::Minus, _) => return Err("in numeric literal".to_owned()),
            (State::Zero | State::Digits, b'.') => State::Point,
            (State::Zero | State::Digits | State::Decimals, b'e' | b'E') => State::Exponent,
            (State::Point | State::Decimals, b'0'..=b'9') => State::Decimals,
            (State::Point, _) => return Err("after decimal point in numeric literal".to_owned()),
            (State::Exponent, b'+' | b'-') => State::ExponentSign,
            (State::Exponent | State::ExponentSign | State::ExponentDigits, b'0'..=b'9') => {
                State::ExponentDigits
            }
            (State::Exponent | State::ExponentSign, _) => {
                return Err("in exponent of numeric literal".to_owned());
            }
            (State::Zero | State::Digits | State::Decimals | State::ExponentDigits, _) => {
                self.state = State::End;
                return self.step(byte);
            }
            (State::Word(word, at), _) if word.as_bytes()[at] == byte => match at + 1 {
                next if next == word.len() => State::End,
                next => State::Word(word, next),
            },
            (State::Word(word, at), _) => {
                return Err(format!("in literal {word} (expecting {})", quote(word.as_bytes()[at])));
            }
        };
        Ok(())
    }

    fn begin(&mut self, byte: u8) -> Result<State, String> {
        Ok(match byte {
            b'{' => {
                self.open.push(Open::Key);
                State::Key { or_end: true }
            }
            b'[' => {
                self.open.push(Open::List);
                State::Value { or_end: true }
            }
            b'"' => State::String,
            b'-' => State::Minus,
            b'0' => State::Zero,
            b'1'..=b'9' => State::Digits,
            b't' => State::Word("true", 1),
            b'f' => State::Word("false", 1),
            b'n' => State::Word("null", 1),
            _ => return Err("looking for beginning of value".to_owned()),
        })
    }

    /// A byte after something that is complete.
    fn end(&mut self, byte: u8) -> Result<(), String> {
        let place = match (self.open.last().copied(), byte) {
            (Some(Open::Key), b':') => {
                self.open.pop();
                self.open.push(Open::Value);
                self.state = State::Value { or_end: false };
                return Ok(());
            }
            (Some(Open::Value), b',') => {
                self.open.pop();
                self.open.push(Open::Key);
                self.state = State::Key { or_end: false };
                return Ok(());
            }
            (Some(Open::List), b',') => {
                self.state = State::Value { or_end: false };
                return Ok(());
            }
            (Some(Open::Value), b'}') | (Some(Open::List), b']') => {
                self.open.pop();
                self.state = State::End;
                return Ok(());
            }
            (Some(Open::Key), _) => "after object key",
            (Some(Open::Value), _) => "after object key:value pair",
            (Some(Open::List), _) => "after array element",
            (None, _) => "after top-level value",
        };
        Err(place.to_owned())
    }
}

/// Go quotes the byte as if it were a character.
fn quote(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => r#"'"'"#.to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        0..0x20 | 0x7f => format!(r"'\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!(r"'\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Recorded from Go's encoding/json.
    #[test]
    fn messages_are_those_of_go() {
        for (text, want) in [
            ("", "unexpected end of JSON input"),
            ("{\"a\":1", "unexpected end of JSON input"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\" x", "invalid character 'x' after object key"),
            ("{\"a\":1 x", "invalid character 'x' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("\"\u{1}\"", r"invalid character '\x01' in string literal"),
            (r#""\x""#, "invalid character 'x' in string escape code"),
            (r#""\u12x""#, r"invalid character 'x' in \u hexadecimal character escape"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("[nu", "invalid character ' ' in literal null (expecting 'l')"),
            ("01", "invalid character '1' after top-level value"),
            ("é", "invalid character 'Ã' looking for beginning of value"),
        ] {
            assert_eq!(explain(text.as_bytes()).as_deref(), Some(want), "{text}");
        }
        assert_eq!(explain(br#" {"a":[1,-0.5e+3,true,null,"\u00e9"]} "#), None);
    }

    #[test]
    fn halves_of_pairs_are_replaced() {
        let mended = |text: &str| String::from_utf8(mend_surrogates(text.as_bytes())).unwrap();
        assert_eq!(
            mended(r#""\ud83d\ude00 \ud83d \ude00 \\ud83d""#),
            r#""\ud83d\ude00 \ufffd \ufffd \\ud83d""#
        );
        assert_eq!(mended("\"\\"), "\"\\");
    }

    proptest! {
        /// The two readers agree on what is JSON, but for what only one of them bounds.
        #[test]
        fn it_agrees_with_the_reader(text in r#"[\[\]{}:,"0-9a-f\\u\-.eE+ tn]{0,20}"#) {
            let read = serde_json::from_slice::<serde_json::Value>(&mend_surrogates(text.as_bytes()));
            if let Err(error) = &read {
                prop_assume!(!error.to_string().starts_with("number out of range"));
            }
            prop_assert_eq!(read.is_ok(), explain(text.as_bytes()).is_none(), "{:?}", text);
        }
    }
}
