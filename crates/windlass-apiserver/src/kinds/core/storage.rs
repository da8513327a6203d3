//! Persistent volumes and claims.

use serde_json::{Value, json};

use super::{source, volume};
use crate::codec::Quantity;
use crate::field::{Errors, Path};
use crate::kinds::check::{by_rule, one_of, quantity, required, selector, text_by};
use crate::kinds::meta::{Check, IMMUTABLE_FIELD};
use crate::kinds::names;
use crate::kinds::pod::affinity;
use crate::kinds::tree::{
    entries, existing, fill, fill_zero, get, is_zero, list, remove, restore, same, seconds, set, sub, text,
    text_at,
};
use crate::kinds::{Context, Hooks, diff, inner, warn};

pub(super) const VOLUME: Hooks = Hooks {
    default: default_volume,
    prepare_create: prepare_volume,
    prepare_status: time_of_phase,
    validate_create: |object, _, errors| {
        validate_volume(object, errors);
        mount_options(object, errors);
    },
    rechecks: &[Check::Whole, Check::Whole],
    warnings: |volume, _| volume_warnings(volume),
    validate_update: |new, old, _, errors| {
        // The real server does so twice, and tells each fault twice.
        validate_volume(new, errors);
        mount_options(new, errors);
        validate_volume(new, errors);
        update_volume(new, old, errors);
    },
    ..Hooks::NONE
};

pub(super) const CLAIM: Hooks = Hooks {
    rechecks: &[Check::Update, Check::Whole],
    default: default_claim,
    prepare_create: prepare_claim,
    warnings: |claim, _| claim_warnings(claim),
    prepare_update: |new, _, _| mirror_data_source(sub(new, "spec")),
    validate_create: |object, _, errors| validate_claim(object, None, errors),
    validate_update: |new, old, _, errors| {
        validate_claim(new, Some(old), errors);
        update_claim(new, old, errors);
    },
    ..Hooks::NONE
};

fn default_volume(object: &mut Value) {
    fill_zero(sub(object, "status"), "phase", "Pending");
    let spec = sub(object, "spec");
    fill_zero(spec, "persistentVolumeReclaimPolicy", "Retain");
    fill(spec, "volumeMode", "Filesystem");
    volume::plugin(spec);
}

/// Defaults of a claim, also of those in the templates of stateful sets.
pub(crate) fn default_claim(object: &mut Value) {
    fill_zero(sub(object, "status"), "phase", "Pending");
    fill(sub(object, "spec"), "volumeMode", "Filesystem");
}

fn prepare_volume(object: &mut Value, context: &Context<'_>) {
    let now = seconds(context.now);
    set(object, "status", json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
}

fn prepare_claim(object: &mut Value, _: &Context<'_>) {
    // Sources that the old field never allowed are dropped, as they have been since before it had a successor.
    let spec = sub(object, "spec");
    let known = get(spec, "dataSource").is_none_or(|source| {
        let of = (text(source, "apiGroup"), text(source, "kind"));
        of == ("", "PersistentVolumeClaim") || of == ("snapshot.storage.k8s.io", "VolumeSnapshot")
    });
    if !known && get(spec, "dataSourceRef").is_none() {
        remove(spec, "dataSource");
    }
    mirror_data_source(sub(object, "spec"));
}

/// `dataSource` and `dataSourceRef` mirror each other where the old field can express it.
fn mirror_data_source(spec: &mut Value) {
    match (get(spec, "dataSource").cloned(), get(spec, "dataSourceRef").cloned()) {
        (Some(source), None) => set(spec, "dataSourceRef", source),
        (None, Some(reference)) if get(&reference, "namespace").is_none() => {
            set(spec, "dataSource", reference)
        }
        _ => {}
    }
}

fn time_of_phase(new: &mut Value, old: &Value, context: &Context<'_>) {
    const FIELD: &str = "lastPhaseTransitionTime";
    let (now, before) = (sub(new, "status"), &old["status"]);
    let moved = text(now, "phase") != text(before, "phase");
    match moved {
        false if get(now, FIELD).is_none() => restore(now, before, FIELD),
        true if get(now, FIELD).is_none() || same(now.get(FIELD), before.get(FIELD)) => {
            set(now, FIELD, seconds(context.now));
        }
        _ => {}
    }
}

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

fn access_modes(spec: &Value, detail: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("accessModes");
    let modes = list(spec, "accessModes");
    if modes.is_empty() {
        errors.required(&path, detail);
    }
    for mode in modes {
        if !MODES.iter().any(|known| mode == known) {
            errors.not_supported(&path, mode, &MODES);
        }
    }
    let others = |mode: &Value| mode != "ReadWriteOncePod" && MODES.iter().any(|known| mode == known);
    if modes.iter().any(|mode| mode == "ReadWriteOncePod") && modes.iter().any(others) {
        errors.forbidden(&path, "may not use ReadWriteOncePod with other access modes");
    }
}

fn validate_claim(claim: &Value, old: Option<&Value>, errors: &mut Errors) {
    // A group that was there once is not looked at again, whatever it is.
    let grouped = |old: &Value| {
        ["dataSource", "dataSourceRef"].iter().any(|field| get(&old["spec"][field], "apiGroup").is_some())
    };
    spec_of_claim(&claim["spec"], !old.is_some_and(grouped), &Path::Root.child("spec"), errors);
}

/// Checks the spec of a claim in a template.
pub(crate) fn claim_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    spec_of_claim(spec, true, path, errors);
}

