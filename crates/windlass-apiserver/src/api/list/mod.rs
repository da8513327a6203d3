//! Lists: one snapshot, in pages or as a stream.

mod body;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};

use super::filter::Filter;
use super::negotiate::Shape;
use super::object::load;
use super::registry::Resource;
use super::response::{Body, Response};
use super::server::{Answer, Call, Server};
use super::shape::{self, Include, Tabulator};
use crate::field::{Errors, Path};
use crate::print;
use crate::status::{Result, Status};
use crate::store::{Object, Snapshot, Unreadable};
use body::{Form, Items};

pub use body::ListBody;

/// Objects of a list, and its metadata.
pub(super) struct Selected {
    pub objects: Vec<Arc<Object>>,
    pub metadata: Map<String, Value>,
}

/// What to read: a snapshot, and where in it a page starts and ends.
struct Page {
    snapshot: Snapshot,
    after: Option<String>,
    limit: usize,
    /// Continue at the present instead of at the snapshot's revision: the client accepted an inconsistent list.
    inconsistent: bool,
}

enum Chosen {
    Page(Page),
    Wait(u64),
}

impl Server {
    pub(super) fn list(&mut self, call: &mut Call<'_>) -> Result<Answer> {
        let resource = call.target.resource.clone();
        check_options(call)?;
        let filter = Filter::parse(call)?;
        let include = Include::parse(call)?;
        if matches!(call.output.shape, Shape::Partial(_)) {
            let message = "you requested PartialObjectMetadata, but the requested object is a list";
            return Err(Status::new(406, "NotAcceptable", message));
        }
        let page = match self.choose(call, &resource, &filter)? {
            Chosen::Page(page) => page,
            Chosen::Wait(revision) => return Ok(Answer::Wait(revision)),
        };
        let mut metadata = Map::new();
        let list_revision = page.snapshot.revision();
        metadata.insert("resourceVersion".into(), json!(list_revision.to_string()));
        let items = match (page.limit, filter.key(&resource)) {
            (_, Some(key)) => {
                let one = page.snapshot.get(&key).filter(|object| filter.matches(object)).cloned();
                Items::Page(one.into_iter().collect::<Vec<_>>().into_iter())
            }
            (0, None) => Items::Range { snapshot: page.snapshot, filter, after: page.after },
            _ => Items::Page(take_page(&page, &resource, &filter, &mut metadata).into_iter()),
        };
        self.foresee(call, &resource, items.iter())?;
        let form = match call.output.shape {
            Shape::Table(version) => {
                Form::Row(Tabulator { resource: resource.clone(), version, include }, call.now)
            }
            Shape::Partial(version) | Shape::PartialList(version) => Form::Partial(version),
            Shape::Object => Form::Object,
        };
        let items = match (&form, print::row_order(&resource.group, &resource.kind)) {
            (Form::Row(..), Some(order)) => items.sorted_by(|object| order(&load(&resource, object))),
            _ => items,
        };
        let body = ListBody::new(items, resource, form, &call.output, metadata);
        Ok(Response::new(200, call.output.content_type(), Body::List(Box::new(body))).into())
    }

