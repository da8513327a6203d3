//! Storage classes, CSI objects, volume attachments.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::check::{by_rule, not_negative, one_of, quantity, required, selector};
use super::core::source::driver_name;
use super::generation::Generation;
use super::meta::{Check, IMMUTABLE_FIELD, NOT_NEGATIVE, immutable};
use super::tree::{entries, existing, fill, get, int, is_zero, list, remove, same, set, sub, text};
use super::{Context, Hooks, core, inner, names, warn};
use crate::field::{Errors, Path};

/// The hooks of a storage kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    Some(match kind {
        "StorageClass" => &STORAGE_CLASS,
        "CSIDriver" => &CSI_DRIVER,
        "CSINode" => &CSI_NODE,
        "VolumeAttachment" => &ATTACHMENT,
        "CSIStorageCapacity" => &CAPACITY,
        "VolumeAttributesClass" => &ATTRIBUTES_CLASS,
        _ => return None,
    })
}

const STORAGE_CLASS: Hooks = Hooks {
    rechecks: &[Check::Whole, Check::Update],
    default: |object| {
        fill(object, "reclaimPolicy", "Delete");
        fill(object, "volumeBindingMode", "Immediate");
    },
    warnings: |class, _| {
        let mut out = Vec::new();
        let topologies = Path::Root.child("allowedTopologies");
        for (index, topology) in list(class, "allowedTopologies").iter().enumerate() {
            let path = topologies.index(index);
            let path = path.child("matchLabelExpressions");
            for (index, expression) in list(topology, "matchLabelExpressions").iter().enumerate() {
                if let Some(message) = warn::node_label(text(expression, "key")) {
                    out.push(format!("{}: {message}", path.index(index).child("key")));
                }
            }
        }
        out
    },
    validate_create: validate_storage_class,
    validate_update: |new, old, context, errors| {
        validate_storage_class(new, context, errors);
        for field in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
            immutable(new, old, &Path::Root, field, errors);
        }
    },
    ..Hooks::NONE
};

const CSI_DRIVER: Hooks = Hooks {
    default: default_csi_driver,
    generation: Generation { born: false, grows_on: &["/spec"], ..Generation::NONE },
    warnings: csi_driver_warnings,
    validate_create: validate_csi_driver,
    validate_update: |new, old, context, errors| {
        validate_csi_driver(new, context, errors);
        let path = Path::Root.child("spec");
        if !same(new.pointer("/spec/attachRequired"), old.pointer("/spec/attachRequired")) {
            errors.invalid(&path.child("attachedRequired"), &new["spec"]["attachRequired"], IMMUTABLE_FIELD);
        }
        immutable(&new["spec"], &old["spec"], &path, "volumeLifecycleModes", errors);
    },
    ..Hooks::NONE
};

fn csi_driver_warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let requests = |driver: &Value| driver["spec"].get("tokenRequests").cloned();
    let asked = !is_zero(requests(new).as_ref())
        && old.is_none_or(|old| !same(requests(old).as_ref(), requests(new).as_ref()));
    match asked && get(&new["spec"], "serviceAccountTokenInSecrets").is_none() {
        true => vec![
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
             possible logging of tokens in volume attributes"
                .to_owned(),
        ],
        false => Vec::new(),
    }
}

const CSI_NODE: Hooks = Hooks {
    rechecks: &[Check::Whole],
    validate_create: validate_csi_node,
    validate_update: |new, old, context, errors| {
        validate_csi_node(new, context, errors);
        for driver in list(&new["spec"], "drivers") {
            let before =
                list(&old["spec"], "drivers").iter().find(|old| text(old, "name") == text(driver, "name"));
            let fixed = |driver: &Value| {
                let mut driver = driver.clone();
                remove(&mut driver, "allocatable");
                driver
            };
            if before.is_some_and(|before| !same(Some(&fixed(before)), Some(&fixed(driver)))) {
                let shown = inner::shown("io.k8s.api.storage.v1.CSINodeDriver", &fixed(driver));
                errors.invalid(&Path::Root.child("spec").child("drivers"), &shown, IMMUTABLE_FIELD);
            }
        }
    },
    ..Hooks::NONE
};

const ATTACHMENT: Hooks = Hooks {
    rechecks: &[Check::Whole],
    default: |object| {
        if let Some(inline) =
            existing(sub(object, "spec"), "source").and_then(|source| existing(source, "inlineVolumeSpec"))
        {
            core::volume::plugin(inline);
        }
    },
    validate_create: validate_attachment,
    validate_update: |new, old, context, errors| {
        validate_attachment(new, context, errors);
        immutable(new, old, &Path::Root, "spec", errors);
    },
    ..Hooks::NONE
};

