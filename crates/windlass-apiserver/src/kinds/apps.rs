//! Deployments, replica sets, stateful sets, daemon sets.

use serde_json::{Value, json};

use super::check::{
    at_most_all, count_or_percent, is_none_of, is_valid_selector, matches, not_negative, one_of, selector,
    text_by,
};
use super::core::storage;
use super::generation::Generation;
use super::meta::{Check, NOT_NEGATIVE, annotations, immutable, labels};
use super::pod::{defaults, validate, warnings};
use super::tree::{
    each, existing, fill, fill_zero, get, go_struct, int, is_zero, list, remove, restore, same, set, sub,
    text, text_at,
};
use super::{Context, Hooks, names, warn};
use crate::field::{Errors, Path};

/// The hooks of an apps kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    Some(match kind {
        "Deployment" => &DEPLOYMENT,
        "ReplicaSet" => &REPLICA_SET,
        "StatefulSet" => &STATEFUL_SET,
        "DaemonSet" => &DAEMON_SET,
        "ControllerRevision" => &CONTROLLER_REVISION,
        _ => return None,
    })
}

const DEPLOYMENT: Hooks = Hooks {
    warnings: warnings::of_workload,
    default: default_deployment,
    blank: no_replicas,
    notes: validate::has_empty_labels,
    inner_annotations: &["deprecated.deployment.rollback.to"],
    // Annotations count too: they are copied to the replica sets.
    generation: Generation { born: true, grows_on: &["/spec", "/metadata/annotations"], ..Generation::NONE },
    validate_create: validate_deployment,
    validate_update: |new, old, context, errors| {
        validate_deployment(new, context, errors);
        immutable(&new["spec"], &old["spec"], &Path::Root.child("spec"), "selector", errors);
    },
    validate_status: |new, _, _, errors| {
        let counts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
        replica_counts(&new["status"], &counts, "readyReplicas", errors);
    },
    ..Hooks::NONE
};

const REPLICA_SET: Hooks = Hooks {
    warnings: warnings::of_workload,
    blank: no_replicas,
    notes: validate::has_empty_labels,
    default: |object| {
        let spec = sub(object, "spec");
        fill(spec, "replicas", 1);
        defaults::template(spec, "template");
    },
    generation: Generation::SPEC,
    validate_create: validate_replica_set,
    validate_update: |new, old, context, errors| {
        validate_replica_set(new, context, errors);
        immutable(&new["spec"], &old["spec"], &Path::Root.child("spec"), "selector", errors);
    },
    validate_status: |new, _, _, errors| {
        let counts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
        replica_counts(&new["status"], &counts, "readyReplicas", errors);
    },
    ..Hooks::NONE
};

const STATEFUL_SET: Hooks = Hooks {
    warnings: stateful_set_warnings,
    default: default_stateful_set,
    blank: no_replicas,
    notes: validate::has_empty_labels,
    name: names::dns_label,
    generation: Generation::SPEC,
    prepare_create: |object, _| drop_max_unavailable(object),
    prepare_update: |new, old, _| {
        if old.pointer(MAX_UNAVAILABLE).is_none() {
            drop_max_unavailable(new);
        }
    },
    validate_create: validate_stateful_set,
    validate_update: update_stateful_set,
    validate_status: |new, _, _, errors| {
        let counts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
        replica_counts(&new["status"], &counts, "status.readyReplicas", errors);
    },
    ..Hooks::NONE
};

const DAEMON_SET: Hooks = Hooks {
    warnings: |new, old| warnings::of_template(new, old, &["spec", "template"]),
    default: default_daemon_set,
    blank: |object| note_template_generation(object, 0),
    inner_annotations: &[TEMPLATE_GENERATION],
    notes: validate::has_empty_labels,
    generation: Generation::SPEC,
    prepare_create: |object, _| count_templates(object, None),
    prepare_update: |new, old, _: &Context<'_>| count_templates(new, Some(old)),
    validate_create: validate_daemon_set,
    validate_update: |new, old, context, errors| {
        immutable(&new["spec"], &old["spec"], &Path::Root.child("spec"), "selector", errors);
        validate_daemon_set(new, context, errors);
    },
    validate_status: |new, _, _, errors| {
        let counts = [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
        ];
        not_negative(&new["status"], &counts, &Path::Root.child("status"), errors);
    },
    ..Hooks::NONE
};

