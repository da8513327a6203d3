//! Where a pod may run: affinities, spread, tolerations.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field::{Errors, Path};
use crate::kinds::check::{self, by_rule, one_of, required};
use crate::kinds::names;
use crate::kinds::tree::{entries, get, int, list, text};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks the affinities of a pod.
pub(super) fn validate(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(affinity) = get(spec, "affinity") else { return };
    let path = path.child("affinity");
    if let Some(node) = get(affinity, "nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(selector) = get(node, REQUIRED) {
            node_selector(selector, &path.child(REQUIRED), errors);
        }
        for (index, preferred) in list(node, PREFERRED).iter().enumerate() {
            let at = path.child(PREFERRED);
            let at = at.index(index);
            weight(preferred, &at, errors);
            node_term(&preferred["preference"], false, &at.child("preference"), errors);
        }
    }
    for side in ["podAffinity", "podAntiAffinity"] {
        let Some(terms) = get(affinity, side) else { continue };
        let path = path.child(side);
        for (index, term) in list(terms, REQUIRED).iter().enumerate() {
            pod_term(term, &path.child(REQUIRED).index(index), errors);
        }
        for (index, weighted) in list(terms, PREFERRED).iter().enumerate() {
            let at = path.child(PREFERRED);
            let at = at.index(index);
            weight(weighted, &at, errors);
            pod_term(&weighted["podAffinityTerm"], &at.child("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let weight = int(term, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.invalid(&path.child("weight"), &json!(weight), "must be in the range 1-100");
    }
}

/// Checks a selector of nodes, of a pod or of a persistent volume.
pub(crate) fn node_selector(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("nodeSelectorTerms");
    if list(selector, "nodeSelectorTerms").is_empty() {
        errors.required(&path, "must have at least one node selector term");
    }
    for (index, term) in list(selector, "nodeSelectorTerms").iter().enumerate() {
        node_term(term, true, &path.index(index), errors);
    }
}

/// Values are checked where a node must match, and not where it had better.
fn node_term(term: &Value, values_too: bool, path: &Path<'_>, errors: &mut Errors) {
    for (index, expression) in list(term, "matchExpressions").iter().enumerate() {
        let path = path.child("matchExpressions");
        let path = path.index(index);
        let values = list(expression, "values");
        let at = path.child("values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                errors.required(&at, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                errors.forbidden(&at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
            }
            "Gt" | "Lt" if values.len() != 1 => {
                errors.required(&at, "must be specified single value when `operator` is 'Lt' or 'Gt'");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => errors.invalid(&path.child("operator"), &json!(other), "not a valid selector operator"),
        }
        by_rule(text(expression, "key"), names::label_key, &path.child("key"), errors);
        if values_too {
            for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
                by_rule(value, names::label_value, &at.index(index), errors);
            }
        }
    }
    for (index, field) in list(term, "matchFields").iter().enumerate() {
        let path = path.child("matchFields");
        let path = path.index(index);
        let values = list(field, "values");
        match text(field, "operator") {
            "In" | "NotIn" if values.len() != 1 => {
                let detail =
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.required(&path.child("values"), detail);
            }
            "In" | "NotIn" => {}
            other => errors.invalid(&path.child("operator"), &json!(other), "not a valid selector operator"),
        }
        match text(field, "key") {
            "metadata.name" => {
                for (index, value) in values.iter().filter_map(Value::as_str).enumerate() {
                    by_rule(value, names::dns_subdomain, &path.child("values").index(index), errors);
                }
            }
            key => errors.invalid(&path.child("key"), &json!(key), "not a valid field selector key"),
        }
    }
}

fn pod_term(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    check::selector(term, "labelSelector", path, errors);
    check::selector(term, "namespaceSelector", path, errors);
    for name in list(term, "namespaces").iter().filter_map(Value::as_str) {
        by_rule(name, names::dns_label, &path.child("namespace"), errors);
    }
    label_keys(term, path, errors);
    required(term, "topologyKey", "can not be empty", path, errors);
    by_rule(text(term, "topologyKey"), names::label_key, &path.child("topologyKey"), errors);
}

/// Keys of the pod's own labels make sense only beside a selector, and only once.
fn label_keys(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let at = path.child(field);
        let keys = list(term, field);
        if !keys.is_empty() && get(term, "labelSelector").is_none() {
            errors.forbidden(&at, "must not be specified when labelSelector is not set");
            continue;
        }
        for (index, key) in keys.iter().filter_map(Value::as_str).enumerate() {
            by_rule(key, names::label_key, &at.index(index), errors);
        }
    }
    let keys = list(term, "matchLabelKeys");
    if let Some(selector) = get(term, "labelSelector") {
        let mut named: BTreeSet<&str> =
            entries(selector, "matchLabels").map(|(key, _)| key.as_str()).collect();
        for expression in list(selector, "matchExpressions") {
            let key = text(expression, "key");
            if let Some(index) = keys.iter().rposition(|own| own == key)
                && named.contains(key)
            {
                let detail = "exists in both matchLabelKeys and labelSelector";
                errors.invalid(&path.index(index), &json!(key), detail);
            }
            named.insert(key);
        }
    }
    for (index, key) in keys.iter().enumerate() {
        if list(term, "mismatchLabelKeys").contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.invalid(&path.child("matchLabelKeys").index(index), key, detail);
        }
    }
}

