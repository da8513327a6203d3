//! How long a request may take.

use std::time::Duration;

use bytes::Bytes;

use super::authorize::{Asked, Attributes};
use super::options::Query;
use super::response::{Body, Response};
use super::route::decoded;
use super::server::Request;
use crate::codec::scalar::duration;
use crate::status::{Result, Status};

/// How long it may take if it does not ask for less: kube-apiserver's default.
const MOST: Duration = Duration::from_secs(60);

/// How long a request may take; what is meant to last may last.
///
/// # Errors
/// When its `timeout` is no duration.
pub fn allowance(request: &Request) -> Result<Option<Duration>> {
    let (path, query) = (request.uri.path(), request.uri.query().unwrap_or_default());
    // Most requests can be told without a closer look.
    let is_plain = !LASTING.iter().any(|word| path.contains(word)) && !query.contains("watch");
    if is_plain && !query.contains("timeout") {
        return Ok(Some(MOST));
    }
    let (query, path) = (Query::parse(query), decoded(path));
    if Attributes::of_request(&request.method, &path, &query).is_ok_and(|asked| lasts(&asked)) {
        return Ok(None);
    }
    let asked = match query.text("timeout") {
        "" => None,
        text => Some(duration::parse(text).map_err(|error| {
            Status::bad_request(format!("invalid timeout specified in the request URL - {error}"))
        })?),
    };
    let asked = asked.and_then(|nanos| u64::try_from(nanos).ok()).filter(|nanos| *nanos > 0);
    Ok(Some(asked.map_or(MOST, |nanos| Duration::from_nanos(nanos).min(MOST))))
}

/// What is in the path of everything that lasts, but for watches by their query.
const LASTING: [&str; 6] = ["/watch", "/proxy", "/attach", "/exec", "/log", "/portforward"];

fn lasts(asked: &Attributes<'_>) -> bool {
    let subresource = match &asked.asked {
        Asked::Resource { subresource, .. } => &**subresource,
        Asked::Path(_) => "",
    };
    matches!(&*asked.verb, "watch" | "proxy")
        || matches!(subresource, "attach" | "exec" | "proxy" | "log" | "portforward")
}

/// `504`, as a client gets it whose request took too long: without a kind, and as plain text.
pub fn timed_out() -> Response {
    let text = "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: request did not complete within the allotted timeout\",\"reason\":\"Timeout\",\"details\":{},\"code\":504}\n";
    Response::new(504, "text/plain; charset=utf-8", Body::Full(Bytes::from_static(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::User;

    #[test]
    fn what_is_meant_to_last_may_last_and_the_rest_a_minute() {
        let of = |path: &str| {
            let request = Request {
                method: http::Method::GET,
                uri: path.parse().unwrap(),
                headers: http::HeaderMap::new(),
                body: Bytes::new(),
                user: User::admin().into(),
            };
            allowance(&request).map_err(|status| status.message)
        };
        let pods = "/api/v1/namespaces/a/pods";
        assert_eq!(of(pods), Ok(Some(MOST)));
        assert_eq!(of(&format!("{pods}?timeout=1500ms")), Ok(Some(Duration::from_millis(1500))));
        for more in ["0s", "-1s", "2m"] {
            assert_eq!(of(&format!("{pods}?timeout={more}")), Ok(Some(MOST)), "{more}");
        }
        for path in ["?watch=1&timeout=x", "/p/exec?timeout=x", "/p/log", "/p/proxy/a"] {
            assert_eq!(of(&format!("{pods}{path}")), Ok(None), "{path}");
        }
        let why = "invalid timeout specified in the request URL - time: invalid duration \"x\"";
        assert_eq!(of("/api?timeout=x"), Err(why.to_owned()));
    }
}
