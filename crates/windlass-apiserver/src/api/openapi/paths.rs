//! The operations of a document.

use serde_json::{Map, Value, json};

use super::schemas::Schemas;
use super::{camel, tag};
use crate::api::registry::{Resource, Subresource};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";
const FORMATS: [&str; 3] = ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
const STREAMS: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// `get available resources`, at the root of a group and version.
pub(super) fn index(group: &str, version: &str, schemas: &mut Schemas) -> Value {
    let body = schemas.reference(&format!("{META}.APIResourceList"));
    json!({"get": {
        "tags": [tag(group, version)],
        "description": "get available resources",
        "operationId": format!("get{}APIResources", camel(group, version)),
        "responses": responses(&[(200, "OK")], &body, false),
    }})
}

/// All paths of a resource.
pub(super) fn resource(
    resource: &Resource,
    name: &str,
    list: Option<&str>,
    schemas: &mut Schemas,
    all: &mut Map<String, Value>,
) {
    let writer =
        Writer { resource, kind: &resource.kind, scope: if resource.namespaced { "Namespaced" } else { "" } };
    let object = schemas.reference(name);
    let list = list.map(|list| schemas.reference(list));
    let (group, version) = (&resource.group, &resource.version);
    let base = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let place = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let plural = &resource.plural;
    let collection = format!("{base}{place}/{plural}");
    let mut parameters = Vec::new();
    if resource.namespaced {
        parameters
            .push(path_parameter("namespace", "object name and auth scope, such as for teams and projects"));
    }
    let pretty = parameter(
        "pretty",
        "string",
        "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget).",
    );
    let named = path_parameter("name", &format!("name of the {}", resource.kind));
    let with = |first: Option<&Value>| {
        let all = first.into_iter().chain(&parameters).chain(std::iter::once(&pretty));
        Value::Array(all.cloned().collect())
    };
    let mut operations = Map::new();
    if let Some(list) = list.as_ref().filter(|_| resource.has_verb("list")) {
        operations.insert("get".into(), writer.list(list, ""));
    }
    if resource.has_verb("create") {
        operations.insert("post".into(), writer.create(&object));
    }
    if resource.has_verb("deletecollection") {
        operations.insert("delete".into(), writer.delete_collection(schemas));
    }
    insert(all, collection.clone(), operations, with(None));
    if resource.namespaced
        && let Some(list) = list.as_ref().filter(|_| resource.has_verb("list"))
    {
        let mut operations = Map::new();
        operations.insert("get".into(), writer.list(list, "ForAllNamespaces"));
        insert(
            all,
            format!("{base}/{plural}"),
            operations,
            Value::Array([list_parameters(), vec![pretty.clone()]].concat()),
        );
    }
    let mut operations = Map::new();
    if resource.has_verb("get") {
        operations.insert("get".into(), writer.read(&object, ""));
    }
    if resource.has_verb("update") {
        operations.insert("put".into(), writer.replace(&object, ""));
    }
    if resource.has_verb("delete") {
        operations.insert("delete".into(), writer.delete(&object, schemas));
    }
    if resource.has_verb("patch") {
        operations.insert("patch".into(), writer.patch(&object, "", schemas));
    }
    if !operations.is_empty() {
        insert(all, format!("{collection}/{{name}}"), operations, with(Some(&named)));
    }
    for sub in &resource.subresources {
        let Some(body) = subresource_body(sub, name, schemas) else { continue };
        let mut operations = Map::new();
        let suffix = sub.name[..1].to_ascii_uppercase() + &sub.name[1..];
        for verb in &sub.verbs {
            match verb.as_str() {
                "get" => operations.insert("get".into(), writer.read(&body, &suffix)),
                "update" => operations.insert("put".into(), writer.replace(&body, &suffix)),
                "patch" => operations.insert("patch".into(), writer.patch(&body, &suffix, schemas)),
                _ => None,
            };
        }
        if !operations.is_empty() {
            insert(all, format!("{collection}/{{name}}/{}", sub.name), operations, with(Some(&named)));
        }
    }
}

/// Subresources that carry an object: the resource's own, or a Scale.
fn subresource_body(sub: &Subresource, own: &str, schemas: &mut Schemas) -> Option<Value> {
    match sub.kind.as_str() {
        "Scale" => Some(schemas.reference("io.k8s.api.autoscaling.v1.Scale")),
        _ if matches!(
            sub.name.as_str(),
            "status" | "ephemeralcontainers" | "resize" | "approval" | "finalize"
        ) =>
        {
            Some(schemas.reference(own))
        }
        _ => None,
    }
}

fn insert(all: &mut Map<String, Value>, path: String, mut operations: Map<String, Value>, parameters: Value) {
    operations.insert("parameters".into(), parameters);
    all.insert(path, Value::Object(operations));
}

