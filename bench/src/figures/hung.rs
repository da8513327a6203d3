//! Reads while writes wait for a webhook that hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ServerConfig;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use windlass_apiserver::front::credentials::Credentials;

use super::rates;
use crate::load::Until;
use crate::objects::{Kind, NAMESPACE};
use crate::server::Server;
use crate::{Numbers, Settings};

/// How many writes wait.
const WAITING: usize = 100;
/// How many objects are read.
const OBJECTS: usize = 1000;
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// Reads for a while, and then once more while writes wait.
pub fn measure(server: &Server, settings: &Settings) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    server.create_namespace(NAMESPACE)?;
    let hook = Hook::start()?;
    server.made(CONFIGURATIONS, &hook.configuration())?;
    rates::create(server, settings.connections, Until::Count(OBJECTS), "read")?;
    let read = || rates::read(server, settings.connections, Until::Passed(settings.time), "read", OBJECTS);
    // Once for the caches of processor, kernel and runtime.
    rates::read(server, settings.connections, Until::Count(OBJECTS), "read", OBJECTS)?;
    let calm = read()?;
    let (stop, stopped) = oneshot::channel();
    let hung = thread::scope(|scope| {
        let writers = scope.spawn(|| wait(server, stopped));
        let deadline = Instant::now() + Duration::from_secs(20);
        while hook.asked.load(Ordering::Relaxed) < WAITING && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        let asked = hook.asked.load(Ordering::Relaxed);
        let hung = read();
        // Whoever waits no longer has told why by then.
        let _ = stop.send(());
        writers.join().expect("no panic")?;
        ensure!(asked >= WAITING, "only {asked} writes wait for the webhook");
        hung
    })?;
    numbers.insert("calm get p99", calm.p99.as_secs_f64());
    numbers.insert("hung get p99", hung.p99.as_secs_f64());
    numbers.insert("hung get rate", hung.rate());
    Ok(numbers)
}

/// Sends writes that the webhook is asked about, and waits with them.
fn wait(server: &Server, stopped: oneshot::Receiver<()>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let path = Kind::ConfigMap.collection(NAMESPACE);
    let write = async |n: usize| {
        let body = json!({"metadata": {"name": format!("slow-{n}"), "labels": {"slow": "yes"}}});
        let mut request = Vec::new();
        server.requests.post(&path, &body.to_string(), &mut request);
        let (status, _) = server.connector.open().await?.exchange(&request).await?;
        // It has to wait until it is told to stop.
        anyhow::bail!("a write was answered with {status}")
    };
    runtime.block_on(async {
        let writes = futures_util::future::try_join_all((0..WAITING).map(write));
        tokio::select! {
            biased;
            _ = stopped => Ok(()),
            answered = writes => answered.map(|_: Vec<()>| ()),
        }
    })
}

/// A webhook that takes every request and answers none.
struct Hook {
    port: u16,
    authority: String,
    asked: Arc<AtomicUsize>,
    _runtime: tokio::runtime::Runtime,
}

impl Hook {
    fn start() -> Result<Hook> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let credentials = Credentials::generate(std::net::Ipv4Addr::LOCALHOST.into())?;
        // Without HTTP/2 each question comes on a connection of its own, and can be counted.
        let mut tls = ServerConfig::clone(&credentials.serving().tls);
        tls.alpn_protocols.clear();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let port = listener.local_addr().context("where it listens")?.port();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, count) = (acceptor.clone(), count.clone());
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut buffer = [0; 4096];
                    let mut first = true;
                    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                        count.fetch_add(usize::from(std::mem::take(&mut first)), Ordering::Relaxed);
                    }
                });
            }
        });
        Ok(Hook { port, authority: credentials.authority.clone(), asked, _runtime: runtime })
    }

    /// It wants to be asked about ConfigMaps with a label.
    fn configuration(&self) -> serde_json::Value {
        json!({
            "metadata": {"name": "hung"},
            "webhooks": [{
                "name": "hung.example.com",
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{}/", self.port),
                    "caBundle": STANDARD.encode(&self.authority),
                },
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
                "objectSelector": {"matchLabels": {"slow": "yes"}},
                "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
            }],
        })
    }
}
