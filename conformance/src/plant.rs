//! Deliberate faults between a server and the comparison, to see that the comparison notices them.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::client::{Body, Boxed, Connection, Endpoint};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// DELETED carries the version before the deletion.
    DeletedVersion,
    /// The bookmark that ends the initial events comes before the last of them.
    EarlyBookmark,
    /// Finalizers of new objects are lost.
    LostFinalizer,
    /// The generation stays 1.
    Generation,
    /// A write that changes nothing gets a new version.
    NoOpVersion,
    /// Stale versions of updates are not noticed.
    Conflict,
    /// Some defaults are not filled in.
    Defaults,
    /// An object that ceases to match a selector is MODIFIED.
    SelectorTransition,
    /// Nobody is warned of duplicate and unknown fields.
    Warnings,
    /// The next page comes from what is there now.
    MovingPages,
    /// Apply takes fields from others without being told to.
    ApplyConflict,
    /// Preconditions of deletes are not checked.
    Preconditions,
}

/// All faults, each with the rules whose sequences are about it.
pub const FAULTS: &[(Fault, &[&str])] = &[
    (Fault::DeletedVersion, &["watch.deleted"]),
    (Fault::EarlyBookmark, &["watch.list"]),
    (Fault::LostFinalizer, &["delete.finalizers"]),
    (Fault::Generation, &["update.generation"]),
    (Fault::NoOpVersion, &["update.no-op"]),
    (Fault::Conflict, &["update.conflict"]),
    (Fault::Defaults, &["defaults.", "create."]),
    (Fault::SelectorTransition, &["watch.selector"]),
    (Fault::Warnings, &["validate.fields", "patch.merge"]),
    (Fault::MovingPages, &["list.continue"]),
    (Fault::ApplyConflict, &["apply.conflict"]),
    (Fault::Preconditions, &["delete.preconditions"]),
];

/// A server with a fault.
pub struct Planted {
    /// The server behind.
    pub server: Arc<dyn Endpoint>,
    /// The fault.
    pub fault: Fault,
}

impl Endpoint for Planted {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let inner = self.server.open().await?;
            let versions = Arc::new(Mutex::new(BTreeMap::new()));
            Ok(Box::new(Faulty { inner, fault: self.fault, versions }) as Box<dyn Connection>)
        })
    }
}

struct Faulty {
    inner: Box<dyn Connection>,
    fault: Fault,
    /// The last version of each object that passed by.
    versions: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Connection for Faulty {
    fn send(&mut self, request: Request<Full<Bytes>>) -> Boxed<'_, Result<Response<Body>>> {
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            let mut body = body.collect().await?.to_bytes();
            let query = head.uri.query().unwrap_or_default().to_owned();
            let watch = query.contains("watch=");
            self.harm_request(&mut head, &mut body)?;
            let method = head.method.clone();
            let (mut head, answer) =
                self.inner.send(Request::from_parts(head, Full::new(body))).await?.into_parts();
            if self.fault == Fault::Warnings {
                head.headers.remove("warning");
            }
            if watch && head.status.is_success() {
                return Ok(Response::from_parts(head, self.harm_stream(answer, &query)));
            }
            let mut bytes = answer.collect().await?.to_bytes();
            if let Ok(mut tree) = serde_json::from_slice::<Value>(&bytes) {
                self.harm_answer(&method, &mut tree);
                bytes = serde_json::to_vec(&tree)?.into();
            }
            head.headers.remove("content-length");
            let body = Full::new(bytes).map_err(anyhow::Error::from).boxed_unsync();
            Ok(Response::from_parts(head, body))
        })
    }
}

