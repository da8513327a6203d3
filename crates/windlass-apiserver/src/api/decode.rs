//! From a request's body to a tree of the resource's type.

use serde_json::{Map, Value, json};

use super::conversion::version;
use super::options::FieldValidation;
use super::registry::{Flavor, Resource, split_api_version};
use super::server::Call;
use crate::codec::{self, Format, Parsed, Problems};
use crate::crd::Definition;
use crate::field::{Errors, Path};
use crate::json::{at, str_at};
use crate::kinds::Noted;
use crate::schema;
use crate::status::{Result, Status};

/// Decodes the body as an object of `resource`, with defaults, and deals with unknown and duplicate fields.
pub(super) fn body(call: &mut Call<'_>, resource: &Resource, validation: FieldValidation) -> Result<Value> {
    let format = super::negotiate::input(&call.request.headers)?;
    if resource.is_custom() && format == Format::Protobuf {
        return Err(super::negotiate::unsupported_media_type(&["application/json", "application/yaml"]));
    }
    let mut unknown = Vec::new();
    let mut parsed = parse(resource, &call.request.body, format)?;
    let fail = |why: &str| cannot_handle(resource, why);
    if let Flavor::Builtin { id, .. } = &resource.flavor {
        parsed.settle(schema::builtin(), *id).map_err(|e| fail(&e.to_string()))?;
    }
    let value = parsed.value.take();
    call.noted = notes(resource, &value);
    let value = conform_or(resource, value, &mut unknown, fail)?;
    report(call, validation, &parsed.problems(&unknown), fail)?;
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
        check_kind(resource, &unknown.api_version, &unknown.kind).map_err(|e| e.of_body(resource))?;
        let (types, id) = resource.types();
        let value =
            codec::decode_proto(types, id, &unknown).map_err(|e| cannot_handle(resource, &e.to_string()))?;
        return Ok(Parsed::from(value));
    }
    let mut parsed = codec::parse(bytes, format).map_err(|e| unrecognised(resource, bytes, &e))?;
    if resource.is_custom() {
        check_custom(resource, &parsed, bytes)?;
    }
    set_type(resource, &mut parsed).map_err(|e| match e {
        Mistyped::Unreadable(e) => unrecognised(resource, bytes, &e),
        Mistyped::Foreign(e) => e.of_body(resource),
    })?;
    Ok(parsed)
}

/// A custom object has to say what it is; what is built in is known by its path.
fn check_custom(resource: &Resource, parsed: &Parsed, bytes: &[u8]) -> Result<()> {
    let (api_version, kind) = codec::type_meta(parsed).map_err(|e| unrecognised(resource, bytes, &e))?;
    if kind.is_empty() {
        let missing = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(bytes));
        return Err(unrecognised(resource, bytes, &missing));
    }
    let own = &resource.kind;
    if parsed.value.get("apiVersion").is_some_and(Value::is_null) {
        let why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";
        let message = format!("{kind} in version \"\" cannot be handled as a {own}: {why}");
        return Err(Status::bad_request(message));
    }
    if api_version == resource.api_version() && kind != **own {
        let mut errors = Errors::default();
        errors.invalid(&Path::Root.child("kind"), &json!(kind), &format!("must be {own}"));
        let name = str_at(&parsed.value, &["metadata", "name"]);
        return Err(Status::invalid(&resource.group, &kind, name, errors));
    }
    // An empty version is none that is served, and a missing one is empty.
    match api_version.is_empty() {
        true => Err(Status::bad_request(mismatch(&api_version, &resource.api_version()))),
        false => Ok(()),
    }
}

fn mismatch(have: &str, own: &str) -> String {
    format!("the API version in the data ({have}) does not match the expected API version ({own})")
}

/// A patch may leave `kind` and `apiVersion` out, but not change them. The error is what Go's decoder says.
pub(super) fn check_type(resource: &Resource, mut parsed: Parsed) -> std::result::Result<Value, String> {
    set_type(resource, &mut parsed).map_err(|e| match e {
        Mistyped::Unreadable(e) => e.to_string(),
        Mistyped::Foreign(e) => e.text,
    })?;
    Ok(parsed.value)
}

