//! The rules of `CustomResourceDefinition` objects themselves: defaults, preparation, validation.

use serde_json::{Map, Value, json};

use super::props::Props;
use super::{approval, check_defaults, formats, keywords, paths, root, structural, text, webhook};
use crate::field::{Errors, Path};
use crate::json::{at, object_entry, str_at};
use crate::kinds::{self, Noted};

/// Fills in what a definition leaves out: `names.singular`, `names.listKind`, `conversion`, `storedVersions`.
pub fn default_definition(crd: &mut Value) {
    let Some(root) = crd.as_object_mut() else { return };
    let spec = object_entry(root, "spec");
    let names = object_entry(spec, "names");
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_empty = |names: &Map<String, Value>, key: &str| {
        names.get(key).and_then(Value::as_str).is_none_or(str::is_empty)
    };
    if !kind.is_empty() && is_empty(names, "singular") {
        names.insert("singular".into(), kind.to_lowercase().into());
    }
    if !kind.is_empty() && is_empty(names, "listKind") {
        names.insert("listKind".into(), format!("{kind}List").into());
    }
    if !spec.get("conversion").is_some_and(Value::is_object) {
        spec.insert("conversion".into(), json!({"strategy": "None"}));
    }
    // Internally there is no webhook, only what it says.
    drop_webhook(spec, |versions| !versions.is_array());
    let service = ["webhook", "clientConfig", "service"];
    let service = service.iter().try_fold(&mut spec["conversion"], |value, key| value.get_mut(key));
    if let Some(Value::Object(service)) = service {
        service.entry("port").or_insert_with(|| 443.into());
    }
    let stored = at(crd, &["status", "storedVersions"]).and_then(Value::as_array);
    if stored.is_none_or(Vec::is_empty) {
        store_version(crd);
    }
}

/// Clears what a client may not set when it creates a definition, and notes the version that is stored.
pub fn prepare_create(crd: &mut Value) {
    let Some(root) = crd.as_object_mut() else { return };
    object_entry(root, "metadata").insert("generation".into(), 1.into());
    prepare_spec(object_entry(root, "spec"));
    let names = json!({"plural": "", "kind": ""});
    root.insert("status".into(), json!({"conditions": null, "acceptedNames": names, "storedVersions": null}));
    store_version(crd);
}

