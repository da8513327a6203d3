//! A server to ask, with time and identifiers in the test's hands.

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use windlass_apiserver::api::{
    Body, Config, Ids, Question, Relay, Reply, Request, Response, Server, Step, User, Watch, WatchPoll,
};

/// Deterministic identifiers.
pub struct Counter(u64);

impl Ids for Counter {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ (self.0 >> 29)
    }
}

/// A server and what it takes in.
pub struct World {
    pub server: Server,
    pub now: Timestamp,
    ids: Counter,
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// In how many pieces it came: others take their steps in between.
    pub pieces: usize,
}

impl Answer {
    fn read(response: Response) -> Answer {
        let mut bytes = Vec::new();
        let mut pieces = 1;
        match response.body {
            Body::Full(all) => bytes.extend_from_slice(&all),
            Body::List(mut list) => {
                pieces = 0;
                while let Some(piece) = list.next_piece() {
                    pieces += 1;
                    bytes.extend_from_slice(&piece.into_bytes());
                }
            }
            Body::Watch(_) => panic!("use watch()"),
            Body::Metrics => {}
        }
        let text = String::from_utf8(bytes).unwrap();
        Answer { code: response.status.as_u16(), headers: response.headers, text, pieces }
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    /// The body, after making sure of the status code.
    #[track_caller]
    pub fn expect(&self, code: u16) -> Value {
        assert_eq!(self.code, code, "{}", self.text);
        self.json()
    }

    /// The texts of the `Warning` headers.
    pub fn warnings(&self) -> Vec<String> {
        self.headers.get_all(header::WARNING).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }
}

impl World {
    pub fn new() -> World {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let mut ids = Counter(42);
        World { server: Server::new(Config::default(), now, &mut ids), now, ids }
    }

    /// The same server as of now, which goes its own way.
    pub fn fork(&self) -> World {
        World { server: self.server.clone(), now: self.now, ids: Counter(self.ids.0) }
    }

    pub fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Where a request goes that somebody else answers.
    pub fn relay(&mut self, method: &str, path: &str, headers: &[(&'static str, &str)]) -> Relay {
        match self.take_step(method.parse().unwrap(), path, headers, Bytes::new()) {
            Step::Relay(relay, ..) => *relay,
            _ => panic!("{path} is answered here"),
        }
    }

    fn take_step(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Bytes,
    ) -> Step {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let uri = path.parse().unwrap_or_else(|e| panic!("{path}: {e}"));
        let request = Request { method, uri, headers: map, body, user: User::admin().into() };
        self.server.step(request, self.now, &mut self.ids)
    }

    fn step(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Bytes,
    ) -> Response {
        match self.take_step(method, path, headers, body) {
            Step::Done(response) => response,
            Step::Relay(relay, ..) => panic!("somebody else answers: {relay:?}"),
            Step::Call(questions, _) => panic!("somebody has to be asked: {questions:?}"),
            Step::Wait { deadline, pending, .. } => {
                self.now = deadline;
                match self.server.resume(pending, self.now, &mut self.ids) {
                    Step::Done(response) => response,
                    _ => panic!("waited twice"),
                }
            }
        }
    }

    pub fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&'static str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let response = self.step(method.parse().unwrap(), path, headers, body.into());
        Answer::read(response)
    }

    /// The answer to a request about which webhooks are asked: `answer` is given who is asked and what, and says what the review
    /// holds for a response.
    pub fn consult(
        &mut self,
        method: &str,
        path: &str,
        body: &Value,
        mut answer: impl FnMut(&str, &Value) -> Value,
    ) -> Answer {
        let mut step = self.take_step(method.parse().unwrap(), path, &[], body.to_string().into());
        loop {
            let (questions, pending) = match step {
                Step::Done(response) => return Answer::read(response),
                Step::Call(questions, pending) => (questions, pending),
                Step::Relay(..) | Step::Wait { .. } => panic!("{path} asks nobody"),
            };
            let reply = |question: &Question| {
                let mut review: Value = serde_json::from_slice(&question.body()).unwrap();
                let asked = review["request"].take();
                review["response"] = answer(&question.hook, &asked);
                Reply { body: Ok(review.to_string().into()), took: SignedDuration::ZERO }
            };
            let replies = questions.iter().map(reply).collect();
            step = self.server.answered(pending, replies, self.now, &mut self.ids);
        }
    }

    /// The answer; none where somebody else has to be asked first.
    pub fn try_ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&'static str, &str)],
        body: impl Into<Bytes>,
    ) -> Option<Answer> {
        match self.take_step(method.parse().unwrap(), path, headers, body.into()) {
            Step::Done(response) => Some(Answer::read(response)),
            Step::Relay(..) | Step::Call(..) | Step::Wait { .. } => None,
        }
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[("content-type", "application/json")], body.to_string())
    }

    pub fn put(&mut self, path: &str, body: &Value) -> Answer {
        self.ask("PUT", path, &[("content-type", "application/json")], body.to_string())
    }

    pub fn patch(&mut self, kind: &str, path: &str, body: &Value) -> Answer {
        let media = match kind {
            "apply" => "application/apply-patch+yaml".to_owned(),
            "strategic" => "application/strategic-merge-patch+json".to_owned(),
            kind => format!("application/{kind}-patch+json"),
        };
        self.ask("PATCH", path, &[("content-type", &media)], body.to_string())
    }

    pub fn delete(&mut self, path: &str) -> Answer {
        self.ask("DELETE", path, &[], "")
    }

    pub fn watch(&mut self, path: &str) -> Watch {
        match self.step(Method::GET, path, &[], Bytes::new()).body {
            Body::Watch(watch) => *watch,
            Body::Full(bytes) => panic!("{}", String::from_utf8_lossy(&bytes)),
            Body::List(_) => panic!("a list"),
            Body::Metrics => panic!("metrics"),
        }
    }

    /// All events that a watch has now.
    pub fn events(&self, watch: &mut Watch) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            match watch.poll(self.server.store(), self.now) {
                WatchPoll::Data(bytes) => {
                    let text = String::from_utf8(bytes.to_vec()).unwrap();
                    events.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
                }
                WatchPoll::Convert(_) => panic!("nobody is here to convert"),
                WatchPoll::Idle(_) | WatchPoll::End => return events,
            }
        }
    }
}
