//! Changing part of an object: JSON patch, merge patch, strategic merge patch, server-side apply.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use super::create::place;
use super::decode;
use super::negotiate::{media_type, unsupported_media_type};
use super::options::{FieldValidation, WriteOptions};
use super::registry::{Flavor, Resource};
use super::response::Response;
use super::server::{Call, Server};
use crate::codec::{self, Format, Parsed};
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
        let kind = patch_type(call, &resource).inspect_err(|status| {
            // The router comes before what warns of old kinds.
            if status.details.is_some() {
                call.warnings.clear();
            }
        })?;
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
        self.foresee(call, &resource, [&current])?;
        let old = self.load(&resource, &current);
        let mut tree = patched(call, kind, &resource, &old, options.validation)?;
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
        self.foresee(call, resource, &current)?;
        let old = current.as_ref().map(|object| self.load(resource, object));
        // Fields that the type does not know are refused by apply itself: nobody can own what is not stored.
        let fail = |why: &str| decode::cannot_handle(resource, why);
        decode::report(call, options.validation, &parsed.problems(&[]), fail)?;
        let force = options.force.unwrap_or(false);
        let applied = self.write_as(call, resource, options, |schema, write| {
            managed::apply(schema, old.as_ref(), &parsed.value, write, force)
        })?;
        call.noted = decode::notes(resource, &applied);
        let fail = |why: &str| unconvertible(resource, &parsed.value, why);
        // What was stored in another version has not the defaults of this one, and gets none if nothing is applied to it.
        let mut tree = match &old {
            Some(old) if resource.is_custom() && is_owned_otherwise(old, &applied) => applied,
            _ => completed(resource, applied).map_err(|why| fail(&why))?,
        };
        let uid = json::str_at(&tree, &["metadata", "uid"]);
        if current.is_none() && !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(Status::conflict(&resource.group, &resource.plural, &target.name, &why));
        }
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

/// What was applied, with what its type does not know taken away and with its defaults. Nulls of custom objects stay, and are
/// refused where a field may hold none: only what clients send, and what is stored, loses them when it is read.
fn completed(resource: &Resource, applied: Value) -> std::result::Result<Value, String> {
    let mut tree = decode::prune(resource, applied, &mut Vec::new())?;
    match &resource.flavor {
        Flavor::Custom { definition, version, .. } => {
            definition.versions[*version].fill(&mut tree);
            Ok(tree)
        }
        Flavor::Builtin { .. } => Ok(decode::fill(resource, tree)),
    }
}

/// Whether two objects differ at most in who owns their fields.
pub(super) fn is_owned_otherwise(old: &Value, new: &Value) -> bool {
    let unowned = |object: &Value| {
        let mut object = object.clone();
        super::object::meta_mut(&mut object).remove("managedFields");
        object
    };
    unowned(old) == unowned(new)
}

/// What was applied is not of the resource's type. Only the values of some types are not looked at before, so
/// kube-apiserver does not expect it.
fn unconvertible(resource: &Resource, config: &Value, why: &str) -> Status {
    let meta = |key| json::str_at(config, &["metadata", key]);
    let kind = format!("{}/{}, Kind={}", resource.group, resource.version, resource.kind);
    let why = patch::without_field(why);
    let message = format!(
        "failed to convert new object ({}/{}; {kind}) to proper version: unable to convert unstructured object to \
         {kind}: {why}",
        meta("namespace"),
        meta("name"),
    );
    Status::new(500, "", message)
}

/// Whether the router lets a patch through: it refuses what no resource takes.
pub(super) fn is_routed(headers: &HeaderMap) -> bool {
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    header.contains(',') || [JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY].contains(&media_type(header))
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
        // What only this resource does not take, the handler refuses.
        if !is_routed(&call.request.headers) {
            status.details = Some(Box::default());
        }
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

/// What the patch in the request makes of the old object, as the resource's type has it.
pub(super) fn patched(
    call: &mut Call<'_>,
    kind: &str,
    resource: &Resource,
    old: &Value,
    validation: FieldValidation,
) -> Result<Value> {
    let body = call.request.body.clone();
    let shown = || shown(kind, resource, old, &body);
    let fail = |why: &str| refused(&shown(), why);
    let Patched { tree, parsed, meaningless } = apply_to(kind, resource, old, &body)?;
    let mut unknown = Vec::new();
    let tree = if kind == STRATEGIC {
        strategic_type(resource, tree, fail)?
    } else {
        super::retype::retype(resource, tree, &mut unknown, shown, fail)?
    };
    let versionless = !unknown.is_empty();
    call.noted = decode::notes(resource, &tree);
    let tree = decode::conform_or(resource, tree, &mut unknown, |why| match kind {
        // The patched object is made without a text in between, so that no field is named.
        STRATEGIC => fail(&patch::without_field(why)),
        _ => fail(why),
    })?;
    if kind == STRATEGIC {
        unknown.sort();
    } else if unknown.len() > 1 && !resource.is_custom() && !versionless {
        unknown.clear();
        let ordered = ordered(kind, resource, old, &body)?;
        decode::conform(resource, ordered, &mut unknown)?;
    }
    decode::report(call, validation, &parsed.problems(&unknown).after(meaningless), fail)?;
    Ok(tree)
}

/// An object with a patch on it.
struct Patched {
    tree: Value,
    /// What is left of the patch: what a strict reader has to say of it.
    parsed: Parsed,
    /// Members of JSON patch operations that mean nothing.
    meaningless: Vec<String>,
}

/// The old tree with the patch on it.
fn apply_to(kind: &str, resource: &Resource, old: &Value, body: &[u8]) -> Result<Patched> {
    let mut parsed = parse(body)?;
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
    Ok(Patched { tree, parsed, meaningless })
}

fn parse(body: &[u8]) -> Result<Parsed> {
    codec::parse(body, Format::Json).map_err(|error| {
        // A patch has no version and no kind to speak of.
        let why = match error {
            codec::ParseError::Json(why) => why,
            other => other.to_string(),
        };
        Status::bad_request(format!("error decoding patch: {why}"))
    })
}

/// The patched tree in the order in which kube-apiserver has it, between the patch and the type: what the patch
/// touched went through a map of Go.
fn ordered(kind: &str, resource: &Resource, old: &Value, body: &[u8]) -> Result<Value> {
    let mut tree = apply_to(kind, resource, old, body)?.tree;
    patch::sort_touched(Some(old), &mut tree, kind == MERGE_PATCH);
    Ok(tree)
}

/// A strategic patch does not get as far as the type, which stays; the rest must fit it.
fn strategic_type(resource: &Resource, mut tree: Value, fail: impl Fn(&str) -> Status) -> Result<Value> {
    codec::set_type(&mut tree, &resource.api_version(), &resource.kind);
    let (types, id) = resource.types();
    match patch::misfit(types, id, &tree) {
        Some(why) => Err(fail(&why)),
        None => Ok(tree),
    }
}

/// What is shown of a patch that was refused: the object that it made, or the patch itself.
fn shown(kind: &str, resource: &Resource, old: &Value, body: &[u8]) -> String {
    if kind == STRATEGIC {
        return parse(body).map(|parsed| patch::go_text(&parsed.value)).unwrap_or_default();
    }
    let mut bytes = Vec::new();
    if let Ok(tree) = ordered(kind, resource, old, body) {
        codec::write_value(&mut bytes, &tree);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A patch that makes something which is not of the resource's type.
fn refused(shown: &str, why: &str) -> Status {
    let mut errors = Errors::default();
    errors.invalid(&Path::Root.child("patch"), &Value::String(shown.to_owned()), why);
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