/// Keeps the status on an update of the definition, counts the generation, and notes the version that is stored.
pub fn prepare_update(crd: &mut Value, old: &Value) {
    let Some(root) = crd.as_object_mut() else { return };
    match old.get("status") {
        Some(status) => drop(root.insert("status".into(), status.clone())),
        None => drop(root.shift_remove("status")),
    }
    let generation = at(old, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default();
    prepare_spec(object_entry(root, "spec"));
    let changed = root.get("spec") != old.get("spec");
    let generation = generation + i64::from(changed);
    object_entry(root, "metadata").insert("generation".into(), generation.into());
    store_version(crd);
}

/// A list of review versions that is empty is owned, and not kept.
fn prepare_spec(spec: &mut Map<String, Value>) {
    drop_webhook(spec, |versions| versions.as_array().is_none_or(Vec::is_empty));
}

/// Takes the webhook of the conversion away, if it has no client and its review versions say nothing.
fn drop_webhook(spec: &mut Map<String, Value>, say_nothing: impl Fn(&Value) -> bool) {
    let Some(Value::Object(conversion)) = spec.get_mut("conversion") else { return };
    let says_nothing = |webhook: &Value| {
        !webhook["clientConfig"].is_object() && say_nothing(&webhook["conversionReviewVersions"])
    };
    if conversion.get("webhook").is_some_and(says_nothing) {
        conversion.shift_remove("webhook");
    }
}

/// Keeps the spec on an update of `/status`.
pub fn prepare_status_update(crd: &mut Value, old: &Value) {
    if let (Some(root), Some(spec)) = (crd.as_object_mut(), old.get("spec")) {
        root.insert("spec".into(), spec.clone());
    }
}

/// Adds the storage version to `status.storedVersions`.
fn store_version(crd: &mut Value) {
    let storage = versions(crd).iter().find(|version| version["storage"] == true);
    let Some(name) = storage.map(|version| str_at(version, &["name"]).to_owned()) else { return };
    let Some(root) = crd.as_object_mut() else { return };
    let stored = object_entry(root, "status").entry("storedVersions").or_insert(Value::Null);
    if !stored.is_array() {
        *stored = Value::Array(Vec::new());
    }
    let list = stored.as_array_mut().expect("made a list above");
    if !list.iter().any(|version| *version == name.as_str()) {
        list.push(name.into());
    }
}

fn versions(crd: &Value) -> &[Value] {
    at(crd, &["spec", "versions"]).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Checks a new definition. Of its metadata only the name is checked here.
pub fn validate_create(crd: &Value, noted: Noted, errors: &mut Errors) {
    let spec = &crd["spec"];
    let name = str_at(crd, &["metadata", "name"]);
    let at_name = Path::Root.child("metadata");
    let at_name = at_name.child("name");
    for fault in text::subdomain(name).iter().filter(|_| !name.is_empty()) {
        errors.invalid(&at_name, &name.into(), fault);
    }
    if name != format!("{}.{}", str_at(spec, &["names", "plural"]), str_at(spec, &["group"])) {
        errors.invalid(&at_name, &name.into(), "must be spec.names.plural+\".\"+spec.group");
    }
    validate_spec(spec, None, noted, &Path::Root.child("spec"), errors);
    validate_rest(crd, None, errors);
}

/// Checks a changed definition.
pub fn validate_update(crd: &Value, old: &Value, noted: Noted, errors: &mut Errors) {
    let path = Path::Root.child("spec");
    validate_spec(&crd["spec"], Some(old), noted, &path, errors);
    let names = path.child("names");
    let mut immutable = |path: &Path<'_>, keys: &[&str]| {
        let (new, old) = (str_at(&crd["spec"], keys), str_at(&old["spec"], keys));
        if new != old {
            errors.invalid(path, &new.into(), "field is immutable");
        }
    };
    if super::is_condition_true(old, "Established") {
        immutable(&path.child("scope"), &["scope"]);
        immutable(&names.child("kind"), &["names", "kind"]);
    }
    immutable(&path.child("group"), &["group"]);
    immutable(&names.child("plural"), &["names", "plural"]);
    validate_rest(crd, Some(old), errors);
}

/// Checks a changed `status`.
pub fn validate_status_update(crd: &Value, errors: &mut Errors) {
    let status = Path::Root.child("status");
    validate_names(&crd["status"]["acceptedNames"], &status.child("acceptedNames"), errors);
}

fn validate_rest(crd: &Value, old: Option<&Value>, errors: &mut Errors) {
    validate_status_update(crd, errors);
    validate_stored(crd, errors);
    approval::validate(crd, old, errors);
    if crd["spec"]["preserveUnknownFields"] == true {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        errors.invalid(&Path::Root.child("spec").child("preserveUnknownFields"), &true.into(), detail);
    }
}

fn validate_stored(crd: &Value, errors: &mut Errors) {
    let path = Path::Root.child("status");
    let path = path.child("storedVersions");
    let value = &crd["status"]["storedVersions"];
    let stored: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if stored.is_empty() {
        errors.invalid(&path, value, "must have at least one stored version");
        return;
    }
    let known: Vec<(&str, bool)> =
        versions(crd).iter().map(|v| (str_at(v, &["name"]), v["storage"] == true)).collect();
    for (i, (name, storage)) in known.iter().enumerate() {
        // A name that stands twice is found once.
        let is_found = stored.contains(name) && known[..i].iter().all(|(other, _)| other != name);
        if *storage && !is_found {
            errors.invalid(&path, value, &format!("must have the storage version {name}"));
        }
    }
    for (i, name) in stored.iter().enumerate() {
        if known.iter().all(|(known, _)| known != name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            errors.invalid(&path.index(i), &(*name).into(), &detail);
        }
    }
}

/// Parts that stand in each version but are reported on the spec when all versions agree on them.
struct Shared<'a> {
    key: &'a str,
    identical: bool,
}

