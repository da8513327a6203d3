//! The files of a volume that is made from objects. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, Volume, VolumeProjection};

use crate::pod::downward::{self, Facts};
use crate::pod::library::{Library, not_found};
use crate::pod::member::Member;

/// The files of a volume, by their paths in it.
pub(crate) type Payload = BTreeMap<String, File>;

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub data: Vec<u8>,
    pub mode: u32,
}

/// A token that a volume holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenNeed {
    pub path: String,
    pub audience: String,
    pub expiration_seconds: i64,
}

/// What files are made with where nobody says otherwise.
const MODE: i32 = 0o644;

/// What a payload is made from.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub pod: &'a Pod,
    pub library: &'a dyn Library,
    pub facts: &'a Facts,
    /// Tokens by the path of their file.
    pub tokens: &'a BTreeMap<String, String>,
}

/// The tokens that a volume wants.
pub(crate) fn tokens(volume: &Volume) -> Vec<TokenNeed> {
    let projected = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    let tokens = projected.filter_map(|source| source.service_account_token.as_ref());
    tokens
        .map(|token| TokenNeed {
            path: token.path.clone(),
            audience: token.audience.clone().unwrap_or_default(),
            expiration_seconds: token.expiration_seconds.unwrap_or(3600),
        })
        .collect()
}

/// The files of a volume; `None` if it is not made from objects.
pub(crate) fn payload(volume: &Volume, from: Sources<'_>) -> Result<Option<Payload>, String> {
    let mut payload = Payload::new();
    if let Some(source) = &volume.config_map {
        let mode = source.default_mode.unwrap_or(MODE);
        let optional = source.optional == Some(true);
        config_map(&source.name, source.items.as_deref(), mode, optional, from, &mut payload)?;
    } else if let Some(source) = &volume.secret {
        let mode = source.default_mode.unwrap_or(MODE);
        let optional = source.optional == Some(true);
        let name = source.secret_name.as_deref().unwrap_or_default();
        secret(name, source.items.as_deref(), mode, optional, from, &mut payload)?;
    } else if let Some(source) = &volume.downward_api {
        let mode = source.default_mode.unwrap_or(MODE);
        downward_api(source.items.as_deref().unwrap_or_default(), mode, from, &mut payload)?;
    } else if let Some(source) = &volume.projected {
        let mode = source.default_mode.unwrap_or(MODE);
        for source in source.sources.iter().flatten() {
            projection(source, mode, from, &mut payload)?;
        }
    } else {
        return Ok(None);
    }
    Ok(Some(payload))
}

fn projection(
    source: &VolumeProjection,
    mode: i32,
    from: Sources<'_>,
    payload: &mut Payload,
) -> Result<(), String> {
    if let Some(source) = &source.config_map {
        let optional = source.optional == Some(true);
        config_map(&source.name, source.items.as_deref(), mode, optional, from, payload)?;
    }
    if let Some(source) = &source.secret {
        let optional = source.optional == Some(true);
        secret(&source.name, source.items.as_deref(), mode, optional, from, payload)?;
    }
    if let Some(source) = &source.downward_api {
        downward_api(source.items.as_deref().unwrap_or_default(), mode, from, payload)?;
    }
    if let Some(token) = &source.service_account_token {
        let data = from.tokens.get(&token.path).ok_or("the token was not issued")?;
        put(payload, &token.path, data.clone().into_bytes(), mode)?;
    }
    Ok(())
}

fn config_map(
    name: &str,
    items: Option<&[KeyToPath]>,
    mode: i32,
    optional: bool,
    from: Sources<'_>,
    payload: &mut Payload,
) -> Result<(), String> {
    let namespace = from.pod.metadata.namespace.as_deref().unwrap_or_default();
    let Some(map) = from.library.config_map(namespace, name) else {
        return if optional { Ok(()) } else { Err(not_found("configmap", name)) };
    };
    let mut data: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    data.extend(map.data.iter().flatten().map(|(key, value)| (key.as_str(), value.clone().into_bytes())));
    data.extend(map.binary_data.iter().flatten().map(|(key, value)| (key.as_str(), value.0.clone())));
    chosen(data, items, mode, optional, "configmap references non-existent config key", payload)
}

fn secret(
    name: &str,
    items: Option<&[KeyToPath]>,
    mode: i32,
    optional: bool,
    from: Sources<'_>,
    payload: &mut Payload,
) -> Result<(), String> {
    let namespace = from.pod.metadata.namespace.as_deref().unwrap_or_default();
    let Some(secret) = from.library.secret(namespace, name) else {
        return if optional { Ok(()) } else { Err(not_found("secret", name)) };
    };
    let data = secret.data.iter().flatten().map(|(key, value)| (key.as_str(), value.0.clone())).collect();
    chosen(data, items, mode, optional, "references non-existent secret key", payload)
}

