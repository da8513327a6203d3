//! Paths into a schema, as rules and selectable fields name them: `.spec.list`, `.metadata['x']`.

use super::props::Props;

/// Where a path leads: as field errors write it, and the schema found there.
pub(super) struct Resolved<'a> {
    /// `spec.labels[app]`
    pub path: String,
    /// The first field of the path.
    pub root: String,
    /// The schema at the end; `None` where anything may stand.
    pub schema: Option<&'a Props>,
}

/// Follows a path through a schema.
pub(super) fn resolve<'a>(props: &'a Props, path: &str, brackets: bool) -> Result<Resolved<'a>, String> {
    let mut out = Resolved { path: String::new(), root: String::new(), schema: Some(props) };
    let mut tokens = Tokens(path);
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if !brackets => return Err("array notation is not allowed".into()),
            "[" => {
                let quoted = tokens.next().ok_or("unexpected end of JSON path")?;
                let inner = quoted
                    .strip_prefix('\'')
                    .and_then(|rest| rest.strip_suffix('\''))
                    .ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                let name = unescape(inner)?;
                match tokens.next() {
                    Some("]") => name,
                    Some(other) => return Err(format!("expected ] but got {other}")),
                    None => return Err("unexpected end of JSON path".into()),
                }
            }
            "." => tokens.next().ok_or("unexpected end of JSON path")?.to_owned(),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        out.step(&name)?;
    }
    Ok(out)
}

impl Resolved<'_> {
    fn step(&mut self, name: &str) -> Result<(), String> {
        let lost = || "does not refer to a valid field".to_owned();
        let schema = self.schema.ok_or_else(lost)?;
        if !schema.properties.is_empty() {
            self.schema = Some(schema.properties.get(name).ok_or_else(lost)?);
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(name);
        } else if schema.additional.is_some() {
            self.schema = schema.additional_schema();
            self.path.push_str(&format!("[{name}]"));
        } else {
            return Err(lost());
        }
        if self.root.is_empty() {
            self.root = name.to_owned();
        }
        Ok(())
    }
}

/// The delimiters `.`, `[`, `]`, quoted strings, and what stands between.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = self.0.chars().next()?;
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = self.0.as_bytes();
                let close = (1..bytes.len()).find(|i| bytes[*i] == b'\'' && bytes[*i - 1] != b'\\');
                close.map_or(bytes.len(), |close| close + 1)
            }
            _ => self.0.find(['.', '[', ']']).unwrap_or(self.0.len()),
        };
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(token)
    }
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(same @ ('\'' | '\\')) => same,
            other => {
                let other = other.map(String::from).unwrap_or_default();
                return Err(format!("invalid string literal: invalid escape char \\{other}"));
            }
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_follow_the_schema() {
        let props = Props::read(&json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a.b": {"type": "string"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            }},
        }}));
        let path = |path: &str| resolve(&props, path, true).map(|found| found.path);
        assert_eq!(path(".spec.labels.x").unwrap(), "spec.labels[x]");
        assert_eq!(path(".spec['a.b']").unwrap(), "spec.a.b");
        assert_eq!(path(".spec.none").unwrap_err(), "does not refer to a valid field");
        assert_eq!(path("spec").unwrap_err(), "expected [ or . but got: spec");
        assert_eq!(path(".spec[").unwrap_err(), "unexpected end of JSON path");
        assert!(resolve(&props, ".spec['a.b']", false).is_err());
    }
}