struct Writer<'a> {
    resource: &'a Resource,
    kind: &'a str,
    scope: &'a str,
}

impl Writer<'_> {
    fn operation(&self, verb: &str, name: &str, description: &str, action: &str) -> Map<String, Value> {
        let (group, version) = (&self.resource.group, &self.resource.version);
        let mut out = Map::new();
        out.insert("tags".into(), json!([tag(group, version)]));
        out.insert("description".into(), json!(description));
        out.insert("operationId".into(), json!(format!("{verb}{}{name}", camel(group, version))));
        out.insert("x-kubernetes-action".into(), json!(action));
        let kind = json!({"group": group, "version": version, "kind": self.kind});
        out.insert("x-kubernetes-group-version-kind".into(), kind);
        out
    }

    fn finish(
        mut out: Map<String, Value>,
        parameters: Vec<Value>,
        body: Option<Value>,
        answers: Value,
    ) -> Value {
        if !parameters.is_empty() {
            out.insert("parameters".into(), Value::Array(parameters));
        }
        if let Some(body) = body {
            out.insert("requestBody".into(), body);
        }
        out.insert("responses".into(), answers);
        Value::Object(out)
    }

    fn list(&self, list: &Value, everywhere: &str) -> Value {
        let scope = if everywhere.is_empty() { self.scope } else { "" };
        let description = format!("list or watch objects of kind {}", self.kind);
        let out = self.operation("list", &format!("{scope}{}{everywhere}", self.kind), &description, "list");
        let parameters = if everywhere.is_empty() { list_parameters() } else { Vec::new() };
        Self::finish(out, parameters, None, responses(&[(200, "OK")], list, true))
    }

    fn create(&self, object: &Value) -> Value {
        let out = self.operation(
            "create",
            &format!("{}{}", self.scope, self.kind),
            &format!("create {}", article(self.kind)),
            "post",
        );
        let answers = responses(&[(200, "OK"), (201, "Created"), (202, "Accepted")], object, false);
        Self::finish(out, write_parameters(), Some(request(object, true)), answers)
    }

    fn read(&self, object: &Value, suffix: &str) -> Value {
        let what = described(suffix);
        let out = self.operation(
            "read",
            &format!("{}{}{suffix}", self.scope, self.kind),
            &format!("read {what}the specified {}", self.kind),
            "get",
        );
        Self::finish(out, Vec::new(), None, responses(&[(200, "OK")], object, false))
    }

    fn replace(&self, object: &Value, suffix: &str) -> Value {
        let what = described(suffix);
        let description = format!("replace {what}the specified {}", self.kind);
        let out =
            self.operation("replace", &format!("{}{}{suffix}", self.scope, self.kind), &description, "put");
        let answers = responses(&[(200, "OK"), (201, "Created")], object, false);
        Self::finish(out, write_parameters(), Some(request(object, true)), answers)
    }

    fn patch(&self, object: &Value, suffix: &str, schemas: &mut Schemas) -> Value {
        let what = described(suffix);
        let description = format!("partially update {what}the specified {}", self.kind);
        let out =
            self.operation("patch", &format!("{}{}{suffix}", self.scope, self.kind), &description, "patch");
        let patch = schemas.reference(&format!("{META}.Patch"));
        let mut kinds = vec![
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
        ];
        if !self.resource.is_custom() {
            kinds.push("application/strategic-merge-patch+json");
        }
        let content: Map<String, Value> =
            kinds.iter().map(|kind| ((*kind).to_owned(), json!({"schema": patch}))).collect();
        let body = json!({"content": content, "required": true});
        let mut parameters = write_parameters();
        parameters.push(parameter("force", "boolean", "Force is going to \"force\" Apply requests. It means user will re-acquire conflicting fields owned by other people. Force flag must be unset for non-apply patch requests."));
        Self::finish(out, parameters, Some(body), responses(&[(200, "OK"), (201, "Created")], object, false))
    }

    fn delete(&self, object: &Value, schemas: &mut Schemas) -> Value {
        let out = self.operation(
            "delete",
            &format!("{}{}", self.scope, self.kind),
            &format!("delete {}", article(self.kind)),
            "delete",
        );
        let status = schemas.reference(&format!("{META}.Status"));
        let options = schemas.reference(&format!("{META}.DeleteOptions"));
        let answer = if self.resource.returns_deleted { object } else { &status };
        let answers = responses(&[(200, "OK"), (202, "Accepted")], answer, false);
        Self::finish(out, delete_parameters(), Some(request(&options, false)), answers)
    }

    fn delete_collection(&self, schemas: &mut Schemas) -> Value {
        let description = format!("delete collection of {}", self.kind);
        let out = self.operation(
            "delete",
            &format!("Collection{}{}", self.scope, self.kind),
            &description,
            "deletecollection",
        );
        let status = schemas.reference(&format!("{META}.Status"));
        let options = schemas.reference(&format!("{META}.DeleteOptions"));
        let mut parameters = [delete_parameters(), list_parameters()].concat();
        parameters
            .retain(|parameter| !matches!(parameter["name"].as_str(), Some("watch" | "allowWatchBookmarks")));
        parameters.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
        Self::finish(
            out,
            parameters,
            Some(request(&options, false)),
            responses(&[(200, "OK")], &status, false),
        )
    }
}

