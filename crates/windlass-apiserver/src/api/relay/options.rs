//! What a client asks of a connection, as an object: `PodExecOptions` and its like. Admission looks at it, and may change it.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::super::registry::Resource;
use super::super::route::{Target, decoded};
use super::super::server::{Call, Request};
use crate::json::str_at;
use crate::status::{Result, Status};

/// What has a meaning of its own in a path, or none at all.
const RESERVED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// The kind of the options of a subresource.
pub(super) fn shape(target: &Target) -> Resource {
    let (kind, type_name) = match (&*target.resource.plural, target.subresource.as_str()) {
        ("pods", "exec") => ("PodExecOptions", "io.k8s.api.core.v1.PodExecOptions"),
        ("pods", "attach") => ("PodAttachOptions", "io.k8s.api.core.v1.PodAttachOptions"),
        ("pods", "portforward") => ("PodPortForwardOptions", "io.k8s.api.core.v1.PodPortForwardOptions"),
        ("pods", _) => ("PodProxyOptions", "io.k8s.api.core.v1.PodProxyOptions"),
        ("services", _) => ("ServiceProxyOptions", "io.k8s.api.core.v1.ServiceProxyOptions"),
        _ => ("NodeProxyOptions", "io.k8s.api.core.v1.NodeProxyOptions"),
    };
    Resource::of_type("", "v1", kind, type_name)
}

/// The options of a request: from its query, and from its path where the rest of that is the program's.
pub(super) fn of(call: &Call<'_>) -> Result<Value> {
    let Call { request, target, query, .. } = call;
    let mut options = Map::new();
    options.insert("kind".into(), json!(shape(target).kind));
    options.insert("apiVersion".into(), json!("v1"));
    match target.subresource.as_str() {
        what @ ("exec" | "attach") => {
            for flag in ["stdin", "stdout", "stderr", "tty"].into_iter().filter(|flag| query.flag(flag)) {
                options.insert(flag.into(), json!(true));
            }
            let container = query.text("container");
            if !container.is_empty() {
                options.insert("container".into(), json!(container));
            }
            let command = query.all("command");
            if what == "exec" {
                options
                    .insert("command".into(), if command.is_empty() { Value::Null } else { json!(command) });
            }
        }
        "portforward" => {
            let all = query.all("ports");
            let ports =
                all.iter().flat_map(|ports| ports.split(',')).map(port).collect::<Result<Vec<_>>>()?;
            if !ports.is_empty() {
                options.insert("ports".into(), json!(ports));
            }
        }
        _ => {
            let path = path(request, target);
            if !path.is_empty() {
                options.insert("path".into(), json!(path));
            }
        }
    }
    Ok(options.into())
}

fn port(text: &str) -> Result<u16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).ok_or_else(|| {
        let why = if is_number { "value out of range" } else { "invalid syntax" };
        Status::bad_request(format!("cannot convert to []int32: strconv.ParseUint: parsing {text:?}: {why}"))
    })
}

/// What stands behind `proxy` in the path, as the program reads it.
fn path(request: &Request, target: &Target) -> String {
    let whole = decoded(request.uri.path());
    let before = if target.namespace.is_empty() { 5 } else { 7 };
    let rest = whole.trim_end_matches('/').match_indices('/').nth(before);
    let mut path = rest.map_or("", |(at, _)| &whole.trim_end_matches('/')[at..]).to_owned();
    if path.starts_with("//") {
        path.remove(0);
    }
    if whole.ends_with('/') && !path.ends_with('/') {
        path.push('/');
    }
    path
}

/// The path and the query for a program, where admission has changed the path.
pub(super) fn changed_path(request: &Request, options: &Value) -> String {
    let path = str_at(options, &["path"]);
    let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
    let path = format!("{slash}{}", utf8_percent_encode(path, RESERVED));
    request.uri.query().map_or_else(|| path.clone(), |query| format!("{path}?{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_numbers_of_sixteen_bits() {
        let said = |text: &str| port(text).map_err(|status| status.message);
        assert_eq!(said("80"), Ok(80));
        let why = "cannot convert to []int32: strconv.ParseUint: parsing";
        assert_eq!(said("65536"), Err(format!("{why} \"65536\": value out of range")));
        assert_eq!(said("http"), Err(format!("{why} \"http\": invalid syntax")));
        assert_eq!(said(""), Err(format!("{why} \"\": invalid syntax")));
    }
}
