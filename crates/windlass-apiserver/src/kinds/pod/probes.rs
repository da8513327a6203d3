//! Probes and lifecycle handlers of containers.

use serde_json::{Value, json};

use super::Scene;
use crate::field::{Errors, Path};
use crate::kinds::check::{by_rule, in_range, not_negative, one_of, port_or_name, required};
use crate::kinds::names;
use crate::kinds::tree::{get, int, list, text};

/// Checks what runs against a container while it lives.
pub(super) fn validate(container: &Value, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    let grace = scene.grace;
    if let Some(lifecycle) = get(container, "lifecycle") {
        let path = path.child("lifecycle");
        for name in ["postStart", "preStop"] {
            if let Some(found) = get(lifecycle, name) {
                handler(found, grace, &path.child(name), errors);
            }
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(found) = get(container, name) {
            probe(found, name, grace, &path.child(name), errors);
        }
    }
}

fn probe(probe: &Value, name: &str, grace: i64, path: &Path<'_>, errors: &mut Errors) {
    handler(probe, grace, path, errors);
    let counts =
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
    not_negative(probe, &counts, path, errors);
    if let Some(seconds) = int(probe, "terminationGracePeriodSeconds") {
        let at = path.child("terminationGracePeriodSeconds");
        if seconds <= 0 {
            errors.invalid(&at, &json!(seconds), "must be greater than 0");
        }
        if name == "readinessProbe" {
            errors.invalid(&at, &json!(seconds), "must not be set for readinessProbes");
        }
    }
    let threshold = int(probe, "successThreshold").unwrap_or(0);
    if name != "readinessProbe" && threshold != 1 {
        errors.invalid(&path.child("successThreshold"), &json!(threshold), "must be 1");
    }
}

fn handler(handler: &Value, grace: i64, path: &Path<'_>, errors: &mut Errors) {
    let kinds = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let mut present = kinds.iter().filter(|kind| get(handler, kind).is_some());
    let Some(first) = present.next() else {
        errors.required(path, "must specify a handler type");
        return;
    };
    let (action, at) = (&handler[*first], path.child(first));
    match *first {
        "exec" if list(action, "command").is_empty() => errors.required(&at.child("command"), ""),
        "httpGet" => {
            required(action, "path", "", &at, errors);
            port_or_name(get(action, "port"), &at.child("port"), errors);
            one_of(action, "scheme", &["HTTP", "HTTPS"], &at, errors);
            for header in list(action, "httpHeaders") {
                by_rule(text(header, "name"), names::header, &at.child("httpHeaders"), errors);
            }
        }
        "tcpSocket" => port_or_name(get(action, "port"), &at.child("port"), errors),
        "grpc" => in_range(int(action, "port").unwrap_or(0), 1, 65_535, &at.child("port"), errors),
        "sleep" => {
            let seconds = int(action, "seconds").unwrap_or(0);
            if seconds < 0 || seconds > grace {
                let detail =
                    format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                errors.invalid(&at, &json!(seconds), &detail);
            }
        }
        _ => {}
    }
    for more in present {
        errors.forbidden(&path.child(more), "may not specify more than 1 handler type");
    }
}
