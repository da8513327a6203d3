//! Which way of carrying streams a client and this node agree on.

use http::header::{
    CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A program: exec and attach.
    Command,
    /// Ports of a pod.
    Forward,
}

/// How streams are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// WebSocket messages that begin with the number of their channel.
    Channels(Channels),
    /// A WebSocket whose messages are the bytes of a SPDY connection.
    Tunnel,
    /// SPDY itself.
    Spdy,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Channels {
    /// As base64 text.
    pub base64: bool,
    /// The client can end a single channel, by a message that begins with 255.
    pub can_end: bool,
}

/// What was agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agreed {
    /// How streams are carried.
    pub carrier: Carrier,
    /// Whether the outcome of a program is told as a `Status` in JSON, as of version 4, or as a text.
    pub status: bool,
    /// Whether a client of this version tells the size of its terminal.
    pub resize: bool,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Why a request is refused, in kubelet's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub status: StatusCode,
    pub text: String,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const ACCEPTED_PROTOCOLS: HeaderName = HeaderName::from_static("x-accepted-stream-protocol-versions");
const SPDY: HeaderValue = HeaderValue::from_static("SPDY/3.1");
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

impl Refusal {
    pub fn new(status: StatusCode, text: impl Into<String>) -> Refusal {
        Refusal { status, text: text.into(), headers: Vec::new() }
    }
}

impl Purpose {
    fn spdy_protocols(self) -> &'static [&'static str] {
        match self {
            Purpose::Command => {
                &["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"]
            }
            Purpose::Forward => &["portforward.k8s.io"],
        }
    }

    fn websocket_protocols(self) -> &'static [&'static str] {
        match self {
            Purpose::Command => &[
                "",
                "channel.k8s.io",
                "base64.channel.k8s.io",
                "v4.channel.k8s.io",
                "v4.base64.channel.k8s.io",
                "v5.channel.k8s.io",
            ],
            Purpose::Forward => &["", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", TUNNEL],
        }
    }
}

/// Finds what both sides can do: the first of the client's protocols that this node has, too.
pub(super) fn agree(headers: &HeaderMap, purpose: Purpose) -> Result<Agreed, Refusal> {
    let upgrade = headers.get(UPGRADE).map(|value| value.as_bytes().to_ascii_lowercase()).unwrap_or_default();
    let asked = headers.get_all(CONNECTION).iter().any(|value| {
        let value = value.as_bytes().to_ascii_lowercase();
        value.windows(7).any(|part| part == b"upgrade")
    });
    match &upgrade[..] {
        b"websocket" if asked => agree_websocket(headers, purpose),
        b"spdy/3.1" if asked => agree_spdy(headers, purpose),
        _ => Err(Refusal::new(StatusCode::BAD_REQUEST, "Upgrade request required")),
    }
}

fn agree_websocket(headers: &HeaderMap, purpose: Purpose) -> Result<Agreed, Refusal> {
    let Some(key) = headers.get(SEC_WEBSOCKET_KEY) else {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "the header Sec-WebSocket-Key is missing"));
    };
    let offered = list(headers, &SEC_WEBSOCKET_PROTOCOL);
    let supported = purpose.websocket_protocols();
    let chosen = match offered.is_empty() {
        true => "",
        false => match first_common(&offered, supported) {
            Some(protocol) => protocol,
            None => {
                let text = format!(
                    "requested protocol(s) are not supported: [{}]; supports [{}]",
                    offered.join(" "),
                    supported.join(" ")
                );
                return Err(Refusal::new(StatusCode::FORBIDDEN, text));
            }
        },
    };
    let accept = derive_accept_key(key.as_bytes());
    let mut answer = vec![
        (UPGRADE, HeaderValue::from_static("websocket")),
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (SEC_WEBSOCKET_ACCEPT, HeaderValue::from_str(&accept).expect("base64 is a header's text")),
    ];
    if !chosen.is_empty() {
        answer.push((SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(chosen)));
    }
    let carrier = match chosen {
        TUNNEL => Carrier::Tunnel,
        _ => Carrier::Channels(Channels {
            base64: chosen.contains("base64"),
            can_end: chosen.starts_with("v5."),
        }),
    };
    Ok(Agreed { carrier, status: chosen.starts_with('v'), resize: true, headers: answer })
}