impl<'a> Shared<'a> {
    fn new(key: &'a str, versions: &[Value]) -> Shared<'a> {
        let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        let same = |version: &Value| {
            let (a, b) = (&version[key], &versions[0][key]);
            a == b || (empty(a) && empty(b))
        };
        Shared { key, identical: versions.iter().all(same) }
    }

    /// What to check, each with its path: one value for all versions, or one for each.
    fn each(
        &self,
        versions: &'a [Value],
        on_spec: &str,
        path: &Path<'_>,
        check: &mut dyn FnMut(&'a Value, &Path<'_>, usize),
    ) {
        if self.identical {
            if let Some(version) = versions.first().filter(|version| !version[self.key].is_null()) {
                check(&version[self.key], &path.child(on_spec), 0);
            }
            return;
        }
        let list = path.child("versions");
        for (i, version) in versions.iter().enumerate().filter(|(_, version)| !version[self.key].is_null()) {
            check(&version[self.key], &list.index(i).child(self.key), i);
        }
    }
}

fn validate_spec(spec: &Value, old: Option<&Value>, noted: Noted, path: &Path<'_>, errors: &mut Errors) {
    let group = str_at(spec, &["group"]);
    let at_group = path.child("group");
    let faults = text::subdomain(group);
    if group.is_empty() {
        errors.required(&at_group, "");
    } else if !faults.is_empty() {
        errors.invalid(&at_group, &group.into(), &faults.join(","));
    } else if !group.contains('.') {
        errors.invalid(&at_group, &group.into(), "should be a domain with at least one dot");
    }
    match str_at(spec, &["scope"]) {
        "" => errors.required(&path.child("scope"), ""),
        "Cluster" | "Namespaced" => {}
        other => errors.not_supported(&path.child("scope"), &other.into(), &["Cluster", "Namespaced"]),
    }
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    for (i, _) in versions.iter().enumerate().filter(|(_, v)| !v["schema"]["openAPIV3Schema"].is_object()) {
        errors.required(&path.child("versions").index(i).child("schema").child("openAPIV3Schema"), "");
    }
    if spec["preserveUnknownFields"] == true && versions.iter().any(has_defaults) {
        let detail = "must be false in order to use defaults in the schema";
        errors.invalid(&path.child("preserveUnknownFields"), &true.into(), detail);
    }
    validate_versions(versions, path, errors);
    validate_required_names(&spec["names"], &path.child("names"), errors);
    if !versions.is_empty() {
        let subresources = Shared::new("subresources", versions);
        let has_status = |version: &Value| version["subresources"]["status"].is_object();
        let any_status = versions.iter().any(has_status);
        let schemas = Shared::new("schema", versions);
        schemas.each(versions, "validation", path, &mut |schema, path, i| {
            // A schema that all versions share must do for those with a status as well.
            let status = any_status && (path_is_shared(path) || has_status(&versions[i]));
            let unchanged = old.is_some_and(|old| has_same_schema(old, &versions[i]));
            let beside_status = status.then(|| noted.has_empty_root(i));
            validate_schema(&schema["openAPIV3Schema"], beside_status, unchanged, path, errors);
        });
        subresources.each(versions, "subresources", path, &mut |value, path, _| {
            validate_subresources(value, path, errors);
        });
        let columns = Shared::new("additionalPrinterColumns", versions);
        columns.each(versions, "additionalPrinterColumns", path, &mut |value, path, _| {
            for (i, column) in value.as_array().into_iter().flatten().enumerate() {
                validate_column(column, &path.index(i), errors);
            }
        });
        let fields = Shared::new("selectableFields", versions);
        fields.each(versions, "selectableFields", path, &mut |value, path, i| {
            // Fields that all versions share go with a schema that all share, others with those of their versions.
            let schema = &versions[i]["schema"];
            let schema = (schemas.identical == fields.identical && !schema.is_null()).then_some(schema);
            validate_selectable(value, schema, fields.identical, path, errors);
        });
    }
    let conversion = path.child("conversion");
    let strategy = str_at(spec, &["conversion", "strategy"]);
    if spec["preserveUnknownFields"] == true && spec["conversion"].is_object() && strategy != "None" {
        let detail = "must be None if spec.preserveUnknownFields is true";
        errors.invalid(&conversion.child("strategy"), &strategy.into(), detail);
    }
    webhook::validate_conversion(&spec["conversion"], old, &conversion, errors);
}

/// Whether the older definition had the version with the same schema.
fn has_same_schema(old: &Value, version: &Value) -> bool {
    let before = old["spec"]["versions"].as_array().into_iter().flatten();
    before
        .filter(|before| before["name"] == version["name"])
        .any(|before| before["schema"] == version["schema"])
}

fn has_defaults(version: &Value) -> bool {
    let mut found = false;
    Props::read(&version["schema"]["openAPIV3Schema"]).walk(&mut |node| found |= node.default.is_some());
    found
}

fn path_is_shared(path: &Path<'_>) -> bool {
    matches!(path, Path::Child(_, "validation"))
}

/// The versions as refusals show them: inside, what all of them have alike is no longer theirs.
fn shown_versions(versions: &[Value]) -> Value {
    let mut versions = versions.to_vec();
    for field in ["schema", "subresources", "additionalPrinterColumns", "selectableFields"] {
        if versions.iter().all(|version| version.get(field) == versions[0].get(field)) {
            versions.iter_mut().filter_map(Value::as_object_mut).for_each(|version| {
                version.remove(field);
            });
        }
    }
    if versions.is_empty() {
        return Value::Null;
    }
    const VERSION: &str =
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion";
    kinds::inner::shown_list(VERSION, Some(&Value::Array(versions)))
}

fn validate_versions(versions: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let list = path.child("versions");
    for (i, version) in versions.iter().enumerate() {
        let at = list.index(i);
        let name = str_at(version, &["name"]);
        let fault = text::label_1035(name);
        if !fault.is_empty() {
            errors.invalid(&at.child("name"), &name.into(), &fault);
        }
        validate_deprecation(version, &at.child("deprecationWarning"), errors);
    }
    let all = shown_versions(versions);
    let names: Vec<&str> = versions.iter().map(|version| str_at(version, &["name"])).collect();
    if names.iter().enumerate().any(|(i, name)| names[..i].contains(name)) {
        errors.invalid(&list, &all, "must contain unique version names");
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        errors.invalid(&list, &all, "must have exactly one version marked as storage version");
    }
    // The name of the first version also stands in an older field, which is checked as well.
    if let Some(name) = names.first().filter(|name| !name.is_empty()) {
        let fault = text::label_1035(name);
        if !fault.is_empty() {
            errors.invalid(&path.child("version"), &(*name).into(), &fault);
        }
    }
}

fn validate_deprecation(version: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(warning) = version["deprecationWarning"].as_str() else { return };
    let shown = Value::from(warning);
    if version["deprecated"] != true {
        errors.invalid(path, &shown, "can only be set for deprecated versions");
        return;
    }
    if warning.len() > 256 {
        errors.invalid(path, &shown, "must be <= 256 characters long");
    }
    if warning.is_empty() {
        errors.invalid(path, &shown, "must not be an empty string");
    }
    if let Some((i, _)) =
        warning.char_indices().find(|(_, c)| c.is_control() || (c.is_whitespace() && *c != ' '))
    {
        let detail = format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {i}"
        );
        errors.invalid(path, &shown, &detail);
    }
}

