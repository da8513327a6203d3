//! A client that costs little: one request at a time on a connection, bodies counted and thrown away.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;

use crate::tls::Tls;

/// The longest that any single answer may take, or a watch may be silent.
const PATIENCE: Duration = Duration::from_secs(120);

/// The longest line or head that is read.
const HEAD_MAX: usize = 64 << 10;

/// Opens connections: HTTP/1.1 over TLS 1.3 with one cipher, so that both servers do the same work for a byte.
#[derive(Clone)]
pub struct Connector {
    config: Arc<ClientConfig>,
    address: SocketAddr,
}

impl Connector {
    /// To a server on this machine.
    pub fn new(address: SocketAddr) -> Result<Connector> {
        let mut provider = ring::default_provider();
        provider.cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
        let provider = Arc::new(provider);
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified(provider)))
            .with_no_client_auth();
        Ok(Connector { config: Arc::new(config), address })
    }

    /// One connection, with its handshake done.
    pub async fn open(&self) -> Result<Connection> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let tls = Tls::connect(self.config.clone(), stream).await?;
        Ok(Connection { tls, buffer: Vec::new(), start: 0 })
    }
}

/// A connection that is kept.
pub struct Connection {
    tls: Tls,
    buffer: Vec<u8>,
    /// Where in it what has not been looked at starts.
    start: usize,
}

/// How an answer's body ends.
#[derive(Clone, Copy, Debug)]
enum Framing {
    Length(usize),
    Chunked,
}

impl Connection {
    /// Sends a request and throws the answer's body away: its status and size.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<(u16, usize)> {
        let mut size = 0;
        let status = self.exchange_with(request, |piece| size += piece.len()).await?;
        Ok((status, size))
    }

    /// Sends a request and hands the answer's body on piece by piece.
    pub async fn exchange_with(&mut self, request: &[u8], mut take: impl FnMut(&[u8])) -> Result<u16> {
        let (status, framing) = self.send(request).await?;
        match framing {
            Framing::Length(length) => self.pass(length, &mut take).await?,
            Framing::Chunked => while self.chunk(&mut take).await? {},
        }
        Ok(status)
    }

    /// Sends a request for a stream, and gives it back once it has begun.
    pub async fn stream(mut self, request: &[u8]) -> Result<Stream> {
        match self.send(request).await? {
            (200, Framing::Chunked) => Ok(Stream(self)),
            (status, framing) => bail!("a watch was answered with {status}, {framing:?}"),
        }
    }

    async fn send(&mut self, request: &[u8]) -> Result<(u16, Framing)> {
        self.tls.write(request).await?;
        tokio::time::timeout(PATIENCE, self.head()).await.context("no answer in time")?
    }

    /// Reads the head of an answer.
    async fn head(&mut self) -> Result<(u16, Framing)> {
        let length = loop {
            let unread = &self.buffer[self.start..];
            if let Some(at) = memchr::memmem::find(unread, b"\r\n\r\n") {
                break at + 4;
            }
            self.fill().await?;
        };
        let head = &self.buffer[self.start..self.start + length];
        self.start += length;
        ensure!(head.starts_with(b"HTTP/1.1 "), "not an answer: {}", String::from_utf8_lossy(head));
        let status = std::str::from_utf8(&head[9..12])?.parse()?;
        Ok((status, framing(head)?))
    }

    /// Passes one chunk of a chunked body on; false after the last.
    async fn chunk(&mut self, take: &mut impl FnMut(&[u8])) -> Result<bool> {
        let line = loop {
            let unread = &self.buffer[self.start..];
            if let Some(at) = memchr::memchr(b'\n', unread) {
                break at + 1;
            }
            self.fill().await?;
        };
        let digits = self.buffer[self.start..self.start + line].trim_ascii();
        let length = usize::from_str_radix(std::str::from_utf8(digits)?, 16)?;
        self.start += line;
        self.pass(length, take).await?;
        self.pass(2, &mut |_: &[u8]| {}).await?;
        Ok(length > 0)
    }

    async fn pass(&mut self, mut length: usize, take: &mut impl FnMut(&[u8])) -> Result<()> {
        while length > 0 {
            if self.start == self.buffer.len() {
                self.fill().await?;
            }
            let piece = length.min(self.buffer.len() - self.start);
            take(&self.buffer[self.start..self.start + piece]);
            self.start += piece;
            length -= piece;
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<()> {
        // What is left is less than a line.
        self.buffer.drain(..self.start);
        self.start = 0;
        let before = self.buffer.len();
        ensure!(before < HEAD_MAX, "a head of more than {before} bytes");
        self.tls.read(&mut self.buffer).await?;
        ensure!(self.buffer.len() > before, "the server closed the connection");
        Ok(())
    }
}

/// An answer that goes on: a watch.
pub struct Stream(Connection);

impl Stream {
    /// Passes the next piece on; false when the stream has ended.
    pub async fn next(&mut self, mut take: impl FnMut(&[u8])) -> Result<bool> {
        tokio::time::timeout(PATIENCE, self.0.chunk(&mut take)).await.context("the watch fell silent")?
    }
}

fn framing(head: &[u8]) -> Result<Framing> {
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            return Ok(Framing::Length(std::str::from_utf8(value)?.parse()?));
        }
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Ok(Framing::Chunked);
        }
    }
    Ok(Framing::Length(0))
}

/// Takes any certificate: both servers made theirs a moment ago, on this machine.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_body_is_known_from_its_head() {
        let length = framing(b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n").unwrap();
        assert!(matches!(length, Framing::Length(17)));
        let chunked = framing(b"HTTP/1.1 200 OK\r\ndate: x\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
        assert!(matches!(chunked, Framing::Chunked));
        assert!(framing(b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n").is_err());
    }
}
