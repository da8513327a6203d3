//! Jobs and cron jobs.

mod cron;
mod policy;

use serde_json::{Value, json};

use super::check::{
    by_rule, domain_path, is_valid_selector, matches, not_negative, one_of, required, selector,
};
use super::generation::Generation;
use super::meta::{Check, immutable, immutable_of};
use super::pod::{defaults, validate, warnings};
use super::tree::{
    at, each, existing, fill, fill_zero, flag, get, int, is_zero, list, remove, restore, same, set, sub,
    text, text_at,
};
use super::{Context, Hooks, inner, names};
use crate::field::{Errors, Path};

/// The hooks of a batch kind.
pub(super) fn hooks(kind: &str) -> Option<&'static Hooks> {
    Some(match kind {
        "Job" => &JOB,
        "CronJob" => &CRON_JOB,
        _ => return None,
    })
}

const JOB: Hooks = Hooks {
    default: default_job,
    // The labels of the job are then those of the template: one map, which gets the generated ones.
    notes: |job| is_zero(job.pointer("/metadata/labels")) && template_labels(job).is_some(),
    generation: Generation::SPEC,
    prepare_create: |job, context| {
        if !flag(&job["spec"], "manualSelector") {
            generate_selector(job);
        }
        if context.noted.own {
            take_template_labels(job);
        }
    },
    validate_create: validate_job,
    rechecks: &[Check::Whole, Check::Update],
    warnings: |new, old| job_warnings(new, old, &["spec"]),
    validate_update: |new, old, context, errors| {
        validate_job(new, context, errors);
        // The real server checks the spec a second time, and tells each fault twice.
        validate_whole_spec(new, context, errors);
        validate_job_update(new, old, errors);
    },
    validate_status: |new, _, _, errors| {
        let counts = ["active", "succeeded", "failed", "ready", "terminating"];
        not_negative(&new["status"], &counts, &Path::Root.child("status"), errors);
    },
    ..Hooks::NONE
};

const CRON_JOB: Hooks = Hooks {
    rechecks_status: &[],
    warnings: |new, old| {
        let mut warnings = job_warnings(new, old, &["spec", "jobTemplate", "spec"]);
        if old.is_some() && text_at(new, &["spec", "schedule"]).contains("TZ") {
            // The path is the real server's.
            warnings.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                    .to_owned(),
            );
        }
        warnings
    },
    default: default_cron_job,
    generation: Generation::SPEC,
    validate_create: |object, context, errors| {
        validate_cron_job(object, context, errors);
        let name = text_at(object, &["metadata", "name"]);
        if name.len() > 52 {
            let path = Path::Root.child("metadata");
            errors.invalid(&path.child("name"), &json!(name), "must be no more than 52 characters");
        }
    },
    validate_update: |new, _, context, errors| validate_cron_job(new, context, errors),
    ..Hooks::NONE
};