const CAPACITY: Hooks = Hooks {
    rechecks: &[Check::Whole, Check::Update],
    validate_create: |object, _, errors| validate_capacity(object, errors),
    validate_update: |new, old, _, errors| {
        validate_capacity(new, errors);
        for field in ["nodeTopology", "storageClassName"] {
            immutable(new, old, &Path::Root, field, errors);
        }
    },
    ..Hooks::NONE
};

fn validate_capacity(object: &Value, errors: &mut Errors) {
    let path = Path::Root.child("storageClassName");
    selector(object, "nodeTopology", &Path::Root, errors);
    by_rule(text(object, "storageClassName"), names::dns_subdomain, &path, errors);
    if let Some(capacity) = get(object, "capacity")
        && quantity(capacity).is_some_and(|amount| amount.signum() < 0)
    {
        errors.invalid(&Path::Root.child("capacity"), capacity, NOT_NEGATIVE);
    }
}

const ATTRIBUTES_CLASS: Hooks = Hooks {
    rechecks: &[Check::Update, Check::Whole],
    validate_create: |object, _, errors| validate_attributes_class(object, errors),
    validate_update: |new, old, _, errors| {
        validate_attributes_class(new, errors);
        for field in ["driverName", "parameters"] {
            if !same(new.get(field), old.get(field)) {
                let detail = format!("updates to {field} are forbidden.");
                errors.forbidden(&Path::Root.child(field), &detail);
            }
        }
    },
    ..Hooks::NONE
};

fn validate_attributes_class(class: &Value, errors: &mut Errors) {
    provisioner(class, "driverName", errors);
    parameters(class, errors);
    required(class, "parameters", "must contain at least one key/value pair", &Path::Root, errors);
}

/// Who makes volumes: a qualified name, in letters of any case.
fn provisioner(class: &Value, field: &str, errors: &mut Errors) {
    if required(class, field, "", &Path::Root, errors) {
        by_rule(&text(class, field).to_lowercase(), names::label_key, &Path::Root.child(field), errors);
    }
}

/// What a provisioner is told: not too much of it.
fn parameters(class: &Value, errors: &mut Errors) {
    const SIZE: usize = 256 << 10;
    const COUNT: usize = 512;
    let path = Path::Root.child("parameters");
    if entries(class, "parameters").count() > COUNT {
        errors.too_long(&path, COUNT);
        return;
    }
    let mut size = 0;
    for (key, value) in entries(class, "parameters") {
        if key.is_empty() {
            errors.invalid(&path, &json!(key), "field can not be empty.");
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > SIZE {
        errors.too_long(&path, SIZE);
    }
}

/// Where volumes may be: no requirement and no value stands twice.
fn topologies(class: &Value, errors: &mut Errors) {
    let path = Path::Root.child("allowedTopologies");
    let mut terms: Vec<BTreeMap<&str, BTreeSet<&str>>> = Vec::new();
    for (index, term) in list(class, "allowedTopologies").iter().enumerate() {
        let path = path.index(index);
        let path = path.child("matchLabelExpressions");
        let mut found = BTreeMap::new();
        for (index, expression) in list(term, "matchLabelExpressions").iter().enumerate() {
            let path = path.index(index);
            required(expression, "values", "", &path, errors);
            let mut values = BTreeSet::new();
            for (index, value) in list(expression, "values").iter().filter_map(Value::as_str).enumerate() {
                if !values.insert(value) {
                    errors.duplicate(&path.child("values").index(index), &json!(value));
                }
            }
            let key = text(expression, "key");
            by_rule(key, names::label_key, &path.child("key"), errors);
            if found.insert(key, values).is_some() {
                errors.duplicate(&path.child("key"), &json!(key));
            }
        }
        // The real server compares with as many empty terms as there are terms, besides those that it has seen.
        let nothing = if found.is_empty() { list(class, "allowedTopologies").len() } else { 0 };
        let times = nothing + terms.iter().filter(|other| **other == found).count();
        for _ in 0..times {
            errors.duplicate(&path, &json!(""));
        }
        terms.push(found);
    }
}

fn validate_storage_class(class: &Value, _: &Context<'_>, errors: &mut Errors) {
    let root = Path::Root;
    provisioner(class, "provisioner", errors);
    parameters(class, errors);
    if !text(class, "reclaimPolicy").is_empty() {
        one_of(class, "reclaimPolicy", &["Delete", "Retain"], &root, errors);
    }
    one_of(class, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], &root, errors);
    topologies(class, errors);
}

fn default_csi_driver(driver: &mut Value) {
    let spec = sub(driver, "spec");
    fill(spec, "attachRequired", true);
    for field in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        fill(spec, field, false);
    }
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if is_zero(spec.get("volumeLifecycleModes")) {
        set(spec, "volumeLifecycleModes", json!(["Persistent"]));
    }
}

