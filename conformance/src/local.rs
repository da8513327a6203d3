//! Our server in this process: no socket, no TLS.

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use tower::ServiceExt as _;
use windlass_apiserver::front::{ApiServer, Clock, Options, Service};

use crate::client::{Body, Boxed, Connection, Endpoint};

/// A server in this process, whose client is its administrator.
pub struct Local(ApiServer);

impl Local {
    /// A server with the objects of a new cluster. Its clock starts at a whole second: what takes less than one happens
    /// at one time, as it did when the answers were recorded.
    pub fn new() -> Local {
        let now = Timestamp::now();
        let clock = Clock::runtime(Timestamp::from_second(now.as_second()).unwrap_or(now));
        Local(ApiServer::start(Options { clock, ..Options::default() }))
    }
}

impl Default for Local {
    fn default() -> Local {
        Local::new()
    }
}

impl Endpoint for Local {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Connection>>> {
        let connection = InProcess(self.0.service());
        Box::pin(async move { Ok(Box::new(connection) as Box<dyn Connection>) })
    }
}

struct InProcess(Service);

impl Connection for InProcess {
    fn send(&mut self, request: Request<Full<Bytes>>) -> Boxed<'_, Result<Response<Body>>> {
        let service = self.0.clone();
        Box::pin(async move {
            let answer = service.oneshot(request).await?;
            Ok(answer.map(|body| body.map_err(anyhow::Error::from).boxed_unsync()))
        })
    }
}
