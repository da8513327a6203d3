//! Content negotiation: what the client sent, and what it wants to read.

use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};

use crate::codec::Format;
use crate::status::{Result, Status};

/// The shape of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The object or list itself.
    Object,
    /// A `meta.k8s.io/v1` (or `v1beta1`) Table.
    Table(&'static str),
    /// Metadata only.
    Partial(&'static str),
    /// A list of metadata only.
    PartialList(&'static str),
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// JSON or YAML; protobuf is read but never written, and no client insists on it.
    pub format: Format,
    /// Indented, for people.
    pub pretty: bool,
    /// The shape.
    pub shape: Shape,
}

impl Output {
    /// The `Content-Type` of the answer.
    pub fn content_type(&self) -> &'static str {
        match self.format {
            Format::Yaml => "application/yaml",
            _ => "application/json",
        }
    }
}

/// One media range of an `Accept` header.
struct Range<'a> {
    media: &'a str,
    params: Vec<(&'a str, &'a str)>,
    q: f32,
}

fn ranges(header: &str) -> Vec<Range<'_>> {
    let mut out: Vec<Range<'_>> = header
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(|part| {
            let mut pieces = part.split(';').map(str::trim);
            let media = pieces.next().unwrap_or_default();
            let params: Vec<_> = pieces.filter_map(|piece| piece.split_once('=')).collect();
            let q = params.iter().find(|(key, _)| *key == "q").map_or(1.0, |(_, q)| q.parse().unwrap_or(0.0));
            Range { media, params, q }
        })
        .collect();
    // What comes before what is no order upstream: a full name goes before a wildcard of more weight, and the wildcard
    // before the name. So it depends on who is compared with whom, and that is as Go sorts a few things: by insertion.
    for i in 1..out.len() {
        let mut j = i;
        while j > 0 && out[j].precedes(&out[j - 1]) {
            out.swap(j, j - 1);
            j -= 1;
        }
    }
    out
}

impl Range<'_> {
    fn precedes(&self, other: &Range<'_>) -> bool {
        let wild = |range: &Range<'_>| {
            let (kind, sub) = range.media.split_once('/').unwrap_or((range.media, ""));
            (kind == "*", sub == "*")
        };
        let ((kind, sub), (other_kind, other_sub)) = (wild(self), wild(other));
        self.q > other.q || !kind && other_kind || !sub && other_sub
    }
}

const JSON_YAML_PROTOBUF: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// The first gate, which knows media types and nothing of their parameters: one of the header's must be produced, by
/// its full name or by `*/*`. `streams` is for collections, which can also be watched.
pub fn admit(headers: &HeaderMap, streams: bool) -> Result<()> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let produced =
        |part: &str| matches!(media_type(part), "" | "*/*") || JSON_YAML_PROTOBUF.contains(&media_type(part));
    if accept.trim().is_empty() || accept.split(',').any(produced) {
        return Ok(());
    }
    let mut all = JSON_YAML_PROTOBUF.join(", ");
    if streams {
        all.push_str(", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch");
    }
    let message = format!("406: Not Acceptable\n\nAvailable representations: {all}");
    let mut status = Status::new(406, "NotAcceptable", message);
    status.details = Some(Box::default());
    Err(status)
}

/// Chooses how to answer; `shapes` says whether Table and metadata-only forms exist for this request.
pub fn output(headers: &HeaderMap, query_pretty: Option<&str>, shapes: bool) -> Result<Output> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
    let pretty = pretty(headers, query_pretty);
    if accept.trim().is_empty() {
        return Ok(Output { format: Format::Json, pretty, shape: Shape::Object });
    }
    for range in ranges(accept) {
        let format = match range.media {
            "application/json" | "*/*" | "application/*" => Format::Json,
            "application/yaml" => Format::Yaml,
            _ => continue,
        };
        if let Some(shape) = shape(&range, shapes) {
            return Ok(Output { format, pretty, shape });
        }
    }
    Err(not_acceptable())
}

fn shape(range: &Range<'_>, shapes: bool) -> Option<Shape> {
    let param = |name: &str| range.params.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    // Only what can be streamed can be asked for as a stream, and refusals never are.
    if param("stream").is_some() && (!shapes || range.media == "application/yaml") {
        return None;
    }
    let Some(kind) = param("as") else {
        return Some(Shape::Object);
    };
    let version = match (param("g"), param("v")) {
        (Some("meta.k8s.io"), Some("v1")) => "v1",
        (Some("meta.k8s.io"), Some("v1beta1")) => "v1beta1",
        _ => return None,
    };
    match kind {
        _ if !shapes => None,
        "Table" => Some(Shape::Table(version)),
        "PartialObjectMetadata" => Some(Shape::Partial(version)),
        "PartialObjectMetadataList" => Some(Shape::PartialList(version)),
        _ => None,
    }
}

/// `406` with the types that would have been accepted.
pub fn not_acceptable() -> Status {
    let message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    Status::new(406, "NotAcceptable", message)
}

/// People get indented answers: those who ask for it, and those who come with curl, wget or a browser.
fn pretty(headers: &HeaderMap, query: Option<&str>) -> bool {
    if let Some(value) = query {
        return !matches!(value, "0" | "false");
    }
    let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|person| agent.starts_with(person))
}

/// The format of a request body.
pub fn input(headers: &HeaderMap) -> Result<Format> {
    let Some(header) = headers.get(CONTENT_TYPE) else {
        return Ok(Format::Json);
    };
    let header = header.to_str().unwrap_or_default();
    match media_type(header) {
        "" if header.is_empty() => Ok(Format::Json),
        "application/json" => Ok(Format::Json),
        "application/yaml" => Ok(Format::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(Format::Protobuf),
        _ => Err(unsupported_media_type(&JSON_YAML_PROTOBUF)),
    }
}

/// The media type of a header value, without parameters.
pub fn media_type(header: &str) -> &str {
    header.split(';').next().unwrap_or_default().trim()
}

/// `415` with the types that would have been accepted.
pub fn unsupported_media_type(accepted: &[&str]) -> Status {
    let message = format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    );
    Status::new(415, "UnsupportedMediaType", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(accept: &str) -> Result<Output> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        output(&headers, None, true)
    }

    #[test]
    fn kubectl_gets_its_table_and_client_go_gets_json_instead_of_protobuf() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(choose(kubectl).unwrap().shape, Shape::Table("v1"));
        let typed = choose("application/vnd.kubernetes.protobuf,application/json").unwrap();
        assert_eq!((typed.format, typed.shape), (Format::Json, Shape::Object));
    }

    #[test]
    fn weights_decide_and_nothing_acceptable_is_406() {
        assert_eq!(choose("application/json;q=0.5,application/yaml;q=0.9").unwrap().format, Format::Yaml);
        assert_eq!(choose("text/html").unwrap_err().code, 406);
        assert_eq!(choose("text/html,*/*;q=0.1").unwrap().format, Format::Json);
        assert_eq!(choose("application/json;q=x,application/yaml;q=0.1").unwrap().format, Format::Yaml);
    }

    /// Recorded from a real server: it depends on the order of the header whether a name goes before a wildcard.
    #[test]
    fn names_go_before_wildcards_that_stand_before_them() {
        assert_eq!(choose("*/*,application/yaml;q=0.9").unwrap().format, Format::Yaml);
        assert_eq!(choose("application/yaml;q=0.9,*/*").unwrap().format, Format::Json);
    }
}
