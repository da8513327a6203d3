//! Small groups: node, flow control, API registration, dynamic resources.

use serde_json::{Value, json};

use super::check::{one_of, required, required_by};
use super::generation::Generation;
use super::tree::{
    each, entries, existing, fill, fill_zero, get, int, list, seconds, set, sub, text, text_at,
};
use super::{Context, Hooks, inner, meta, names, pod, warn};
use crate::field::{Errors, Path};

/// The hooks of a kind of one of the small groups.
pub(super) fn hooks(group: &str, kind: &str) -> Option<&'static Hooks> {
    Some(match (group, kind) {
        ("node.k8s.io", "RuntimeClass") => &RUNTIME_CLASS,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => &FLOW_SCHEMA,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => &PRIORITY_LEVEL,
        ("apiregistration.k8s.io", "APIService") => &API_SERVICE,
        ("resource.k8s.io", "ResourceClaim") => &RESOURCE_CLAIM,
        ("resource.k8s.io", "ResourceClaimTemplate") => &RESOURCE_CLAIM_TEMPLATE,
        ("resource.k8s.io", "DeviceClass") => &SPEC_GENERATION,
        ("resource.k8s.io", "ResourceSlice") => &SPEC_GENERATION,
        _ => return None,
    })
}

const SPEC_GENERATION: Hooks = Hooks { generation: Generation::SPEC, ..Hooks::NONE };

const RUNTIME_CLASS: Hooks = Hooks {
    qualifies: false,
    rechecks: &[meta::Check::Whole, meta::Check::Update],
    warnings: |object, _| {
        let keys = entries(&object["scheduling"], "nodeSelector").map(|(key, _)| key);
        let messages = keys.filter_map(|key| warn::node_label(key));
        messages.map(|message| format!("scheduling.nodeSelector: {message}")).collect()
    },
    validate_create: |object, _, errors| validate_runtime_class(object, errors),
    validate_update: |new, old, _, errors| {
        validate_runtime_class(new, errors);
        meta::immutable(new, old, &Path::Root, "handler", errors);
    },
    ..Hooks::NONE
};

fn validate_runtime_class(class: &Value, errors: &mut Errors) {
    required_by(class, "handler", names::dns_label, &Path::Root, errors);
    if let Some(overhead) = get(class, "overhead") {
        pod::overhead(&json!({"overhead": overhead["podFixed"]}), "overhead", &Path::Root, errors);
    }
    let Some(scheduling) = get(class, "scheduling") else { return };
    let path = Path::Root.child("scheduling");
    meta::labels(scheduling, "nodeSelector", &path, errors);
    pod::affinity::tolerations(scheduling, &path, errors);
    let tolerations = list(scheduling, "tolerations");
    let key = |toleration: &Value| {
        ["key", "operator", "value", "effect"].map(|field| text(toleration, field).to_owned())
    };
    for (index, toleration) in tolerations.iter().enumerate() {
        if tolerations[..index].iter().any(|other| key(other) == key(toleration)) {
            let shown = inner::shown("io.k8s.api.core.v1.Toleration", toleration);
            errors.duplicate(&path.child("tolerations").index(index), &shown);
        }
    }
}

const FLOW_SCHEMA: Hooks = Hooks {
    rechecks: &[meta::Check::Whole],
    rechecks_status: &[],
    default: |object| fill_zero(sub(object, "spec"), "matchingPrecedence", 1000),
    generation: Generation::SPEC,
    validate_create: validate_flow_schema,
    validate_update: |new, _, context, errors| validate_flow_schema(new, context, errors),
    ..Hooks::NONE
};

const PRIORITY_LEVEL: Hooks = Hooks {
    rechecks: &[meta::Check::Whole],
    rechecks_status: &[],
    default: default_priority_level,
    generation: Generation::SPEC,
    validate_create: validate_priority_level,
    validate_update: |new, _, context, errors| validate_priority_level(new, context, errors),
    ..Hooks::NONE
};

const API_SERVICE: Hooks = Hooks {
    default: |object| {
        if let Some(service) = existing(sub(object, "spec"), "service") {
            fill(service, "port", 443);
        }
    },
    name: names::path_segment,
    prepare_create: |object, context| {
        // A version that the server itself serves is available from the start.
        if object.pointer("/spec/service").is_none_or(Value::is_null) {
            let now = seconds(context.now);
            set(
                object,
                "status",
                json!({"conditions": [{
                    "type": "Available", "status": "True", "lastTransitionTime": now,
                    "reason": "Local", "message": "Local APIServices are always available",
                }]}),
            );
        }
    },
    validate_create: validate_api_service,
    validate_update: |new, _, context, errors| validate_api_service(new, context, errors),
    ..Hooks::NONE
};

