//! Secrets, config maps and service accounts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::field::{Errors, Path};
use crate::kinds::check::by_rule;
use crate::kinds::meta::{Check, immutable};
use crate::kinds::tree::{
    entries, fill_zero, flag, get, is_zero, list, remove, same, set, sub, text, text_at,
};
use crate::kinds::{Hooks, names};

pub(super) const SECRET: Hooks = Hooks {
    rechecks: &[Check::Update, Check::Whole],
    default: default_secret,
    validate_create: |secret, _, errors| validate_secret(secret, errors),
    validate_update: |new, old, _, errors| {
        immutable(new, old, &Path::Root, "type", errors);
        keep_if_immutable(new, old, &["data"], errors);
        validate_secret(new, errors);
    },
    warnings: |secret, _| secret_warnings(secret),
    ..Hooks::NONE
};

pub(super) const CONFIG_MAP: Hooks = Hooks {
    rechecks: &[Check::Update, Check::Whole],
    validate_create: |map, _, errors| validate_config_map(map, errors),
    validate_update: |new, old, _, errors| {
        keep_if_immutable(new, old, &["data", "binaryData"], errors);
        validate_config_map(new, errors);
    },
    ..Hooks::NONE
};

pub(super) const SERVICE_ACCOUNT: Hooks = Hooks {
    rechecks: &[Check::Update, Check::Whole],
    prepare_create: |object, _| clean_references(object),
    prepare_update: |object, _, _| clean_references(object),
    warnings: |account, old| match enforces(account) && !old.is_some_and(enforces) {
        true => vec![format!(
            "metadata.annotations[{ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to \
             mounted secrets"
        )],
        false => Vec::new(),
    },
    ..Hooks::NONE
};

const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

fn enforces(account: &Value) -> bool {
    account["metadata"]["annotations"].get(ENFORCE).is_some()
}

fn default_secret(secret: &mut Value) {
    fill_zero(secret, "type", "Opaque");
    if let Some(plain) = remove(secret, "stringData") {
        for (key, value) in plain.as_object().into_iter().flatten() {
            let coded = STANDARD.encode(value.as_str().unwrap_or(""));
            set(sub(secret, "data"), key, coded);
        }
        if let Some(data) = secret.get_mut("data").and_then(Value::as_object_mut) {
            data.sort_keys();
        }
    }
}

/// Of the references to secrets only the names are kept.
fn clean_references(account: &mut Value) {
    if is_zero(account.get("secrets")) {
        return;
    }
    let names = list(account, "secrets").iter().map(|secret| match text(secret, "name") {
        "" => json!({}),
        name => json!({"name": name}),
    });
    let names = names.collect::<Vec<_>>();
    set(account, "secrets", names);
}

/// What config maps and secrets may hold.
const SIZE_MAX: usize = 1 << 20;