fn default_job(job: &mut Value) {
    if is_zero(job.pointer("/metadata/labels")) && !is_zero(template_labels(job)) {
        take_template_labels(job);
    }
    let spec = sub(job, "spec");
    if get(spec, "completions").is_none() && get(spec, "parallelism").is_none() {
        set(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let retries = if get(spec, "backoffLimitPerIndex").is_some() { i64::from(i32::MAX) } else { 6 };
    fill(spec, "backoffLimit", retries);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let replace = if get(spec, "podFailurePolicy").is_some() { "Failed" } else { "TerminatingOrFailed" };
    fill(spec, "podReplacementPolicy", replace);
    fill(spec, "manualSelector", false);
    job_spec(spec);
}

fn template_labels(job: &Value) -> Option<&Value> {
    job.pointer("/spec/template/metadata/labels").filter(|labels| !labels.is_null())
}

fn take_template_labels(job: &mut Value) {
    if let Some(labels) = template_labels(job).cloned() {
        set(sub(job, "metadata"), "labels", labels);
    }
}

/// What a job and the template of a cron job have in common.
fn job_spec(spec: &mut Value) {
    if let Some(policy) = existing(spec, "podFailurePolicy") {
        each(policy, "rules", |rule| {
            each(rule, "onPodConditions", |pattern| fill_zero(pattern, "status", "True"));
        });
    }
    defaults::template(spec, "template");
}

fn default_cron_job(object: &mut Value) {
    let spec = sub(object, "spec");
    fill_zero(spec, "concurrencyPolicy", "Allow");
    fill(spec, "suspend", false);
    fill(spec, "successfulJobsHistoryLimit", 3);
    fill(spec, "failedJobsHistoryLimit", 1);
    job_spec(sub(sub(spec, "jobTemplate"), "spec"));
}

/// Warnings for what has the spec of a job at `path`.
fn job_warnings(new: &Value, old: Option<&Value>, path: &[&str]) -> Vec<String> {
    let mut all = warnings::maker_name(new, old).into_iter().collect::<Vec<_>>();
    let Some(spec) = at(new, path).filter(|_| warnings::grown(new, old)) else { return all };
    let many = |field: &str, limit: i64| int(spec, field).is_some_and(|count| count > limit);
    if text(spec, "completionMode") == "Indexed"
        && many("completions", 100_000)
        && many("parallelism", 10_000)
    {
        all.push(format!(
            "{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail",
            path.join(".")
        ));
    }
    all.extend(warnings::of_pod(&spec["template"], &format!("{}.template", path.join("."))));
    all
}

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";

/// Labels that only pods of this job have, and a selector for them.
fn generate_selector(job: &mut Value) {
    let (name, uid) =
        (text_at(job, &["metadata", "name"]).to_owned(), text_at(job, &["metadata", "uid"]).to_owned());
    let spec = sub(job, "spec");
    let labels = sub(sub(sub(spec, "template"), "metadata"), "labels");
    for (label, value) in
        [("job-name", &name), (JOB_NAME, &name), ("controller-uid", &uid), (CONTROLLER_UID, &uid)]
    {
        fill(labels, label, value.as_str());
    }
    if let Some(labels) = labels.as_object_mut() {
        labels.sort_keys();
    }
    let wanted = sub(sub(spec, "selector"), "matchLabels");
    fill(wanted, CONTROLLER_UID, uid);
    if let Some(wanted) = wanted.as_object_mut() {
        wanted.sort_keys();
    }
}

fn validate_job(job: &Value, context: &Context<'_>, errors: &mut Errors) {
    if !flag(&job["spec"], "manualSelector") && get(&job["spec"], "selector").is_some() {
        validate_generated_selector(job, context.old, errors);
    }
    validate_whole_spec(job, context, errors);
    validate_hostname(job, errors);
}

fn validate_whole_spec(job: &Value, context: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&job["spec"], Path::Root.child("spec"));
    validate_job_spec(spec, context, &path, errors);
    if get(spec, "selector").is_none() {
        errors.required(&path.child("selector"), "");
    }
    selector(spec, "selector", &path, errors);
    let labels = spec.pointer("/template/metadata/labels");
    let well_formed = get(spec, "selector").is_none_or(is_valid_selector);
    if well_formed && !matches(get(spec, "selector"), labels) {
        let detail = "`selector` does not match template `labels`";
        let at = path.child("template");
        let at = at.child("metadata");
        errors.invalid(&at.child("labels"), labels.unwrap_or(&Value::Null), detail);
    }
}

/// The pods of an indexed job are named after their index, too.
fn validate_hostname(job: &Value, errors: &mut Errors) {
    let spec = &job["spec"];
    let name = text_at(job, &["metadata", "name"]);
    if text(spec, "completionMode") == "Indexed"
        && let Some(completions) = int(spec, "completions").filter(|completions| *completions > 0)
    {
        let hostname = format!("{name}-{}", completions - 1);
        if !names::dns_label(&hostname).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {hostname}");
            errors.invalid(&Path::Root.child("metadata").child("name"), &json!(name), &detail);
        }
    }
}

/// A selector that the server made selects the job's own uid and nothing else.
fn validate_generated_selector(job: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (spec, path) = (&job["spec"], Path::Root.child("spec"));
    let (name, uid) = (text_at(job, &["metadata", "name"]), text_at(job, &["metadata", "uid"]));
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    let template = path.child("template");
    let metadata = template.child("metadata");
    let at = metadata.child("labels");
    // Jobs from before there were labels with a domain do without them.
    let had = |old: &Value| {
        let labels = &old["spec"]["template"]["metadata"]["labels"];
        [CONTROLLER_UID, JOB_NAME].iter().all(|label| labels.get(label).is_some())
    };
    let mut wanted = vec![("controller-uid", uid), ("job-name", name)];
    if old.is_none_or(had) {
        wanted.extend([(CONTROLLER_UID, uid), (JOB_NAME, name)]);
    }
    for (label, expected) in &wanted {
        match get(labels, label).and_then(Value::as_str) {
            Some(value) if value != *expected => {
                errors.invalid(&at.key(label), labels, &format!("must be '{expected}'"));
            }
            Some(_) => {}
            None => errors.required(&at.key(label), &format!("must be '{expected}'")),
        }
    }
    let wanted = wanted.into_iter().map(|(label, value)| (label.to_owned(), json!(value)));
    if let Some(selector) = get(spec, "selector")
        && is_valid_selector(selector)
        && !matches(Some(selector), Some(&Value::Object(wanted.collect())))
    {
        errors.invalid(&path.child("selector"), selector, "`selector` not auto-generated");
    }
}

