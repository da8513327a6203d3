//! Trees as protobuf, by the type table: what typed Go clients send.

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use windlass_apiserver::codec;
use windlass_apiserver::codec::scalar::{duration, time};
use windlass_apiserver::schema::{self, Struct, Type, TypeId, Types, Wire};

/// The magic number in front of Kubernetes' envelope.
const MAGIC: &[u8] = b"k8s\0";

/// The tree as a message of the type with this OpenAPI name, in the envelope.
///
/// # Errors
/// When there is no such type, or the tree is not of it.
pub fn encode(name: &str, tree: &Value) -> Result<Vec<u8>> {
    let types = schema::builtin();
    let id = types.id(name).with_context(|| format!("no type {name}"))?;
    let mut meta = Vec::new();
    bytes(&mut meta, 1, tree["apiVersion"].as_str().unwrap_or_default().as_bytes());
    bytes(&mut meta, 2, tree["kind"].as_str().unwrap_or_default().as_bytes());
    let mut out = MAGIC.to_vec();
    bytes(&mut out, 1, &meta);
    bytes(&mut out, 2, &message(types, id, tree)?);
    bytes(&mut out, 3, b"");
    bytes(&mut out, 4, b"");
    Ok(out)
}

/// The OpenAPI name and the tree of a body in the envelope.
///
/// # Errors
/// When it is not one, or of no built-in kind.
pub fn decode(body: &[u8]) -> Result<(String, Value)> {
    let types = schema::builtin();
    let envelope = codec::envelope(body).map_err(|e| anyhow::anyhow!("{e}"))?;
    let (group, version) = envelope.api_version.split_once('/').unwrap_or(("", &envelope.api_version));
    // `rbac.authorization.k8s.io/v1` is in the package `rbac/v1`; a Status, and nothing else, is of the machinery.
    let package = match group.split('.').next() {
        Some("") if envelope.kind == "Status" => "meta",
        Some("") => "core",
        Some(label) => label,
        None => "",
    };
    let end = format!(".{package}.{version}.{}", envelope.kind);
    let named = types.iter().find(|structure| structure.name.ends_with(&end));
    let name = named.with_context(|| format!("no type *{end}"))?.name.to_string();
    let id = types.id(&name).with_context(|| name.clone())?;
    let tree = codec::decode_proto(types, id, &envelope).map_err(|e| anyhow::anyhow!("{e}"))?;
    Ok((name, tree))
}

fn message(types: &Types, id: TypeId, tree: &Value) -> Result<Vec<u8>> {
    let structure = types.get(id);
    let mut numbers: Vec<u32> = structure.wire.keys().copied().collect();
    numbers.sort_unstable();
    let mut out = Vec::new();
    for number in numbers {
        match structure.wire[&number] {
            Wire::Inline(inner) => {
                if has_any(types.get(inner), tree) {
                    bytes(&mut out, number, &message(types, inner, tree)?);
                }
            }
            Wire::Field(index) => {
                let field = &structure.fields[index];
                match tree.get(field.name.as_ref()) {
                    None | Some(Value::Null) => {}
                    Some(value) => {
                        put(types, &mut out, number, &field.ty, value)
                            .with_context(|| field.name.to_string())?;
                    }
                }
            }
        }
    }
    Ok(out)
}

fn has_any(structure: &Struct, tree: &Value) -> bool {
    structure.fields.iter().any(|field| tree.get(field.name.as_ref()).is_some_and(|value| !value.is_null()))
}

fn put(types: &Types, out: &mut Vec<u8>, number: u32, ty: &Type, value: &Value) -> Result<()> {
    match ty {
        Type::List(element) => {
            for item in value.as_array().context("not a list")? {
                put(types, out, number, element, item)?;
            }
        }
        Type::Map(of) => {
            for (key, item) in value.as_object().context("not a map")? {
                let mut entry = Vec::new();
                bytes(&mut entry, 1, key.as_bytes());
                put(types, &mut entry, 2, of, item)?;
                bytes(out, number, &entry);
            }
        }
        Type::Bool => {
            tag(out, number, 0);
            out.push(u8::from(value.as_bool().context("not a bool")?));
        }
        Type::Int32 | Type::Int64 => {
            tag(out, number, 0);
            varint(out, value.as_i64().context("not an integer")? as u64);
        }
        Type::Float64 => {
            tag(out, number, 1);
            out.extend_from_slice(&value.as_f64().context("not a number")?.to_le_bytes());
        }
        _ => bytes(out, number, &leaf(types, ty, value)?),
    }
    Ok(())
}

