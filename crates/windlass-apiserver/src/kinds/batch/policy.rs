//! When a job has failed and when it has succeeded, by its policies.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field::{Errors, Path, Reason};
use crate::kinds::check::{by_rule, not_negative};
use crate::kinds::names;
use crate::kinds::tree::{get, int, list, text};

/// Checks the policy for success of an indexed job.
pub(super) fn success(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(policy) = get(spec, "successPolicy") else { return };
    let path = path.child("successPolicy");
    let path = path.child("rules");
    let rules = list(policy, "rules");
    if rules.is_empty() {
        errors.required(&path, "at least one rules must be specified when the successPolicy is specified");
    }
    if rules.len() > 20 {
        errors.too_many(&path, rules.len(), 20);
    }
    let all = int(spec, "completions").unwrap_or(0);
    for (index, rule) in rules.iter().enumerate() {
        success_rule(rule, all, &path.index(index), errors);
    }
}

fn success_rule(rule: &Value, all: i64, path: &Path<'_>, errors: &mut Errors) {
    let (count, indexes) =
        (int(rule, "succeededCount"), get(rule, "succeededIndexes").and_then(Value::as_str));
    if count.is_none() && indexes.is_none() {
        errors.required(path, "at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut chosen = 0;
    if let Some(indexes) = indexes {
        let at = path.child("succeededIndexes");
        if indexes.len() > 64 * 1024 {
            errors.too_long(&at, 64 * 1024);
        }
        match count_indexes(indexes, all) {
            Ok(total) => chosen = total,
            Err(fault) => {
                let detail = format!("error parsing succeededIndexes: {fault}");
                errors.invalid(&at, &json!(indexes), &detail);
            }
        }
    }
    let Some(count) = count else { return };
    let at = path.child("succeededCount");
    not_negative(rule, &["succeededCount"], path, errors);
    if count > all {
        let detail = format!("must be less than or equal to {all} (the number of specified completions)");
        errors.invalid(&at, &json!(count), &detail);
    }
    if indexes.is_some() && count > chosen {
        let detail = format!(
            "must be less than or equal to {chosen} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.invalid(&at, &json!(count), &detail);
    }
}

/// How many indexes a text such as `1,3-5` names, all below the number of completions.
fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let (mut last, mut total) = (None, 0);
    if text.is_empty() {
        return Ok(0);
    }
    let index = |text: &str| match text.parse::<i64>() {
        Err(_) => Err(format!("cannot convert string to integer for index: {text:?}")),
        Ok(index) if index >= completions => Err(format!("too large index: {text:?}")),
        Ok(index) => Ok(index),
    };
    let backwards = |before, now| format!("non-increasing order, previous: {before}, current: {now}");
    for interval in text.split(',') {
        let limits = interval.split('-').collect::<Vec<_>>();
        let (first, end) = match limits[..] {
            [one] => (index(one)?, index(one)?),
            [first, end] => {
                let (first, end) = (index(first)?, index(end)?);
                if first >= end {
                    return Err(backwards(first, end));
                }
                (first, end)
            }
            _ => {
                return Err(format!(
                    "the fragment {interval:?} violates the requirement that an index interval can have at most two \
                     parts separated by '-'"
                ));
            }
        };
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(backwards(last, first));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

/// Checks the policy for failed pods.
pub(super) fn failure(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("podFailurePolicy");
    let path = path.child("rules");
    let rules = list(&spec["podFailurePolicy"], "rules");
    if rules.len() > 20 {
        errors.too_many(&path, rules.len(), 20);
    }
    let pod = &spec["template"]["spec"];
    let containers = list(pod, "containers").iter().chain(list(pod, "initContainers"));
    let containers: BTreeSet<&str> = containers.map(|container| text(container, "name")).collect();
    for (index, rule) in rules.iter().enumerate() {
        let at = path.index(index);
        action(spec, rule, &at, errors);
        if let Some(codes) = get(rule, "onExitCodes") {
            exit_codes(codes, &containers, &at.child("onExitCodes"), errors);
        }
        conditions(list(rule, "onPodConditions"), &at.child("onPodConditions"), errors);
        let why = match (get(rule, "onExitCodes").is_some(), !list(rule, "onPodConditions").is_empty()) {
            (true, false) | (false, true) => continue,
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        };
        errors.push(Reason::Invalid, &at, format!("Invalid value: {why}"));
    }
}

fn action(spec: &Value, rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
    let (action, at) = (text(rule, "action"), path.child("action"));
    match action {
        "" => errors.required(&at, "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]"),
        "FailIndex" if get(spec, "backoffLimitPerIndex").is_none() => {
            errors.invalid(&at, &json!(action), "requires the backoffLimitPerIndex to be set");
        }
        _ if !ACTIONS.contains(&action) => errors.not_supported(&at, &json!(action), &ACTIONS),
        _ => {}
    }
}

fn conditions(patterns: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if patterns.len() > 20 {
        errors.too_many(path, patterns.len(), 20);
    }
    for (index, pattern) in patterns.iter().enumerate() {
        let path = path.index(index);
        by_rule(text(pattern, "type"), names::label_key, &path.child("type"), errors);
        let at = path.child("status");
        match text(pattern, "status") {
            "" => errors.required(&at, "valid values: [\"False\" \"True\" \"Unknown\"]"),
            "False" | "True" | "Unknown" => {}
            other => errors.not_supported(&at, &json!(other), &["False", "True", "Unknown"]),
        }
    }
}

fn exit_codes(codes: &Value, containers: &BTreeSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    let operator = text(codes, "operator");
    if operator.is_empty() {
        errors.required(&path.child("operator"), "valid values: [\"In\" \"NotIn\"]");
    } else if !matches!(operator, "In" | "NotIn") {
        errors.not_supported(&path.child("operator"), &json!(operator), &["In", "NotIn"]);
    }
    if let Some(name) = get(codes, "containerName").and_then(Value::as_str)
        && !containers.contains(name)
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.invalid(&path.child("containerName"), &json!(name), detail);
    }
    let at = path.child("values");
    let values = list(codes, "values").iter().filter_map(Value::as_i64).collect::<Vec<_>>();
    if values.is_empty() {
        errors.invalid(&at, codes.get("values").unwrap_or(&Value::Null), "at least one value is required");
    } else if values.len() > 255 {
        errors.too_many(&at, values.len(), 255);
    }
    for (index, value) in values.iter().enumerate() {
        if operator == "In" && *value == 0 {
            errors.invalid(&at.index(index), &json!(0), "must not be 0 for the In operator");
        }
        if values[..index].contains(value) {
            errors.duplicate(&at.index(index), &json!(value));
        }
    }
    if !values.is_sorted() {
        errors.invalid(&at, &codes["values"], "must be ordered");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_counted_in_order() {
        assert_eq!(count_indexes("", 3), Ok(0));
        assert_eq!(count_indexes("0,2-4", 5), Ok(4));
        assert_eq!(count_indexes("5", 5).unwrap_err(), "too large index: \"5\"");
        assert_eq!(count_indexes("1,1", 5).unwrap_err(), "non-increasing order, previous: 1, current: 1");
        assert_eq!(count_indexes("3-2", 5).unwrap_err(), "non-increasing order, previous: 3, current: 2");
        assert!(count_indexes("x", 5).unwrap_err().starts_with("cannot convert"));
    }
}
