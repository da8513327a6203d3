//! HTTP/1.1 over TLS, as little of it as the campaign needs: a connection that breaks is a normal end here.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

/// A server that does not answer in this time hangs.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How to reach a server.
#[derive(Clone)]
pub struct Address {
    authority: String,
    token: String,
    tls: Arc<ClientConfig>,
}

impl Address {
    /// The server at `authority` (`127.0.0.1:6443`), with the token and the certificate authority of its kubeconfig.
    pub fn new(authority: &str, kubeconfig: &str) -> Result<Address> {
        let entry = |key: &str| {
            let line = kubeconfig.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix(": "));
            line.with_context(|| format!("the kubeconfig has no {key}"))
        };
        let pem = STANDARD.decode(entry("certificate-authority-data")?)?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&pem)?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Address { authority: authority.to_owned(), token: entry("token")?.to_owned(), tls: Arc::new(tls) })
    }

    /// Opens a connection.
    pub fn connect(&self) -> io::Result<Connection> {
        let socket = TcpStream::connect(&self.authority)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let tls = ClientConnection::new(self.tls.clone(), name).map_err(io::Error::other)?;
        Ok(Connection { stream: BufReader::new(StreamOwned::new(tls, socket)), token: self.token.clone() })
    }
}

/// A connection, for one request after the other.
pub struct Connection {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    token: String,
}

/// How the end of a body is told.
enum Length {
    Bytes(usize),
    Chunks,
}

impl Connection {
    /// Sends a request and reads its answer.
    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> io::Result<(u16, Value)> {
        let (code, length) = self.send(method, path, body)?;
        let mut bytes = Vec::new();
        match length {
            Length::Bytes(length) => {
                bytes.resize(length, 0);
                self.stream.read_exact(&mut bytes)?;
            }
            Length::Chunks => while self.chunk(&mut bytes)? {},
        }
        Ok((code, serde_json::from_slice(&bytes)?))
    }

    /// Starts a watch; the connection is the watch's from then on.
    pub fn watch(mut self, path: &str) -> io::Result<(u16, Watch)> {
        let (code, _) = self.send("GET", path, "")?;
        Ok((code, Watch { connection: self, read: Vec::new() }))
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> io::Result<(u16, Length)> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        stream.flush()?;
        let first = self.line()?;
        let code = first.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code = code.ok_or_else(|| io::Error::other(format!("not an answer: {first:?}")))?;
        let mut length = Length::Bytes(0);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(':') {
                None => return Ok((code, length)),
                Some(("content-length", bytes)) => {
                    length = Length::Bytes(bytes.trim().parse().map_err(io::Error::other)?);
                }
                Some(("transfer-encoding", _)) => length = Length::Chunks,
                Some(_) => {}
            }
        }
    }

    /// Adds one chunk to `out`; false at the end of the body.
    fn chunk(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let size = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
        let start = out.len();
        out.resize(start + size, 0);
        self.stream.read_exact(&mut out[start..])?;
        self.line()?;
        Ok(size > 0)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

/// A watch.
pub struct Watch {
    connection: Connection,
    read: Vec<u8>,
}

impl Watch {
    /// The next event; `None` when the server has ended the watch.
    pub fn event(&mut self) -> io::Result<Option<Value>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            if !self.connection.chunk(&mut self.read)? {
                return Ok(None);
            }
        }
    }
}
