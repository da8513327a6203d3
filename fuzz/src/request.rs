//! Bytes as a few HTTP requests, through the whole server.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

use crate::world::World;

/// Between two requests: the record separator of ASCII.
const SEPARATOR: u8 = 0x1e;
/// How many requests one input may hold.
const REQUESTS_MAX: usize = 8;

/// A request is written as in HTTP/1, without the version: `GET /path`, headers, an empty line, the body.
/// `PASS 60` lets a minute pass.
pub fn run(data: &[u8]) {
    let mut world = World::new();
    for text in data.split(|byte| *byte == SEPARATOR).take(REQUESTS_MAX) {
        let (line, mut rest) = line(text);
        let Ok(line) = std::str::from_utf8(line) else { continue };
        let (method, target) = line.split_once(' ').unwrap_or((line, ""));
        if method == "PASS" {
            world.pass(target.trim().parse().unwrap_or(1));
            continue;
        }
        let (Ok(method), Ok(uri)) = (Method::from_bytes(method.as_bytes()), target.parse::<Uri>()) else {
            continue;
        };
        let mut headers = HeaderMap::new();
        loop {
            let (header, after) = self::line(rest);
            rest = after;
            let Some(colon) = header.iter().position(|byte| *byte == b':') else { break };
            let value = header[colon + 1..].trim_ascii();
            if let (Ok(name), Ok(value)) =
                (HeaderName::from_bytes(&header[..colon]), HeaderValue::from_bytes(value))
            {
                headers.insert(name, value);
            }
        }
        world.ask(method, uri, headers, Bytes::copy_from_slice(rest));
    }
    world.check();
}

fn line(text: &[u8]) -> (&[u8], &[u8]) {
    match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &[]),
    }
}