fn validate_required_names(names: &Value, path: &Path<'_>, errors: &mut Errors) {
    for key in ["plural", "singular", "kind", "listKind"] {
        if str_at(names, &[key]).is_empty() {
            errors.required(&path.child(key), "");
        }
    }
    validate_names(names, path, errors);
}

fn validate_names(names: &Value, path: &Path<'_>, errors: &mut Errors) {
    for key in ["plural", "singular"] {
        let name = str_at(names, &[key]);
        let fault = text::label_1035(name);
        if !name.is_empty() && !fault.is_empty() {
            errors.invalid(&path.child(key), &name.into(), &fault);
        }
    }
    for key in ["kind", "listKind"] {
        let name = str_at(names, &[key]);
        let fault = text::label_1035(&name.to_lowercase());
        if !name.is_empty() && !fault.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {fault}");
            errors.invalid(&path.child(key), &name.into(), &detail);
        }
    }
    let list = |key: &str| names[key].as_array().into_iter().flatten().filter_map(Value::as_str);
    let check_list = |key: &str, errors: &mut Errors| {
        for (i, name) in list(key).enumerate() {
            let fault = text::label_1035(name);
            if !fault.is_empty() {
                errors.invalid(&path.child(key).index(i), &name.into(), &fault);
            }
        }
    };
    check_list("shortNames", errors);
    let (kind, list_kind) = (str_at(names, &["kind"]), str_at(names, &["listKind"]));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.invalid(&path.child("listKind"), &list_kind.into(), detail);
    }
    check_list("categories", errors);
}

/// `beside_status` is for a schema whose status is split off: whether it was sent with empty keywords at its root.
fn validate_schema(
    schema: &Value,
    beside_status: Option<bool>,
    unchanged: bool,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if !schema.is_object() {
        return;
    }
    let props = Props::read(schema);
    let path = path.child("openAPIV3Schema");
    if let Some(empty) = beside_status {
        root::check(schema, &props, empty, &path, errors);
    }
    if props.nullable {
        errors.forbidden(&path.child("nullable"), "nullable cannot be true at the root");
    }
    let before = errors.0.len();
    let unsupported = structural::unsupported(&props);
    if unsupported.is_none() {
        structural::check(&props, &path, errors);
        if errors.0.len() == before {
            check_defaults::check(&props, &path, errors);
        }
    }
    let compile = unsupported.is_none() && errors.0.len() == before;
    keywords::check(&props, &path, compile, unchanged, errors);
    if let Some(why) = unsupported.filter(|_| errors.0.len() == before) {
        errors.invalid(&path, &"".into(), &why);
    }
}