fn validate_job_spec(spec: &Value, context: &Context<'_>, path: &Path<'_>, errors: &mut Errors) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    not_negative(spec, &counts, path, errors);
    if get(spec, "maxFailedIndexes").is_some() && get(spec, "backoffLimitPerIndex").is_none() {
        errors.required(&path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    if let Some(manager) = get(spec, "managedBy").and_then(Value::as_str) {
        domain_path(spec, "managedBy", path, errors);
        if manager.len() > 63 {
            errors.too_long(&path.child("managedBy"), 63);
        }
    }
    one_of(spec, "completionMode", &["NonIndexed", "Indexed"], path, errors);
    match get(spec, "completionMode").map(|_| text(spec, "completionMode")) {
        Some("Indexed") => indexed(spec, path, errors),
        None | Some("NonIndexed") => {
            for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if let Some(value) = get(spec, field) {
                    errors.invalid(&path.child(field), value, "requires indexed completion mode");
                }
            }
        }
        Some(_) => {}
    }
    policy::failure(spec, path, errors);
    match get(spec, "successPolicy") {
        Some(policy) if text(spec, "completionMode") != "Indexed" => {
            let shown = inner::shown("io.k8s.api.batch.v1.SuccessPolicy", policy);
            errors.invalid(&path.child("successPolicy"), &shown, "requires indexed completion mode");
        }
        _ => policy::success(spec, path, errors),
    }
    let replacements: &[&str] = match get(spec, "podFailurePolicy") {
        Some(_) => &["Failed"],
        None => &["Failed", "TerminatingOrFailed"],
    };
    one_of(spec, "podReplacementPolicy", replacements, path, errors);
    validate::template(&spec["template"], context, &path.child("template"), errors);
    let policy = text_at(spec, &["template", "spec", "restartPolicy"]);
    let template = path.child("template");
    let pod = template.child("spec");
    let at = pod.child("restartPolicy");
    match policy {
        "Always" | "" => errors.required(&at, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if get(spec, "podFailurePolicy").is_some() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.invalid(&at, &json!(policy), detail);
        }
        "OnFailure" | "Never" => {}
        _ => errors.not_supported(&at, &json!(policy), &["OnFailure", "Never"]),
    }
}

/// The limits of a job that counts its pods.
fn indexed(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    const MANY: i64 = 100_000;
    const FEWER: i64 = 10_000;
    let (all, at_once) = (int(spec, "completions"), int(spec, "parallelism"));
    let failed = int(spec, "maxFailedIndexes");
    if all.is_none() {
        errors.required(&path.child("completions"), "when completion mode is Indexed");
    }
    let mut at_most = |field: &str, value: Option<i64>, most: i64, why: &str| {
        if let Some(value) = value.filter(|value| *value > most) {
            let detail = format!("must be less than or equal to {most}{why}");
            errors.invalid(&path.child(field), &json!(value), &detail);
        }
    };
    at_most("parallelism", at_once, MANY, " when completion mode is Indexed");
    at_most("maxFailedIndexes", failed, MANY, "");
    let many = all.is_some_and(|all| all > MANY) && get(spec, "backoffLimitPerIndex").is_some();
    if many {
        let why = " when completions are above 100000 and used with backoff limit per index";
        at_most("parallelism", at_once, FEWER, why);
        at_most("maxFailedIndexes", failed, FEWER, why);
    }
    if many && failed.is_none() {
        let detail = "must be specified when completions is above 100000";
        errors.required(&path.child("maxFailedIndexes"), detail);
    }
    if let (Some(failed), Some(all)) = (failed, all)
        && failed > all
    {
        let detail = "must be less than or equal to completions";
        errors.invalid(&path.child("maxFailedIndexes"), &json!(failed), detail);
    }
}

