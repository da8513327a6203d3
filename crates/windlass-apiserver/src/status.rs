//! `Status` errors: what the server answers when it refuses.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use windlass_core::select;

use crate::field;

/// A refusal, ready to be served as `kind: Status`.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason (`NotFound`, `Conflict`, …); empty where kube-apiserver gives none.
    pub reason: Cow<'static, str>,
    /// The human-readable message.
    pub message: String,
    /// What the error is about.
    pub details: Option<Box<Details>>,
    /// For clients that read it while paging: a token for an inconsistent continuation.
    pub continue_token: Option<String>,
}

/// `Status.details`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// Its API group.
    pub group: String,
    /// The plural resource or the kind, as the error's class demands.
    pub kind: String,
    /// Its uid, where a precondition named one.
    pub uid: String,
    /// The causes, one for each fault.
    pub causes: Vec<Cause>,
    /// How long a client should wait before it tries again.
    pub retry_after_seconds: u32,
}

/// One entry of `Status.details.causes`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    /// The class of the fault.
    pub reason: String,
    /// What is wrong.
    pub message: String,
    /// Where it is wrong.
    pub field: String,
}

/// The result of anything that a request can be refused for.
pub type Result<T> = std::result::Result<T, Status>;

impl Status {
    /// A refusal without details.
    pub fn new(code: u16, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Status {
        Status { code, reason: reason.into(), message: message.into(), details: None, continue_token: None }
    }

    /// No refusal: the request goes on when somebody outside has been asked.
    pub(crate) fn put_aside() -> Status {
        Status::new(500, "", "somebody outside has to be asked first")
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Status {
        let details =
            Details { name: name.into(), group: group.into(), kind: kind.into(), ..Details::default() };
        self.details = Some(Box::new(details));
        self
    }

    /// The same refusal with one cause more.
    pub fn cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Status {
        let cause = Cause { reason: reason.into(), message: message.into(), field: field.into() };
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// The same refusal, asking the client to wait.
    pub fn retry_after(mut self, seconds: u32) -> Status {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// `404`: no such object.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Status {
        let message = format!("{} {name:?} not found", qualified(group, resource));
        Status::new(404, "NotFound", message).about(group, resource, name)
    }

    /// `404`: no such resource in a group that exists.
    pub fn no_such_resource() -> Status {
        let mut status = Status::new(404, "NotFound", "the server could not find the requested resource");
        status.details = Some(Box::default());
        status
    }

    /// `409`: an object of this name exists.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Status {
        let message = format!("{} {name:?} already exists", qualified(group, resource));
        Status::new(409, "AlreadyExists", message).about(group, resource, name)
    }

    /// `409`: the object is not as the client believed.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Status {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(group, resource));
        Status::new(409, "Conflict", message).about(group, resource, name)
    }

    /// `403`: the object may not be touched so.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Status {
        let resource_words = qualified(group, resource);
        let message = match name {
            _ if resource_words.is_empty() => format!("forbidden: {why}"),
            "" => format!("{resource_words} is forbidden: {why}"),
            _ => format!("{resource_words} {name:?} is forbidden: {why}"),
        };
        Status::new(403, "Forbidden", message).about(group, resource, name)
    }

    /// `400`: the request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(400, "BadRequest", message)
    }

    /// `405`: the resource does not know the verb.
    pub fn method_not_supported(group: &str, resource: &str, verb: &str) -> Status {
        let message =
            format!("{verb} is not supported on resources of kind {:?}", qualified(group, resource));
        Status::new(405, "MethodNotAllowed", message).about(group, resource, "")
    }

    /// `500`: the server is at fault.
    pub fn internal(message: &str) -> Status {
        let status = Status::new(500, "InternalError", format!("Internal error occurred: {message}"));
        status.cause("", message, "")
    }

    /// `422`: the object is not valid; `kind` is the Kind, as kube-apiserver has it here.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: field::Errors) -> Status {
        let mut message = format!("{} {name:?} is invalid", qualified(group, kind));
        // The message tells each fault once, the causes as often as it was found: kube-apiserver's checks overlap.
        let mut texts: Vec<String> = Vec::with_capacity(errors.0.len());
        for text in errors.0.iter().map(ToString::to_string) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        match texts.as_slice() {
            [] => {}
            [one] => write!(message, ": {one}").expect("a String takes all"),
            many => write!(message, ": [{}]", many.join(", ")).expect("a String takes all"),
        }
        let mut status = Status::new(422, "Invalid", message).about(group, kind, name);
        for error in errors.0 {
            status = status.cause(error.reason.as_str(), error.message, &error.field);
        }
        status
    }

    /// The body as kube-apiserver serves it.
    pub fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".into(), json!(token));
        }
        let mut body = Map::new();
        body.insert("kind".into(), json!("Status"));
        body.insert("apiVersion".into(), json!("v1"));
        body.insert("metadata".into(), Value::Object(metadata));
        body.insert("status".into(), json!("Failure"));
        put(&mut body, "message", &self.message);
        put(&mut body, "reason", &self.reason);
        if let Some(details) = &self.details {
            body.insert("details".into(), details.to_value());
        }
        body.insert("code".into(), json!(self.code));
        Value::Object(body)
    }
}

impl From<select::Error> for Status {
    fn from(error: select::Error) -> Status {
        Status::bad_request(error.0)
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut out = Map::new();
        put(&mut out, "name", &self.name);
        put(&mut out, "group", &self.group);
        put(&mut out, "kind", &self.kind);
        put(&mut out, "uid", &self.uid);
        if !self.causes.is_empty() {
            out.insert("causes".into(), self.causes.iter().map(Cause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            out.insert("retryAfterSeconds".into(), json!(self.retry_after_seconds));
        }
        Value::Object(out)
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut out = Map::new();
        put(&mut out, "reason", &self.reason);
        put(&mut out, "message", &self.message);
        put(&mut out, "field", &self.field);
        Value::Object(out)
    }
}

fn put(map: &mut Map<String, Value>, key: &str, text: &str) {
    if !text.is_empty() {
        map.insert(key.into(), json!(text));
    }
}

/// `deployments.apps`, or `pods` in the core group.
fn qualified(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_found_names_the_resource_and_its_group() {
        let status = Status::not_found("apps", "deployments", "web");
        assert_eq!(status.message, "deployments.apps \"web\" not found");
        assert_eq!(
            status.to_value()["details"],
            json!({"name": "web", "group": "apps", "kind": "deployments"})
        );
    }

    #[test]
    fn a_fault_found_twice_is_two_causes_and_one_text() {
        let mut errors = field::Errors::default();
        errors.required(&field::Path::Root.child("a"), "");
        errors.required(&field::Path::Root.child("a"), "");
        let status = Status::invalid("", "Pod", "p", errors);
        assert_eq!(status.message, "Pod \"p\" is invalid: a: Required value");
        assert_eq!(status.to_value()["details"]["causes"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn invalid_lists_every_cause() {
        let mut errors = field::Errors::default();
        errors.required(&field::Path::Root.child("a"), "");
        errors.required(&field::Path::Root.child("b"), "say b");
        let status = Status::invalid("", "Pod", "p", errors);
        assert_eq!(status.message, "Pod \"p\" is invalid: [a: Required value, b: Required value: say b]");
        assert_eq!(status.to_value()["details"]["causes"][1]["field"], "b");
    }
}