const CONTROLLER_REVISION: Hooks = Hooks {
    rechecks: &[Check::Update, Check::Whole],
    validate_create: |object, _, errors| {
        not_negative(object, &["revision"], &Path::Root, errors);
        match object.get("data") {
            None | Some(Value::Null) => errors.required(&Path::Root.child("data"), "data is mandatory"),
            Some(Value::Object(_)) => {}
            Some(_) => errors.required(&Path::Root.child("data"), "data must be a valid JSON object"),
        }
    },
    validate_update: |new, old, _, errors| {
        not_negative(new, &["revision"], &Path::Root, errors);
        immutable(new, old, &Path::Root, "data", errors);
    },
    ..Hooks::NONE
};

fn no_replicas(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.shift_insert(0, "replicas".into(), json!(0));
    }
}

fn default_deployment(object: &mut Value) {
    let spec = sub(object, "spec");
    fill(spec, "replicas", 1);
    let strategy = sub(spec, "strategy");
    fill_zero(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = sub(strategy, "rollingUpdate");
        fill(rolling, "maxUnavailable", "25%");
        fill(rolling, "maxSurge", "25%");
    }
    fill(spec, "revisionHistoryLimit", 10);
    fill(spec, "progressDeadlineSeconds", 600);
    defaults::template(spec, "template");
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn default_daemon_set(object: &mut Value) {
    // The annotation is a field to the real server, and is there as soon as an object is read: who writes a daemon
    // set owns it.
    note_template_generation(object, template_generation(object).unwrap_or(0));
    let spec = sub(object, "spec");
    let strategy = sub(spec, "updateStrategy");
    fill_zero(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = sub(strategy, "rollingUpdate");
        fill(rolling, "maxUnavailable", 1);
    }
    // What is no pointer inside of the real server is there from then on.
    if let Some(rolling) = existing(strategy, "rollingUpdate") {
        fill(rolling, "maxUnavailable", 0);
        fill(rolling, "maxSurge", 0);
    }
    fill(spec, "revisionHistoryLimit", 10);
    defaults::template(spec, "template");
}

fn default_stateful_set(object: &mut Value) {
    let spec = sub(object, "spec");
    fill_zero(spec, "podManagementPolicy", "OrderedReady");
    let strategy = sub(spec, "updateStrategy");
    if text(strategy, "type").is_empty() {
        set(strategy, "type", "RollingUpdate");
        sub(strategy, "rollingUpdate");
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = existing(strategy, "rollingUpdate")
    {
        fill(rolling, "partition", 0);
    }
    let retention = sub(spec, "persistentVolumeClaimRetentionPolicy");
    fill_zero(retention, "whenDeleted", "Retain");
    fill_zero(retention, "whenScaled", "Retain");
    fill(spec, "replicas", 1);
    fill(spec, "revisionHistoryLimit", 10);
    each(spec, "volumeClaimTemplates", |claim| {
        set(claim, "apiVersion", "v1");
        set(claim, "kind", "PersistentVolumeClaim");
        storage::default_claim(claim);
    });
    defaults::template(spec, "template");
}

/// Behind a feature gate that is off by default: who has no such value yet gets none.
const MAX_UNAVAILABLE: &str = "/spec/updateStrategy/rollingUpdate/maxUnavailable";

fn drop_max_unavailable(object: &mut Value) {
    if let Some(rolling) = object.pointer_mut("/spec/updateStrategy/rollingUpdate") {
        remove(rolling, "maxUnavailable");
    }
}

/// apps/v1 keeps the old template generation in an annotation.
fn count_templates(new: &mut Value, old: Option<&Value>) {
    let generation = match old {
        None => template_generation(new).unwrap_or(0).max(1),
        Some(old) => {
            let changed = !same(old.pointer("/spec/template"), new.pointer("/spec/template"));
            template_generation(old).unwrap_or(0) + i64::from(changed)
        }
    };
    note_template_generation(new, generation);
}

fn template_generation(object: &Value) -> Option<i64> {
    let annotations = object.pointer("/metadata/annotations")?;
    text(annotations, TEMPLATE_GENERATION).parse().ok()
}

fn note_template_generation(object: &mut Value, generation: i64) {
    let annotations = sub(sub(object, "metadata"), "annotations");
    set(annotations, TEMPLATE_GENERATION, generation.to_string());
    if let Some(map) = annotations.as_object_mut() {
        map.sort_keys();
    }
}

fn stateful_set_warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = warnings::of_template(new, old, &["spec", "template"]);
    let path = Path::Root.child("spec");
    let path = path.child("volumeClaimTemplates");
    for (index, claim) in list(&new["spec"], "volumeClaimTemplates").iter().enumerate() {
        let at = path.index(index);
        // The paths are the real server's: one lacks the spec, the other writes it as Go does.
        match old {
            None => warn::claim_spec(&claim["spec"], &at, &mut warnings),
            Some(_) => warn::claim_spec(&claim["spec"], &at.child("Spec"), &mut warnings),
        }
    }
    if int(&new["spec"], "revisionHistoryLimit").is_some_and(|limit| limit < 0) {
        let text = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is \
                    recommended";
        warnings.push(text.to_owned());
    }
    warnings
}

/// The selector is there, well formed and not empty, and the template is one of its pods.
fn selector_and_template(
    spec: &Value,
    empty: &str,
    broken: Option<&str>,
    path: &Path<'_>,
    context: &Context<'_>,
    errors: &mut Errors,
) {
    match get(spec, "selector") {
        None => errors.required(&path.child("selector"), ""),
        Some(found) => {
            selector(spec, "selector", path, errors);
            if is_zero(found.get("matchLabels")) && is_zero(found.get("matchExpressions")) {
                errors.invalid(
                    &path.child("selector"),
                    found,
                    &format!("empty selector is invalid for {empty}"),
                );
            }
            if !is_valid_selector(found) {
                if let Some(broken) = broken {
                    errors.invalid(&path.child("selector"), found, broken);
                }
                return;
            }
        }
    }
    let owner = if empty == "statefulset" { "StatefulSet" } else { "ReplicaSet" };
    pod_template(spec, owner, path, context, errors);
}

fn pod_template(spec: &Value, owner: &str, path: &Path<'_>, context: &Context<'_>, errors: &mut Errors) {
    let (template, at) = (&spec["template"], path.child("template"));
    let labels = template.pointer("/metadata/labels");
    let chosen = get(spec, "selector");
    if chosen.is_none_or(is_valid_selector) && !matches(chosen, labels) {
        let detail = "`selector` does not match template `labels`";
        errors.invalid(
            &at.child("metadata").child("labels"),
            &validate::shown_labels(labels, context),
            detail,
        );
    }
    validate::template(template, context, &at, errors);
    let pod = at.child("spec");
    if text_at(template, &["spec", "restartPolicy"]) != "Always" {
        errors.not_supported(&pod.child("restartPolicy"), &template["spec"]["restartPolicy"], &["Always"]);
    }
    if get(&template["spec"], "activeDeadlineSeconds").is_some() {
        let detail = format!("activeDeadlineSeconds in {owner} is not Supported");
        errors.forbidden(&pod.child("activeDeadlineSeconds"), &detail);
    }
}

fn validate_deployment(object: &Value, context: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root.child("spec"));
    not_negative(spec, &["replicas"], &path, errors);
    selector_and_template(spec, "deployment", Some("invalid label selector"), &path, context, errors);
    let (strategy, at) = (&spec["strategy"], path.child("strategy"));
    match text(strategy, "type") {
        "Recreate" if get(strategy, "rollingUpdate").is_some() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.forbidden(&at.child("rollingUpdate"), detail);
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let (rolling, at) = (&strategy["rollingUpdate"], at.child("rollingUpdate"));
            count_or_percent(rolling, "maxUnavailable", &at, errors);
            count_or_percent(rolling, "maxSurge", &at, errors);
            if is_none_of(rolling, "maxUnavailable") && is_none_of(rolling, "maxSurge") {
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.invalid(&at.child("maxUnavailable"), &rolling["maxUnavailable"], detail);
            }
            at_most_all(rolling, "maxUnavailable", &at, errors);
        }
        _ => {
            errors.not_supported(&at, &shown_strategy(strategy, SURGE), &["Recreate", "RollingUpdate"]);
        }
    }
    not_negative(
        spec,
        &["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"],
        &path,
        errors,
    );
    let ready = int(spec, "minReadySeconds").unwrap_or(0);
    if let Some(deadline) = int(spec, "progressDeadlineSeconds").filter(|deadline| *deadline <= ready) {
        let detail = "must be greater than minReadySeconds";
        errors.invalid(&path.child("progressDeadlineSeconds"), &json!(deadline), detail);
    }
}

