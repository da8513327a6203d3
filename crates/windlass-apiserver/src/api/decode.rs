//! From a request's body to a tree of the resource's type.

use serde_json::{Map, Value};

use super::options::FieldValidation;
use super::registry::{Flavor, Resource, split_api_version};
use super::server::Call;
use crate::codec::{self, Format, Parsed, Problems};
use crate::json::at;
use crate::schema;
use crate::status::{Result, Status};

/// Decodes the body as an object of `resource`, with defaults, and deals with unknown and duplicate fields.
pub(super) fn body(call: &mut Call<'_>, resource: &Resource, validation: FieldValidation) -> Result<Value> {
    let format = super::negotiate::input(&call.request.headers)?;
    if resource.is_custom() && format == Format::Protobuf {
        return Err(super::negotiate::unsupported_media_type(&["application/json", "application/yaml"]));
    }
    let mut unknown = Vec::new();
    let parsed = parse(resource, &call.request.body, format)?;
    let (value, parsed) = (parsed.value, Parsed { value: Value::Null, ..parsed });
    let value = conform(resource, value, &mut unknown)?;
    report(call, resource, validation, &problems(resource, &parsed, &unknown))?;
    Ok(value)
}

/// Bytes to a tree with `kind` and `apiVersion`, which must be the resource's.
fn parse(resource: &Resource, bytes: &[u8], format: Format) -> Result<Parsed> {
    if format == Format::Protobuf {
        let mut unknown = codec::envelope(bytes).map_err(|e| unrecognised(resource, bytes, &e))?;
        if unknown.api_version.is_empty() && unknown.kind.is_empty() {
            unknown.api_version = resource.api_version();
            unknown.kind = resource.kind.to_string();
        }
        check_kind(resource, &unknown.api_version, &unknown.kind)?;
        let (types, id) = resource.types();
        let value =
            codec::decode_proto(types, id, &unknown).map_err(|e| cannot_handle(resource, &e.to_string()))?;
        return Ok(Parsed { value, ..Parsed::default() });
    }
    let mut parsed = codec::parse(bytes, format).map_err(|e| unrecognised(resource, bytes, &e))?;
    let (api_version, kind) =
        codec::type_meta(&parsed.value).map_err(|e| unrecognised(resource, bytes, &e))?;
    let or_own = |value: &str, own: &str| if value.is_empty() { own.to_owned() } else { value.to_owned() };
    let (api_version, kind) = (or_own(api_version, &resource.api_version()), or_own(kind, &resource.kind));
    check_kind(resource, &api_version, &kind)?;
    if parsed.value.is_null() {
        parsed.value = Value::Object(Map::new());
    }
    codec::set_type(&mut parsed.value, &api_version, &kind);
    Ok(parsed)
}

/// A patch may leave `kind` and `apiVersion` out, but not change them.
pub(super) fn check_type(resource: &Resource, tree: &mut Value) -> Result<()> {
    let Some(object) = tree.as_object_mut() else {
        return Err(Status::bad_request(format!("the patched {} is not an object", resource.kind)));
    };
    for (key, own) in [("kind", resource.kind.to_string()), ("apiVersion", resource.api_version())] {
        match object.get(key).and_then(Value::as_str) {
            None | Some("") => drop(object.insert(key.into(), own.into())),
            Some(_) => {}
        }
    }
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    check_kind(resource, text("apiVersion"), text("kind"))
}

fn check_kind(resource: &Resource, api_version: &str, kind: &str) -> Result<()> {
    let own = resource.api_version();
    if api_version != own {
        let known = schema::builtin().iter().any(|t| t.gvk.iter().any(|gvk| gvk_is(gvk, api_version, kind)));
        if !resource.is_custom() && !known {
            return Err(unregistered(resource, api_version, kind));
        }
        let message = format!(
            "the API version in the data ({api_version}) does not match the expected API version ({own})"
        );
        return Err(Status::bad_request(message));
    }
    if kind != resource.kind {
        let known = schema::builtin().iter().any(|t| t.gvk.iter().any(|gvk| gvk_is(gvk, api_version, kind)));
        if resource.is_custom() || known {
            let message = format!(
                "{} in version {:?} cannot be handled as a {}: converting ({kind}) to ({}): unknown conversion",
                kind, resource.version, resource.kind, resource.kind
            );
            return Err(Status::bad_request(message));
        }
        return Err(unregistered(resource, api_version, kind));
    }
    Ok(())
}

fn gvk_is(gvk: &str, api_version: &str, kind: &str) -> bool {
    let (group, version) = split_api_version(api_version);
    gvk.split('/').eq([group, version, kind])
}

