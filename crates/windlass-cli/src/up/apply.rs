//! Manifests: read from files, applied in an order that works.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use windlass_apiserver::front::{ApiServer, ApplyError, objects};

use super::failure::Failure;

/// Who applies.
const MANAGER: &str = "windlass";

/// How long a kind that was just defined may take to be served.
const SERVED: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// An object, and where it stands.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file, or who made it.
    pub source: String,
    /// The number of the document in it, from 1.
    pub number: usize,
    /// The object.
    pub object: Value,
}

impl Document {
    /// For people: `deployment/web`.
    fn name(&self) -> String {
        let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        format!("{}/{}", text(&self.object["kind"]).to_lowercase(), text(&self.object["metadata"]["name"]))
    }

    /// What others need comes before them.
    fn rank(&self) -> u8 {
        match self.object["kind"].as_str() {
            Some("Namespace") => 0,
            Some("CustomResourceDefinition") => 1,
            _ => 2,
        }
    }
}

/// Reads files, and the YAML and JSON files of folders in the order of their names.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    let mut documents = Vec::new();
    for path in paths {
        let failed = |source| Failure::Read { path: path.clone(), source };
        if !path.is_dir() {
            documents.extend(read_file(path)?);
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(failed)?;
        let mut files = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed)?;
        files.sort();
        let manifest = |file: &&PathBuf| {
            file.extension()
                .and_then(|end| end.to_str())
                .is_some_and(|end| ["yaml", "yml", "json"].contains(&end))
        };
        for file in files.iter().filter(manifest) {
            documents.extend(read_file(file)?);
        }
    }
    Ok(documents)
}

fn read_file(path: &Path) -> Result<Vec<Document>, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|source| Failure::Read { path: path.to_owned(), source })?;
    parse(&path.display().to_string(), &text)
}

/// The objects of a text.
pub fn parse(source: &str, text: &str) -> Result<Vec<Document>, Failure> {
    let objects = objects(text).map_err(|why| Failure::Apply { what: source.to_owned(), why })?;
    let document = |(number, object)| Document { source: source.to_owned(), number, object };
    Ok(objects.into_iter().map(document).collect())
}

/// Applies objects, as `kubectl apply --server-side --force-conflicts` would: namespaces and definitions of kinds first.
/// Says what it applied.
pub async fn apply(server: &ApiServer, documents: &[Document]) -> Result<Vec<String>, Failure> {
    let mut ordered: Vec<_> = documents.iter().collect();
    ordered.sort_by_key(|document| document.rank());
    let mut applied = Vec::new();
    for document in ordered {
        let what = || format!("{} from {}", document.name(), document.source);
        apply_one(server, document).await.map_err(|why| Failure::Apply { what: what(), why })?;
        applied.push(document.name());
    }
    Ok(applied)
}

/// Applies one. A kind of somebody's own may have been defined just now, and is waited for.
async fn apply_one(server: &ApiServer, document: &Document) -> Result<Value, ApplyError> {
    let deadline = tokio::time::Instant::now() + SERVED;
    loop {
        match server.apply(&document.object, document.number, MANAGER).await {
            Err(ApplyError::UnknownKind { api_version, .. })
                if api_version.contains('.') && tokio::time::Instant::now() < deadline =>
            {
                tokio::time::sleep(LOOK).await;
            }
            applied => return applied,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_apiserver::front::Options;

    const TEXT: &str = "
kind: Thing
apiVersion: example.com/v1
metadata: {name: one, namespace: there}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: map, namespace: there}}
---
# nothing
---
apiVersion: v1
kind: Namespace
metadata: {name: there}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";

    #[tokio::test]
    async fn what_others_need_is_applied_before_them() {
        let server = ApiServer::start(Options::default());
        let documents = parse("x.yaml", TEXT).unwrap();
        let applied = apply(&server, &documents).await.unwrap();
        assert_eq!(
            applied,
            ["namespace/there", "customresourcedefinition/things.example.com", "thing/one", "configmap/map"]
        );
        assert_eq!(apply(&server, &documents).await.unwrap().len(), 4, "again is as good as once");
    }

    #[tokio::test]
    async fn a_refusal_says_which_document() {
        let server = ApiServer::start(Options::default());
        let of = |text: &str| parse("x.yaml", text).unwrap();
        let service = of("{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: []}}\n");
        let error = apply(&server, &service).await.unwrap_err().to_string();
        assert_eq!(error, "cannot apply service/web from x.yaml");
        let error =
            apply(&server, &of("{apiVersion: v1, kind: Nope, metadata: {name: web}}")).await.unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(source, "document 1: the server has no kind \"Nope\" in \"v1\"");
        assert!(parse("x.yaml", "a: [").is_err());
    }
}