fn spec_of_claim(spec: &Value, group_too: bool, path: &Path<'_>, errors: &mut Errors) {
    access_modes(spec, "at least 1 access mode is required", path, errors);
    selector(spec, "selector", path, errors);
    let at = path.child("resources");
    match spec.pointer("/resources/requests/storage") {
        None => errors.required(&at.key("storage"), ""),
        Some(storage) => {
            if quantity(storage).is_some_and(|amount| amount.signum() != 1) {
                errors.invalid(&at.key("storage"), storage, "must be greater than zero");
            }
        }
    }
    text_by(spec, "storageClassName", names::dns_subdomain, path, errors);
    one_of(spec, "volumeMode", &["Block", "Filesystem"], path, errors);
    for field in ["dataSource", "dataSourceRef"] {
        if let Some(source) = get(spec, field) {
            data_source(source, group_too, &path.child(field), errors);
        }
    }
    if let (Some(source), Some(reference)) = (get(spec, "dataSource"), get(spec, "dataSourceRef")) {
        let same =
            ["apiGroup", "kind", "name"].iter().all(|field| same(source.get(field), reference.get(field)));
        let detail = match text(reference, "namespace").is_empty() {
            false => "may not be specified when dataSourceRef.namespace is specified",
            true if !same => "must match dataSourceRef",
            true => "",
        };
        if !detail.is_empty() {
            // The real server prints the path of the field in place of its value, and that prints as nothing.
            errors.invalid(path, &json!({}), detail);
        }
    }
    text_by(spec, "volumeAttributesClassName", names::dns_subdomain, path, errors);
}

fn data_source(source: &Value, group_too: bool, path: &Path<'_>, errors: &mut Errors) {
    required(source, "name", "", path, errors);
    required(source, "kind", "", path, errors);
    let kind = text(source, "kind");
    match text(source, "apiGroup") {
        "" if kind != "PersistentVolumeClaim" => {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.invalid(path, &json!(kind), detail);
        }
        _ if group_too => text_by(source, "apiGroup", names::dns_subdomain, path, errors),
        _ => {}
    }
    text_by(source, "namespace", names::dns_label, path, errors);
}