fn unregistered(resource: &Resource, api_version: &str, kind: &str) -> Status {
    let scheme = "pkg/api/legacyscheme/scheme.go:30";
    cannot_handle(
        resource,
        &format!("no kind {kind:?} is registered for version {api_version:?} in scheme {scheme:?}"),
    )
}

/// A body that could not be read at all.
fn unrecognised(resource: &Resource, bytes: &[u8], why: &dyn std::error::Error) -> Status {
    let (kind, shown) = (&resource.kind, codec::summary(bytes));
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({shown})"
    ))
}

/// What a body has too much of.
pub(super) fn problems(resource: &Resource, parsed: &Parsed, unknown: &[String]) -> Problems {
    if resource.is_custom() { parsed.custom_problems(unknown) } else { parsed.problems(unknown) }
}

fn cannot_handle(resource: &Resource, why: &str) -> Status {
    let (kind, version) = (&resource.kind, &resource.version);
    Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

/// A tree as the resource's type has it: unknown fields gone, fields in order, defaults in.
pub(super) fn conform(resource: &Resource, value: Value, unknown: &mut Vec<String>) -> Result<Value> {
    // An empty list of managers means that ownership is to be forgotten; an absent one means nothing at all.
    let forget =
        at(&value, &["metadata", "managedFields"]).and_then(Value::as_array).is_some_and(Vec::is_empty);
    let mut value = prune(resource, value, unknown)?;
    if forget {
        super::object::meta_mut(&mut value).insert("managedFields".into(), Value::Array(Vec::new()));
    }
    match &resource.flavor {
        Flavor::Builtin { hooks, .. } => {
            if resource.is_definitions() {
                crate::crd::default_definition(&mut value);
            }
            (hooks.default)(&mut value);
            Ok(value)
        }
        Flavor::Custom { definition, version, .. } => {
            definition.versions[*version].default(&mut value);
            Ok(value)
        }
    }
}

/// A tree without what the resource's type does not know. Nothing is added.
pub(super) fn prune(resource: &Resource, value: Value, unknown: &mut Vec<String>) -> Result<Value> {
    let fail = |e: codec::DecodeError| cannot_handle(resource, &e.to_string());
    match &resource.flavor {
        Flavor::Builtin { id, .. } => codec::canonical(schema::builtin(), *id, value, unknown).map_err(fail),
        Flavor::Custom { definition, version, .. } => {
            let mut value = value;
            codec::canonical_meta(schema::builtin(), "", &mut value, unknown).map_err(fail)?;
            definition.versions[*version].prune(&mut value, unknown);
            Ok(value)
        }
    }
}

/// A tree that the server has changed, in canonical form again.
pub(super) fn canonical(resource: &Resource, mut value: Value) -> Result<Value> {
    let result = match &resource.flavor {
        Flavor::Builtin { id, .. } => codec::canonical(schema::builtin(), *id, value, &mut Vec::new()),
        Flavor::Custom { .. } => {
            codec::canonical_meta(schema::builtin(), "", &mut value, &mut Vec::new()).map(|()| value)
        }
    };
    result.map_err(|e| Status::internal(&format!("{}: {e}", resource.kind)))
}

/// The object of a bookmark: what its type writes even when it is empty.
pub(super) fn bookmark(resource: &Resource, value: Value) -> Value {
    match &resource.flavor {
        Flavor::Builtin { .. } => {
            let mut value = canonical(resource, value.clone()).unwrap_or(value);
            // Inside kube-apiserver the replicas of some kinds are a plain number, so an empty object has zero of them.
            let counted = matches!(
                &*resource.kind,
                "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController"
            );
            if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut).filter(|_| counted) {
                spec.shift_insert(0, "replicas".into(), 0.into());
            }
            value
        }
        Flavor::Custom { .. } => {
            let mut value = value;
            value.sort_all_objects();
            value
        }
    }
}

/// Unknown and duplicate fields: dropped, warned of, or refused.
pub(super) fn report(
    call: &mut Call<'_>,
    resource: &Resource,
    validation: FieldValidation,
    problems: &Problems,
) -> Result<()> {
    match (validation, problems.strict()) {
        (FieldValidation::Ignore, _) | (_, None) => Ok(()),
        (FieldValidation::Warn, _) => {
            call.warnings.extend(problems.warnings().map(str::to_owned));
            Ok(())
        }
        (FieldValidation::Strict, Some(message)) => Err(cannot_handle(resource, &message)),
    }
}
