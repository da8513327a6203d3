//! Answers: a status line, headers, and a body that is bytes, a list under way, or a watch.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, LOCATION, RETRY_AFTER, WARNING};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;

use super::about::About;
use super::list::ListBody;
use super::negotiate::Output;
use super::watch::Watch;
use super::webhooks::Consulted;
use crate::codec::Format;
use crate::status::Status;

/// An answer.
pub struct Response {
    /// The HTTP status.
    pub status: StatusCode,
    /// The headers; the front adds the date and the length.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
    /// What was asked for; nothing, where that is not counted.
    pub about: Option<Box<About>>,
    /// Who was asked about it before.
    pub consulted: Vec<Consulted>,
}

/// The body of an answer.
pub enum Body {
    /// All of it.
    Full(Bytes),
    /// A list, written piece by piece from its snapshot.
    List(Box<ListBody>),
    /// A stream of events, for the front to poll.
    Watch(Box<Watch>),
    /// What the front counts of all that is asked.
    Metrics,
}

impl Response {
    /// An answer with a body of this content type.
    pub fn new(code: u16, content_type: &'static str, body: Body) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Response { status, headers, body, about: None, consulted: Vec::new() }
    }

    /// An answer that says all by its status.
    pub fn empty(code: u16) -> Response {
        let mut response = Response::new(code, "", Body::Full(Bytes::new()));
        response.headers.remove(CONTENT_TYPE);
        response
    }

    /// `304`: the client has it already.
    pub fn not_modified() -> Response {
        Response::empty(304)
    }

    /// `301`: the client should ask at another path.
    pub fn moved(path: &str) -> Response {
        let mut response = Response::empty(301);
        // What was a path is one still.
        if let Ok(path) = HeaderValue::from_str(path) {
            response.headers.insert(LOCATION, path);
        }
        response
    }

    /// Plain text, as for health checks and unknown paths.
    pub fn text(code: u16, text: impl Into<Bytes>) -> Response {
        let mut response = Response::new(code, "text/plain; charset=utf-8", Body::Full(text.into()));
        let nosniff = HeaderName::from_static("x-content-type-options");
        response.headers.insert(nosniff, HeaderValue::from_static("nosniff"));
        response
    }

    /// A tree, in the form the client asked for.
    pub fn tree(code: u16, output: &Output, value: &Value) -> Response {
        Response::new(code, output.content_type(), Body::Full(render(output, value)))
    }

    /// A refusal.
    pub fn refusal(output: &Output, status: &Status) -> Response {
        let mut response = Response::tree(status.code, output, &status.to_value());
        if let Some(details) = &status.details
            && details.retry_after_seconds > 0
        {
            response.headers.insert(RETRY_AFTER, HeaderValue::from(details.retry_after_seconds));
        }
        response
    }

    /// Adds `Warning` headers, each text once.
    pub fn warn(&mut self, warnings: &[String]) {
        warn(&mut self.headers, warnings);
    }
}

/// Adds `Warning` headers, each text once.
pub fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    let mut seen: Vec<&str> = Vec::new();
    for warning in warnings {
        if !seen.contains(&warning.as_str()) {
            seen.push(warning);
        }
    }
    // When there is too much of them, each is cut, and what still does not fit is left out.
    let length = |text: &&str| text.chars().count();
    let is_cut = seen.iter().map(length).sum::<usize>() > WARNINGS_MAX;
    let mut written = 0;
    for warning in seen {
        if is_cut && written >= WARNINGS_MAX {
            break;
        }
        let most = if is_cut { WARNING_MAX } else { usize::MAX };
        let warning: String = warning.chars().take(most).collect();
        written += warning.chars().count();
        let text: String = warning.chars().filter(|c| !c.is_control()).collect();
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            headers.append(WARNING, value);
        }
    }
}

/// How many characters all warnings may have before they are cut.
const WARNINGS_MAX: usize = 4096;
/// How many each has then.
const WARNING_MAX: usize = 256;

/// A tree as bytes, in the form the client asked for.
pub fn render(output: &Output, value: &Value) -> Bytes {
    match output.format {
        Format::Yaml => super::yaml::write(value).into(),
        _ if output.pretty => {
            let mut bytes = Vec::new();
            crate::codec::write_pretty(&mut bytes, value, 0);
            bytes.into()
        }
        _ => {
            let mut bytes = Vec::new();
            crate::codec::write_value(&mut bytes, value);
            bytes.push(b'\n');
            bytes.into()
        }
    }
}