/// Checks how the pods of a kind spread over the nodes.
pub(super) fn spread(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("topologySpreadConstraints");
    let all = list(spec, "topologySpreadConstraints");
    for (index, constraint) in all.iter().enumerate() {
        let path = path.index(index);
        positive(int(constraint, "maxSkew").unwrap_or(0), &path.child("maxSkew"), errors);
        required(constraint, "topologyKey", "can not be empty", &path, errors);
        let (key, action) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
        const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
        if !ACTIONS.contains(&action) {
            errors.not_supported(&path.child("whenUnsatisfiable"), &json!(action), &ACTIONS);
        }
        let same =
            |other: &Value| text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == action;
        if all[index + 1..].iter().any(same) {
            let at = path.child("{topologyKey, whenUnsatisfiable}");
            errors.duplicate(&at, &json!(format!("{{{key}, {action}}}")));
        }
        if let Some(domains) = int(constraint, "minDomains") {
            let at = path.child("minDomains");
            positive(domains, &at, errors);
            if action != "DoNotSchedule" {
                let detail =
                    format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.invalid(&at, &json!(domains), &detail);
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            one_of(constraint, field, &["Honor", "Ignore"], &path, errors);
        }
        label_keys(constraint, &path, errors);
        check::selector(constraint, "labelSelector", &path, errors);
    }
}

fn positive(value: i64, path: &Path<'_>, errors: &mut Errors) {
    if value <= 0 {
        errors.invalid(path, &json!(value), "must be greater than zero");
    }
}

/// Checks the tolerations of a pod or of a runtime class.
pub(crate) fn tolerations(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("tolerations");
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        let path = path.index(index);
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        check::text_by(toleration, "key", names::label_key, &path, errors);
        let at = path.child("operator");
        if key.is_empty() && operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&at, &json!(operator), detail);
        }
        if get(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(&path.child("effect"), &json!(effect), detail);
        }
        match operator {
            "Equal" | "" => {
                let faults = names::label_value(value);
                if !faults.is_empty() {
                    errors.invalid(&at, &json!(value), &faults.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                errors.invalid(&at, &json!(value), "value must be empty when `operator` is 'Exists'");
            }
            "Exists" => {}
            "Lt" | "Gt" => errors.not_supported(&at, &json!(operator), &["Equal", "Exists", "Lt", "Gt"]),
            _ => errors.not_supported(&at, &json!(operator), &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            one_of(toleration, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], &path, errors);
        }
    }
}