/// Why a body is not of the resource's type.
enum Mistyped {
    Unreadable(codec::ParseError),
    Foreign(Foreign),
}

/// Gives the tree the resource's `kind` and `apiVersion`, if it has no others.
fn set_type(resource: &Resource, parsed: &mut Parsed) -> std::result::Result<(), Mistyped> {
    let (api_version, kind) = codec::type_meta(parsed).map_err(Mistyped::Unreadable)?;
    let or_own = |value: String, own: &str| if value.is_empty() { own.to_owned() } else { value };
    let (api_version, kind) = (or_own(api_version, &resource.api_version()), or_own(kind, &resource.kind));
    check_kind(resource, &api_version, &kind).map_err(Mistyped::Foreign)?;
    if parsed.value.is_null() {
        parsed.value = Value::Object(Map::new());
    }
    codec::set_type(&mut parsed.value, &api_version, &kind);
    Ok(())
}

/// A body of another type than the resource's.
struct Foreign {
    kind: String,
    version: String,
    /// What Go's decoder says.
    text: String,
    /// Whether it can be read, but is of another version.
    mismatch: bool,
}

impl Foreign {
    /// The answer, if it is the body of a request.
    fn of_body(self, resource: &Resource) -> Status {
        let Foreign { kind, version, text, mismatch } = self;
        if mismatch {
            return Status::bad_request(text);
        }
        let own = &resource.kind;
        Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {own}: {text}"))
    }
}

fn check_kind(resource: &Resource, api_version: &str, kind: &str) -> std::result::Result<(), Foreign> {
    let own = resource.api_version();
    if api_version == own && kind == resource.kind {
        return Ok(());
    }
    let version = split_api_version(api_version).1;
    let foreign =
        |text, mismatch| Foreign { kind: kind.to_owned(), version: version.to_owned(), text, mismatch };
    let known = schema::builtin().iter().any(|t| t.gvk.iter().any(|gvk| gvk_is(gvk, api_version, kind)));
    if !resource.is_custom() && !known {
        let scheme = "pkg/runtime/scheme.go:111";
        let text = format!("no kind {kind:?} is registered for version {api_version:?} in scheme {scheme:?}");
        return Err(foreign(text, false));
    }
    if api_version != own {
        return Err(foreign(mismatch(api_version, &own), true));
    }
    // Go names the structures by their packages: `v1.Secret`, `core.ConfigMap`.
    let package = match resource.group.split('.').next() {
        None | Some("") => "core",
        Some(name) => name,
    };
    let own = &resource.kind;
    let text = format!("converting ({version}.{kind}) to ({package}.{own}): unknown conversion");
    Err(foreign(text, false))
}

fn gvk_is(gvk: &str, api_version: &str, kind: &str) -> bool {
    let (group, version) = split_api_version(api_version);
    gvk.split('/').eq([group, version, kind])
}

/// A body that could not be read at all.
fn unrecognised(resource: &Resource, bytes: &[u8], why: &dyn std::fmt::Display) -> Status {
    let (kind, shown) = (&resource.kind, codec::summary(bytes));
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({shown})"
    ))
}

