//! Changing part of an object: JSON patch, merge patch, strategic merge patch, server-side apply.

use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::create::place;
use super::negotiate::{media_type, unsupported_media_type};
use super::options::WriteOptions;
use super::registry::Resource;
use super::response::Response;
use super::server::{Call, Server};
use crate::codec::{self, Format, Parsed, Problems};
use crate::field::{Errors, Path};
use crate::status::{Result, Status};
use crate::{json, managed, patch};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(super) const APPLY: &str = "application/apply-patch+yaml";

impl Server {
    pub(super) fn patch(&mut self, call: &mut Call<'_>) -> Result<Response> {
        let resource = call.target.resource.clone();
        let kind = patch_type(call, &resource)?;
        let options = WriteOptions::parse(call.query, &call.user_agent(), "PatchOptions")?;
        check_force(kind, call, &options)?;
        if kind == APPLY {
            return self.apply(call, &resource, &options);
        }
        let target = call.target;
        let current = self
            .store
            .get(&resource.storage, &target.namespace, &target.name)
            .cloned()
            .ok_or_else(|| Status::not_found(&resource.group, &resource.plural, &target.name))?;
        let old = self.load(&resource, &current);
        let mut unknown = Vec::new();
        let mut patched = patched(kind, &resource, &old, &call.request.body)?;
        let tree = std::mem::take(&mut patched.tree);
        let mut tree = super::decode::conform(&resource, tree, &mut unknown).map_err(|status| {
            // What the patch made went into the attempt; it is made again only to be shown.
            match self::patched(kind, &resource, &old, &call.request.body) {
                Ok(again) => unfit(&status, &resource, &again.tree),
                Err(status) => status,
            }
        })?;
        super::decode::report(call, &resource, options.validation, &patched.problems(&resource, &unknown))?;
        super::update::check_name(&tree, call)?;
        place(&mut tree, &resource, &target.namespace)?;
        call.warnings.extend(crate::kinds::meta::dedup_owner_references(&mut tree));
        self.own(call, &resource, &options, Some(&old), &mut tree);
        let object = self.replace(call, &resource, &current, &old, tree, options.dry_run)?;
        self.respond(call, &resource, &object, 200)
    }

    fn apply(
        &mut self,
        call: &mut Call<'_>,
        resource: &std::sync::Arc<Resource>,
        options: &WriteOptions,
    ) -> Result<Response> {
        let parsed = codec::parse(&call.request.body, Format::Yaml)
            .map_err(|e| Status::bad_request(format!("error decoding YAML: {e}")))?;
        check_applied_kind(&parsed.value, resource)?;
        let target = call.target;
        let current = self.store.get(&resource.storage, &target.namespace, &target.name).cloned();
        if current.is_none() && !target.subresource.is_empty() {
            return Err(Status::not_found(&resource.group, &resource.plural, &target.name));
        }
        let old = current.as_ref().map(|object| self.load(resource, object));
        // Fields that the type does not know are refused by apply itself: nobody can own what is not stored.
        super::decode::report(call, resource, options.validation, &parsed.problems(&[]))?;
        let force = options.force.unwrap_or(false);
        let applied = self.write_as(call, resource, options, |schema, write| {
            managed::apply(schema, old.as_ref(), &parsed.value, write, force)
        })?;
        let mut tree = super::decode::conform(resource, applied, &mut Vec::new())?;
        super::update::check_name(&tree, call)?;
        place(&mut tree, resource, &target.namespace)?;
        let Some((current, old)) = current.zip(old) else {
            super::object::meta_mut(&mut tree).remove("resourceVersion");
            let object = self.insert(call, resource, tree, options.dry_run)?;
            return self.respond(call, resource, &object, 201);
        };
        let object = self.replace(call, resource, &current, &old, tree, options.dry_run)?;
        self.respond(call, resource, &object, 200)
    }
}

