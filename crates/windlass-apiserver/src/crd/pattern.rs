//! Regular expressions in Go's syntax (RE2), run by the `regex` crate.
//!
//! The two agree on nearly everything. What differs is rewritten: `\d`, `\w`, `\s` and `\b` know only ASCII in
//! Go, `\Q…\E` quotes, a `[` within a class and a `{` that starts no repetition are literal.

use std::fmt::Write as _;

use regex::{Regex, RegexBuilder};

/// A pattern and its compiled form, or why there is none.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// As it stands in the schema.
    pub text: String,
    compiled: Result<Regex, String>,
}

/// How large a compiled pattern may grow: a definition must not cost unbounded memory.
const COMPILED_BYTES_MAX: usize = 10 << 20;

impl Pattern {
    /// Compiles a pattern.
    pub(crate) fn new(text: &str) -> Pattern {
        let compiled = match nested_repetition(text) {
            Some(fault) => Err(fault),
            None => {
                let regex = RegexBuilder::new(&translate(text)).size_limit(COMPILED_BYTES_MAX).build();
                regex.map_err(|error| last_line(&error.to_string()))
            }
        };
        Pattern { text: text.to_owned(), compiled }
    }

    /// Why the pattern is not valid, if it is not.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    /// Whether the pattern is found anywhere in `text`; one that is not valid is found nowhere.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.compiled.as_ref().is_ok_and(|regex| regex.is_match(text))
    }
}

/// The `regex` crate draws the place of the fault over several lines; the last one says what it is.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// What repeats a repetition, which Go refuses: `a**`, `a?{3}`. A single `?` after one is the lazy kind.
fn nested_repetition(pattern: &str) -> Option<String> {
    let (mut rest, mut in_class) = (pattern, false);
    // Where the repetition before began, and whether it is lazy already.
    let mut before: Option<(usize, bool)> = None;
    while let Some(c) = rest.chars().next() {
        let at = pattern.len() - rest.len();
        let tail = &rest[c.len_utf8()..];
        let length = match c {
            '\\' if tail.starts_with('Q') => rest.find("\\E").map_or(rest.len(), |end| end + 2),
            '\\' => 1 + tail.chars().next().map_or(0, char::len_utf8),
            '{' if is_repetition(tail) => tail.find('}').map_or(1, |end| end + 2),
            _ => c.len_utf8(),
        };
        rest = &rest[length..];
        if in_class || c == '[' {
            // A `]` right after the opening is literal.
            let opens = !in_class;
            in_class = c != ']' || opens;
            if opens {
                rest = rest.strip_prefix('^').unwrap_or(rest);
                rest = rest.strip_prefix(']').unwrap_or(rest);
            }
            before = None;
            continue;
        }
        let repeats = matches!(c, '*' | '+' | '?') || (c == '{' && length > 1);
        before = match (repeats, before) {
            (false, _) => None,
            (true, None) => Some((at, false)),
            (true, Some((start, false))) if c == '?' => Some((start, true)),
            (true, Some((start, _))) => {
                return Some(format!(
                    "invalid nested repetition operator: `{}`",
                    &pattern[start..at + length]
                ));
            }
        };
    }
    None
}

/// Rewrites Go's syntax to that of the `regex` crate.
pub(crate) fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut in_class = false;
    while let Some(c) = rest.chars().next() {
        let (head, tail) = rest.split_at(c.len_utf8());
        rest = tail;
        match c {
            '\\' => rest = escape(&mut out, rest, in_class),
            '[' if in_class => match rest.starts_with(':').then(|| rest.find(":]")).flatten() {
                Some(end) => {
                    write!(out, "[{}", &rest[..end + 2]).expect("a String takes all");
                    rest = &rest[end + 2..];
                }
                None => out.push_str("\\["),
            },
            '[' => {
                in_class = true;
                out.push('[');
                if let Some(tail) = rest.strip_prefix('^') {
                    out.push('^');
                    rest = tail;
                }
                // A `]` right after the opening is literal in both syntaxes.
                if let Some(tail) = rest.strip_prefix(']') {
                    out.push_str("\\]");
                    rest = tail;
                }
            }
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => write!(out, "\\{c}").expect("a String takes all"),
            '-' if in_class && rest.starts_with('-') => out.push_str("\\-"),
            '{' if !in_class && !is_repetition(rest) => out.push_str("\\{"),
            _ => out.push_str(head),
        }
    }
    out
}

