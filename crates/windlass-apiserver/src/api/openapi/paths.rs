//! The paths of a resource.

use serde_json::{Map, Value, json};

use super::data;
use super::operation::{Operation, Style, insert};
use super::schemas::Schemas;
use super::{camel, capital, tag};
use crate::api::registry::{Resource, Subresource};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// `get available resources`, at the root of a group and version.
pub(super) fn index(group: &str, version: &str, schemas: &mut Schemas) -> Value {
    let body = schemas.reference(&format!("{META}.APIResourceList"));
    json!({"get": {
        "tags": [tag(group, version)],
        "description": "get available resources",
        "operationId": format!("get{}APIResources", camel(group, version)),
        "responses": Style::Builtin.answers(&[200], &body),
    }})
}

/// Adds all paths of a resource.
pub(super) fn resource(
    resource: &Resource,
    name: &str,
    list: Option<&str>,
    schemas: &mut Schemas,
    all: &mut Map<String, Value>,
) {
    let style = if resource.is_custom() { Style::Custom } else { Style::Builtin };
    let object = schemas.reference(name);
    let list = list.filter(|_| resource.has_verb("list")).map(|list| schemas.reference(list));
    let mut writer = Writer { resource, style, own: name, object, schemas, all };
    writer.collection(list.as_ref());
    writer.single();
    if style == Style::Builtin && resource.has_verb("watch") {
        writer.watches();
    }
    for sub in &resource.subresources {
        writer.subresource(sub);
    }
}

struct Writer<'a> {
    resource: &'a Resource,
    style: Style,
    /// The name of the kind's schema.
    own: &'a str,
    /// A reference to it.
    object: Value,
    schemas: &'a mut Schemas,
    all: &'a mut Map<String, Value>,
}

/// Where an operation stands: in a namespace, at a name.
#[derive(Clone, Copy, PartialEq)]
enum Place<'a> {
    Everywhere,
    Collection,
    /// With the kind of what is named.
    Single(&'a str),
}

impl<'a> Writer<'a> {
    fn base(&self) -> String {
        let (group, version) = (&self.resource.group, &self.resource.version);
        if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
    }

    /// The path of the collection; `watch` is empty or `/watch`.
    fn path(&self, watch: &str) -> String {
        let place = if self.resource.namespaced { "/namespaces/{namespace}" } else { "" };
        format!("{}{watch}{place}/{}", self.base(), self.resource.plural)
    }

    fn operation(&self, method: &'static str, place: Place<'_>, verb: &str, name: &str) -> Operation {
        let (group, version, kind) = (&self.resource.group, &self.resource.version, &self.resource.kind);
        let scope = if self.resource.namespaced && place != Place::Everywhere { "Namespaced" } else { "" };
        let name = name.replace("{}", &format!("{scope}{kind}"));
        let mut operation = Operation::new(method, tag(group, version));
        operation.id = format!("{verb}{}{name}", camel(group, version));
        operation.kind = json!({"group": group, "version": version, "kind": kind});
        for parameter in data::of_verb("all") {
            if parameter["in"] == "query" || !scope.is_empty() {
                operation.parameters.push(parameter.clone());
            }
        }
        if let Place::Single(kind) = place {
            let description = format!("name of the {kind}");
            operation.parameters.push(data::parameter("name", "path", "string", &description));
        }
        operation
    }

    fn collection(&mut self, list: Option<&Value>) {
        let resource = self.resource;
        let kind = &resource.kind;
        let mut operations = Vec::new();
        if let Some(list) = list {
            operations.push(self.list(list, Place::Collection));
        }
        if resource.has_verb("create") {
            let operation = self.operation("post", Place::Collection, "create", "{}");
            let operation = operation.describe("post", format!("create {}", with_article(kind)));
            operations.push(self.create(operation, &self.object));
        }
        if resource.has_verb("deletecollection") {
            let operation = self.operation("delete", Place::Collection, "delete", "Collection{}");
            let mut operation =
                operation.describe("deletecollection", format!("delete collection of {kind}"));
            let status = self.schemas.reference(&format!("{META}.Status"));
            operation.answers = self.style.answers(&[200], &status);
            if self.style == Style::Custom {
                operation.parameters.extend_from_slice(data::of_verb("list"));
            } else {
                let watches =
                    |one: &&Value| !matches!(one["name"].as_str(), Some("watch" | "allowWatchBookmarks"));
                operation.parameters.extend(data::of_verb("list").iter().filter(watches).cloned());
                operation.parameters.extend_from_slice(data::of_verb("delete"));
                let options = self.schemas.reference(&format!("{META}.DeleteOptions"));
                operation.body = Some(self.style.body(&options, false));
            }
            operations.push(operation);
        }
        insert(self.all, self.path(""), operations);
        if let Some(list) = list.filter(|_| resource.namespaced) {
            let operation = self.list(list, Place::Everywhere);
            insert(self.all, format!("{}/{}", self.base(), resource.plural), vec![operation]);
        }
    }

