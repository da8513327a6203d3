//! `spec.conversion` of a definition.

use serde_json::Value;

use super::text;
use crate::field::{Errors, Path};
use crate::json::str_at;

/// Checks how versions are converted. `old` is the definition before an update.
pub(super) fn validate_conversion(
    conversion: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if !conversion.is_object() {
        return;
    }
    let strategy = str_at(conversion, &["strategy"]);
    match strategy {
        "" => errors.required(&path.child("strategy"), ""),
        "None" | "Webhook" => {}
        other => errors.not_supported(&path.child("strategy"), &other.into(), &["None", "Webhook"]),
    }
    let webhook = &conversion["webhook"];
    let client = path.child("webhookClientConfig");
    let reviews = path.child("conversionReviewVersions");
    let versions: Vec<&str> = webhook["conversionReviewVersions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if webhook["clientConfig"].is_object() {
            errors.forbidden(&client, detail);
        }
        if !versions.is_empty() {
            errors.forbidden(&reviews, detail);
        }
        return;
    }
    validate_client(&webhook["clientConfig"], &client, errors);
    let recognized = |version: &&str| matches!(*version, "v1" | "v1beta1");
    let old = old.map(|old| &old["spec"]["conversion"]["webhook"]["conversionReviewVersions"]);
    let old: Vec<&str> =
        old.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if versions.is_empty() {
        errors.required(&reviews, "");
        return;
    }
    for (i, version) in versions.iter().enumerate() {
        let at = reviews.index(i);
        let fault = text::label_1035(version);
        if versions[..i].contains(version) {
            errors.invalid(&at, &(*version).into(), "duplicate version");
        } else if !fault.is_empty() {
            errors.invalid(&at, &(*version).into(), &fault);
        }
    }
    let must_recognize = old.is_empty() || old.iter().any(recognized);
    if must_recognize && !versions.iter().any(recognized) {
        let shown: Value = versions.iter().copied().collect();
        errors.invalid(&reviews, &shown, "must include at least one of v1, v1beta1");
    }
}

fn validate_client(client: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !client.is_object() {
        errors.required(path, "required when strategy is set to Webhook");
        return;
    }
    match (client["url"].as_str(), client["service"].is_object()) {
        (None, false) | (Some(_), true) => errors.required(path, "exactly one of url or service is required"),
        (Some(url), false) => validate_url(url, &path.child("url"), errors),
        (None, true) => validate_service(&client["service"], &path.child("service"), errors),
    }
}

fn validate_url(url: &str, path: &Path<'_>, errors: &mut Errors) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.invalid(path, &scheme.into(), &detail);
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() {
        errors.invalid(path, &"".into(), &format!("host must be specified{FORM}"));
    }
    for (part, detail) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            errors.invalid(path, &part.into(), detail);
        }
    }
}

fn validate_service(service: &Value, path: &Path<'_>, errors: &mut Errors) {
    // The real server confuses the two.
    for (missing, told) in [("namespace", "name"), ("name", "namespace")] {
        if str_at(service, &[missing]).is_empty() {
            errors.required(&path.child(told), "");
        }
    }
    let port = service["port"].as_i64().unwrap_or(443);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.invalid(&path.child("port"), &port.into(), detail);
    }
    let route = str_at(service, &["path"]);
    let at = path.child("path");
    let mut refuse = |detail: &str| errors.invalid(&at, &route.into(), detail);
    if matches!(route, "" | "/") {
        return;
    }
    if route == "//" {
        refuse("segment[0] may not be empty");
        return;
    }
    if !route.starts_with('/') {
        refuse("must start with a '/'");
    }
    let steps = route.get(1..).unwrap_or_default();
    for (i, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            refuse(&format!("segment[{i}] may not be empty"));
            continue;
        }
        for fault in text::subdomain(step) {
            refuse(&format!("segment[{i}]: {fault}"));
        }
    }
}
