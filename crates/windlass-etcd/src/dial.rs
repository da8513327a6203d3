//! How a member is reached: plain TCP, TLS over it, or a way of the caller's own.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use http::Uri;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A connection to a member.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// The connection that comes, or why it does not.
pub type Connecting = Pin<Box<dyn Future<Output = io::Result<Box<dyn Connection>>> + Send>>;

/// Makes a connection to the address of a member.
///
/// The deadline of the call that needs the connection holds for it, too: a future that never ends is dropped.
#[derive(Clone)]
pub struct Dial(Arc<dyn Fn(Uri) -> Connecting + Send + Sync>);

impl Dial {
    /// TCP, for `http://` addresses.
    #[must_use]
    pub fn plain() -> Self {
        Self::new(|address| async move { tcp(&address).await })
    }

    /// TLS over TCP, for `https://` addresses. The configuration says whom to trust and who we are; HTTP/2 is asked for whatever it
    /// says about that.
    #[must_use]
    pub fn tls(config: ClientConfig) -> Self {
        let mut config = config;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let config = Arc::new(config);
        Self::new(move |address| {
            let connector = TlsConnector::from(Arc::clone(&config));
            async move {
                let host = address.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
                let name = ServerName::try_from(host).map_err(io::Error::other)?;
                connector.connect(name, tcp(&address).await?).await
            }
        })
    }

    /// A way of the caller's own: into a network namespace, through a proxy, to a model in memory.
    pub fn new<F, C>(dial: impl Fn(Uri) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<C>> + Send + 'static,
        C: Connection + 'static,
    {
        Self(Arc::new(move |address| {
            let connecting = dial(address);
            Box::pin(async move { Ok(Box::new(connecting.await?) as Box<dyn Connection>) })
        }))
    }

    pub(crate) fn call(&self, address: Uri) -> Connecting {
        (self.0)(address)
    }
}

impl Default for Dial {
    fn default() -> Self {
        Self::plain()
    }
}

impl std::fmt::Debug for Dial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dial")
    }
}

async fn tcp(address: &Uri) -> io::Result<TcpStream> {
    let host = address.host().unwrap_or_default().trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, address.port_u16().unwrap_or(2379))).await?;
    // Calls are small and each waits for its answer: nothing is won by collecting bytes.
    stream.set_nodelay(true)?;
    Ok(stream)
}
