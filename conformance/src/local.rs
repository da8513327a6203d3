//! Our server in this process: no socket, no TLS, and a fork of its own for whoever wants one.

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use tower::ServiceExt as _;
use windlass_apiserver::front::{ApiServer, Options, Service};

use crate::client::{Body, Boxed, Connection, Endpoint};

/// A server in this process, whose client is its administrator.
pub struct Local(ApiServer);

impl Local {
    /// A server with the objects of a new cluster.
    pub fn new() -> Local {
        Local(ApiServer::start(Options::default()))
    }

    /// Another one with the same objects.
    pub fn fork(&self) -> Local {
        Local(self.0.fork())
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
