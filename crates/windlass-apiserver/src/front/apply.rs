//! Manifests in: what `kubectl apply --server-side --force-conflicts` does, on a server in this process.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::Value;
use thiserror::Error;

use super::ApiServer;
use crate::api::User;
use crate::codec::{self, Format};

/// Why manifests were not applied. Those before the one that failed were.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// A document is no YAML.
    #[error("document {document} is no YAML: {reason}")]
    Yaml {
        /// Which one, from 1.
        document: usize,
        /// Why not.
        reason: String,
    },
    /// A document is of a kind that the server does not know.
    #[error("document {document}: the server has no kind {kind:?} in {api_version:?}")]
    UnknownKind {
        /// Which one, from 1.
        document: usize,
        /// Its `apiVersion`.
        api_version: String,
        /// Its `kind`.
        kind: String,
    },
    /// The server refused an object.
    #[error("document {document}: {message}")]
    Refused {
        /// Which one, from 1.
        document: usize,
        /// The HTTP status.
        code: u16,
        /// What the server said.
        message: String,
    },
}

impl ApiServer {
    /// Applies the documents of a YAML text in order, as `kubectl apply --server-side --force-conflicts` would, and
    /// gives back the objects. One with a `generateName` instead of a name is created, a `List` stands for its items, and
    /// what names no namespace goes to `default`. The fields are owned by `manager`.
    ///
    /// # Errors
    /// At the first document that cannot be applied.
    pub async fn apply_yaml(&self, text: &str, manager: &str) -> Result<Vec<Value>, ApplyError> {
        let mut applied = Vec::new();
        for (document, object) in objects(text)? {
            applied.push(self.apply(&object, document, manager).await?);
        }
        Ok(applied)
    }

    /// Applies one object, which is of the document with this number.
    ///
    /// # Errors
    /// When its kind is unknown, or it is refused.
    pub async fn apply(&self, object: &Value, document: usize, manager: &str) -> Result<Value, ApplyError> {
        let resource = self.inspect(|server| server.registry().by_kind(object));
        let resource = resource.ok_or_else(|| ApplyError::UnknownKind {
            document,
            api_version: object["apiVersion"].as_str().unwrap_or_default().to_owned(),
            kind: object["kind"].as_str().unwrap_or_default().to_owned(),
        })?;
        let prefix = if resource.group.is_empty() { "/api" } else { "/apis" };
        let mut path = format!("{prefix}/{}", resource.api_version());
        if resource.namespaced {
            path += &format!("/namespaces/{}", object["metadata"]["namespace"].as_str().unwrap_or("default"));
        }
        path += &format!("/{}", resource.plural);
        let (method, content_type) = match object["metadata"]["name"].as_str() {
            Some(name) => {
                path += &format!("/{name}?fieldManager={manager}&force=true");
                ("PATCH", "application/apply-patch+yaml")
            }
            None => ("POST", "application/json"),
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .header("accept", "application/json")
            .header("user-agent", manager)
            .body(Bytes::from(object.to_string()));
        let refused = |code, message: String| ApplyError::Refused { document, code, message };
        // A name may be anything at all, and then makes no path.
        let request = request.map_err(|error| refused(400, error.to_string()))?;
        let response = self.call(request, User::admin()).await;
        let code = response.status();
        let body = response.into_body().collect().await.map_err(|error| refused(500, error.to_string()))?;
        let answer: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
        if code.is_success() {
            return Ok(answer);
        }
        Err(refused(code.as_u16(), answer["message"].as_str().unwrap_or_default().to_owned()))
    }
}

/// The objects of a YAML text, each with the number of its document. A `List` stands for its items.
///
/// # Errors
/// At the first document that is no YAML.
pub fn objects(text: &str) -> Result<Vec<(usize, Value)>, ApplyError> {
    let mut objects = Vec::new();
    for (index, text) in documents(text).into_iter().enumerate() {
        let document = index + 1;
        let parsed = codec::parse(text.as_bytes(), Format::Yaml);
        let parsed = parsed.map_err(|error| ApplyError::Yaml { document, reason: error.to_string() })?;
        match parsed.value {
            Value::Null => {}
            Value::Object(mut list) if list.get("kind").is_some_and(|kind| kind == "List") => {
                let items = list.remove("items").and_then(|items| Some(items.as_array()?.clone()));
                objects.extend(items.unwrap_or_default().into_iter().map(|item| (document, item)));
            }
            object => objects.push((document, object)),
        }
    }
    Ok(objects)
}

/// The documents of a YAML stream, as kubectl divides it: at lines that start with `---`.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        match line.strip_prefix("---") {
            Some(rest) if rest.is_empty() || rest.starts_with([' ', '\t']) => documents.push(String::new()),
            _ => {
                let document = documents.last_mut().expect("there is always one");
                document.push_str(line);
                document.push('\n');
            }
        }
    }
    documents
}

#[cfg(test)]
mod tests {
    use super::documents;

    #[test]
    fn documents_are_divided_at_dashes() {
        assert_eq!(
            documents("a: 1\n---\nb: |\n  ---\n--- # c\nc: 1\n"),
            ["a: 1\n", "b: |\n  ---\n", "c: 1\n"]
        );
        assert_eq!(documents("---\na: 1\n----\n"), ["", "a: 1\n----\n"]);
    }
}