const RESOURCE_CLAIM: Hooks = Hooks {
    default: |object| default_devices(sub(object, "spec")),
    validate_update: |new, old, _, errors| meta::immutable(new, old, &Path::Root, "spec", errors),
    ..Hooks::NONE
};

const RESOURCE_CLAIM_TEMPLATE: Hooks = Hooks {
    default: |object| default_devices(sub(sub(object, "spec"), "spec")),
    validate_update: |new, old, _, errors| meta::immutable(new, old, &Path::Root, "spec", errors),
    ..Hooks::NONE
};

fn default_devices(spec: &mut Value) {
    let count = |request: &mut Value| {
        fill_zero(request, "allocationMode", "ExactCount");
        if text(request, "allocationMode") == "ExactCount" {
            fill_zero(request, "count", 1);
        }
        each(request, "tolerations", |toleration| fill_zero(toleration, "operator", "Equal"));
    };
    let Some(devices) = existing(spec, "devices") else { return };
    each(devices, "requests", |request| {
        if let Some(exactly) = existing(request, "exactly") {
            count(exactly);
        }
        each(request, "firstAvailable", count);
    });
}

fn validate_flow_schema(schema: &Value, _: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&schema["spec"], Path::Root.child("spec"));
    let precedence = int(spec, "matchingPrecedence").unwrap_or(0);
    if precedence <= 0 {
        errors.invalid(&path.child("matchingPrecedence"), &json!(precedence), "must be a positive value");
    } else if precedence > 10_000 {
        let detail = "must not be greater than 10000";
        errors.invalid(&path.child("matchingPrecedence"), &json!(precedence), detail);
    }
    let level = path.child("priorityLevelConfiguration");
    super::check::text_by(&spec["priorityLevelConfiguration"], "name", names::dns_subdomain, &level, errors);
    required(&spec["priorityLevelConfiguration"], "name", "must reference a priority level", &level, errors);
}

fn default_priority_level(level: &mut Value) {
    let spec = sub(level, "spec");
    if let Some(exempt) = existing(spec, "exempt") {
        fill(exempt, "nominalConcurrencyShares", 0);
        fill(exempt, "lendablePercent", 0);
    }
    if let Some(limited) = existing(spec, "limited") {
        fill(limited, "nominalConcurrencyShares", 30);
        fill(limited, "lendablePercent", 0);
        if let Some(queuing) = existing(sub(limited, "limitResponse"), "queuing") {
            fill_zero(queuing, "queues", 64);
            fill_zero(queuing, "handSize", 8);
            fill_zero(queuing, "queueLengthLimit", 50);
        }
    }
}

fn validate_priority_level(level: &Value, _: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&level["spec"], Path::Root.child("spec"));
    if !required(spec, "type", "", &path, errors) {
        return;
    }
    one_of(spec, "type", &["Exempt", "Limited"], &path, errors);
    if text(spec, "type") != "Limited" {
        return;
    }
    let at = path.child("limited");
    if get(spec, "limited").is_none() {
        errors.required(&at, "must not be empty when type is Limited");
        return;
    }
    let (response, at) = (&spec["limited"]["limitResponse"], at.child("limitResponse"));
    if required(response, "type", "", &at, errors) {
        one_of(response, "type", &["Queue", "Reject"], &at, errors);
    }
}

fn validate_api_service(service: &Value, _: &Context<'_>, errors: &mut Errors) {
    let (spec, path) = (&service["spec"], Path::Root.child("spec"));
    let name = text_at(service, &["metadata", "name"]);
    let required_name = format!("{}.{}", text(spec, "version"), text(spec, "group"));
    if name != required_name {
        let detail = format!("must be `spec.version+\".\"+spec.group`: {required_name:?}");
        errors.invalid(&Path::Root.child("metadata").child("name"), &json!(name), &detail);
    }
    if text(spec, "group").is_empty() && text(spec, "version") != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.required(&path.child("group"), detail);
    }
    super::check::text_by(spec, "group", names::dns_subdomain, &path, errors);
    super::check::by_rule(text(spec, "version"), names::dns_1035_label, &path.child("version"), errors);
    if let Some(service) = get(spec, "service") {
        required(service, "namespace", "", &path.child("service"), errors);
        required(service, "name", "", &path.child("service"), errors);
    } else if spec.get("insecureSkipTLSVerify") == Some(&json!(true)) {
        let detail = "local APIServices may not have insecureSkipTLSVerify";
        errors.invalid(&path.child("insecureSkipTLSVerify"), &json!(true), detail);
    }
    for (field, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let value = int(spec, field).unwrap_or(0);
        if value <= 0 || value > max {
            let detail = format!("must be positive and less than {max}");
            errors.invalid(&path.child(field), &json!(value), &detail);
        }
    }
}