fn validate_job_update(new: &Value, old: &Value, errors: &mut Errors) {
    let started = old.pointer("/status/startTime").is_some_and(|time| !time.is_null());
    let (new, old, path) = (&new["spec"], &old["spec"], Path::Root.child("spec"));
    if text(new, "completionMode") != "Indexed" {
        immutable(new, old, &path, "completions", errors);
    } else if !same(new.get("completions"), old.get("completions"))
        && get(new, "completions").is_some()
        && int(new, "completions") != int(new, "parallelism")
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.invalid(&path.child("completions"), &new["completions"], detail);
    }
    immutable(new, old, &path, "selector", errors);
    template_update(new, old, started, &path, errors);
    for field in ["completionMode", "backoffLimitPerIndex", "managedBy"] {
        immutable(new, old, &path, field, errors);
    }
    for (field, kind) in [("podFailurePolicy", "PodFailurePolicy"), ("successPolicy", "SuccessPolicy")] {
        immutable_of(&format!("io.k8s.api.batch.v1.{kind}"), new, old, &path, field, errors);
    }
}

/// The template stays, but for a suspended job: there scheduling directives and resources may still change.
fn template_update(new: &Value, old: &Value, started: bool, path: &Path<'_>, errors: &mut Errors) {
    let (template, mut before) = (&new["template"], old["template"].clone());
    if !flag(old, "suspend") {
        immutable_of("io.k8s.api.core.v1.PodTemplateSpec", new, old, path, "template", errors);
        return;
    }
    let after = &template["spec"];
    let held = sub(&mut before, "spec");
    if !started {
        for field in ["nodeSelector", "tolerations", "schedulingGates"] {
            restore(held, after, field);
        }
        let node = after.pointer("/affinity/nodeAffinity").cloned();
        match (get(after, "affinity").is_some(), existing(held, "affinity")) {
            (false, Some(affinity)) => {
                remove(affinity, "nodeAffinity");
                if affinity.as_object().is_some_and(|left| left.is_empty()) {
                    remove(held, "affinity");
                }
            }
            (true, None) => set(held, "affinity", json!({"nodeAffinity": node})),
            (true, Some(affinity)) => set(affinity, "nodeAffinity", json!(node)),
            (false, None) => {}
        }
    }
    for field in ["containers", "initContainers"] {
        let Some(containers) = held.get_mut(field).and_then(Value::as_array_mut) else { continue };
        if containers.len() != list(after, field).len() {
            continue;
        }
        for (container, after) in containers.iter_mut().zip(list(after, field)) {
            if text(container, "name") == text(after, "name") {
                restore(container, after, "resources");
            }
        }
    }
    if !same(Some(held), Some(after)) {
        let at = path.child("template");
        let shown = inner::shown("io.k8s.api.core.v1.PodSpec", after);
        errors.invalid(&at.child("spec"), &shown, super::meta::IMMUTABLE_FIELD);
    }
}

fn validate_cron_job(object: &Value, context: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&object["spec"], Path::Root.child("spec"));
    let schedule = text(spec, "schedule");
    if required(spec, "schedule", "", &path, errors) {
        if let Some(fault) = cron::fault(schedule) {
            errors.invalid(&path.child("schedule"), &json!(schedule), &fault);
        }
        let was_zoned = context.old.is_some_and(|old| text(&old["spec"], "schedule").contains("TZ"));
        let detail = match (schedule.contains("TZ"), was_zoned, get(spec, "timeZone")) {
            (true, false, _) => Some("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
            (true, true, Some(_)) => Some("cannot use both timeZone field and TZ or CRON_TZ in schedule"),
            _ => None,
        };
        if let Some(detail) = detail {
            errors.invalid(&path.child("schedule"), &json!(schedule), detail);
        }
    }
    not_negative(spec, &["startingDeadlineSeconds"], &path, errors);
    let kept = context.old.is_some_and(|old| same(old["spec"].get("timeZone"), spec.get("timeZone")));
    if let Some(zone) = get(spec, "timeZone").and_then(Value::as_str).filter(|_| !kept) {
        by_rule(zone, cron::zone_faults, &path.child("timeZone"), errors);
    }
    one_of(spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"], &path, errors);
    let template = path.child("jobTemplate");
    let (job, at) = (&spec["jobTemplate"]["spec"], template.child("spec"));
    validate_job_spec(job, context, &at, errors);
    if let Some(selector) = get(job, "selector") {
        errors.invalid(&at.child("selector"), selector, "`selector` will be auto-generated");
    }
    if flag(job, "manualSelector") {
        errors.not_supported(&at.child("manualSelector"), &json!(true), &["nil", "false"]);
    }
    not_negative(spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"], &path, errors);
}