fn validate_csi_driver(driver: &Value, _: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&driver["spec"], Path::Root.child("spec"));
    one_of(spec, "fsGroupPolicy", &["File", "None", "ReadWriteOnceWithFSType"], &path, errors);
    if let Some(period) = int(spec, "nodeAllocatableUpdatePeriodSeconds").filter(|period| *period < 10) {
        let detail = "must be greater than or equal to 10 seconds";
        errors.invalid(&path.child("nodeAllocatableUpdatePeriodSeconds"), &json!(period), detail);
    }
    if let Some(flag) = get(spec, "serviceAccountTokenInSecrets")
        && list(spec, "tokenRequests").is_empty()
    {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.invalid(&path.child("serviceAccountTokenInSecrets"), flag, detail);
    }
    let requests = list(spec, "tokenRequests");
    for (index, request) in requests.iter().enumerate() {
        let at = path.child("tokenRequests");
        let at = at.index(index);
        let audience = text(request, "audience");
        if requests[..index].iter().any(|other| text(other, "audience") == audience) {
            errors.duplicate(&at.child("audience"), &json!(audience));
            continue;
        }
        let Some(seconds) = int(request, "expirationSeconds") else { continue };
        let detail = match seconds {
            ..600 => "may not specify a duration less than 10 minutes",
            4_294_967_297.. => "may not specify a duration larger than 2^32 seconds",
            _ => continue,
        };
        errors.invalid(&at.child("expirationSeconds"), &json!(seconds), detail);
    }
    for mode in list(spec, "volumeLifecycleModes") {
        if mode != "Persistent" && mode != "Ephemeral" {
            errors.not_supported(&path.child("volumeLifecycleModes"), mode, &["Persistent", "Ephemeral"]);
        }
    }
}

fn validate_csi_node(node: &Value, _: &Context<'_>, errors: &mut Errors) {
    let path = Path::Root.child("spec");
    let path = path.child("drivers");
    let drivers = list(&node["spec"], "drivers");
    for (index, driver) in drivers.iter().enumerate() {
        let path = path.index(index);
        driver_name(text(driver, "name"), &path.child("name"), errors);
        required(driver, "nodeID", "", &path, errors);
        if text(driver, "nodeID").len() > 256 {
            errors.invalid(&path.child("nodeID"), &driver["nodeID"], "must be 256 characters or less");
        }
        if let Some(allocatable) = get(driver, "allocatable") {
            not_negative(allocatable, &["count"], &path.child("allocatable"), errors);
        }
        if drivers[..index].iter().any(|other| text(other, "name") == text(driver, "name")) {
            errors.duplicate(&path.child("name"), &json!(text(driver, "name")));
        }
        let keys = list(driver, "topologyKeys");
        for (index, key) in keys.iter().filter_map(Value::as_str).enumerate() {
            if key.is_empty() {
                errors.required(&path, "");
            }
            if keys[..index].iter().any(|other| other == key) {
                errors.duplicate(&path, &json!(key));
            }
            by_rule(key, names::label_key, &path, errors);
        }
    }
}

fn validate_attachment(attachment: &Value, _: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&attachment["spec"], Path::Root.child("spec"));
    driver_name(text(spec, "attacher"), &path.child("attacher"), errors);
    let source = &spec["source"];
    match (get(source, "inlineVolumeSpec"), get(source, "persistentVolumeName")) {
        (None, None) => {
            let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.required(&path.child("source"), detail);
        }
        (Some(_), Some(_)) => {
            let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.forbidden(&path.child("source"), detail);
        }
        (None, Some(_)) => {
            let detail = "must specify non empty persistentVolumeName";
            required(source, "persistentVolumeName", detail, &path.child("source"), errors);
        }
        (Some(_), None) => {}
    }
    if let Some(name) = get(source, "persistentVolumeName").and_then(Value::as_str) {
        let at = path.child("source");
        by_rule(name, names::dns_subdomain, &at.child("persistentVolumeName"), errors);
    }
    by_rule(text(spec, "nodeName"), names::dns_subdomain, &path.child("nodeName"), errors);
}
