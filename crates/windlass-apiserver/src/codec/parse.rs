//! Bodies to untyped trees.

use std::borrow::Cow;

use serde_json::Value;

use super::{Format, syntax, yaml};
use crate::json;

/// A body as a tree, and what a strict reader has to say of it.
#[derive(Debug, Default, PartialEq)]
pub struct Parsed {
    /// The tree.
    pub value: Value,
    /// JSON: paths of keys that stood twice. The last one wins.
    pub duplicates: Vec<String>,
    /// YAML: messages about keys that stood twice (`line 3: key "a" already set in map`).
    pub yaml_duplicates: Vec<String>,
}

impl Parsed {
    /// The problems of a body of a built-in kind, given the `unknown` fields that [`super::canonical`] found in it.
    /// Go does not look at fields it does not know, so duplicates inside them are not problems.
    pub fn problems(&self, unknown: &[String]) -> Problems {
        let inside = |path: &&String| unknown.iter().any(|unknown| is_inside(path, unknown));
        self.with_duplicates(self.duplicates.iter().filter(|path| !inside(path)), unknown)
    }

    /// The problems of a body of a custom kind, which is read whole before anything is found to be unknown.
    pub fn custom_problems(&self, unknown: &[String]) -> Problems {
        self.with_duplicates(self.duplicates.iter(), unknown)
    }

    fn with_duplicates<'a>(
        &self,
        duplicates: impl Iterator<Item = &'a String>,
        unknown: &[String],
    ) -> Problems {
        let duplicates = duplicates.map(|path| format!("duplicate field {path:?}"));
        let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
        Problems { yaml: self.yaml_duplicates.clone(), fields: duplicates.chain(unknown).collect() }
    }
}

fn is_inside(path: &str, unknown: &str) -> bool {
    path.strip_prefix(unknown).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// What is wrong with a body that can nevertheless be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    yaml: Vec<String>,
    fields: Vec<String>,
}

impl Problems {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.yaml.is_empty() && self.fields.is_empty()
    }

    /// The same, after those that were found elsewhere.
    pub fn after(mut self, mut earlier: Vec<String>) -> Problems {
        earlier.append(&mut self.fields);
        self.fields = earlier;
        self
    }

    /// One text for each `Warning` header, for `fieldValidation=Warn`.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.yaml.iter().chain(&self.fields).map(String::as_str)
    }

    /// The message for `fieldValidation=Strict`.
    pub fn strict(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let yaml =
            (!self.yaml.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {}", self.yaml.join("\n  ")));
        let all: Vec<&str> = yaml.iter().chain(&self.fields).map(String::as_str).collect();
        Some(format!("strict decoding error: {}", all.join(", ")))
    }
}

/// A body that cannot be read, with a message in the words of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Not JSON.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Json(String),
    /// Not YAML.
    #[error("yaml: {0}")]
    Yaml(String),
    /// YAML that has no JSON equivalent, such as a list as a key.
    #[error("{0}")]
    NotJson(String),
    /// Protobuf is read by [`super::envelope`] and [`super::decode_proto`], which need a type.
    #[error("protobuf has no untyped form")]
    Protobuf,
}

/// Reads a JSON or YAML body. Nesting beyond 128 levels is refused.
pub fn parse(bytes: &[u8], format: Format) -> Result<Parsed, ParseError> {
    match format {
        Format::Json => parse_json(bytes),
        Format::Yaml => yaml::parse(bytes),
        Format::Protobuf => Err(ParseError::Protobuf),
    }
}

fn parse_json(bytes: &[u8]) -> Result<Parsed, ParseError> {
    // Go replaces what is not UTF-8 and goes on.
    let text = String::from_utf8_lossy(bytes);
    let bytes = match &text {
        Cow::Borrowed(_) => bytes,
        Cow::Owned(text) => text.as_bytes(),
    };
    let read = json::read(bytes).or_else(|error| match syntax::explain(bytes) {
        Some(message) => Err(ParseError::Json(message)),
        // Nothing is wrong for Go: halves of surrogate pairs can be mended, what is too deep or too large cannot.
        None => json::read(&syntax::mend_surrogates(bytes)).map_err(|_| ParseError::Json(error.to_string())),
    })?;
    Ok(Parsed { value: read.value, duplicates: read.duplicates, yaml_duplicates: Vec::new() })
}

