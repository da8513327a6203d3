//! The `etcd` that envtest insists on starting: it says that it is well, and keeps nothing.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::flags::Flags;
use crate::common::stop_signal;

const HELP: &str = "\
Usage:

  etcd [flags]
    Stands in for etcd where controller-runtime's envtest starts one. The API server beside it keeps its objects itself:
    this program answers GET /health, and ends by SIGTERM. All flags of etcd are accepted.

  --listen-client-urls 'http://localhost:2379'
    Where to answer.
";

/// Why it ended, or did not start.
#[derive(Debug, Error)]
pub enum Failure {
    /// There is no runtime.
    #[error("cannot start")]
    Runtime(#[source] io::Error),
    /// It does not say where to listen.
    #[error("--listen-client-urls={url}: not of the form http://IP:PORT")]
    Url {
        /// What was given.
        url: String,
    },
    /// The port is taken, or the address not ours.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

impl Failure {
    /// The exit code: as etcd's, which knows only one.
    pub fn exit_code(&self) -> u8 {
        1
    }
}

/// Runs it.
pub fn main(arguments: &[String]) -> Result<(), Failure> {
    let flags = Flags::parse(arguments);
    if flags.answers(HELP, format_args!("etcd Version: windlass {}", env!("CARGO_PKG_VERSION"))) {
        return Ok(());
    }
    let urls = flags.list("listen-client-urls");
    let urls = if urls.is_empty() { vec!["http://127.0.0.1:2379"] } else { urls };
    let addresses = urls.into_iter().map(address).collect::<Result<Vec<_>, _>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::Runtime)?.block_on(run(&addresses))
}

fn address(url: &str) -> Result<SocketAddr, Failure> {
    let place = url
        .strip_prefix("http://")
        .map(|place| place.trim_end_matches('/').replace("localhost", "127.0.0.1"));
    place.and_then(|place| place.parse().ok()).ok_or_else(|| Failure::Url { url: url.to_owned() })
}

async fn run(addresses: &[SocketAddr]) -> Result<(), Failure> {
    let stop = stop_signal().map_err(Failure::Runtime)?;
    let mut serving = tokio::task::JoinSet::new();
    for &address in addresses {
        let listening = |source| Failure::Listen { address, source };
        serving.spawn(serve(TcpListener::bind(address).await.map_err(listening)?));
    }
    stop.await;
    Ok(())
}

async fn serve(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                // A client that goes away is not told, and nobody waits for one that is slow but itself.
                tokio::spawn(async move { answer(socket).await });
            }
            Err(error) => tracing::warn!(%error, "a connection could not be accepted"),
        }
    }
}

/// Answers one request: whatever is asked, we are well.
async fn answer(mut socket: TcpStream) -> io::Result<()> {
    const HEAD_MAX: usize = 16 * 1024;
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_MAX {
        if socket.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let body = r#"{"health":"true","reason":""}"#;
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    socket.write_all(answer.as_bytes()).await?;
    socket.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_urls() {
        assert_eq!(address("http://127.0.0.1:2379").unwrap(), "127.0.0.1:2379".parse().unwrap());
        assert_eq!(address("http://localhost:1/").unwrap(), "127.0.0.1:1".parse().unwrap());
        assert_eq!(address("http://[::1]:1").unwrap(), "[::1]:1".parse().unwrap());
        let refused = address("unix://x").unwrap_err().to_string();
        assert_eq!(refused, "--listen-client-urls=unix://x: not of the form http://IP:PORT");
    }
}
