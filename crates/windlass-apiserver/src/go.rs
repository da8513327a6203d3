//! Texts as Go prints them, of which the words of its programs are made.

/// A text as Go prints it with `%q`.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\x0b' => out.push_str("\\v"),
            '\x0c' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..'\u{80}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            // What Rust would print as it is, Go does, too.
            c if c.escape_debug().eq([c]) => out.push(c),
            '\u{80}'..='\u{ffff}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// A list of texts as Go prints it with `%q`.
pub(crate) fn quoted(texts: &[String]) -> String {
    let all: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    format!("[{}]", all.join(" "))
}

/// Errors as Go joins them: each once, and many in brackets.
pub(crate) fn aggregate(errors: &[String]) -> String {
    let mut once: Vec<&str> = Vec::new();
    for error in errors {
        if !once.contains(&error.as_str()) {
            once.push(error);
        }
    }
    match once.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_go_quotes_them() {
        let pairs = [
            ("bob", r#""bob""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("a\nb\0\x7f", r#""a\nb\x00\x7f""#),
            ("müller 日本", "\"müller 日本\""),
            ("\u{200b}\u{e000}", r#""\u200b\ue000""#),
        ];
        for (text, quoted) in pairs {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn errors_are_told_once() {
        let texts =
            |texts: &[&str]| aggregate(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(texts(&["a", "a"]), "a");
        assert_eq!(texts(&["a", "b", "a"]), "[a, b]");
    }
}