/// The `apiVersion` and `kind` that a body claims; empty where it claims none.
///
/// # Errors
/// A body that is not an object, or names them by something else than strings.
pub fn type_meta(value: &Value) -> Result<(&str, &str), ParseError> {
    let found = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let map = match value {
        Value::Object(map) => map,
        Value::Null => return Ok(("", "")),
        other => {
            return Err(ParseError::Json(format!(
                "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
                 \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
                found(other)
            )));
        }
    };
    let text = |key: &str| match map.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => Err(ParseError::Json(format!(
            "json: cannot unmarshal {} into Go struct field .{key} of type string",
            found(other)
        ))),
    };
    Ok((text("apiVersion")?, text("kind")?))
}

/// The beginning of a body, as it is shown in messages about bodies that could not be read.
pub fn summary(bytes: &[u8]) -> String {
    const SHOWN: usize = 30;
    let (shown, more) = if bytes.len() > SHOWN { (&bytes[..SHOWN], " ...") } else { (bytes, "") };
    match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json_error(body: &str) -> String {
        parse(body.as_bytes(), Format::Json).unwrap_err().to_string()
    }

    #[test]
    fn syntax_errors_read_as_gos() {
        let prefix = "couldn't get version/kind; json parse error: ";
        for (body, want) in [
            ("", "unexpected end of JSON input"),
            ("{\"metadata\":{\"name\":\"a\",\n", "unexpected end of JSON input"),
            ("{\"metadata\":{\"name\":\"a\" x\n", "invalid character 'x' after object key:value pair"),
            ("{} {}", "invalid character '{' after top-level value"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{1:2}", "invalid character '1' looking for beginning of object key string"),
            ("x", "invalid character 'x' looking for beginning of value"),
        ] {
            assert_eq!(json_error(body), format!("{prefix}{want}"), "{body}");
        }
    }

    #[test]
    fn problems_are_worded_as_the_server_does() {
        let parsed = parse(br#"{"data":{"a":"1","a":"2"},"foo":{"b":1,"b":2}}"#, Format::Json).unwrap();
        let problems = parsed.problems(&["foo".to_owned()]);
        let warnings: Vec<_> = problems.warnings().collect();
        assert_eq!(warnings, [r#"duplicate field "data.a""#, r#"unknown field "foo""#]);
        assert_eq!(
            problems.strict().unwrap(),
            r#"strict decoding error: duplicate field "data.a", unknown field "foo""#
        );
        assert_eq!(parsed.custom_problems(&["foo".to_owned()]).warnings().count(), 3);
        assert_eq!(parse(b"{}", Format::Json).unwrap().problems(&[]).strict(), None);
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        let parsed = parse(b"{\"a\":\"\xff\"}", Format::Json).unwrap();
        assert_eq!(parsed.value["a"], "\u{fffd}");
        let parsed = parse(br#"{"a":"\ud800"}"#, Format::Json).unwrap();
        assert_eq!(parsed.value["a"], "\u{fffd}");
    }

    #[test]
    fn types_are_claimed_by_strings() {
        let claimed = |body: &str| {
            let value: Value = serde_json::from_str(body).unwrap();
            type_meta(&value).map(|(version, kind)| format!("{version} {kind}")).map_err(|e| e.to_string())
        };
        assert_eq!(claimed(r#"{"apiVersion":"v1","kind":"Pod"}"#).unwrap(), "v1 Pod");
        assert_eq!(claimed("null").unwrap(), " ");
        let prefix = "couldn't get version/kind; json parse error: json: cannot unmarshal";
        assert_eq!(
            claimed("[]").unwrap_err(),
            format!(
                r#"{prefix} array into Go value of type struct {{ APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }}"#
            )
        );
        let number = claimed(r#"{"kind":1}"#).unwrap_err();
        assert_eq!(number, format!("{prefix} number into Go struct field .kind of type string"));
    }

    #[test]
    fn summaries() {
        assert_eq!(summary(b""), "<empty>");
        assert_eq!(summary(b"[]\n"), "5b5d0a");
        assert_eq!(summary(&[b'{'; 31]), format!("{} ...", "{".repeat(30)));
    }
}