/// What is length-delimited on the wire.
fn leaf(types: &Types, ty: &Type, value: &Value) -> Result<Vec<u8>> {
    let text = || value.as_str().context("not text");
    let mut out = Vec::new();
    match ty {
        Type::String => out.extend_from_slice(text()?.as_bytes()),
        Type::Bytes => out = STANDARD.decode(text()?)?,
        Type::Struct(id) => out = message(types, *id, value)?,
        Type::Quantity => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            bytes(&mut out, 1, text.as_bytes());
        }
        Type::Duration => {
            tag(&mut out, 1, 0);
            varint(&mut out, duration::parse(text()?)? as u64);
        }
        Type::Time | Type::MicroTime => {
            let precision =
                if matches!(ty, Type::Time) { time::Precision::Seconds } else { time::Precision::Micros };
            let at = time::parse(text()?, precision)?;
            tag(&mut out, 1, 0);
            varint(&mut out, at.as_second() as u64);
            tag(&mut out, 2, 0);
            varint(&mut out, u64::from(at.subsec_nanosecond().unsigned_abs()));
        }
        Type::IntOrString => {
            tag(&mut out, 1, 0);
            out.push(u8::from(value.is_string()));
            tag(&mut out, 2, 0);
            varint(&mut out, value.as_i64().unwrap_or(0) as u64);
            bytes(&mut out, 3, value.as_str().unwrap_or_default().as_bytes());
        }
        Type::Raw | Type::FieldsV1 | Type::Any => bytes(&mut out, 1, &serde_json::to_vec(value)?),
        other => bail!("no protobuf for {other:?} here"),
    }
    Ok(out)
}

fn bytes(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    tag(out, number, 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn tag(out: &mut Vec<u8>, number: u32, wire: u32) {
    varint(out, u64::from(number << 3 | wire));
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_encoded_can_be_decoded_again() {
        let name = "io.k8s.api.apps.v1.Deployment";
        let tree = json!({"kind": "Deployment", "apiVersion": "apps/v1",
            "metadata": {"name": "a", "labels": {"x": "y"}, "creationTimestamp": "2024-01-02T03:04:05Z"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"x": "y"}},
                "template": {"metadata": {}, "spec": {"containers": [{"name": "c", "image": "i",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "resources": {"limits": {"cpu": "500m"}},
                    "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 3}}]}},
                "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}}});
        let bytes = encode(name, &tree).unwrap();
        let (found, decoded) = decode(&bytes).unwrap();
        assert_eq!(found, name);
        assert_eq!(decoded["spec"]["replicas"], 3);
        assert_eq!(decoded["metadata"]["creationTimestamp"], "2024-01-02T03:04:05Z");
        let container = &decoded["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["livenessProbe"]["httpGet"]["port"], "http");
        assert_eq!(container["resources"]["limits"]["cpu"], "500m");
        assert_eq!(decoded["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 1);
    }

    #[test]
    fn the_type_of_a_body_follows_from_its_envelope() {
        for (version, kind, name) in [
            ("v1", "PodList", "io.k8s.api.core.v1.PodList"),
            ("rbac.authorization.k8s.io/v1", "Role", "io.k8s.api.rbac.v1.Role"),
            ("v1", "Status", "io.k8s.apimachinery.pkg.apis.meta.v1.Status"),
        ] {
            let body = encode(name, &json!({"apiVersion": version, "kind": kind})).unwrap();
            assert_eq!(decode(&body).unwrap().0, name);
        }
    }
}