fn update_claim(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::Root.child("spec");
    let (spec, old_spec) = (&new["spec"], &old["spec"]);
    let (mut after, mut before) = (spec.clone(), old_spec.clone());
    let bound = text_at(new, &["status", "phase"]) == "Bound";
    if text(old_spec, "volumeName").is_empty() {
        restore(&mut before, spec, "volumeName");
    }
    // A claim that was made before there was a default class may still get one.
    let class = |claim: &Value| claim.pointer("/spec/storageClassName").filter(|c| !c.is_null()).cloned();
    let annotated = |claim: &Value| claim["metadata"]["annotations"].get(STORAGE_CLASS).cloned();
    let (was, is) = (annotated(old), annotated(new));
    let unnamed = class(old).is_none() && class(new).is_some();
    if unnamed && was.is_some() && was == class(new) && (is.is_none() || is == was) {
        remove(&mut after, "storageClassName");
    } else {
        let shown = |value: &Option<Value>| value.clone().unwrap_or_else(|| json!(""));
        if shown(&is) != shown(&was) {
            let metadata = Path::Root.child("metadata");
            let annotations = metadata.child("annotations");
            errors.invalid(&annotations.child(STORAGE_CLASS), &shown(&is), IMMUTABLE_FIELD);
        }
        if unnamed && (was.is_none() || was == class(new)) {
            restore(&mut after, old_spec, "storageClassName");
        }
    }
    if bound {
        let held = old_spec.pointer("/resources/requests").cloned().unwrap_or_default();
        if let Some(requests) = existing(&mut after, "resources").and_then(|r| existing(r, "requests")) {
            restore(requests, &held, "storage");
        }
        restore(&mut after, old_spec, "volumeAttributesClassName");
    }
    mirror_data_source(&mut after);
    mirror_data_source(&mut before);
    if !same(Some(&after), Some(&before)) {
        let shown = |spec: &Value| inner::shown("io.k8s.api.core.v1.PersistentVolumeClaimSpec", spec);
        let changes = diff::unified(&shown(&before), &shown(&after));
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                      bound claims";
        errors.forbidden(&path, &format!("{detail}\n{changes}"));
    }
    let nothing = Quantity::from_i64(0);
    let size = |value: Option<&Value>| value.and_then(quantity).unwrap_or_else(|| nothing.clone());
    let wanted = size(spec.pointer("/resources/requests/storage"));
    let shrinks = wanted < size(old_spec.pointer("/resources/requests/storage"));
    if shrinks && wanted <= size(old.pointer("/status/capacity/storage")) {
        let at = path.child("resources");
        let at = at.child("requests");
        errors.forbidden(&at.child("storage"), "field can not be less than status.capacity");
    }
    if !same(spec.get("volumeMode"), old_spec.get("volumeMode")) {
        errors.invalid(&Path::Root.child("volumeMode"), &spec["volumeMode"], IMMUTABLE_FIELD);
    }
    let held = old.pointer("/status/currentVolumeAttributesClassName").filter(|class| !class.is_null());
    let class = spec.get("volumeAttributesClassName");
    if held.is_some() && !same(class, old_spec.get("volumeAttributesClassName")) {
        let to = match class {
            None => "nil",
            Some(class) if class == "" => "empty string",
            Some(_) => return,
        };
        let detail =
            format!("update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil");
        errors.forbidden(&path.child("volumeAttributesClassName"), &detail);
    }
}

/// The sources of a persistent volume, in the order in which the real server looks for them.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

