//! One client, one member: the connection, the deadline, and how a call is made.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use prost::Message;
use tonic::client::Grpc;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::{Dial, Error};

/// How a client reaches its member.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How long a call may take, the making of the connection included; and how long the next part of a stream may take.
    /// Default 5 s: etcd itself gives up on a write after 7 s (5 s and two elections), and whoever asks many members does not wait
    /// for the slowest that long. [`Client::within`] changes it for one call.
    pub deadline: Duration,
    /// How the connection is made. Default: plain TCP.
    pub dial: Dial,
}

impl Default for Options {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(5), dial: Dial::plain() }
    }
}

impl Options {
    /// With this deadline.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// With connections made this way.
    #[must_use]
    pub fn dial(mut self, dial: Dial) -> Self {
        self.dial = dial;
        self
    }
}

/// A client of one member. Clones share the connection.
#[derive(Clone, Debug)]
pub struct Client {
    endpoint: Endpoint,
    options: Options,
    /// Replaced after a call that was not answered in time.
    channel: Arc<Mutex<Channel>>,
}

/// Whether etcd shall refuse at once when the member that is asked sees no leader, instead of waiting for one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leader {
    Required,
    Any,
}

impl Client {
    /// A client of the member at this address (`http://host:2379`). The connection is made by the first call.
    ///
    /// # Errors
    /// [`Error::Address`] when it is no such address.
    pub fn new(address: &str) -> Result<Self, Error> {
        Self::with(address, Options::default())
    }

    /// The same, with options.
    ///
    /// # Errors
    /// [`Error::Address`] when it is no such address.
    pub fn with(address: &str, options: Options) -> Result<Self, Error> {
        let invalid = || Error::Address { address: address.to_owned() };
        let uri: Uri = address.parse().map_err(|_| invalid())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(invalid());
        }
        let endpoint = Endpoint::from(uri);
        let channel = Arc::new(Mutex::new(connect(&endpoint, &options.dial)));
        Ok(Self { endpoint, options, channel })
    }

    /// The same client with another deadline: for the one call that needs longer, as [`Client::defragment`] does.
    #[must_use]
    pub fn within(&self, deadline: Duration) -> Self {
        let mut client = self.clone();
        client.options.deadline = deadline;
        client
    }

    /// The address that it was made for.
    #[must_use]
    pub fn address(&self) -> String {
        self.endpoint.uri().to_string()
    }

    /// A call with one answer.
    pub(crate) async fn unary<Q, A>(
        &self,
        path: &'static str,
        question: Q,
        leader: Leader,
    ) -> Result<A, Error>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        // Without a timeout for the server: it gives up when the stream is reset, which it is when we do.
        let request = question_for(question, leader);
        self.in_time(async {
            let mut grpc = self.ready().await?;
            let answer =
                grpc.unary(request, PathAndQuery::from_static(path), ProstCodec::<Q, A>::default()).await;
            Ok(answer.map_err(|status| Error::from_status(&status))?.into_inner())
        })
        .await
    }

    /// A call with a stream of answers; the deadline is for its beginning, and whoever reads it waits with [`Client::in_time`].
    pub(crate) async fn streaming<Q, A>(&self, path: &'static str, question: Q) -> Result<Streaming<A>, Error>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        // What is asked stays open as long as the answer is read: etcd ends a watch whose questions have ended.
        let questions = futures_util::StreamExt::chain(
            futures_util::stream::iter([question]),
            futures_util::stream::pending(),
        );
        let mut request = Request::new(questions);
        require_leader(&mut request);
        self.in_time(async {
            let mut grpc = self.ready().await?;
            let path = PathAndQuery::from_static(path);
            let answer = grpc.streaming(request, path, ProstCodec::<Q, A>::default()).await;
            Ok(answer.map_err(|status| Error::from_status(&status))?.into_inner())
        })
        .await
    }

    /// The same for a question that is one message.
    pub(crate) async fn server_streaming<Q, A>(
        &self,
        path: &'static str,
        question: Q,
    ) -> Result<Streaming<A>, Error>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        self.in_time(async {
            let mut grpc = self.ready().await?;
            let path = PathAndQuery::from_static(path);
            let answer =
                grpc.server_streaming(Request::new(question), path, ProstCodec::<Q, A>::default()).await;
            Ok(answer.map_err(|status| Error::from_status(&status))?.into_inner())
        })
        .await
    }

    /// The outcome within the deadline. Without one, the connection is given up: nobody knows what is on its other side.
    pub(crate) async fn in_time<T>(
        &self,
        outcome: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let outcome =
            tokio::time::timeout(self.options.deadline, outcome).await.unwrap_or(Err(Error::Timeout));
        if matches!(outcome, Err(Error::Timeout)) {
            let fresh = connect(&self.endpoint, &self.options.dial);
            *self.channel.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
        outcome
    }

    async fn ready(&self) -> Result<Grpc<Channel>, Error> {
        let channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // The size of an answer is bounded by what was asked; etcd's own client has no bound either.
        let mut grpc = Grpc::new(channel).max_decoding_message_size(usize::MAX);
        grpc.ready().await.map_err(|error| Error::unreachable(&error))?;
        Ok(grpc)
    }
}

fn connect(endpoint: &Endpoint, dial: &Dial) -> Channel {
    let dial = dial.clone();
    endpoint.connect_with_connector_lazy(service_fn(move |address: Uri| {
        let connecting = dial.call(address);
        async move { connecting.await.map(TokioIo::new) }
    }))
}

fn question_for<Q>(question: Q, leader: Leader) -> Request<Q> {
    let mut request = Request::new(question);
    if leader == Leader::Required {
        require_leader(&mut request);
    }
    request
}

fn require_leader<Q>(request: &mut Request<Q>) {
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
}
