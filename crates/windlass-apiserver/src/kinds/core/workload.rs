//! Pods, pod templates and replication controllers.

use serde_json::{Value, json};
use windlass_core::qos;

use crate::field::{Errors, Path};
use crate::kinds::apps::replica_counts;
use crate::kinds::check::not_negative;
use crate::kinds::generation::Generation;
use crate::kinds::pod::{annotations, defaults, status, update, validate, warnings};
use crate::kinds::tree::{each, existing, fill, get, is_zero, list, same, seconds, set, sub, text};
use crate::kinds::{Context, Hooks, meta};

pub(super) const POD: Hooks = Hooks {
    rechecks: &[meta::Check::Update, meta::Check::Whole],
    default: defaults::pod,
    generation: Generation::SPEC,
    prepare_create: prepare_pod,
    prepare_update: update::prepare,
    prepare_status: keep_qos_class,
    validate_create: validate::create,
    validate_update: update::validate,
    validate_status: |new, old, _, errors| status::validate(new, old, errors),
    forewarnings: annotations::app_armor_warnings,
    warnings: |new, old| {
        if old.is_some() {
            return Vec::new();
        }
        let name = new.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
        warnings::of_name(name).into_iter().chain(warnings::of_pod(new, "")).collect()
    },
    ..Hooks::NONE
};

pub(super) const POD_TEMPLATE: Hooks = Hooks {
    default: |object| defaults::template(object, "template"),
    generation: Generation { born: true, grows_on: &["/template"], ..Generation::NONE },
    warnings: |new, old| warnings::of_template(new, old, &["template"]),
    validate_create: validate_pod_template,
    validate_update: |new, _, context, errors| validate_pod_template(new, context, errors),
    ..Hooks::NONE
};

pub(super) const REPLICATION_CONTROLLER: Hooks = Hooks {
    warnings: |new, old| match old {
        // The real server takes the old for the new here.
        Some(old) if warnings::grown(new, Some(old)) => {
            warnings::of_pod(&old["spec"]["template"], "spec.template")
        }
        Some(_) => Vec::new(),
        None => warnings::of_workload(new, None),
    },
    default: default_replication_controller,
    generation: Generation::SPEC,
    notes: validate::has_empty_labels,
    validate_create: validate_replication_controller,
    validate_update: |new, _, context, errors| validate_replication_controller(new, context, errors),
    validate_status: |new, _, _, errors| {
        let counts = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
        replica_counts(&new["status"], &counts, "readyReplicas", errors);
    },
    ..Hooks::NONE
};

fn prepare_pod(pod: &mut Value, context: &Context<'_>) {
    let mut status = json!({"phase": "Pending", "qosClass": qos::class(pod)});
    if !is_zero(pod.pointer("/spec/schedulingGates")) {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "lastProbeTime": null, "lastTransitionTime": seconds(context.now),
            "reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    set(pod, "status", status);
    let labels = pod.pointer("/metadata/labels").cloned().unwrap_or_default();
    let spec = sub(pod, "spec");
    if let Some(affinity) = existing(spec, "affinity") {
        for side in ["podAffinity", "podAntiAffinity"] {
            let Some(side) = existing(affinity, side) else { continue };
            each(side, "preferredDuringSchedulingIgnoredDuringExecution", |weighted| {
                if let Some(term) = existing(weighted, "podAffinityTerm") {
                    select_by_own_labels(term, &labels);
                }
            });
            each(side, "requiredDuringSchedulingIgnoredDuringExecution", |term| {
                select_by_own_labels(term, &labels);
            });
        }
    }
    each(spec, "topologySpreadConstraints", |constraint| select_by_own_labels(constraint, &labels));
    annotations::copy_app_armor(pod);
}

/// Turns `matchLabelKeys` and `mismatchLabelKeys` into expressions over the pod's own labels.
fn select_by_own_labels(term: &mut Value, labels: &Value) {
    if get(term, "labelSelector").is_none() {
        return;
    }
    let mut expressions = Vec::new();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in list(term, keys).iter().filter_map(Value::as_str) {
            if let Some(value) = get(labels, key) {
                expressions.push(json!({"key": key, "operator": operator, "values": [value]}));
            }
        }
    }
    if !expressions.is_empty() {
        let selector = sub(term, "labelSelector");
        let mut all = list(selector, "matchExpressions").to_vec();
        all.append(&mut expressions);
        set(selector, "matchExpressions", all);
    }
}

fn keep_qos_class(new: &mut Value, old: &Value, _: &Context<'_>) {
    let status = sub(new, "status");
    if text(status, "qosClass").is_empty()
        && let Some(class) = old.pointer("/status/qosClass")
    {
        set(status, "qosClass", class.clone());
    }
}

fn default_replication_controller(object: &mut Value) {
    let labels = object.pointer("/spec/template/metadata/labels").and_then(Value::as_object).cloned();
    if let Some(labels) = labels {
        if is_zero(object.pointer("/spec/selector")) {
            set(sub(object, "spec"), "selector", labels.clone());
        }
        if is_zero(object.pointer("/metadata/labels")) {
            set(sub(object, "metadata"), "labels", labels);
        }
    }
    let spec = sub(object, "spec");
    fill(spec, "replicas", 1);
    if get(spec, "template").is_some() {
        defaults::template(spec, "template");
    }
}

fn validate_pod_template(object: &Value, context: &Context<'_>, errors: &mut Errors) {
    validate::template(&object["template"], context, &Path::Root.child("template"), errors);
}

fn validate_replication_controller(object: &Value, context: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root.child("spec"));
    not_negative(spec, &["minReadySeconds"], &path, errors);
    if is_zero(spec.get("selector")) {
        errors.required(&path.child("selector"), "");
    }
    not_negative(spec, &["replicas"], &path, errors);
    let at = path.child("template");
    let Some(template) = get(spec, "template") else {
        errors.required(&at, "");
        return;
    };
    let labels = template.pointer("/metadata/labels");
    let selected = spec["selector"].as_object().into_iter().flatten();
    if !selected.into_iter().all(|(key, value)| same(labels.and_then(|labels| labels.get(key)), Some(value)))
    {
        let detail = "`selector` does not match template `labels`";
        errors.invalid(
            &at.child("metadata").child("labels"),
            &validate::shown_labels(labels, context),
            detail,
        );
    }
    validate::template(template, context, &at, errors);
    if text(&template["spec"], "restartPolicy") != "Always" {
        let policy = &template["spec"]["restartPolicy"];
        errors.not_supported(&at.child("spec").child("restartPolicy"), policy, &["Always"]);
    }
    if get(&template["spec"], "activeDeadlineSeconds").is_some() {
        let detail = "activeDeadlineSeconds in ReplicationController is not Supported";
        errors.forbidden(&at.child("spec").child("activeDeadlineSeconds"), detail);
    }
}