/// All keys, or those that are named, where they are wanted.
fn chosen(
    data: BTreeMap<&str, Vec<u8>>,
    items: Option<&[KeyToPath]>,
    mode: i32,
    optional: bool,
    missing: &str,
    payload: &mut Payload,
) -> Result<(), String> {
    let items = items.unwrap_or_default();
    if items.is_empty() {
        for (key, value) in data {
            put(payload, key, value, mode)?;
        }
        return Ok(());
    }
    for item in items {
        match data.get(item.key.as_str()) {
            Some(value) => put(payload, &item.path, value.clone(), item.mode.unwrap_or(mode))?,
            None if optional => {}
            None => return Err(format!("{missing}: {}", item.key)),
        }
    }
    Ok(())
}

fn downward_api(
    items: &[DownwardAPIVolumeFile],
    mode: i32,
    from: Sources<'_>,
    payload: &mut Payload,
) -> Result<(), String> {
    for item in items {
        let text = if let Some(selector) = &item.field_ref {
            downward::field(selector, from.pod, from.facts)?
        } else if let Some(selector) = &item.resource_field_ref {
            let name = selector.container_name.as_deref().unwrap_or_default();
            let members = Member::all(from.pod);
            let member = members.iter().find(|member| member.name() == name);
            let member = member.ok_or_else(|| format!("container {name} not found"))?;
            downward::resource(selector, &member.spec, from.facts)?
        } else {
            continue;
        };
        put(payload, &item.path, text.into_bytes(), item.mode.unwrap_or(mode))?;
    }
    Ok(())
}

fn put(payload: &mut Payload, path: &str, data: Vec<u8>, mode: i32) -> Result<(), String> {
    let inside = !path.is_empty() && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if !inside || path.starts_with("..") {
        return Err(format!("invalid path: {path}"));
    }
    let mode = u32::try_from(mode).unwrap_or_default() & 0o777;
    payload.insert(path.to_owned(), File { data, mode });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::library::tests::Shelf;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn of(volume: Value) -> Result<Option<Payload>, String> {
        let shelf = Shelf {
            config_maps: vec![Arc::new(
                serde_json::from_value(json!({
                    "metadata": {"name": "conf"}, "data": {"a": "1", "b": "2"}, "binaryData": {"c": "AAE="},
                }))
                .unwrap(),
            )],
            secrets: vec![Arc::new(
                serde_json::from_value(json!({"metadata": {"name": "key"}, "data": {"k": "aHVzaA=="}}))
                    .unwrap(),
            )],
            ..Shelf::default()
        };
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "x"}},
            "spec": {"containers": [{"name": "web", "resources": {"limits": {"cpu": "2"}}}]},
        }))
        .unwrap();
        let mut volume = volume;
        volume["name"] = json!("v");
        let tokens = BTreeMap::from([("token".to_owned(), "ey".to_owned())]);
        let facts = Facts::default();
        let from = Sources { pod: &pod, library: &shelf, facts: &facts, tokens: &tokens };
        payload(&serde_json::from_value(volume).unwrap(), from)
    }

    fn text(payload: Payload) -> Vec<String> {
        let line = |(path, file): (String, File)| {
            format!("{path} {:o} {}", file.mode, String::from_utf8_lossy(&file.data).escape_debug())
        };
        payload.into_iter().map(line).collect()
    }

    #[test]
    fn a_volume_holds_the_keys_that_are_wanted() {
        let all = of(json!({"configMap": {"name": "conf"}})).unwrap().unwrap();
        assert_eq!(text(all), ["a 644 1", "b 644 2", "c 644 \\0\\u{1}"]);
        let items = json!([{"key": "a", "path": "deep/one", "mode": 256}]);
        let some =
            of(json!({"configMap": {"name": "conf", "items": items, "defaultMode": 420}})).unwrap().unwrap();
        assert_eq!(text(some), ["deep/one 400 1"]);
        assert_eq!(of(json!({"emptyDir": {}})).unwrap(), None);
    }

    #[test]
    fn several_sources_make_one_folder() {
        let sources = json!([
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "conf", "items": [{"key": "a", "path": "ca.crt"}]}},
            {"secret": {"name": "key"}},
            {"downwardAPI": {"items": [
                {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
                {"path": "cpu", "resourceFieldRef": {"containerName": "web", "resource": "limits.cpu"}},
            ]}},
        ]);
        let all = of(json!({"projected": {"sources": sources, "defaultMode": 292}})).unwrap().unwrap();
        assert_eq!(
            text(all),
            ["ca.crt 444 1", "cpu 444 2", "k 444 hush", "namespace 444 shop", "token 444 ey"]
        );
    }

    #[test]
    fn what_is_missing_is_said_unless_it_may_be() {
        let says = |volume: Value| of(volume).unwrap_err();
        assert_eq!(says(json!({"configMap": {"name": "none"}})), "configmap \"none\" not found");
        let items = json!([{"key": "x", "path": "x"}]);
        assert_eq!(
            says(json!({"secret": {"secretName": "key", "items": items}})),
            "references non-existent secret key: x"
        );
        assert_eq!(of(json!({"secret": {"secretName": "none", "optional": true}})), Ok(Some(Payload::new())));
        let out = json!([{"key": "a", "path": "../../etc/passwd"}]);
        assert!(says(json!({"configMap": {"name": "conf", "items": out}})).starts_with("invalid path"));
    }
}