    /// The snapshot that the request's `resourceVersion`, `resourceVersionMatch` and `continue` ask for.
    fn choose(&mut self, call: &Call<'_>, resource: &Resource, filter: &Filter) -> Result<Chosen> {
        call.query.int("timeoutSeconds")?;
        let limit = call.query.int("limit")?.unwrap_or(0);
        let limit = usize::try_from(limit).unwrap_or(0);
        let kind = &resource.storage;
        let current = self.store.revision();
        let token = call.query.text("continue");
        let wanted = parse_revision(call.query.text("resourceVersion"))?;
        if !token.is_empty() {
            if wanted.is_some_and(|revision| revision != 0) {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let (revision, after) = decode_token(token, filter.namespace.as_deref())?;
            let snapshot = match revision {
                None => self.store.list(kind),
                Some(revision) if revision > current => return self.future(call, revision, current),
                Some(revision) => {
                    self.store.at(kind, revision).map_err(|_| continue_expired(&after, resource, filter))?
                }
            };
            return Ok(Chosen::Page(Page {
                snapshot,
                after: Some(after),
                limit,
                inconsistent: revision.is_none(),
            }));
        }
        // What upstream answers from its cache without asking how new that is comes whole.
        let limit = if wanted == Some(0) && resource.is_cached() { 0 } else { limit };
        let matching = call.query.text("resourceVersionMatch");
        let exact = matching == "Exact"
            || (matching.is_empty() && limit > 0 && wanted.is_some_and(|revision| revision > 0));
        let snapshot = match wanted {
            Some(revision) if revision > current => return self.future(call, revision, current),
            Some(revision) if exact => {
                self.store.at(kind, revision).map_err(|unreadable| match unreadable {
                    Unreadable::Compacted { .. } => {
                        expired("The resourceVersion for the provided list is too old.")
                    }
                    Unreadable::Future { .. } => too_large_revision(resource, revision, current),
                })?
            }
            _ => self.store.list(kind),
        };
        Ok(Chosen::Page(Page { snapshot, after: None, limit, inconsistent: false }))
    }

    /// The objects that a deletecollection is about, and the metadata of its answer.
    pub(super) fn page_for_deletion(
        &mut self,
        call: &Call<'_>,
        resource: &Resource,
        filter: &Filter,
    ) -> Result<Selected> {
        let limit = usize::try_from(call.query.int("limit")?.unwrap_or(0)).unwrap_or(0);
        let limit = if limit == 0 { usize::MAX } else { limit };
        let page =
            Page { snapshot: self.store.list(&resource.storage), after: None, limit, inconsistent: false };
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".into(), json!(page.snapshot.revision().to_string()));
        let objects = take_page(&page, resource, filter, &mut metadata);
        Ok(Selected { objects, metadata })
    }

    fn future(&self, call: &Call<'_>, revision: u64, current: u64) -> Result<Chosen> {
        let resource = &call.target.resource;
        match call.waited || !resource.is_cached() {
            true => Err(too_large_revision(resource, revision, current)),
            false => Ok(Chosen::Wait(revision)),
        }
    }
}

/// The objects of one page; what follows is told in the metadata.
fn take_page(
    page: &Page,
    resource: &Resource,
    filter: &Filter,
    metadata: &mut Map<String, Value>,
) -> Vec<Arc<Object>> {
    let mut objects: Vec<Arc<Object>> = Vec::new();
    let mut more = false;
    for object in page.snapshot.range(filter.namespace.as_deref(), page.after.as_deref()) {
        // Whether what follows matches is not looked at: a full page with anything behind it has a next one.
        if objects.len() == page.limit {
            more = true;
            break;
        }
        if filter.matches(object) {
            objects.push(object.clone());
        }
    }
    if let (true, Some(last)) = (more, objects.last()) {
        let revision = page.snapshot.revision() as i64;
        let revision = if page.inconsistent { -1 } else { revision };
        metadata.insert(
            "continue".into(),
            json!(encode_token(revision, last.key(), resource, filter.namespace.as_deref())),
        );
        if !filter.selects() {
            let remaining = page.snapshot.range(filter.namespace.as_deref(), Some(last.key())).len();
            metadata.insert("remainingItemCount".into(), json!(remaining));
        }
    }
    objects
}

/// The tree of an object as an item of its list.
fn item_tree(resource: &Resource, object: &Object) -> Value {
    let mut tree = shape::object_tree(resource, object);
    if !resource.is_custom()
        && let Some(map) = tree.as_object_mut()
    {
        map.shift_remove("kind");
        map.shift_remove("apiVersion");
    }
    tree
}

fn list_tree(
    kind: &str,
    api_version: &str,
    metadata: Map<String, Value>,
    items: Value,
    custom: bool,
) -> Value {
    let mut tree = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items});
    if custom {
        let map = tree["metadata"].as_object_mut().expect("just made");
        map.entry("continue").or_insert(json!(""));
        tree.sort_all_objects();
    }
    tree
}

/// A list of trees, as deletecollection answers it.
pub(super) fn list_of(resource: &Resource, metadata: Map<String, Value>, objects: &[Arc<Object>]) -> Value {
    let items = objects.iter().map(|object| item_tree(resource, object)).collect();
    list_tree(&resource.list_kind, &resource.api_version(), metadata, items, resource.is_custom())
}

/// A resourceVersion parameter: `None` if it is absent.
pub(super) fn parse_revision(text: &str) -> Result<Option<u64>> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
        Status::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {text:?}: {why}"
        ))
    })
}

