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
    /// A server with the objects of a new cluster. Its clock starts at this second of Unix time, at its begin: what takes
    /// less than one happens at one time, and how old something is does not depend on the day, as when the answers were
    /// recorded.
    pub fn at(second: i64) -> Local {
        let clock = Clock::runtime(Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH));
        Local(ApiServer::start(Options { clock, ..Options::default() }))
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