/// Writes what a backslash and the text after it stand for; returns what comes after that.
fn escape<'a>(out: &mut String, rest: &'a str, in_class: bool) -> &'a str {
    let Some(c) = rest.chars().next() else {
        out.push('\\');
        return rest;
    };
    let tail = &rest[c.len_utf8()..];
    let class = |out: &mut String, negated: bool, members: &str| match (in_class, negated) {
        (true, false) => out.push_str(members),
        (_, true) => write!(out, "[^{members}]").expect("a String takes all"),
        (false, false) => write!(out, "[{members}]").expect("a String takes all"),
    };
    match c {
        'd' | 'D' => class(out, c == 'D', "0-9"),
        'w' | 'W' => class(out, c == 'W', "0-9A-Za-z_"),
        's' | 'S' => class(out, c == 'S', "\\t\\n\\x0C\\r "),
        'b' if !in_class => out.push_str("(?-u:\\b)"),
        '<' | '>' => out.push(c),
        'Q' if !in_class => {
            let end = tail.find("\\E").unwrap_or(tail.len());
            out.push_str(&regex::escape(&tail[..end]));
            return tail.get(end + 2..).unwrap_or_default();
        }
        _ => {
            out.push('\\');
            out.push(c);
        }
    }
    tail
}

/// Whether what follows a `{` makes it a repetition: `2}`, `2,}` or `2,3}`.
fn is_repetition(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else { return false };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    match inside.split_once(',') {
        Some((low, high)) => !low.is_empty() && digits(low) && digits(high),
        None => !inside.is_empty() && digits(inside),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_not_repeated() {
        for (pattern, is_valid) in [
            ("a**", false),
            ("\\d?{3}", false),
            ("a{2}{3}", false),
            ("a+??", false),
            ("a+?", true),
            ("a{2,3}?b*", true),
            ("[*+?]+", true),
            ("[]*]+", true),
            ("\\*+", true),
            ("\\Q**\\E+", true),
            ("(a*)*", true),
            ("a{x}{y}", true),
        ] {
            assert_eq!(Pattern::new(pattern).fault().is_none(), is_valid, "{pattern}");
        }
    }

    #[track_caller]
    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let pattern = Pattern::new(pattern);
        assert_eq!(pattern.fault(), None, "{}", translate(&pattern.text));
        for text in yes {
            assert!(pattern.is_match(text), "{} should match {text}", pattern.text);
        }
        for text in no {
            assert!(!pattern.is_match(text), "{} should not match {text}", pattern.text);
        }
    }

    #[test]
    fn the_syntax_is_go_s() {
        check(r"^\d+$", &["12"], &["١٢", "a"]);
        check(r"^[\w.]+$", &["a_1."], &["é"]);
        check(r"^[^\s]+$", &["a"], &[" "]);
        check(r"^[[]$", &["["], &["]"]);
        check(r"^[]a]$", &["]", "a"], &["b"]);
        check(r"^[[:alpha:]-]+$", &["a-b"], &["1"]);
        check(r"^a{,2}$", &["a{,2}"], &["aa"]);
        check(r"^\Qa.b\E+$", &["a.bb"], &["aab"]);
        check(r"^[a&&b]$", &["a", "&", "b"], &["c"]);
        check(r"\bfoo\b", &["a foo b"], &["afoob"]);
        assert!(Pattern::new("(?=a)").fault().is_some());
        assert!(Pattern::new("[a").fault().is_some());
    }
}
