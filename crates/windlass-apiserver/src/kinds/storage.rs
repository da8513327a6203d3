//! Storage classes, CSI objects, volume attachments.

use serde_json::{Value, json};

use super::check::{by_rule, one_of, required, text_by};
use super::generation::Generation;
use super::meta::{Check, IMMUTABLE_FIELD, immutable};
use super::tree::{existing, fill, get, is_zero, list, same, set, sub, text};
use super::{Context, Hooks, core, names, warn};
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
            if before.is_some_and(|before| !same(Some(before), Some(driver))) {
                errors.invalid(&Path::Root.child("spec").child("drivers"), driver, IMMUTABLE_FIELD);
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
    validate_create: |object, _, errors| {
        let path = Path::Root.child("storageClassName");
        by_rule(text(object, "storageClassName"), names::dns_subdomain, &path, errors);
    },
    validate_update: |new, old, _, errors| {
        for field in ["nodeTopology", "storageClassName"] {
            immutable(new, old, &Path::Root, field, errors);
        }
    },
    ..Hooks::NONE
};

const ATTRIBUTES_CLASS: Hooks = Hooks {
    rechecks: &[Check::Update, Check::Whole],
    validate_create: |object, _, errors| {
        if required(object, "driverName", "", &Path::Root, errors) {
            let name = text(object, "driverName").to_lowercase();
            by_rule(&name, names::label_key, &Path::Root.child("driverName"), errors);
        }
        required(object, "parameters", "must contain at least one key/value pair", &Path::Root, errors);
    },
    validate_update: |new, old, _, errors| {
        for field in ["driverName", "parameters"] {
            if !same(new.get(field), old.get(field)) {
                let detail = format!("updates to {field} are forbidden.");
                errors.forbidden(&Path::Root.child(field), &detail);
            }
        }
    },
    ..Hooks::NONE
};

fn validate_storage_class(class: &Value, _: &Context<'_>, errors: &mut Errors) {
    let root = Path::Root;
    if required(class, "provisioner", "", &root, errors) {
        by_rule(
            &text(class, "provisioner").to_lowercase(),
            names::label_key,
            &root.child("provisioner"),
            errors,
        );
    }
    if !text(class, "reclaimPolicy").is_empty() {
        one_of(class, "reclaimPolicy", &["Delete", "Retain"], &root, errors);
    }
    one_of(class, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], &root, errors);
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
    for mode in list(spec, "volumeLifecycleModes") {
        if mode != "Persistent" && mode != "Ephemeral" {
            errors.not_supported(&path.child("volumeLifecycleModes"), mode, &["Persistent", "Ephemeral"]);
        }
    }
}

fn validate_csi_node(node: &Value, _: &Context<'_>, errors: &mut Errors) {
    let path = Path::Root.child("spec");
    let path = path.child("drivers");
    for (index, driver) in list(&node["spec"], "drivers").iter().enumerate() {
        required(driver, "name", "", &path.index(index), errors);
        if text(driver, "name").len() > 63 {
            errors.too_long(&path.index(index).child("name"), 63);
        }
        required(driver, "nodeID", "", &path.index(index), errors);
    }
    super::check::unique(list(&node["spec"], "drivers"), "name", &path, errors);
}

fn validate_attachment(attachment: &Value, _: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&attachment["spec"], Path::Root.child("spec"));
    required(spec, "attacher", "", &path, errors);
    let source = &spec["source"];
    match (get(source, "inlineVolumeSpec"), text(source, "persistentVolumeName")) {
        (None, "") => {
            let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.required(&path.child("source"), detail);
        }
        (Some(_), name) if !name.is_empty() => {
            let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            errors.forbidden(&path.child("source"), detail);
        }
        _ => {}
    }
    text_by(source, "persistentVolumeName", names::dns_subdomain, &path.child("source"), errors);
    by_rule(text(spec, "nodeName"), names::dns_subdomain, &path.child("nodeName"), errors);
}