pub(super) fn cannot_handle(resource: &Resource, why: &str) -> Status {
    let (kind, version) = (&resource.kind, &resource.version);
    Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

/// A tree as the resource's type has it: unknown fields gone, fields in order, defaults in.
pub(super) fn conform(resource: &Resource, value: Value, unknown: &mut Vec<String>) -> Result<Value> {
    conform_or(resource, value, unknown, |why| cannot_handle(resource, why))
}

/// The same, with an answer of the caller's if the tree is not of the type.
pub(super) fn conform_or(
    resource: &Resource,
    value: Value,
    unknown: &mut Vec<String>,
    fail: impl Fn(&str) -> Status,
) -> Result<Value> {
    let value = prune(resource, value, unknown).map_err(|why| fail(&why))?;
    Ok(fill(resource, value))
}

/// A tree with the defaults of the resource's type.
pub(super) fn fill(resource: &Resource, mut value: Value) -> Value {
    match &resource.flavor {
        Flavor::Builtin { hooks, .. } => {
            if resource.is_definitions() {
                crate::crd::default_definition(&mut value);
            }
            (hooks.default)(&mut value);
        }
        Flavor::Custom { definition, version, .. } => {
            definition.versions[*version].default(&mut value);
        }
    }
    value
}

/// A custom object as policies and hooks left it, with the defaults of the version that it says it is of. What its schema does
/// not know goes when the object is stored: those who are asked next see it.
pub(super) fn as_left(definition: &Definition, mut value: Value) -> std::result::Result<Value, String> {
    let (api_version, kind) = (str_at(&value, &["apiVersion"]), str_at(&value, &["kind"]));
    if kind.is_empty() {
        return Err(format!("Object 'Kind' is missing in '{value}'"));
    }
    if kind == definition.names.kind
        && let Some(version) = version(definition, api_version)
    {
        version.fill(&mut value);
    }
    Ok(value)
}

/// What the kind wants to know of an object before it is made canonical.
pub(super) fn notes(resource: &Resource, value: &Value) -> Noted {
    match &resource.flavor {
        Flavor::Builtin { .. } if resource.is_definitions() => {
            Noted { empty_roots: crate::crd::empty_roots(value), ..Noted::default() }
        }
        Flavor::Builtin { hooks, .. } => hooks.note(&resource.kind, value),
        Flavor::Custom { .. } => Noted::default(),
    }
}

/// A tree without what the resource's type does not know. Nothing is added.
pub(super) fn prune(
    resource: &Resource,
    mut value: Value,
    unknown: &mut Vec<String>,
) -> std::result::Result<Value, String> {
    // An empty list of managers means that ownership is to be forgotten; an absent one means nothing at all.
    let forget =
        at(&value, &["metadata", "managedFields"]).and_then(Value::as_array).is_some_and(Vec::is_empty);
    let mut value = match &resource.flavor {
        Flavor::Builtin { id, .. } => {
            codec::canonical(schema::builtin(), *id, value, unknown).map_err(|e| e.to_string())?
        }
        Flavor::Custom { definition, version, .. } => {
            let version = &definition.versions[*version];
            codec::canonical_meta(schema::builtin(), "", &mut value, unknown).map_err(|e| e.to_string())?;
            if let Some(why) = version.malformed(&value) {
                return Err(why);
            }
            version.prune(&mut value, unknown);
            value
        }
    };
    if forget {
        super::object::meta_mut(&mut value).insert("managedFields".into(), Value::Array(Vec::new()));
    }
    Ok(value)
}

/// A tree that the server has changed, in canonical form again.
pub(super) fn canonical(resource: &Resource, mut value: Value) -> Result<Value> {
    let result = match &resource.flavor {
        Flavor::Builtin { id, .. } => codec::canonical_again(schema::builtin(), *id, value),
        Flavor::Custom { .. } => {
            codec::canonical_meta(schema::builtin(), "", &mut value, &mut Vec::new()).map(|()| value)
        }
    };
    result.map_err(|e| Status::internal(&format!("{}: {e}", resource.kind)))
}

/// The object of a bookmark: what its type writes even when it is empty.
pub(super) fn bookmark(resource: &Resource, value: Value) -> Value {
    match &resource.flavor {
        Flavor::Builtin { hooks, .. } => {
            let mut value = canonical(resource, value.clone()).unwrap_or(value);
            (hooks.blank)(&mut value);
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
    validation: FieldValidation,
    problems: &Problems,
    fail: impl Fn(&str) -> Status,
) -> Result<()> {
    match (validation, problems.strict()) {
        (FieldValidation::Ignore, _) | (_, None) => Ok(()),
        (FieldValidation::Warn, _) => {
            call.warnings.extend(problems.warnings().map(str::to_owned));
            Ok(())
        }
        (FieldValidation::Strict, Some(message)) => Err(fail(&message)),
    }
}
