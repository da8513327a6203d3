//! Asking by gRPC's health protocol: one message there and one back, written by hand.

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::future::{Either, select};
use http::{HeaderMap, Method, Request, Version, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::GRPCAction;

use super::{Asked, join};
use crate::pod::probe::Finding;

const SERVING: u64 = 1;
/// gRPC's number for a method that is not there.
const UNIMPLEMENTED: u32 = 12;

pub(super) async fn probe(asked: &Asked, action: &GRPCAction, limit: Duration) -> Finding {
    let Some(port) = u16::try_from(action.port).ok() else {
        return Finding::Errored("invalid port number".to_owned());
    };
    let service = action.service.as_deref().unwrap_or_default();
    let host = asked.ip.clone().unwrap_or_default();
    match asked.env.within(limit, check(asked, &host, port, service, limit)).await {
        None => {
            let (to, seconds) = (join(&host, port), limit.as_secs());
            Finding::Failure(format!(
                "timeout: failed to connect service \"{to}\" within {seconds}s: context deadline exceeded"
            ))
        }
        Some(Err(error)) => Finding::Failure(error),
        Some(Ok(SERVING)) => Finding::Success,
        Some(Ok(status)) => {
            let name = match status {
                0 => "UNKNOWN",
                2 => "NOT_SERVING",
                3 => "SERVICE_UNKNOWN",
                _ => "?",
            };
            Finding::Failure(format!("service unhealthy (responded with \"{name}\")"))
        }
    }
}

async fn check(asked: &Asked, host: &str, port: u16, service: &str, limit: Duration) -> Result<u64, String> {
    let to = join(host, port);
    let failed = |error: String| format!("error: failed to connect service at \"{to}\": {error}");
    let connection = asked.dial(None, port, limit).await.map_err(failed)?;
    let (mut sender, driver) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(connection))
            .await
            .map_err(|error| failed(error.to_string()))?;
    let request = Request::builder()
        .method(Method::POST)
        .version(Version::HTTP_2)
        .uri(format!("http://{to}/grpc.health.v1.Health/Check"))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .header(header::USER_AGENT, "kube-probe/1.36")
        .body(Full::new(question(service)))
        .map_err(|error| failed(error.to_string()))?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
        let (parts, body) = response.into_parts();
        let collected = body.collect().await.map_err(|error| failed(error.to_string()))?;
        let trailers = collected.trailers().cloned().unwrap_or_default();
        let answer = collected.to_bytes();
        match code(&parts.headers, &trailers) {
            0 => status(&answer).ok_or_else(|| failed("the answer cannot be read".to_owned())),
            UNIMPLEMENTED => Err(format!(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {}",
                message(&parts.headers, &trailers)
            )),
            _ => Err(format!("error: health rpc probe failed: {}", message(&parts.headers, &trailers))),
        }
    };
    match select(std::pin::pin!(exchange), std::pin::pin!(driver)).await {
        Either::Left((answer, _)) => answer,
        Either::Right((_, exchange)) => exchange.await,
    }
}

/// `HealthCheckRequest{ service }` in a gRPC frame.
fn question(service: &str) -> Bytes {
    let mut message = BytesMut::new();
    if !service.is_empty() {
        message.put_u8(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            message.put_u8(u8::try_from(length & 0x7f).unwrap_or(0) | 0x80);
            length >>= 7;
        }
        message.put_u8(u8::try_from(length).unwrap_or(0));
        message.put_slice(service.as_bytes());
    }
    let mut frame = BytesMut::with_capacity(message.len() + 5);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(&message);
    frame.freeze()
}

/// The status of a `HealthCheckResponse`; an empty message says that nothing is known.
fn status(answer: &[u8]) -> Option<u64> {
    let message = answer.get(5..)?;
    let (Some(0x08), Some(value)) = (message.first(), message.get(1)) else {
        return message.is_empty().then_some(0);
    };
    Some(u64::from(*value))
}

fn code(headers: &HeaderMap, trailers: &HeaderMap) -> u32 {
    let said = trailers.get("grpc-status").or_else(|| headers.get("grpc-status"));
    said.and_then(|code| code.to_str().ok()?.parse().ok()).unwrap_or(2)
}

fn message(headers: &HeaderMap, trailers: &HeaderMap) -> String {
    let said = trailers.get("grpc-message").or_else(|| headers.get("grpc-message"));
    said.and_then(|text| text.to_str().ok()).unwrap_or("no reason given").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_protobuf_has_them() {
        assert_eq!(&question("")[..], [0, 0, 0, 0, 0]);
        assert_eq!(&question("db")[..], [0, 0, 0, 0, 4, 0x0a, 2, b'd', b'b']);
        assert_eq!(question(&"x".repeat(200)).len(), 5 + 3 + 200);
        assert_eq!(status(&[0, 0, 0, 0, 2, 8, 1]), Some(SERVING));
        assert_eq!(status(&[0, 0, 0, 0, 2, 8, 2]), Some(2));
        assert_eq!(status(&[0, 0, 0, 0, 0]), Some(0));
        assert_eq!(status(&[0]), None);
    }
}
