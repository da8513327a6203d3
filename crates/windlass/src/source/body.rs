//! Reading answers, with an eye on the clock.

use std::future::Future;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::RETRY_AFTER;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::Status;

use super::Error;
use crate::env::Env;

/// Longer than any event can be: servers refuse objects of more than 3 MB.
pub(super) const LINE_MAX: usize = 32 << 20;

/// How long a healthy server takes to say the next thing of an answer that it has ready.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Sends a request, and gives back an answer that is a success.
pub(super) async fn send(
    client: &Client,
    env: &Env,
    request: http::Result<Request<Body>>,
) -> Result<Answer, Error> {
    // A namespace that no namespace can be called, for one.
    let request = request.map_err(|error| Error::Unreachable(kube::Error::HttpError(error)))?;
    let response = within(env, PATIENCE, client.send(request)).await?.map_err(Error::Unreachable)?;
    let (code, retry_after) = (response.status(), retry_after(&response));
    let mut answer = Answer { body: response.into_body(), buffer: BytesMut::new(), searched: 0 };
    if code.is_success() {
        return Ok(answer);
    }
    let body = answer.whole(env).await.unwrap_or_default();
    let status = serde_json::from_slice(&body).unwrap_or_else(|_| {
        // A proxy, and not an API server.
        let message = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        let reason = code.canonical_reason().unwrap_or_default().to_owned();
        Status { message, reason, ..Status::default() }
    });
    Err(Error::refused(status, code.as_u16(), retry_after))
}

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Gives a future some time.
async fn within<T>(env: &Env, time: Duration, future: impl Future<Output = T>) -> Result<T, Error> {
    tokio::select! {
        biased;
        output = future => Ok(output),
        () = env.sleep(time) => Err(Error::Silent(time)),
    }
}

/// An answer that is being read.
pub(super) struct Answer {
    body: Body,
    buffer: BytesMut,
    /// So much of the buffer holds no end of a line.
    searched: usize,
}

impl Answer {
    /// All of it.
    pub(super) async fn whole(&mut self, env: &Env) -> Result<Bytes, Error> {
        while self.more(env, PATIENCE).await? {}
        Ok(self.buffer.split().freeze())
    }

    /// The next line, for which the server has some time; `None` at the end.
    pub(super) async fn line(&mut self, env: &Env, patience: Duration) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end + 1).freeze();
                self.searched = 0;
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some(line));
            }
            self.searched = self.buffer.len();
            if self.searched > LINE_MAX {
                return Err(Error::TooLong);
            }
            if !self.more(env, patience).await? {
                // What is left is half an event: it will come again, from where the watch goes on.
                return Ok(None);
            }
        }
    }

    async fn more(&mut self, env: &Env, patience: Duration) -> Result<bool, Error> {
        let Some(frame) = within(env, patience, self.body.frame()).await? else { return Ok(false) };
        if let Ok(data) = frame.map_err(Error::BrokenOff)?.into_data() {
            self.buffer.extend_from_slice(&data);
        }
        Ok(true)
    }
}
