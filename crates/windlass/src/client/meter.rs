//! Counting requests, and passing on what the server warns of.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use http::Request;
use http::header::{HeaderMap, HeaderValue, USER_AGENT, WARNING};
use kube::client::Body;
use tower::ServiceExt as _;
use tower::util::BoxCloneSyncService;

use super::{Refused, Settings, Wire};

/// How many warnings are remembered as told. A server that makes up more is told of again and again.
const WARNINGS: usize = 1000;

pub(super) fn layer(inner: Wire, host: &str, settings: &Arc<Settings>) -> Wire {
    let settings = settings.clone();
    let agent = HeaderValue::from_str(&settings.agent).ok();
    let host: Arc<str> = host.into();
    let warned = Arc::new(Mutex::new(BTreeSet::new()));
    BoxCloneSyncService::new(tower::service_fn(move |mut request: Request<Body>| {
        let (inner, settings) = (inner.clone(), settings.clone());
        let (host, warned) = (host.clone(), warned.clone());
        if let Some(agent) = &agent {
            request.headers_mut().entry(USER_AGENT).or_insert_with(|| agent.clone());
        }
        async move {
            let method = request.method().clone();
            let start = settings.env.moment();
            let answer = inner.oneshot(request).await;
            let code = match &answer {
                Ok(response) => Some(response.status().as_u16()),
                // It was no request.
                Err(error) if error.is::<Refused>() => return answer,
                Err(_) => None,
            };
            let took = settings.env.moment() - start;
            settings.metrics.client().answered(method.as_str(), &host, code, took);
            if let Ok(response) = &answer {
                tell(response.headers(), &warned);
            }
            answer
        }
    }))
}

/// `299 - "text"`, or with the name of a server in place of the dash.
fn tell(headers: &HeaderMap, told: &Mutex<BTreeSet<String>>) {
    for header in headers.get_all(WARNING) {
        let text = header.to_str().unwrap_or_default();
        let warning = text.split_once('"').map_or(text, |(_, rest)| rest.trim_end_matches('"'));
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.contains(warning) {
            continue;
        }
        if told.len() < WARNINGS {
            told.insert(warning.to_owned());
        }
        drop(told);
        tracing::warn!(warning, "the API server warns");
    }
}