fn validate_volume(object: &Value, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root.child("spec"));
    access_modes(spec, "", &path, errors);
    if is_zero(spec.get("capacity")) {
        errors.required(&path.child("capacity"), "");
    }
    let capacity = spec.get("capacity").filter(|capacity| !is_zero(Some(capacity)));
    if capacity.is_none_or(|all| all.get("storage").is_none() || entries(spec, "capacity").count() > 1) {
        errors.not_supported(&path.child("capacity"), capacity.unwrap_or(&Value::Null), &["storage"]);
    }
    for (name, amount) in entries(spec, "capacity") {
        let at = path.child("capacity");
        let at = at.key(name);
        let Some(value) = quantity(amount) else { continue };
        if value.as_i64().is_some_and(|whole| whole < 0) {
            errors.invalid(&at, &json!(value.as_i64()), "must be a valid resource quantity");
        }
        if value.signum() != 1 {
            errors.invalid(&at, amount, "must be greater than zero");
        }
    }
    one_of(spec, "persistentVolumeReclaimPolicy", &["Delete", "Recycle", "Retain"], &path, errors);
    if let Some(affinity) = get(spec, "nodeAffinity") {
        let at = path.child("nodeAffinity");
        match get(affinity, "required") {
            Some(selector) => affinity::node_selector(selector, &at.child("required"), errors),
            None => errors.required(&at.child("required"), "must specify required node constraints"),
        }
    }
    let mut sources = SOURCES.iter().filter(|source| get(spec, source).is_some());
    match sources.next() {
        None => errors.required(&path, "must specify a volume type"),
        Some(kind) => {
            // The real server calls this one so.
            let at = path.child(if *kind == "gcePersistentDisk" { "persistentDisk" } else { kind });
            source::plugin(kind, &spec[*kind], true, &at, errors);
            if *kind == "iscsi" {
                portal(object, &at, errors);
            }
            if *kind == "local" && get(spec, "nodeAffinity").is_none() {
                errors.required(&path.child("nodeAffinity"), "Local volume requires node affinity");
            }
        }
    }
    for more in sources {
        match *more {
            // Of this one the real server does not see that it is too many.
            "flexVolume" => source::plugin(more, &spec[*more], true, &path.child(more), errors),
            "cephfs" => errors.forbidden(&path.child("cephFS"), "may not specify more than 1 volume type"),
            more => errors.forbidden(&path.child(more), "may not specify more than 1 volume type"),
        }
    }
    let recycled = text(spec, "persistentVolumeReclaimPolicy") == "Recycle";
    if recycled && is_root(text_at(spec, &["hostPath", "path"])) {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.forbidden(&path.child("persistentVolumeReclaimPolicy"), detail);
    }
    text_by(spec, "storageClassName", names::dns_subdomain, &path, errors);
    one_of(spec, "volumeMode", &["Block", "Filesystem"], &path, errors);
    if get(spec, "volumeAttributesClassName").is_some() {
        let at = path.child("volumeAttributesClassName");
        match text(spec, "volumeAttributesClassName") {
            "" => errors.required(&at, "an empty string is disallowed"),
            class => by_rule(class, names::dns_subdomain, &at, errors),
        }
        if get(spec, "csi").is_none() {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.required(&path.child("csi"), detail);
        }
    }
}

/// What is said where [`portal`] finds too long a name.
pub(crate) const LONG_PORTAL: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                                      iscsi.initiatorName is specified.";

/// A volume and its portal share a name of limited length with whoever opens it.
fn portal(volume: &Value, path: &Path<'_>, errors: &mut Errors) {
    let source = &volume["spec"]["iscsi"];
    let portal = text(source, "targetPortal");
    let length = text_at(volume, &["metadata", "name"]).len() + 1 + portal.len();
    if get(source, "initiatorName").is_some() && length > 64 {
        errors.invalid(&path.child("targetportal"), &json!(portal), LONG_PORTAL);
    }
}

/// Whether a path is the root, however it is written.
fn is_root(path: &str) -> bool {
    path.starts_with('/') && path.split('/').all(|part| matches!(part, "" | "." | ".."))
}

/// Most sorts of volumes take no options from the annotation that was once the way to give them.
fn mount_options(volume: &Value, errors: &mut Errors) {
    const TAKE: [&str; 13] = [
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "nfs",
        "rbd",
        "quobyte",
        "iscsi",
        "cinder",
        "cephfs",
        "azureFile",
        "vsphereVolume",
        "azureDisk",
        "photonPersistentDisk",
    ];
    let given = volume["metadata"]["annotations"].get(MOUNT_OPTIONS).is_some();
    if given && TAKE.iter().all(|source| get(&volume["spec"], source).is_none()) {
        let path = Path::Root.child("metadata");
        let path = path.child("annotations");
        errors.forbidden(&path.child(MOUNT_OPTIONS), "may not specify mount options for this volume type");
    }
}

const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const CLASS_DEPRECATED: &str = "deprecated since v1.8; use \"storageClassName\" attribute instead";

fn volume_warnings(volume: &Value) -> Vec<String> {
    let (spec, path) = (&volume["spec"], Path::Root.child("spec"));
    let mut out = Vec::new();
    annotation_warning(volume, STORAGE_CLASS, CLASS_DEPRECATED, &mut out);
    let options = "deprecated since v1.31; use \"mountOptions\" attribute instead";
    annotation_warning(volume, MOUNT_OPTIONS, options, &mut out);
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        out.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let affinity = path.child("nodeAffinity");
    let required = affinity.child("required");
    let terms = required.child("nodeSelectorTerms");
    for (index, term) in list(&spec["nodeAffinity"]["required"], "nodeSelectorTerms").iter().enumerate() {
        warn::node_selector_term(term, false, &terms.index(index), &mut out);
    }
    for (field, name, why) in [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ] {
        if get(spec, field).is_some() {
            out.push(format!("{}: {why}", path.child(name)));
        }
    }
    out
}