fn described(suffix: &str) -> String {
    if suffix.is_empty() { String::new() } else { format!("{} of ", suffix.to_ascii_lowercase()) }
}

fn article(kind: &str) -> String {
    let vowel = kind.starts_with(['A', 'E', 'I', 'O', 'U']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}

fn request(schema: &Value, required: bool) -> Value {
    let mut body = json!({"content": {"*/*": {"schema": schema}}});
    if required {
        body["required"] = json!(true);
    }
    body
}

fn responses(codes: &[(u16, &str)], schema: &Value, streams: bool) -> Value {
    let mut out = Map::new();
    for (code, text) in codes {
        let mut formats: Vec<&str> = FORMATS.to_vec();
        if streams {
            formats.extend(STREAMS);
            formats.sort_unstable();
        }
        let content: Map<String, Value> =
            formats.iter().map(|format| ((*format).to_owned(), json!({"schema": schema}))).collect();
        out.insert(code.to_string(), json!({"description": text, "content": content}));
    }
    out.insert("401".into(), json!({"description": "Unauthorized"}));
    Value::Object(out)
}

fn parameter(name: &str, kind: &str, description: &str) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": true}})
}

fn path_parameter(name: &str, description: &str) -> Value {
    json!({"name": name, "in": "path", "description": description, "required": true, "schema": {"type": "string", "uniqueItems": true}})
}

fn write_parameters() -> Vec<Value> {
    vec![
        parameter(
            "dryRun",
            "string",
            "When present, indicates that modifications should not be persisted. An invalid or unrecognized dryRun directive will result in an error response and no further processing of the request. Valid values are: - All: all dry run stages will be processed",
        ),
        parameter(
            "fieldManager",
            "string",
            "fieldManager is a name associated with the actor or entity that is making these changes. The value must be less than or 128 characters long, and only contain printable characters, as defined by https://golang.org/pkg/unicode/#IsPrint.",
        ),
        parameter(
            "fieldValidation",
            "string",
            "fieldValidation instructs the server on how to handle objects in the request (POST/PUT/PATCH) containing unknown or duplicate fields. Valid values are: Ignore, Warn (the default) and Strict.",
        ),
    ]
}

fn delete_parameters() -> Vec<Value> {
    vec![
        parameter(
            "dryRun",
            "string",
            "When present, indicates that modifications should not be persisted. Valid values are: - All: all dry run stages will be processed",
        ),
        parameter(
            "gracePeriodSeconds",
            "integer",
            "The duration in seconds before the object should be deleted. Zero means delete immediately. Defaults to a per object value if not specified.",
        ),
        parameter(
            "orphanDependents",
            "boolean",
            "Deprecated: please use the PropagationPolicy. Should the dependent objects be orphaned.",
        ),
        parameter(
            "propagationPolicy",
            "string",
            "Whether and how garbage collection will be performed: 'Orphan', 'Background' or 'Foreground'.",
        ),
    ]
}

fn list_parameters() -> Vec<Value> {
    vec![
        parameter(
            "allowWatchBookmarks",
            "boolean",
            "allowWatchBookmarks requests watch events with type \"BOOKMARK\".",
        ),
        parameter(
            "continue",
            "string",
            "The continue option should be set when retrieving more results from the server, with the token of the previous answer.",
        ),
        parameter(
            "fieldSelector",
            "string",
            "A selector to restrict the list of returned objects by their fields. Defaults to everything.",
        ),
        parameter(
            "labelSelector",
            "string",
            "A selector to restrict the list of returned objects by their labels. Defaults to everything.",
        ),
        parameter("limit", "integer", "limit is a maximum number of responses to return for a list call."),
        parameter(
            "resourceVersion",
            "string",
            "resourceVersion sets a constraint on what resource versions a request may be served from.",
        ),
        parameter(
            "resourceVersionMatch",
            "string",
            "resourceVersionMatch determines how resourceVersion is applied to list calls.",
        ),
        parameter(
            "sendInitialEvents",
            "boolean",
            "With `sendInitialEvents=true` a watch begins with synthetic events for what exists, followed by a bookmark.",
        ),
        parameter("timeoutSeconds", "integer", "Timeout for the list/watch call."),
        parameter(
            "watch",
            "boolean",
            "Watch for changes to the described resources and return them as a stream of notifications.",
        ),
    ]
}