fn validate_config_map(map: &Value, errors: &mut Errors) {
    let root = Path::Root;
    let mut size = 0;
    for (key, value) in entries(map, "data") {
        let data = root.child("data");
        by_rule(key, names::config_key, &data.key(key), errors);
        if get(map, "binaryData").is_some_and(|binary| binary.get(key).is_some()) {
            errors.invalid(&data.key(key), &json!(key), "duplicate of key present in binaryData");
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(map, "binaryData") {
        by_rule(key, names::config_key, &root.child("binaryData").key(key), errors);
        size += decoded(value).len();
    }
    if size > SIZE_MAX {
        // The real server names no field here, and prints that so.
        errors.too_long(&root.child("[]"), SIZE_MAX);
    }
}

fn validate_secret(secret: &Value, errors: &mut Errors) {
    let path = Path::Root.child("data");
    let mut size = 0;
    for (key, value) in entries(secret, "data") {
        by_rule(key, names::config_key, &path.key(key), errors);
        size += decoded(value).len();
    }
    if size > SIZE_MAX {
        errors.too_long(&path, SIZE_MAX);
    }
    let value = |key: &str| get(secret, "data").and_then(|data| get(data, key));
    let need = |key: &str, errors: &mut Errors| {
        if value(key).is_none() {
            errors.required(&path.key(key), "");
        }
    };
    match text(secret, "type") {
        "kubernetes.io/service-account-token" => {
            const KEY: &str = "kubernetes.io/service-account.name";
            if text_at(secret, &["metadata", "annotations", KEY]).is_empty() {
                errors.required(&Path::Root.child("metadata").child("annotations").key(KEY), "");
            }
        }
        "kubernetes.io/dockercfg" => is_json(value(".dockercfg"), &path.key(".dockercfg"), errors),
        "kubernetes.io/dockerconfigjson" => {
            is_json(value(".dockerconfigjson"), &path.key(".dockerconfigjson"), errors);
        }
        "kubernetes.io/basic-auth" if value("username").is_none() && value("password").is_none() => {
            need("username", errors);
            need("password", errors);
        }
        "kubernetes.io/ssh-auth" if is_zero(value("ssh-privatekey")) => {
            errors.required(&path.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => {
            need("tls.crt", errors);
            need("tls.key", errors);
        }
        _ => {}
    }
}

fn is_json(value: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let Some(value) = value else {
        errors.required(path, "");
        return;
    };
    let bytes = decoded(value);
    if let Some(detail) = json_fault(&bytes) {
        errors.invalid(path, &json!("<secret contents redacted>"), &detail);
    }
}

/// What Go says of bytes that are no JSON object.
fn json_fault(bytes: &[u8]) -> Option<String> {
    const END: &str = "unexpected end of JSON input";
    let bytes = bytes.trim_ascii_start();
    let Some(first) = bytes.first() else { return Some(END.to_owned()) };
    if *first == b'-'
        && let Some(next) = bytes.get(1).filter(|next| !next.is_ascii_digit())
    {
        return Some(format!("invalid character '{}' in numeric literal", char::from(*next)));
    }
    let rest = match first {
        b'-' | b'0'..=b'9' => &bytes[number_length(bytes)..],
        _ => {
            let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
            match values.next() {
                Some(Ok(Value::Object(_) | Value::Null))
                    if bytes[values.byte_offset()..].trim_ascii().is_empty() =>
                {
                    return None;
                }
                Some(Ok(_)) => &bytes[values.byte_offset()..],
                Some(Err(error)) if error.is_eof() => return Some(END.to_owned()),
                _ => {
                    let first = char::from(*first);
                    return Some(format!("invalid character '{first}' looking for beginning of value"));
                }
            }
        }
    };
    if let Some(more) = rest.trim_ascii_start().first() {
        return Some(format!("invalid character '{}' after top-level value", char::from(*more)));
    }
    let kind = match first {
        b'[' => "array",
        b'"' => "string",
        b't' | b'f' => "bool",
        _ => "number",
    };
    Some(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"))
}

/// How far a number goes: one that begins with zero ends there, unless a fraction follows.
fn number_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let sign = usize::from(bytes[0] == b'-');
    let mut end = sign + if bytes.get(sign) == Some(&b'0') { 1 } else { digits(sign) };
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    end
}

fn decoded(value: &Value) -> Vec<u8> {
    value.as_str().and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default()
}

fn keep_if_immutable(new: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    if !flag(old, "immutable") {
        return;
    }
    const WHY: &str = "field is immutable when `immutable` is set";
    if !flag(new, "immutable") {
        errors.forbidden(&Path::Root.child("immutable"), WHY);
    }
    for field in fields {
        if !same(new.get(field), old.get(field)) {
            errors.forbidden(&Path::Root.child(field), WHY);
        }
    }
}

/// A certificate without any PEM in it can be of no use.
fn secret_warnings(secret: &Value) -> Vec<String> {
    if text(secret, "type") != "kubernetes.io/tls" {
        return Vec::new();
    }
    let certificate = secret.pointer("/data/tls.crt").map(decoded).unwrap_or_default();
    match certificate.windows(11).any(|window| window == b"-----BEGIN ") {
        true => Vec::new(),
        false => vec!["tls: failed to find any PEM data in certificate input".to_owned()],
    }
}
