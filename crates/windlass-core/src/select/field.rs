//! Field selectors: `metadata.name=x,status.phase!=Running`.

use std::fmt;

use super::Error;

/// One condition of a field selector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldRequirement {
    /// The path of the field, as written; whether the kind knows it is for the caller to say.
    pub field: String,
    /// The value, unescaped.
    pub value: String,
    /// Whether the field must differ from the value.
    pub negated: bool,
}

/// A selector: all requirements must hold.
///
/// ```
/// use windlass_core::select::FieldSelector;
///
/// let selector = FieldSelector::parse("status.phase!=Running,metadata.name=web")?;
/// assert!(selector.matches(|field| (field == "metadata.name").then_some("web")));
/// # Ok::<(), windlass_core::select::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    /// The requirements, in the order of their text.
    pub requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    /// Reads a selector. In values a backslash escapes `\`, `,` and `=`.
    pub fn parse(text: &str) -> Result<FieldSelector, Error> {
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms.into_iter().filter(|term| !term.is_empty()) {
            let split = split_term(term);
            let (field, negated, value) = split
                .ok_or_else(|| Error(format!("invalid selector: '{text}'; can't understand '{term}'")))?;
            let value = unescape(value)?;
            // Upstream drops a term that names neither field nor value.
            if !field.is_empty() || !value.is_empty() {
                requirements.push(FieldRequirement { field: field.to_owned(), value, negated });
            }
        }
        Ok(FieldSelector { requirements })
    }

    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The one value that the selector demands of a field, if it does so.
    pub fn exact(&self, field: &str) -> Option<&str> {
        let demands = |requirement: &&FieldRequirement| !requirement.negated && requirement.field == field;
        self.requirements.iter().find(demands).map(|requirement| requirement.value.as_str())
    }

    /// Whether an object is selected whose fields `lookup` gives; an absent field is empty.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = lookup(&requirement.field).unwrap_or_default();
            (value == requirement.value) != requirement.negated
        })
    }
}

/// The canonical text, which [`FieldSelector::parse`] reads back.
impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let operator = if requirement.negated { "!=" } else { "=" };
            let value = requirement.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            write!(f, "{comma}{}{operator}{value}", requirement.field)?;
        }
        Ok(())
    }
}

/// The terms between commas; an escaped comma is part of its term.
fn split_terms(text: &str) -> Vec<&str> {
    let (mut terms, mut start, mut escaped) = (Vec::new(), 0, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

/// The field, whether the operator is `!=`, and the value as written.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    for (i, _) in term.char_indices() {
        for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
            if let Some(value) = term[i..].strip_prefix(operator) {
                return Some((&term[..i], negated, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, Error> {
    let invalid =
        |sequence: &str| Error(format!("invalid field selector: invalid escape sequence: {sequence}"));
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                Some(other) => return Err(invalid(&format!("\\{other}"))),
                None => return Err(invalid("\\")),
            },
            // Upstream prints the character's number.
            ',' | '=' => {
                let number = u32::from(c);
                return Err(Error(format!("invalid field selector: unescaped character in value: {number}")));
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_sorted_and_unescaped() {
        let selector = FieldSelector::parse(r"status.phase!=Running,,metadata.name==a\,b\=c\\").unwrap();
        assert_eq!(selector.to_string(), r"metadata.name=a\,b\=c\\,status.phase!=Running");
        assert_eq!(selector.exact("metadata.name"), Some(r"a,b=c\"));
        assert_eq!(selector.exact("status.phase"), None);
        assert!(FieldSelector::parse("").unwrap().is_everything());
    }

    #[test]
    fn an_absent_field_is_empty() {
        let matches = |text: &str| {
            let lookup = |field: &str| (field == "metadata.name").then_some("x");
            FieldSelector::parse(text).unwrap().matches(lookup)
        };
        assert!(matches("metadata.name=x,spec.nodeName="));
        assert!(matches("spec.nodeName!=n"));
        assert!(!matches("metadata.name!=x"));
    }

    /// Recorded from kube-apiserver 1.36.
    #[test]
    fn faults_are_named_as_upstream_names_them() {
        for (text, message) in [
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            (r"metadata.name=a\x", r"invalid field selector: invalid escape sequence: \x"),
            ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
            (r"metadata.name=a\", r"invalid field selector: invalid escape sequence: \"),
        ] {
            assert_eq!(FieldSelector::parse(text).unwrap_err().0, message);
        }
    }
}
