//! A server that can be made to fail.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use kube::client::Body;
use serde_json::json;
use tokio::sync::Notify;
use tower::ServiceExt as _;
use windlass_testing::TestCluster;

type Answer = Response<UnsyncBoxBody<Bytes, kube::Error>>;
type Rule = Box<dyn FnMut(&str) -> Option<Fault> + Send>;

/// What comes instead of an answer.
pub enum Fault {
    /// A refusal.
    Status(u16, &'static str),
    /// A stream with these lines, which then stays open and silent.
    Silent(&'static str),
    /// A stream with these lines, which then ends.
    Ends(&'static str),
}

/// What a test does to the requests of a client. Clones are the same.
#[derive(Clone, Default)]
pub struct Faults(Arc<Inner>);

#[derive(Default)]
struct Inner {
    rule: Mutex<Option<Rule>>,
    asked: Mutex<Vec<String>>,
    cut: Notify,
    held: AtomicBool,
    released: Notify,
}

impl Faults {
    /// From now on, what the rule gives for a request (`/path?query`) is its answer.
    pub fn set(&self, rule: impl FnMut(&str) -> Option<Fault> + Send + 'static) {
        *self.0.rule.lock().unwrap() = Some(Box::new(rule));
    }

    /// No more faults.
    pub fn clear(&self) {
        *self.0.rule.lock().unwrap() = None;
    }

    /// Ends all answers that are being read.
    pub fn cut(&self) {
        self.0.cut.notify_waiters();
    }

    /// Holds back what comes on answers that are being read.
    pub fn hold(&self) {
        self.0.held.store(true, Ordering::Relaxed);
    }

    /// Lets go of what was held back.
    pub fn release(&self) {
        self.0.held.store(false, Ordering::Relaxed);
        self.0.released.notify_waiters();
    }

    /// What was asked for since the last time, in order.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.0.asked.lock().unwrap())
    }

    /// A client whose requests meet these faults.
    pub fn client(&self, cluster: &TestCluster) -> kube::Client {
        let (faults, service) = (self.clone(), cluster.server().service());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (faults, service) = (faults.clone(), service.clone());
            async move {
                let target = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
                faults.0.asked.lock().unwrap().push(target.clone());
                let fault = faults.0.rule.lock().unwrap().as_mut().and_then(|rule| rule(&target));
                if let Some(fault) = fault {
                    return Ok::<Answer, Infallible>(answer(fault));
                }
                let Ok(response) = service.oneshot(request).await;
                let (held, cut) = (faults.clone(), async move { faults.0.cut.notified().await }.boxed());
                Ok(response.map(|body| {
                    let body = body.map_err(|error| kube::Error::Service(error.to_string().into()));
                    let frames = BodyStream::new(body).then(move |frame| {
                        let held = held.clone();
                        async move {
                            while held.0.held.load(Ordering::Relaxed) {
                                held.0.released.notified().await;
                            }
                            frame
                        }
                    });
                    StreamBody::new(frames.take_until(cut)).boxed_unsync()
                }))
            }
        });
        kube::Client::new(service, "default")
    }
}

fn answer(fault: Fault) -> Answer {
    let full = |text: String| Full::new(Bytes::from(text)).map_err(|never| match never {});
    match fault {
        Fault::Status(code, reason) => {
            let status = json!({"kind": "Status", "code": code, "reason": reason, "message": "by the test"});
            let answer = Response::builder().status(code).body(full(status.to_string()).boxed_unsync());
            answer.expect("the code is one")
        }
        Fault::Ends(lines) => Response::new(full(lines.to_owned()).boxed_unsync()),
        Fault::Silent(lines) => {
            let lines = BodyStream::new(full(lines.to_owned()));
            Response::new(StreamBody::new(lines.chain(futures_util::stream::pending())).boxed_unsync())
        }
    }
}
