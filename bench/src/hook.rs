//! A webhook that the servers ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use windlass_apiserver::front::credentials::Credentials;

use crate::server::Server;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// What it does with those who ask.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It reads what it is asked, and says nothing.
    Hangs,
    /// It says yes.
    Allows,
}

/// A webhook of this process, with a thread of its own.
pub struct Hook {
    port: u16,
    authority: String,
    asked: Arc<AtomicUsize>,
    opened: Arc<AtomicUsize>,
    _runtime: Runtime,
}

impl Hook {
    /// Starts it, without anybody who asks.
    pub fn start(manner: Manner) -> Result<Hook> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let credentials = Credentials::generate(std::net::Ipv4Addr::LOCALHOST.into())?;
        let mut tls = ServerConfig::clone(&credentials.serving().tls);
        // It reads HTTP/1.1 only, a question at a time.
        tls.alpn_protocols.clear();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let port = listener.local_addr().context("where it listens")?.port();
        let (asked, opened) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counts = (asked.clone(), opened.clone());
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, (asked, opened)) = (acceptor.clone(), counts.clone());
                tokio::spawn(async move {
                    let _ = stream.set_nodelay(true);
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    opened.fetch_add(1, Ordering::Relaxed);
                    // Whoever asked is gone, or is told nothing more.
                    let _ = serve(stream, manner, &asked).await;
                });
            }
        });
        Ok(Hook { port, authority: credentials.authority.clone(), asked, opened, _runtime: runtime })
    }

    /// How many questions have come.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// How many connections were made to it.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }

    /// Has it asked about new ConfigMaps with this label.
    pub fn configure(&self, server: &Server, label: &str, value: &str) -> Result<()> {
        let configuration = json!({
            "metadata": {"name": "bench"},
            "webhooks": [{
                "name": "bench.example.com",
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{}/", self.port),
                    "caBundle": STANDARD.encode(&self.authority),
                },
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
                "objectSelector": {"matchLabels": {label: value}},
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
            }],
        });
        server.made(CONFIGURATIONS, &configuration).map(drop)
    }
}

/// Reads questions, one after the other.
async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    manner: Manner,
    asked: &AtomicUsize,
) -> Result<()> {
    let mut buffer = Vec::new();
    loop {
        let head = loop {
            if let Some(at) = memchr::memmem::find(&buffer, b"\r\n\r\n") {
                break at + 4;
            }
            fill(&mut stream, &mut buffer).await?;
        };
        let end = head + length(&buffer[..head])?;
        while buffer.len() < end {
            fill(&mut stream, &mut buffer).await?;
        }
        asked.fetch_add(1, Ordering::Relaxed);
        if manner == Manner::Allows {
            let review: Value = serde_json::from_slice(&buffer[head..end])?;
            let said = json!({
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {"uid": review["request"]["uid"], "allowed": true},
            })
            .to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
            stream.write_all(format!("{head} {}\r\n\r\n{said}", said.len()).as_bytes()).await?;
            stream.flush().await?;
        }
        buffer.drain(..end);
    }
}

async fn fill(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Result<()> {
    anyhow::ensure!(stream.read_buf(buffer).await? > 0, "the connection was closed");
    Ok(())
}

/// How long the body of a question is.
fn length(head: &[u8]) -> Result<usize> {
    let head = std::str::from_utf8(head)?;
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, length) = lengths.next().context("a question says how long it is")?;
    Ok(length.trim().parse()?)
}