/// The patch type of the request, if the resource takes it.
pub(super) fn patch_type(call: &Call<'_>, resource: &Resource) -> Result<&'static str> {
    let header =
        call.request.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut accepted = vec![JSON_PATCH, MERGE_PATCH];
    if !resource.is_custom() {
        accepted.push(STRATEGIC);
    }
    accepted.push(APPLY);
    let media = media_type(header);
    accepted.iter().copied().find(|kind| *kind == media).ok_or_else(|| {
        let mut status = unsupported_media_type(&accepted);
        status.details = Some(Box::default());
        status
    })
}

/// `force` belongs to apply, and apply needs a manager.
pub(super) fn check_force(kind: &str, call: &Call<'_>, options: &WriteOptions) -> Result<()> {
    let mut errors = Errors::default();
    let root = Path::Root;
    if kind == APPLY && call.query.text("fieldManager").is_empty() {
        errors.required(&root.child("fieldManager"), "is required for apply patch");
    }
    if kind != APPLY && options.force.is_some() {
        errors.forbidden(&root.child("force"), "may not be specified for non-apply patch");
    }
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", "PatchOptions", "", errors)) }
}

/// An object with a patch on it.
pub(super) struct Patched {
    /// The object.
    pub tree: Value,
    parsed: Parsed,
    /// Members of JSON patch operations that mean nothing.
    meaningless: Vec<String>,
}

impl Patched {
    /// What the patch has too much of, and what it brought into the object.
    pub fn problems(self, resource: &Resource, unknown: &[String]) -> Problems {
        super::decode::problems(resource, &self.parsed, unknown).after(self.meaningless)
    }
}

/// The old tree with the patch on it.
pub(super) fn patched(kind: &str, resource: &Resource, old: &Value, body: &[u8]) -> Result<Patched> {
    let mut parsed = codec::parse(body, Format::Json)
        .map_err(|e| Status::bad_request(format!("error decoding patch: {e}")))?;
    let value = std::mem::take(&mut parsed.value);
    let mut meaningless = Vec::new();
    let mut tree = old.clone();
    match kind {
        JSON_PATCH => {
            meaningless = patch::check_json_patch(&value)?;
            patch::json_patch(&mut tree, &value)?;
        }
        MERGE_PATCH => {
            patch::check_merge_patch(&value)?;
            patch::merge_patch(&mut tree, value);
        }
        _ => {
            let (types, id) = resource.types();
            patch::strategic(types, id, &mut tree, value)?;
        }
    }
    super::decode::check_type(resource, &mut tree).map_err(|status| unfit(&status, resource, &tree))?;
    Ok(Patched { tree, parsed, meaningless })
}

/// Where the result of a patch does not fit the type, upstream calls the patch invalid, not the request bad.
fn unfit(status: &Status, resource: &Resource, tree: &Value) -> Status {
    let prefix = format!("cannot be handled as a {}: ", resource.kind);
    let why = status.message.split_once(&prefix).map_or(status.message.as_str(), |(_, why)| why);
    let shown = String::from_utf8_lossy(&codec::write(tree).bytes).into_owned();
    let mut errors = Errors::default();
    errors.invalid(&Path::Root.child("patch"), &shown.into(), why);
    Status::invalid("", "", "", errors)
}

pub(super) fn check_applied_kind(config: &Value, resource: &Resource) -> Result<()> {
    let (api_version, kind) = (json::str_at(config, &["apiVersion"]), json::str_at(config, &["kind"]));
    if !config.is_object() {
        return Err(Status::bad_request("error decoding YAML: the body of an apply patch must be an object"));
    }
    if api_version.is_empty() || kind.is_empty() {
        let message = "invalid object type: /, Kind=";
        return Err(Status::bad_request(message));
    }
    if api_version != resource.api_version() || kind != resource.kind {
        let (got, want) = (
            format!("{api_version}, Kind={kind}"),
            format!("{}, Kind={}", resource.api_version(), resource.kind),
        );
        return Err(Status::bad_request(format!("invalid object type: {got} (expected {want})")));
    }
    Ok(())
}
