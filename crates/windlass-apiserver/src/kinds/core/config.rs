//! Secrets, limit ranges and service accounts.

use serde_json::Value;

use crate::kinds::Hooks;
use crate::kinds::tree::{each, fill, fill_zero, get, is_zero, list, remove, set, sub, text};

pub(super) const SECRET: Hooks = Hooks { default: default_secret, ..Hooks::NONE };

pub(super) const LIMIT_RANGE: Hooks =
    Hooks { default: |object| each(sub(object, "spec"), "limits", default_limit), ..Hooks::NONE };

pub(super) const SERVICE_ACCOUNT: Hooks = Hooks {
    prepare_create: |object, _| clean_references(object),
    prepare_update: |object, _, _| clean_references(object),
    ..Hooks::NONE
};

fn default_secret(secret: &mut Value) {
    fill_zero(secret, "type", "Opaque");
    if let Some(plain) = remove(secret, "stringData") {
        use base64::Engine as _;
        for (key, value) in plain.as_object().into_iter().flatten() {
            let coded = base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or(""));
            set(sub(secret, "data"), key, coded);
        }
        if let Some(data) = secret.get_mut("data").and_then(Value::as_object_mut) {
            data.sort_keys();
        }
    }
}

/// Containers get `default` from `max`, and `defaultRequest` from `default`, else from `min`.
fn default_limit(limit: &mut Value) {
    if text(limit, "type") != "Container" {
        return;
    }
    for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let Some(source) = get(limit, from).and_then(Value::as_object).cloned() else { continue };
        for (name, amount) in source {
            fill(sub(limit, to), &name, amount);
        }
    }
}

/// Of the references to secrets only the names are kept.
fn clean_references(account: &mut Value) {
    if is_zero(account.get("secrets")) {
        return;
    }
    let names = list(account, "secrets").iter().map(|secret| match text(secret, "name") {
        "" => serde_json::json!({}),
        name => serde_json::json!({"name": name}),
    });
    let names = names.collect::<Vec<_>>();
    set(account, "secrets", names);
}
