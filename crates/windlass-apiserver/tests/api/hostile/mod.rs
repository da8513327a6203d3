//! Requests that mean no good, and what kube-apiserver 1.36.4 answers to them: status code, and the reason of the
//! `Status` or the kind of what is answered instead. Every line was asked of a real server and noted here; where we
//! differ on purpose, the line says so.

mod bodies;
mod objects;
mod patches;
mod paths;
mod queries;

use crate::world::World;
use bytes::Bytes;
use serde_json::json;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A server with the ConfigMap `a`, and what it answered otherwise than it should.
struct Asked {
    world: World,
    wrong: Vec<String>,
}

impl Asked {
    fn new() -> Asked {
        let mut world = World::new();
        world.post(MAPS, &json!({"metadata": {"name": "a"}, "data": {"a": "1"}})).expect(201);
        Asked { world, wrong: Vec::new() }
    }

    /// Asks, and remembers if the answer is not the one of the real server.
    fn ask(
        &mut self,
        method: &str,
        path: &str,
        media: &'static str,
        body: impl Into<Bytes>,
        want: (u16, &str),
    ) {
        let headers: &[(&'static str, &str)] =
            if media.is_empty() { &[] } else { &[("content-type", media)] };
        let body = body.into();
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let answer = self.world.ask(method, path, headers, body);
        let is_json = answer.headers.get("content-type").is_some_and(|value| value == JSON);
        let got = match is_json && !answer.text.is_empty() {
            true => {
                let tree = answer.json();
                let kind = tree["kind"].as_str().unwrap_or_default().to_owned();
                tree["reason"].as_str().map_or(kind, str::to_owned)
            }
            false => "text".to_owned(),
        };
        if (answer.code, got.as_str()) != want {
            let text: String = answer.text.chars().take(200).collect();
            let path: String = path.chars().take(120).collect();
            self.wrong
                .push(format!("{method} {path} {shown:?}: {} {got}, not {want:?}: {text}", answer.code));
        }
    }

    #[track_caller]
    fn finish(self) {
        assert!(self.wrong.is_empty(), "{} answers differ:\n{}", self.wrong.len(), self.wrong.join("\n"));
    }
}
