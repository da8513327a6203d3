//! What a server was asked.

use std::fmt;

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde_json::Value;

/// A request that a server has answered, as its audit tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// When it came, or was answered.
    pub time: Timestamp,
    /// Who asked.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The plural resource; empty for paths that are no resource.
    pub resource: String,
    /// The subresource, if one was asked for.
    pub subresource: String,
    /// The namespace, if any.
    pub namespace: String,
    /// The name, where the request has one.
    pub name: String,
    /// The HTTP status of the answer.
    pub code: u16,
}

impl Call {
    /// Whether it asked for a change. One that changed nothing, or was refused, asked for it all the same.
    pub fn is_write(&self) -> bool {
        matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
    }

    /// Whether it is about the lease of a leader.
    pub fn is_lease(&self) -> bool {
        self.resource == "leases"
    }

    /// Whether it asked to change objects that an operator is about: not its lease, its Events or its definitions.
    pub fn is_work(&self) -> bool {
        self.is_write()
            && !matches!(self.resource.as_str(), "leases" | "events" | "customresourcedefinitions")
    }

    /// Reads a line of the audit log of kube-apiserver; `None` for what is no resource, or no whole request.
    ///
    /// # Errors
    /// When the line is none of an audit log.
    pub fn of_audit(line: &str) -> Result<Option<Call>> {
        let event: Value = serde_json::from_str(line).with_context(|| format!("audit: {line}"))?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (verb, stage) = (text(&event["verb"]), text(&event["stage"]));
        // A watch is a request from its first moment on; its end would be a second record of it.
        let whole = if verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
        let refused_watch =
            stage == "ResponseComplete" && event["responseStatus"]["code"].as_u64() >= Some(400);
        let object = &event["objectRef"];
        if object.is_null() || stage != whole && !refused_watch {
            return Ok(None);
        }
        Ok(Some(Call {
            time: text(&event["requestReceivedTimestamp"]).parse().context("requestReceivedTimestamp")?,
            user: text(&event["user"]["username"]),
            verb,
            resource: text(&object["resource"]),
            subresource: text(&object["subresource"]),
            namespace: text(&object["namespace"]),
            name: text(&object["name"]),
            code: event["responseStatus"]["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or(0),
        }))
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { time, user, verb, resource, subresource, namespace, name, code } = self;
        let slash = if subresource.is_empty() { "" } else { "/" };
        write!(f, "{time:.3} {user} {verb} {resource}{slash}{subresource} {namespace}/{name} {code}")
    }
}

/// Calls, one a line, for people to read.
pub fn lines<'a>(calls: impl IntoIterator<Item = &'a Call>) -> String {
    calls.into_iter().map(|call| format!("\n  {call}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = r#"{"kind":"Event","level":"Metadata","stage":"ResponseComplete","verb":"patch","user":{"username":"a"},"objectRef":{"resource":"foobars","namespace":"n","name":"x","subresource":"status"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-02T03:04:05.678901Z","stageTimestamp":"2026-01-02T03:04:05.7Z"}"#;

    #[test]
    fn a_line_of_the_audit_is_a_call() {
        let call = Call::of_audit(PATCH).unwrap().unwrap();
        assert_eq!(call.to_string(), "2026-01-02T03:04:05.678Z a patch foobars/status n/x 200");
        assert!(call.is_write() && call.is_work());
    }

    #[test]
    fn a_watch_counts_when_it_begins_and_one_that_is_refused_when_it_is() {
        let watch = PATCH.replace("patch", "watch");
        assert_eq!(Call::of_audit(&watch).unwrap(), None);
        assert!(Call::of_audit(&watch.replace("ResponseComplete", "ResponseStarted")).unwrap().is_some());
        assert_eq!(Call::of_audit(&watch.replace("200", "403")).unwrap().unwrap().code, 403);
    }

    #[test]
    fn what_is_no_resource_is_no_call() {
        let path = PATCH.replace("objectRef", "else");
        assert_eq!(Call::of_audit(&path).unwrap(), None);
        assert!(Call::of_audit("{").is_err());
    }
}
