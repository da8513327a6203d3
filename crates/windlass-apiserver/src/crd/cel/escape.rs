//! Names of properties as identifiers: what CEL could not write is escaped, and nothing else. A single `_` stays.

const KEYWORDS: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

const ESCAPES: [(&str, &str); 4] = [("underscores", "__"), ("dot", "."), ("dash", "-"), ("slash", "/")];

/// Whether CEL keeps a word for itself.
pub(crate) fn is_keyword(name: &str) -> bool {
    KEYWORDS.contains(&name)
}

/// The identifier of a property; `None` if it has none.
pub(super) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if KEYWORDS.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        match ESCAPES.iter().find(|(_, plain)| rest.starts_with(plain)) {
            Some((word, plain)) => {
                out.push_str(&format!("__{word}__"));
                rest = &rest[plain.len()..];
            }
            None if c.is_ascii_alphanumeric() || c == '_' => {
                out.push(c);
                rest = &rest[1..];
            }
            None => return None,
        }
    }
    Some(out)
}

/// The property of an identifier; `None` if it is no identifier of one.
pub(super) fn unescape(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(start) = rest.find("__") {
        let inner = &rest[start + 2..];
        // An escape is `__word__`; underscores that enclose no word stand for themselves.
        let Some(end) = inner.find("__").filter(|end| *end > 0 && !inner[..*end].contains('_')) else {
            let (head, tail) = rest.split_at(start + 1);
            out.push_str(head);
            rest = tail;
            continue;
        };
        let word = &inner[..end];
        out.push_str(&rest[..start]);
        match ESCAPES.iter().find(|(escape, _)| *escape == word) {
            Some((_, plain)) => out.push_str(plain),
            None if KEYWORDS.contains(&word) && name.len() == word.len() + 4 => out.push_str(word),
            None => return None,
        }
        rest = &inner[end + 2..];
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_must_be_is_escaped() {
        for (name, escaped) in [
            ("my_field", "my_field"),
            ("a_", "a_"),
            ("namespace", "__namespace__"),
            ("a__b", "a__underscores__b"),
            ("a.b", "a__dot__b"),
            ("x-prop", "x__dash__prop"),
            ("redact__d", "redact__underscores__d"),
            ("a/b", "a__slash__b"),
            ("int", "int"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(escaped), "{name}");
            assert_eq!(unescape(escaped).as_deref(), Some(name), "{escaped}");
        }
        assert_eq!(escape("1a"), None);
        assert_eq!(escape("a b"), None);
        assert_eq!(escape(""), None);
        assert_eq!(unescape("a__nosuch__b"), None);
    }
}