    fn list(&self, list: &Value, place: Place<'_>) -> Operation {
        let kind = &self.resource.kind;
        let name = if place == Place::Everywhere { "{}ForAllNamespaces" } else { "{}" };
        let watched = self.style == Style::Builtin && self.resource.has_verb("watch");
        let description = format!("list {}objects of kind {kind}", if watched { "or watch " } else { "" });
        let mut operation = self.operation("get", place, "list", name).describe("list", description);
        operation.parameters.extend_from_slice(data::of_verb("list"));
        operation.answers = self.style.streams(list);
        operation
    }

    fn single(&mut self) {
        let resource = self.resource;
        let kind = resource.kind.as_ref();
        let place = Place::Single(kind);
        let object = self.object.clone();
        let mut operations = Vec::new();
        if resource.has_verb("get") {
            operations.push(self.read(self.operation("get", place, "read", "{}"), "", &object));
        }
        if resource.has_verb("update") {
            operations.push(self.replace(self.operation("put", place, "replace", "{}"), "", &object));
        }
        if resource.has_verb("delete") {
            let operation = self.operation("delete", place, "delete", "{}");
            let mut operation = operation.describe("delete", format!("delete {}", with_article(kind)));
            let status = self.schemas.reference(&format!("{META}.Status"));
            let options = self.schemas.reference(&format!("{META}.DeleteOptions"));
            let returned = data::returns_deleted(&resource.group, &resource.plural);
            let answer = if returned { &object } else { &status };
            operation.parameters.extend_from_slice(data::of_verb("delete"));
            operation.body = Some(self.style.body(&options, false));
            operation.answers = self.style.answers(&[200, 202], answer);
            operations.push(operation);
        }
        if resource.has_verb("patch") {
            operations.push(self.patch(self.operation("patch", place, "patch", "{}"), "", &object));
        }
        insert(self.all, format!("{}/{{name}}", self.path("")), operations);
    }

    /// The old way to watch, below `/watch`.
    fn watches(&mut self) {
        let resource = self.resource;
        let kind = resource.kind.as_ref();
        let event = self.schemas.reference(&format!("{META}.WatchEvent"));
        let list = format!(
            "watch individual changes to a list of {kind}. deprecated: use the 'watch' parameter with a list operation instead."
        );
        let single = format!(
            "watch changes to an object of kind {kind}. deprecated: use the 'watch' parameter with a list operation instead, filtered to a single item with the 'fieldSelector' parameter."
        );
        let (path, everywhere) = (self.path("/watch"), format!("{}/watch/{}", self.base(), resource.plural));
        let mut add = |path: String, place, name, action, description: &str| {
            let operation = self.operation("get", place, "watch", name);
            let mut operation = operation.describe(action, description.to_owned());
            operation.parameters.extend_from_slice(data::of_verb("list"));
            operation.answers = self.style.streams(&event);
            insert(self.all, path, vec![operation]);
        };
        add(path.clone(), Place::Collection, "{}List", "watchlist", &list);
        add(format!("{path}/{{name}}"), Place::Single(kind), "{}", "watch", &single);
        if resource.namespaced {
            add(everywhere, Place::Everywhere, "{}ListForAllNamespaces", "watchlist", &list);
        }
    }

    fn subresource(&mut self, sub: &Subresource) {
        let resource = self.resource;
        let place = format!("{}/{}", resource.plural, sub.name);
        let below = format!("{place}/");
        // Resources of other groups may have the same names, but nothing to connect to.
        let odd = data::parameters().iter().filter(|_| resource.group.is_empty());
        let odd: Vec<_> = odd.filter(|(key, _)| **key == place || key.starts_with(&below)).collect();
        if odd.is_empty() {
            return self.object_subresource(sub);
        }
        for (key, row) in odd {
            let path = format!("{}/{{name}}/{}", self.path(""), &key[resource.plural.len() + 1..]);
            let operations = if row.methods.is_empty() {
                vec![self.log(sub, row)]
            } else {
                row.methods.iter().map(|method| self.connect(sub, method, *key != place, row)).collect()
            };
            insert(self.all, path, operations);
        }
    }

    /// A subresource that answers with text.
    fn log(&self, sub: &Subresource, row: &data::Parameters) -> Operation {
        let name = format!("{{}}{}", capital(&sub.name));
        let operation = self.operation("get", Place::Single(&sub.kind), "read", &name);
        let mut operation = self.read(operation, &sub.name, &json!({"type": "string"}));
        operation.answers["200"]["content"]["text/plain"] = json!({"schema": {"type": "string"}});
        operation.parameters.extend_from_slice(&row.parameters);
        operation
    }