fn claim_warnings(claim: &Value) -> Vec<String> {
    let mut out = Vec::new();
    annotation_warning(claim, STORAGE_CLASS, CLASS_DEPRECATED, &mut out);
    warn::claim_spec(&claim["spec"], &Path::Root.child("spec"), &mut out);
    out
}

fn annotation_warning(object: &Value, key: &str, why: &str, out: &mut Vec<String>) {
    if object["metadata"]["annotations"].get(key).is_some() {
        let metadata = Path::Root.child("metadata");
        out.push(format!("{}: {why}", metadata.child("annotations").key(key)));
    }
}

/// Whether volumes are on the same nodes, by labels that may have got their final names since. The real server looks
/// the old name up, finds nothing for most, and takes that for the empty one.
fn same_affinity(new: &Value, old: &Value) -> bool {
    const RENAMED: [(&str, &str); 5] = [
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ];
    let mut old = old["nodeAffinity"].clone();
    for field in ["matchExpressions", "matchFields"] {
        let Some(terms) = old.pointer_mut("/required/nodeSelectorTerms").and_then(Value::as_array_mut) else {
            break;
        };
        for (index, term) in terms.iter_mut().enumerate() {
            let Some(requirements) = term.get_mut(field).and_then(Value::as_array_mut) else { continue };
            for (place, requirement) in requirements.iter_mut().enumerate() {
                let pointer = format!("/nodeAffinity/required/nodeSelectorTerms/{index}/{field}/{place}");
                let Some(after) = new.pointer(&pointer) else { continue };
                let was = text(requirement, "key");
                let now = RENAMED.iter().find(|(beta, _)| *beta == was).map_or("", |(_, now)| now);
                if text(after, "key") == now && was != now {
                    restore(requirement, after, "key");
                }
            }
        }
    }
    same(new.get("nodeAffinity"), Some(&old))
}

fn update_volume(new: &Value, old: &Value, errors: &mut Errors) {
    let (new, old) = (&new["spec"], &old["spec"]);
    let of = |spec: &Value| {
        let present = SOURCES.iter().filter_map(|kind| Some(((*kind).to_owned(), get(spec, kind)?.clone())));
        Value::Object(present.collect())
    };
    let (mut after, before) = (of(new), of(old));
    // A secret for growing may be given later.
    const EXPAND: &str = "controllerExpandSecretRef";
    if let Some(csi) = existing(&mut after, "csi")
        && get(&before, "csi").is_some_and(|before| get(before, EXPAND).is_none())
    {
        remove(csi, EXPAND);
    }
    if !same(Some(&after), Some(&before)) {
        let shown = |source: &Value| inner::shown("io.k8s.api.core.v1.PersistentVolumeSource", source);
        let changes = diff::unified(&shown(&before), &shown(&after));
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{changes}");
        errors.forbidden(&Path::Root.child("spec").child("persistentvolumesource"), &detail);
    }
    if !same(new.get("volumeMode"), old.get("volumeMode")) {
        errors.invalid(&Path::Root.child("volumeMode"), &new["volumeMode"], IMMUTABLE_FIELD);
    }
    if get(old, "nodeAffinity").is_some() && !same_affinity(new, old) {
        let shown = match get(new, "nodeAffinity") {
            Some(affinity) => inner::shown("io.k8s.api.core.v1.VolumeNodeAffinity", affinity),
            None => Value::Null,
        };
        let detail = format!("{IMMUTABLE_FIELD}, except for updating from beta label to GA");
        errors.invalid(&Path::Root.child("nodeAffinity"), &shown, &detail);
    }
    let class = |spec: &Value| get(spec, "volumeAttributesClassName").is_some();
    if class(old) && !class(new) {
        let path = Path::Root.child("spec");
        let detail = "update from non-nil value to nil is forbidden";
        errors.forbidden(&path.child("volumeAttributesClassName"), detail);
    }
}
