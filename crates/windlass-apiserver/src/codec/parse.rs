//! Bodies to untyped trees.

use std::borrow::Cow;

use serde_json::Value;

use super::canonical::settle;
use super::{DecodeError, Format, syntax, yaml};
use crate::json;
use crate::schema::{TypeId, Types};

/// A body as a tree, and what a strict reader has to say of it.
#[derive(Debug, Default, PartialEq)]
pub struct Parsed {
    /// The tree.
    pub value: Value,
    /// JSON: paths of keys that stood twice. The last one wins, unless [`Parsed::settle`] says otherwise.
    pub duplicates: Vec<String>,
    /// YAML: messages about keys that stood twice (`line 3: key "a" already set in map`).
    pub yaml_duplicates: Vec<String>,
    /// JSON: the objects with keys that stood twice.
    pub(super) repeated: Vec<json::Repeated>,
    /// The problems of a body that was settled.
    settled: Option<Vec<String>>,
}

/// A tree that was made here: nothing is wrong with it.
impl From<Value> for Parsed {
    fn from(value: Value) -> Parsed {
        Parsed { value, ..Parsed::default() }
    }
}

impl Parsed {
    pub(super) fn yaml(value: Value, yaml_duplicates: Vec<String>) -> Parsed {
        Parsed { value, yaml_duplicates, ..Parsed::default() }
    }

    /// If keys stood twice: reads every occurrence, as Go does for an object of the built-in type `id`. Structures and
    /// maps that stood twice are merged.
    ///
    /// # Errors
    /// A value of the wrong type, even if a later one of the same key is right.
    pub fn settle(&mut self, types: &Types, id: TypeId) -> Result<(), DecodeError> {
        if self.repeated.is_empty() {
            return Ok(());
        }
        let mut problems = Vec::new();
        self.value = settle(types, id, self.value.take(), &self.repeated, &mut problems)?;
        self.settled = Some(problems);
        Ok(())
    }

    /// The problems of the body, given the `unknown` fields that were found in it. Those of a settled body are in the
    /// order of the document, and duplicates inside unknown fields are none: Go does not look there. Any other body is
    /// read whole before something is found to be unknown.
    pub fn problems(&self, unknown: &[String]) -> Problems {
        let fields = self.settled.clone().unwrap_or_else(|| {
            let duplicates = self.duplicates.iter().map(|path| format!("duplicate field {path:?}"));
            duplicates.chain(unknown.iter().map(|path| format!("unknown field {path:?}"))).collect()
        });
        Problems { yaml: self.yaml_duplicates.clone(), fields }
    }
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
    let json::Read { value, duplicates, repeated } = read;
    Ok(Parsed { value, duplicates, repeated, ..Parsed::default() })
}