/// The fields of a rolling update by the names that Go has for them, and those that are zero where they are absent.
type Rolling = (&'static [(&'static str, &'static str)], &'static [&'static str]);
const SURGE: Rolling =
    (&[("MaxUnavailable", "maxUnavailable"), ("MaxSurge", "maxSurge")], &["maxUnavailable", "maxSurge"]);
const PARTITION: Rolling =
    (&[("Partition", "partition"), ("MaxUnavailable", "maxUnavailable")], &["partition"]);

fn shown_rolling(update: &Value, (fields, plain): Rolling) -> Value {
    let mut update = update.clone();
    for field in plain {
        fill(&mut update, field, 0);
    }
    go_struct(&update, fields)
}

/// A strategy as Go prints it.
fn shown_strategy(strategy: &Value, rolling: Rolling) -> Value {
    let mut shown = go_struct(strategy, &[("Type", "type"), ("RollingUpdate", "rollingUpdate")]);
    if let Some(update) = get(strategy, "rollingUpdate") {
        set(&mut shown, "RollingUpdate", shown_rolling(update, rolling));
    }
    shown
}

fn validate_replica_set(object: &Value, context: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root.child("spec"));
    not_negative(spec, &["replicas", "minReadySeconds"], &path, errors);
    // The word "deployment" is the real server's.
    selector_and_template(spec, "deployment", Some("invalid label selector"), &path, context, errors);
}

fn validate_stateful_set(object: &Value, context: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root.child("spec"));
    for (index, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        let at = path.child("volumeClaimTemplates");
        storage::claim_spec(&claim["spec"], &at.index(index).child("spec"), errors);
    }
    text_by(spec, "serviceName", names::dns_label, &path, errors);
    validate_stateful_set_spec(spec, &path, context, errors);
}