fn agree_spdy(headers: &HeaderMap, purpose: Purpose) -> Result<Agreed, Refusal> {
    let offered = list(headers, &STREAM_PROTOCOL);
    let supported = purpose.spdy_protocols();
    if offered.is_empty() {
        let count = headers.len();
        let text = format!(
            "unable to upgrade: header X-Stream-Protocol-Version does not exist in request with {count} headers"
        );
        return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
    }
    let Some(chosen) = first_common(&offered, supported) else {
        let text = format!(
            "unable to upgrade: unable to negotiate protocol: client supports [{}], server accepts [{}]",
            offered.join(" "),
            supported.join(" ")
        );
        let accepted =
            supported.iter().map(|protocol| (ACCEPTED_PROTOCOLS, HeaderValue::from_static(protocol)));
        return Err(Refusal { headers: accepted.collect(), ..Refusal::new(StatusCode::FORBIDDEN, text) });
    };
    Ok(Agreed {
        carrier: Carrier::Spdy,
        status: chosen == "v4.channel.k8s.io",
        resize: chosen.starts_with("v4.") || chosen.starts_with("v3."),
        headers: vec![
            (UPGRADE, SPDY),
            (CONNECTION, HeaderValue::from_static("Upgrade")),
            (STREAM_PROTOCOL, HeaderValue::from_static(chosen)),
        ],
    })
}

impl Agreed {
    /// Whether streams are numbered channels, which are there from the beginning.
    pub fn by_channels(&self) -> bool {
        matches!(self.carrier, Carrier::Channels(_))
    }

    /// The answer after which the connection carries streams.
    pub fn response<B: Default>(&self) -> Response<B> {
        let mut response = Response::new(B::default());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().extend(self.headers.iter().cloned());
        response
    }
}

fn list<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn first_common(offered: &[&str], supported: &[&'static str]) -> Option<&'static str> {
    offered.iter().find_map(|offer| supported.iter().find(|have| *have == offer).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        pairs.collect()
    }

    fn websocket(protocols: &str) -> HeaderMap {
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        headers(&[
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-key", key),
            ("sec-websocket-protocol", protocols),
        ])
    }

    #[test]
    fn kubectl_gets_channels_that_can_end_and_a_tunnel() {
        let agreed = agree(&websocket("v5.channel.k8s.io"), Purpose::Command).unwrap();
        assert_eq!(agreed.carrier, Carrier::Channels(Channels { base64: false, can_end: true }));
        let response = agreed.response::<()>();
        assert_eq!(response.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(response.headers()[SEC_WEBSOCKET_PROTOCOL], "v5.channel.k8s.io");
        assert_eq!(agree(&websocket(TUNNEL), Purpose::Forward).unwrap().carrier, Carrier::Tunnel);
    }

    #[test]
    fn the_first_common_protocol_counts() {
        let agreed =
            agree(&websocket("v9.channel.k8s.io, v4.base64.channel.k8s.io,channel.k8s.io"), Purpose::Command);
        let agreed = agreed.unwrap();
        assert_eq!(agreed.carrier, Carrier::Channels(Channels { base64: true, can_end: false }));
        assert!(agreed.status);
        assert!(!agree(&websocket(""), Purpose::Command).unwrap().status);
        assert_eq!(agree(&websocket("v5.channel.k8s.io"), Purpose::Forward).unwrap_err().status, 403);
    }

    #[test]
    fn spdy_clients_name_their_versions() {
        let spdy = |versions: &str| {
            headers(&[
                ("connection", "Upgrade"),
                ("upgrade", "SPDY/3.1"),
                ("x-stream-protocol-version", versions),
            ])
        };
        let agreed = agree(&spdy("v4.channel.k8s.io,v3.channel.k8s.io"), Purpose::Command).unwrap();
        assert!(agreed.status && agreed.resize && agreed.carrier == Carrier::Spdy);
        let agreed = agree(&spdy("v2.channel.k8s.io"), Purpose::Command).unwrap();
        assert!(!agreed.status && !agreed.resize);
        let refused = agree(&spdy("x"), Purpose::Forward).unwrap_err();
        assert_eq!(refused.status, 403);
        assert_eq!(refused.headers[0].1, "portforward.k8s.io");
        assert_eq!(agree(&HeaderMap::new(), Purpose::Command).unwrap_err().text, "Upgrade request required");
    }
}