/// The `apiVersion` and `kind` that a body claims; empty where it claims none.
///
/// They are read by a decoder of their own, which does not mind upper and lower case: `Kind` after `kind` wins.
///
/// # Errors
/// A body that is not an object, or names them, even once of several times, by something else than strings.
pub fn type_meta(parsed: &Parsed) -> Result<(String, String), ParseError> {
    let found = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let map = match &parsed.value {
        Value::Object(map) => map,
        Value::Null => return Ok((String::new(), String::new())),
        other => {
            return Err(ParseError::Json(format!(
                "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
                 \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
                found(other)
            )));
        }
    };
    let mut claimed = [("apiVersion", String::new()), ("kind", String::new())];
    let mut claim = |key: &str, value: &Value| {
        let Some((name, claimed)) = claimed.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(key))
        else {
            return Ok(());
        };
        match value {
            Value::Null => Ok(()),
            Value::String(text) => {
                claimed.clone_from(text);
                Ok(())
            }
            other => Err(ParseError::Json(format!(
                "json: cannot unmarshal {} into Go struct field .{name} of type string",
                found(other)
            ))),
        }
    };
    match parsed.repeated.iter().find(|repeated| repeated.object.is_empty()) {
        Some(root) => root.entries(map.clone()).iter().try_for_each(|(key, value)| claim(key, value))?,
        None => map.iter().try_for_each(|(key, value)| claim(key, value))?,
    }
    let [(_, api_version), (_, kind)] = claimed;
    Ok((api_version, kind))
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
        assert_eq!(
            problems.strict().unwrap(),
            r#"strict decoding error: duplicate field "data.a", duplicate field "foo.b", unknown field "foo""#
        );
        assert_eq!(problems.warnings().count(), 3);
        assert_eq!(parse(b"{}", Format::Json).unwrap().problems(&[]).strict(), None);
    }

    /// A body of a built-in kind, read as Go reads it.
    fn settled(kind: &str, body: &str) -> Result<(Value, Vec<String>), String> {
        let types = crate::schema::builtin();
        let id = types.id(kind).unwrap();
        let mut parsed = parse(body.as_bytes(), Format::Json).unwrap();
        parsed.settle(types, id).map_err(|e| e.to_string())?;
        let mut unknown = Vec::new();
        let value = crate::codec::canonical(types, id, parsed.value.take(), &mut unknown).unwrap();
        Ok((value, parsed.problems(&unknown).warnings().map(str::to_owned).collect()))
    }

    const EVENT: &str = "io.k8s.api.core.v1.Event";
    const POD: &str = "io.k8s.api.core.v1.Pod";

    /// Recorded from a real server: the order is that of the document, whatever is wrong.
    #[test]
    fn problems_of_built_in_kinds_come_in_the_order_of_the_document() {
        let body = r#"{"involvedObject":{"kind":"Pod","foo":{"x":1,"x":2}},"metadata":{"name":"a","name":"b","bar":1}}"#;
        let (_, problems) = settled(EVENT, body).unwrap();
        assert_eq!(
            problems,
            [
                r#"unknown field "involvedObject.foo""#,
                r#"duplicate field "metadata.name""#,
                r#"unknown field "metadata.bar""#
            ]
        );
        // Each is said once, and a key before what is wrong inside it.
        let body = r#"{"spec":{"x":1},"spec":{"x":2,"nodeName":"a","nodeName":"b"},"spec":{"x":3}}"#;
        assert_eq!(
            settled(POD, body).unwrap().1,
            [r#"unknown field "spec.x""#, r#"duplicate field "spec""#, r#"duplicate field "spec.nodeName""#]
        );
    }

    /// Recorded from a real server: `metadata` twice keeps what the second one does not name.
    #[test]
    fn what_stands_twice_is_merged_in_built_in_kinds() {
        let body = r#"{"metadata":{"name":"a","labels":{"x":"1","y":"1"}},
            "spec":{"containers":[{"name":"c","image":"i"},{"name":"d"}],"nodeName":"n"},
            "metadata":{"labels":{"x":"2"},"namespace":"ns","name":null},
            "spec":{"containers":[{"image":"j"}],"nodeSelector":{"a":"b","a":"c"},"nodeSelector":null}}"#;
        let (value, _) = settled(POD, body).unwrap();
        assert_eq!(value["metadata"]["name"], "a");
        assert_eq!(value["metadata"]["namespace"], "ns");
        assert_eq!(value["metadata"]["labels"], serde_json::json!({"x": "2", "y": "1"}));
        assert_eq!(value["spec"]["nodeName"], "n");
        assert_eq!(value["spec"]["nodeSelector"], Value::Null);
        let containers = value["spec"]["containers"].as_array().unwrap();
        assert_eq!(containers.len(), 1);
        assert_eq!((&containers[0]["name"], &containers[0]["image"]), (&"c".into(), &"j".into()));
    }

    /// Go decodes the first occurrence before it knows of the second.
    #[test]
    fn a_first_occurrence_of_the_wrong_type_is_refused() {
        let refused = settled(POD, r#"{"spec":{"nodeSelector":"x","nodeSelector":{"a":"b"}}}"#).unwrap_err();
        assert_eq!(
            refused,
            "json: cannot unmarshal string into Go struct field PodSpec.spec.nodeSelector of type map[string]string"
        );
        assert!(settled(POD, r#"{"foo":5,"foo":"x","spec":{"nodeName":"a"}}"#).is_ok());
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
            let parsed = parse(body.as_bytes(), Format::Json).unwrap();
            type_meta(&parsed).map(|(version, kind)| format!("{version} {kind}")).map_err(|e| e.to_string())
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
        // Recorded from a real server: every occurrence counts, in either case of letters.
        let twice = claimed(r#"{"apiVersion":5,"apiVersion":"v1"}"#).unwrap_err();
        assert_eq!(twice, format!("{prefix} number into Go struct field .apiVersion of type string"));
        assert_eq!(claimed(r#"{"apiVersion":"v1","kind":"ConfigMap","Kind":"x"}"#).unwrap(), "v1 x");
        assert_eq!(claimed(r#"{"apiVersion":"v1","kind":"Pod","kind":null}"#).unwrap(), "v1 Pod");
    }

    #[test]
    fn summaries() {
        assert_eq!(summary(b""), "<empty>");
        assert_eq!(summary(b"[]\n"), "5b5d0a");
        assert_eq!(summary(&[b'{'; 31]), format!("{} ...", "{".repeat(30)));
    }
}