fn validate_subresources(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    let scale = &value["scale"];
    if !scale.is_object() {
        return;
    }
    let path = path.child("scale");
    for (key, root, required, detail) in [
        ("specReplicasPath", &[".spec."][..], true, "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."][..], true, "should be a json path under .status"),
        (
            "labelSelectorPath",
            &[".spec.", ".status."][..],
            false,
            "should be a json path under either .spec or .status",
        ),
    ] {
        let at = path.child(key);
        match str_at(scale, &[key]) {
            "" if required => errors.required(&at, ""),
            "" => {}
            text if !text.starts_with('.') => {
                errors.invalid(&at, &text.into(), "must be a simple json path starting with .");
            }
            text if !root.iter().any(|root| text.starts_with(root)) => {
                errors.invalid(&at, &text.into(), detail)
            }
            _ => {}
        }
    }
}

fn validate_column(column: &Value, path: &Path<'_>, errors: &mut Errors) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    if str_at(column, &["name"]).is_empty() {
        errors.required(&path.child("name"), "");
    }
    let detail = format!("must be one of {}", TYPES.join(","));
    match str_at(column, &["type"]) {
        "" => errors.required(&path.child("type"), &detail),
        ty if !TYPES.contains(&ty) => errors.invalid(&path.child("type"), &ty.into(), &detail),
        _ => {}
    }
    let format = str_at(column, &["format"]);
    if !format.is_empty() && !FORMATS.contains(&format) {
        let detail = format!("must be one of {}", FORMATS.join(","));
        errors.invalid(&path.child("format"), &format.into(), &detail);
    }
    match str_at(column, &["jsonPath"]) {
        "" => errors.required(&path.child("JSONPath"), ""),
        text if !text.starts_with('.') => {
            errors.invalid(
                &path.child("JSONPath"),
                &text.into(),
                "must be a simple json path starting with .",
            );
        }
        _ => {}
    }
}

/// How many fields of a kind may be selectable.
const SELECTABLE_MAX: usize = 8;

fn validate_selectable(
    fields: &Value,
    schema: Option<&Value>,
    shared: bool,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if fields.as_array().is_none_or(Vec::is_empty) {
        return;
    }
    let Some(schema) = schema else {
        let detail = match shared {
            true => "may only be set when validations.schema is included",
            // The words are the real server's.
            false => "may only be set when `version.schema.openAPIV3Schema` is not included",
        };
        return errors.invalid(path, &"".into(), detail);
    };
    let props = Props::read(&schema["openAPIV3Schema"]);
    let mut seen: Vec<String> = Vec::new();
    for (i, field) in fields.as_array().into_iter().flatten().enumerate() {
        let text = str_at(field, &["jsonPath"]);
        let at = path.index(i);
        let at = at.child("jsonPath");
        if text.is_empty() {
            errors.required(&at, "");
            continue;
        }
        let shown = Value::from(text);
        let found = match paths::resolve(&props, text, false) {
            Ok(found) => found,
            Err(why) => {
                errors.invalid(&at, &shown, &format!("is an invalid path: {why}"));
                continue;
            }
        };
        if found.root == "metadata" {
            errors.invalid(&at, &shown, "must not point to fields in metadata");
        }
        let is_scalar = |props: &Props| matches!(props.ty.as_str(), "string" | "boolean" | "integer");
        if !found.schema.is_some_and(is_scalar) {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings \
                          with formats are allowed.";
            errors.invalid(&at, &shown, detail);
        }
        match seen.contains(&found.path) {
            true => errors.duplicate(&at, &shown),
            false => seen.push(found.path),
        }
    }
    if seen.len() > SELECTABLE_MAX {
        errors.too_many(path, seen.len(), SELECTABLE_MAX);
    }
}

/// Warnings for a definition: formats in its schemas that the server does not know. `old` is what it was before.
pub fn warnings(crd: &Value, old: Option<&Value>) -> Vec<String> {
    let formats = |crd: &Value| {
        let versions = versions(crd);
        let mut found = Vec::new();
        if versions.is_empty() {
            return found;
        }
        let path = Path::Root;
        Shared::new("schema", versions).each(versions, "validation", &path, &mut |schema, _, _| {
            found.extend(formats::unrecognized(&Props::read(&schema["openAPIV3Schema"])));
        });
        found
    };
    let before = old.map(formats).unwrap_or_default();
    let new = formats(crd).into_iter().filter(|format| !before.contains(format));
    new.map(|format| format!("unrecognized format {format:?}")).collect()
}