/// Options that exclude each other.
pub(super) fn check_options(call: &Call<'_>) -> Result<()> {
    let mut errors = Errors::default();
    let root = Path::Root;
    let matching = call.query.text("resourceVersionMatch");
    let path = root.child("resourceVersionMatch");
    let revision = call.query.text("resourceVersion");
    let continues = !call.query.text("continue").is_empty();
    if call.verb == super::route::Verb::Watch {
        let initial = call.query.get("sendInitialEvents").is_some();
        if initial && matching != "NotOlderThan" {
            errors
                .forbidden(&path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if !matching.is_empty() {
            if !initial {
                errors.forbidden(
                    &path,
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                );
            }
            if matching != "NotOlderThan" {
                errors.not_supported(&path, &matching.into(), &["NotOlderThan"]);
            }
        }
        if continues {
            errors.forbidden(&path, "resourceVersionMatch is forbidden when continue is provided");
        }
    } else {
        if !matching.is_empty() {
            if revision.is_empty() {
                errors
                    .forbidden(&path, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            if continues {
                errors.forbidden(&path, "resourceVersionMatch is forbidden when continue is provided");
            }
            if !matches!(matching, "Exact" | "NotOlderThan") {
                errors.not_supported(&path, &matching.into(), &["Exact", "NotOlderThan", ""]);
            }
            if matching == "Exact" && revision == "0" {
                errors.forbidden(
                    &path,
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                );
            }
        }
        if call.query.get("sendInitialEvents").is_some() {
            errors.forbidden(&root.child("sendInitialEvents"), "sendInitialEvents is forbidden for list");
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid("meta.k8s.io", "ListOptions", "", errors))
}

/// `504`: a revision that the store has not reached.
pub(super) fn too_large_revision(resource: &Resource, revision: u64, current: u64) -> Status {
    let message = format!("Timeout: Too large resource version: {revision}, current: {current}");
    let status = Status::new(504, "Timeout", message);
    let status = status.cause("ResourceVersionTooLarge", "Too large resource version", "");
    // Who has waited for it already may come back.
    if resource.is_cached() { status.retry_after(1) } else { status }
}

/// `410`: a revision that is forgotten.
pub(super) fn expired(message: &str) -> Status {
    Status::new(410, "Expired", message)
}

fn continue_expired(after: &str, resource: &Resource, filter: &Filter) -> Status {
    let mut status = expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    );
    status.continue_token = Some(encode_token(-1, after, resource, filter.namespace.as_deref()));
    status
}

/// The token of the page after `last`: as kube-apiserver writes it, though clients may not look inside.
fn encode_token(revision: i64, last: &str, resource: &Resource, namespace: Option<&str>) -> String {
    let relative = namespace.and_then(|namespace| last.strip_prefix(namespace)?.strip_prefix('/'));
    let slash = if resource.is_cached() { "/" } else { "" };
    let start = format!("{slash}{}\0", relative.unwrap_or(last));
    let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start});
    URL_SAFE_NO_PAD.encode(token.to_string())
}

/// The revision of a token (`None`: the present), and the key after which it goes on.
fn decode_token(token: &str, namespace: Option<&str>) -> Result<(Option<u64>, String)> {
    let invalid =
        |why: &str| Status::bad_request(format!("invalid continue token: continue key is not valid{why}"));
    let bytes = URL_SAFE_NO_PAD
        .decode(token)
        .or_else(|_| URL_SAFE.decode(token))
        .map_err(|e| invalid(&format!(": {e}")))?;
    let tree: Value = serde_json::from_slice(&bytes).map_err(|e| invalid(&format!(": {e}")))?;
    if tree["v"] != "meta.k8s.io/v1" {
        return Err(invalid(": server does not recognize this encoded version"));
    }
    let revision = match tree["rv"].as_i64() {
        Some(-1) => None,
        Some(revision) if revision > 0 => Some(revision as u64),
        _ => return Err(invalid(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")),
    };
    let start = tree["start"].as_str().unwrap_or_default();
    if start.is_empty() {
        return Err(invalid(": encoded start key empty (version meta.k8s.io/v1)"));
    }
    let relative = start.strip_prefix('/').unwrap_or(start);
    if relative.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(invalid(&format!(": {start}")));
    }
    let relative = relative.trim_end_matches('\0');
    let after = namespace.map_or_else(|| relative.to_owned(), |namespace| format!("{namespace}/{relative}"));
    Ok((revision, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_read_back_and_bad_ones_are_refused() {
        let registry = crate::api::registry::Registry::new();
        let maps = registry.find("", "v1", "configmaps").unwrap();
        let token = encode_token(572, "mine/c1", &maps, Some("mine"));
        assert_eq!(token, "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NTcyLCJzdGFydCI6Ii9jMVx1MDAwMCJ9");
        assert_eq!(decode_token(&token, Some("mine")).unwrap(), (Some(572), "mine/c1".to_owned()));
        let events = registry.find("events.k8s.io", "v1", "events").unwrap();
        let plain = encode_token(572, "mine/c1", &events, Some("mine"));
        assert_ne!(plain, token);
        assert_eq!(decode_token(&plain, Some("mine")).unwrap(), (Some(572), "mine/c1".to_owned()));
        let all = encode_token(-1, "mine/c1", &maps, None);
        assert_eq!(decode_token(&all, None).unwrap(), (None, "mine/c1".to_owned()));
        assert_eq!(decode_token("!!", None).unwrap_err().code, 400);
        assert_eq!(decode_token(&URL_SAFE_NO_PAD.encode("{}"), None).unwrap_err().code, 400);
    }
}