impl Faulty {
    fn harm_request(&self, head: &mut http::request::Parts, body: &mut Bytes) -> Result<()> {
        let method = head.method.as_str();
        let remove = |body: &mut Bytes, parent: &str, key: &str| {
            if let Ok(mut tree) = serde_json::from_slice::<Value>(body) {
                if let Some(map) = tree.pointer_mut(parent).and_then(Value::as_object_mut) {
                    map.remove(key);
                }
                *body = tree.to_string().into();
            }
        };
        match self.fault {
            Fault::LostFinalizer if method == "POST" => remove(body, "/metadata", "finalizers"),
            Fault::Conflict if method == "PUT" => remove(body, "/metadata", "resourceVersion"),
            Fault::Preconditions if method == "DELETE" => remove(body, "", "preconditions"),
            Fault::ApplyConflict
                if method == "PATCH" && head.uri.query().is_some_and(|q| !q.contains("force")) =>
            {
                let apply = head
                    .headers
                    .get("content-type")
                    .is_some_and(|v| v.as_bytes().starts_with(b"application/apply"));
                if apply {
                    head.uri = format!("{}&force=true", head.uri).parse::<Uri>()?;
                }
            }
            Fault::MovingPages => {
                let text = head.uri.to_string();
                if let Some((before, rest)) = text.split_once("continue=") {
                    let (token, after) = rest.split_at(rest.find('&').unwrap_or(rest.len()));
                    if let Some(mut tree) = URL_SAFE_NO_PAD
                        .decode(token)
                        .ok()
                        .and_then(|t| serde_json::from_slice::<Value>(&t).ok())
                    {
                        tree["rv"] = json!(-1);
                        let token = URL_SAFE_NO_PAD.encode(tree.to_string());
                        head.uri = format!("{before}continue={token}{after}").parse::<Uri>()?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn harm_answer(&self, method: &http::Method, tree: &mut Value) {
        match self.fault {
            Fault::Generation if tree["metadata"]["generation"].is_number() => {
                tree["metadata"]["generation"] = json!(1)
            }
            Fault::Defaults => take_defaults(tree),
            Fault::NoOpVersion => {
                let (Some(uid), Some(version)) =
                    (tree["metadata"]["uid"].as_str(), tree["metadata"]["resourceVersion"].as_str())
                else {
                    return;
                };
                let (uid, version) = (uid.to_owned(), version.to_owned());
                let before = self.versions.lock().expect("no panic").insert(uid, version.clone());
                if *method != http::Method::GET && before.as_ref() == Some(&version) {
                    let next = version.parse::<u64>().unwrap_or(0) + 1;
                    tree["metadata"]["resourceVersion"] = json!(next.to_string());
                }
            }
            _ => {}
        }
    }

    fn harm_stream(&self, mut answer: Body, query: &str) -> Body {
        let (fault, selector) = (self.fault, query.contains("labelSelector"));
        // One frame at a time: the reader is as fast as the writer.
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let (mut read, mut held): (Vec<u8>, Option<Value>) = (Vec::new(), None);
            while let Some(Ok(frame)) = answer.frame().await {
                let Ok(data) = frame.into_data() else { continue };
                read.extend_from_slice(&data);
                while let Some(end) = read.iter().position(|&b| b == b'\n') {
                    let line: Vec<u8> = read.drain(..=end).collect();
                    let Ok(event) = serde_json::from_slice::<Value>(&line) else { continue };
                    for event in harm_event(fault, selector, event, &mut held) {
                        if sender.send(Bytes::from(format!("{event}\n"))).await.is_err() {
                            return;
                        }
                    }
                }
            }
        });
        Channel(receiver).boxed_unsync()
    }
}

fn harm_event(fault: Fault, selector: bool, mut event: Value, held: &mut Option<Value>) -> Vec<Value> {
    let kind = event["type"].as_str().unwrap_or_default().to_owned();
    match fault {
        Fault::DeletedVersion if kind == "DELETED" => {
            let version =
                event["object"]["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse::<u64>().ok());
            event["object"]["metadata"]["resourceVersion"] = json!((version.unwrap_or(1) - 1).to_string());
            vec![event]
        }
        Fault::SelectorTransition if selector && kind == "DELETED" => {
            event["type"] = json!("MODIFIED");
            vec![event]
        }
        Fault::EarlyBookmark if kind == "BOOKMARK" => std::iter::once(event).chain(held.take()).collect(),
        Fault::EarlyBookmark => held.replace(event).into_iter().collect(),
        _ => vec![event],
    }
}

fn take_defaults(tree: &mut Value) {
    match tree {
        Value::Object(map) => {
            for key in ["dnsPolicy", "terminationMessagePath", "progressDeadlineSeconds", "sessionAffinity"] {
                map.remove(key);
            }
            map.values_mut().for_each(take_defaults);
        }
        Value::Array(items) => items.iter_mut().for_each(take_defaults),
        _ => {}
    }
}

struct Channel(mpsc::Receiver<Bytes>);

impl http_body::Body for Channel {
    type Data = Bytes;
    type Error = anyhow::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