    /// A subresource that passes requests on.
    fn connect(&self, sub: &Subresource, method: &'a str, deep: bool, row: &data::Parameters) -> Operation {
        let kind = &self.resource.kind;
        let name =
            format!("{}{{}}{}{}", capital(method), capital(&sub.name), if deep { "WithPath" } else { "" });
        let place = Place::Single(&sub.kind);
        let mut operation = self.operation("get", place, "connect", &name).describe(
            "connect",
            format!("connect {} requests to {} of {kind}", method.to_ascii_uppercase(), sub.name),
        );
        operation.method = method.to_owned();
        operation.kind["kind"] = json!(sub.kind);
        operation.parameters.retain(|parameter| parameter["name"] != "pretty");
        operation.parameters.extend_from_slice(&row.parameters);
        operation.answers = super::operation::answers(&[200], &["*/*"], &json!({"type": "string"}));
        operation
    }

    /// A subresource that carries an object: the resource's own, or one of another kind.
    fn object_subresource(&mut self, sub: &Subresource) {
        let resource = self.resource;
        let (group, version) = match sub.version.as_str() {
            "" => (resource.group.as_ref(), resource.version.as_ref()),
            version => (sub.group.as_str(), version),
        };
        let own = sub.kind == resource.kind;
        let Some(name) = (if own {
            Some(self.own.to_owned())
        } else {
            super::schemas::of_kind(group, version, &sub.kind)
        }) else {
            return;
        };
        let body = self.schemas.reference(&name);
        // Definitions know the kind of a scale, but do not say so.
        let kind = if self.style == Style::Custom { &resource.kind } else { sub.kind.as_str() };
        let full = json!({"group": group, "version": version, "kind": kind});
        let suffix = format!("{{}}{}", capital(&sub.name));
        let mut operations = Vec::new();
        for verb in &sub.verbs {
            let start = |method, verb| {
                let mut operation = self.operation(method, Place::Single(kind), verb, &suffix);
                if self.style == Style::Builtin {
                    operation.kind = full.clone();
                }
                operation
            };
            let operation = match verb.as_str() {
                "get" => self.read(start("get", "read"), &sub.name, &body),
                "update" => self.replace(start("put", "replace"), &sub.name, &body),
                "patch" => {
                    let operation = start("patch", "patch");
                    self.patch(operation, &sub.name, &body)
                }
                "create" => {
                    let description = format!("create {} of {}", sub.name, with_article(&resource.kind));
                    self.create(start("post", "create").describe("post", description), &body)
                }
                _ => continue,
            };
            operations.push(operation);
        }
        insert(self.all, format!("{}/{{name}}/{}", self.path(""), sub.name), operations);
    }

    fn create(&self, mut operation: Operation, object: &Value) -> Operation {
        operation.parameters.extend_from_slice(data::of_verb("create"));
        operation.body = Some(self.style.body(object, true));
        operation.answers = self.style.answers(&[200, 201, 202], object);
        operation
    }

    fn read(&self, operation: Operation, sub: &str, object: &Value) -> Operation {
        let description = format!("read {}the specified {}", of(sub), self.resource.kind);
        let mut operation = operation.describe("get", description);
        if self.style == Style::Custom {
            let version = |one: &&Value| one["name"] == "resourceVersion";
            operation.parameters.extend(data::of_verb("list").iter().filter(version).cloned());
        }
        operation.answers = self.style.answers(&[200], object);
        operation
    }

    fn replace(&self, operation: Operation, sub: &str, object: &Value) -> Operation {
        let description = format!("replace {}the specified {}", of(sub), self.resource.kind);
        let mut operation = operation.describe("put", description);
        operation.parameters.extend_from_slice(data::of_verb("update"));
        operation.body = Some(self.style.body(object, true));
        operation.answers = self.style.answers(&[200, 201], object);
        operation
    }

    fn patch(&mut self, operation: Operation, sub: &str, object: &Value) -> Operation {
        let description = format!("partially update {}the specified {}", of(sub), self.resource.kind);
        let mut operation = operation.describe("patch", description);
        operation.parameters.extend_from_slice(data::of_verb("patch"));
        operation.body = Some(self.style.patch(&self.schemas.reference(&format!("{META}.Patch"))));
        let codes: &[u16] = if self.style == Style::Custom { &[200] } else { &[200, 201] };
        operation.answers = self.style.answers(codes, object);
        operation
    }
}

fn of(sub: &str) -> String {
    if sub.is_empty() { String::new() } else { format!("{sub} of ") }
}

/// `a Pod`, `an Event`; but `Endpoints`, which is plural.
fn with_article(kind: &str) -> String {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        return kind.to_owned();
    }
    let vowel = kind.starts_with(['A', 'E', 'I', 'O', 'U', 'a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}
