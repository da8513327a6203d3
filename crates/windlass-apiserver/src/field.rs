//! Field paths and the errors that validation reports on them.
//!
//! [`Errors`] gathers everything that is wrong with an object before the request is refused, as kube-apiserver
//! does, and becomes the `causes` of a `422 Invalid` status.

use std::fmt;

use serde_json::Value;

/// Where in an object: `spec.containers[0].ports[1].name`.
///
/// Cheap to extend: each step borrows its parent, so a path that is never reported is never built.
#[derive(Clone, Copy, Debug)]
pub enum Path<'a> {
    /// The object itself.
    Root,
    /// A field of a structure: `.name` (no dot at the root).
    Child(&'a Path<'a>, &'a str),
    /// An element of a list: `[3]`.
    Index(&'a Path<'a>, usize),
    /// An entry of a map: `[key]`.
    Key(&'a Path<'a>, &'a str),
}

impl<'a> Path<'a> {
    /// The field `name` of what this path points at.
    pub fn child(&'a self, name: &'a str) -> Path<'a> {
        Path::Child(self, name)
    }

    /// The element `index` of the list this path points at.
    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    /// The entry `key` of the map this path points at.
    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Child(Path::Root, name) => f.write_str(name),
            Path::Child(parent, name) => write!(f, "{parent}.{name}"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
            Path::Key(parent, key) => write!(f, "{parent}[{key}]"),
        }
    }
}

/// What is wrong with a field; the names are the `reason`s of status causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A required field is absent.
    Required,
    /// Two elements claim the same identity.
    Duplicate,
    /// The value breaks a rule.
    Invalid,
    /// The value is none of the supported ones.
    NotSupported,
    /// The field may not be set here.
    Forbidden,
    /// The value is longer than allowed.
    TooLong,
    /// The list has more elements than allowed.
    TooMany,
    /// The value is of the wrong JSON type.
    TypeInvalid,
    /// What the field refers to does not exist.
    NotFound,
    /// The server could not finish the check.
    Internal,
}

impl Reason {
    /// The wire form of the reason, as it stands in a status cause.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Required => "FieldValueRequired",
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::Invalid => "FieldValueInvalid",
            Reason::NotSupported => "FieldValueNotSupported",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::TooLong => "FieldValueTooLong",
            Reason::TooMany => "FieldValueTooMany",
            Reason::TypeInvalid => "FieldValueTypeInvalid",
            Reason::NotFound => "FieldValueNotFound",
            Reason::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Reason::Required => "Required value",
            Reason::Duplicate => "Duplicate value",
            Reason::Invalid | Reason::TypeInvalid => "Invalid value",
            Reason::NotSupported => "Unsupported value",
            Reason::Forbidden => "Forbidden",
            Reason::TooLong => "Too long",
            Reason::TooMany => "Too many",
            Reason::NotFound => "Not found",
            Reason::Internal => "Internal error",
        }
    }
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The class of the fault.
    pub reason: Reason,
    /// Where it is, as [`Path`] prints it.
    pub field: String,
    /// What is wrong, without the path: `Invalid value: "x": must be …`.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// All that is wrong with an object, in the order in which it was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errors(pub Vec<Error>);

impl Errors {
    /// Whether nothing was found wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a fault with its full message.
    pub fn push(&mut self, reason: Reason, path: &Path<'_>, message: impl Into<String>) {
        self.0.push(Error { reason, field: path.to_string(), message: message.into() });
    }

    /// A required field is absent; `detail` may be empty.
    pub fn required(&mut self, path: &Path<'_>, detail: &str) {
        self.add(Reason::Required, path, None, detail);
    }

    /// A value that breaks a rule.
    pub fn invalid(&mut self, path: &Path<'_>, value: &Value, detail: &str) {
        self.add(Reason::Invalid, path, Some(value), detail);
    }

    /// A value that stands twice.
    pub fn duplicate(&mut self, path: &Path<'_>, value: &Value) {
        self.add(Reason::Duplicate, path, Some(value), "");
    }

    /// A field that may not be set here.
    pub fn forbidden(&mut self, path: &Path<'_>, detail: &str) {
        self.add(Reason::Forbidden, path, None, detail);
    }

    /// A value that is none of `supported`.
    pub fn not_supported(&mut self, path: &Path<'_>, value: &Value, supported: &[&str]) {
        let list = supported.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ");
        self.add(Reason::NotSupported, path, Some(value), &format!("supported values: {list}"));
    }

    /// A value of more than `max` bytes.
    pub fn too_long(&mut self, path: &Path<'_>, max: usize) {
        self.add(Reason::TooLong, path, None, &format!("may not be more than {max} bytes"));
    }

    /// A list of more than `max` elements.
    pub fn too_many(&mut self, path: &Path<'_>, actual: usize, max: usize) {
        let message = format!("Too many: {actual}: must have at most {max} items");
        self.push(Reason::TooMany, path, message);
    }

    fn add(&mut self, reason: Reason, path: &Path<'_>, value: Option<&Value>, detail: &str) {
        let mut message = reason.words().to_owned();
        if let Some(value) = value {
            message.push_str(": ");
            message.push_str(&value.to_string());
        }
        if !detail.is_empty() {
            message.push_str(": ");
            message.push_str(detail);
        }
        self.push(reason, path, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_prints_as_kubernetes_prints_it() {
        let (spec, root) = (Path::Root.child("spec"), Path::Root);
        assert_eq!(spec.child("ports").index(2).child("name").to_string(), "spec.ports[2].name");
        assert_eq!(root.child("data").key("a.b").to_string(), "data[a.b]");
    }

    #[test]
    fn messages_carry_value_and_detail() {
        let mut errors = Errors::default();
        errors.invalid(&Path::Root.child("spec"), &json!("x"), "field is immutable");
        errors.required(&Path::Root.child("name"), "");
        assert_eq!(errors.0[0].to_string(), "spec: Invalid value: \"x\": field is immutable");
        assert_eq!(errors.0[1].to_string(), "name: Required value");
    }
}