fn validate_stateful_set_spec(spec: &Value, path: &Path<'_>, context: &Context<'_>, errors: &mut Errors) {
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.invalid(&path.child("podManagementPolicy"), &json!(policy), detail);
    }
    let (strategy, at) = (&spec["updateStrategy"], path.child("updateStrategy"));
    match (text(strategy, "type"), get(strategy, "rollingUpdate")) {
        ("OnDelete", Some(rolling)) => {
            errors.invalid(
                &at.child("rollingUpdate"),
                &shown_rolling(rolling, PARTITION),
                "only allowed for updateStrategy 'RollingUpdate'",
            );
        }
        ("RollingUpdate", Some(rolling)) => {
            let at = at.child("rollingUpdate");
            not_negative(rolling, &["partition"], &at, errors);
            count_or_percent(rolling, "maxUnavailable", &at, errors);
            at_most_all(rolling, "maxUnavailable", &at, errors);
        }
        ("OnDelete" | "RollingUpdate", None) => {}
        _ => {
            let strategy = shown_strategy(strategy, PARTITION);
            errors.invalid(&at, &strategy, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
    let retention = path.child("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        let policy = &spec["persistentVolumeClaimRetentionPolicy"];
        one_of(policy, field, &["Retain", "Delete"], &retention, errors);
    }
    not_negative(spec, &["replicas", "minReadySeconds"], path, errors);
    if let Some(start) = int(&spec["ordinals"], "start").filter(|start| *start < 0) {
        errors.invalid(&path.child("ordinals.start"), &json!(start), NOT_NEGATIVE);
    }
    // The controller adds a volume for each claim, so that containers can mount them.
    let mut copy = spec.clone();
    let claims = list(spec, "volumeClaimTemplates").iter().map(|claim| text_at(claim, &["metadata", "name"]));
    let claims = claims.collect::<std::collections::BTreeSet<_>>().into_iter();
    let mut volumes = claims
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect::<Vec<_>>();
    let own = list(&spec["template"]["spec"], "volumes").iter();
    let own = own.filter(|volume| !volumes.iter().any(|claim| claim["name"] == volume["name"])).cloned();
    let own = own.collect::<Vec<_>>();
    let pod = sub(sub(&mut copy, "template"), "spec");
    if !volumes.is_empty() {
        volumes.extend(own);
        set(pod, "volumes", volumes);
    }
    // The controller sets these as well.
    remove(pod, "subdomain");
    remove(pod, "hostname");
    selector_and_template(&copy, "statefulset", Some(""), path, context, errors);
    if get(spec, "selector").is_none_or(is_valid_selector) {
        // The template's own check has looked at these, and the real server looks again.
        let (metadata, at) = (&spec["template"]["metadata"], path.child("template"));
        labels(metadata, "labels", &at, errors);
        annotations(metadata, &at, errors);
    }
}

fn update_stateful_set(new: &Value, old: &Value, context: &Context<'_>, errors: &mut Errors) {
    let path = Path::Root.child("spec");
    validate_stateful_set_spec(&new["spec"], &path, context, errors);
    let mut munged = new["spec"].clone();
    for field in [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ] {
        restore(&mut munged, &old["spec"], field);
    }
    if !same(Some(&munged), old.get("spec")) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";
        errors.forbidden(&path, detail);
    }
}

fn validate_daemon_set(object: &Value, context: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root.child("spec"));
    selector(spec, "selector", &path, errors);
    if let Some(found) = get(spec, "selector")
        && is_zero(found.get("matchLabels"))
        && is_zero(found.get("matchExpressions"))
    {
        errors.invalid(&path.child("selector"), found, "empty selector is invalid for daemonset");
    }
    pod_template(spec, "DaemonSet", &path, context, errors);
    not_negative(spec, &["minReadySeconds"], &path, errors);
    let (strategy, at) = (&spec["updateStrategy"], path.child("updateStrategy"));
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (rolling, at) = (&strategy["rollingUpdate"], at.child("rollingUpdate"));
            for field in ["maxUnavailable", "maxSurge"] {
                count_or_percent(rolling, field, &at, errors);
                at_most_all(rolling, field, &at, errors);
            }
            match (is_none_of(rolling, "maxUnavailable"), is_none_of(rolling, "maxSurge")) {
                (true, true) => {
                    errors.required(&at.child("maxUnavailable"), "cannot be 0 when maxSurge is 0")
                }
                (false, false) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    errors.invalid(&at.child("maxSurge"), &rolling["maxSurge"], detail);
                }
                _ => {}
            }
        }
        _ => errors.not_supported(&at, &shown_strategy(strategy, SURGE), &["RollingUpdate", "OnDelete"]),
    }
    not_negative(spec, &["revisionHistoryLimit"], &path, errors);
}

/// Replicas in some state cannot be more than there are.
pub(super) fn replica_counts(status: &Value, parts: &[&str], ready: &str, errors: &mut Errors) {
    let path = Path::Root.child("status");
    not_negative(status, &["observedGeneration", "replicas"], &path, errors);
    not_negative(status, parts, &path, errors);
    let count = |field: &str| int(status, field).unwrap_or(0);
    for part in parts {
        if count(part) > count("replicas") {
            let detail = "cannot be greater than status.replicas";
            errors.invalid(&path.child(part), &json!(count(part)), detail);
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let detail = format!("cannot be greater than {ready}");
        errors.invalid(&path.child("availableReplicas"), &json!(count("availableReplicas")), &detail);
    }
}
