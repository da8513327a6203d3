//! Ports of a pod at the other end of a connection.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::containers::{Connection, Containers, Refused};
use super::spdy::{self, Accepted, Accepting};
use super::streams::{Gone, Incoming, Outgoing, together};
use super::upgrade::{Agreed, Carrier};
use super::websocket;

/// The streams of one forwarded connection.
struct Pair {
    port: u16,
    data: (Incoming, Outgoing),
    error: Outgoing,
}

/// How long a client may take to open the second stream of a pair.
const OPENING: Duration = Duration::from_secs(30);

/// Forwards connections to the ports of a pod, as many as the client opens, until it goes.
pub(super) async fn serve(
    io: impl AsyncRead + AsyncWrite + Send + Unpin,
    agreed: Agreed,
    ports: Vec<u16>,
    containers: &dyn Containers,
    uid: &str,
) {
    match agreed.carrier {
        Carrier::Channels(how) => {
            let (channels, drive) = websocket::channels(io, how, ports.len() * 2).await;
            together(drive, serve_channels(channels, ports, containers, uid)).await;
        }
        Carrier::Spdy => {
            let (accepting, drive) = spdy::accept(io);
            together(drive, serve_spdy(accepting, containers, uid)).await;
        }
        Carrier::Tunnel => {
            let (io, tunnel) = websocket::tunnel(io).await;
            let (accepting, drive) = spdy::accept(io);
            let connection = async { tokio::join!(tunnel, drive).0 };
            together(connection, serve_spdy(accepting, containers, uid)).await;
        }
    }
}

/// A pair of channels per port: what is said first on each is the number of the port.
async fn serve_channels(
    channels: Vec<websocket::Channel>,
    ports: Vec<u16>,
    containers: &dyn Containers,
    uid: &str,
) {
    let mut forwards = FuturesUnordered::new();
    let mut channels = channels.into_iter();
    for port in ports {
        let (Some(data), Some(error)) = (channels.next(), channels.next()) else { break };
        let name = port.to_le_bytes().to_vec();
        let told = data.outgoing.send(name.clone()).await.and(error.outgoing.send(name).await);
        if told.is_err() {
            return;
        }
        let pair = Pair { port, data: (data.incoming, data.outgoing), error: error.outgoing };
        forwards.push(forward(pair, containers, uid));
    }
    while forwards.next().await.is_some() {}
}

/// Pairs of streams with the same request id: one for data, one for what goes wrong.
async fn serve_spdy(mut accepting: Accepting, containers: &dyn Containers, uid: &str) {
    let mut halves: BTreeMap<String, Accepted> = BTreeMap::new();
    let mut forwards = FuturesUnordered::new();
    let mut expiries = FuturesUnordered::new();
    loop {
        let accepted = tokio::select! {
            biased;
            Some(()) = forwards.next(), if !forwards.is_empty() => continue,
            Some(request) = expiries.next(), if !expiries.is_empty() => {
                if let Some(half) = halves.remove(&request) {
                    half.outgoing.reset().await;
                }
                continue;
            }
            accepted = accepting.next() => match accepted {
                Some(accepted) => accepted,
                None => return,
            },
        };
        let request = request_id(&accepted);
        match halves.remove(&request) {
            None => {
                halves.insert(request.clone(), accepted);
                expiries.push(async move {
                    tokio::time::sleep(OPENING).await;
                    request
                });
            }
            Some(half) => match pair(half, accepted) {
                Ok(pair) => forwards.push(forward(pair, containers, uid)),
                Err(wrong) => {
                    for half in *wrong {
                        half.outgoing.reset().await;
                    }
                }
            },
        }
    }
}

fn kind(accepted: &Accepted) -> &str {
    accepted.headers.get("streamtype").map(String::as_str).unwrap_or_default()
}

/// Clients that give no id open the two streams of a pair one after the other, the one for errors first.
fn request_id(accepted: &Accepted) -> String {
    match accepted.headers.get("requestid") {
        Some(id) if !id.is_empty() => id.clone(),
        _ if kind(accepted) == "data" => format!("stream {}", accepted.id.saturating_sub(2)),
        _ => format!("stream {}", accepted.id),
    }
}

fn pair(one: Accepted, two: Accepted) -> Result<Pair, Box<[Accepted; 2]>> {
    let port = |stream: &Accepted| stream.headers.get("port").and_then(|port| port.parse().ok());
    let (data, error) = match (kind(&one), kind(&two)) {
        ("data", "error") => (one, two),
        ("error", "data") => (two, one),
        _ => return Err(Box::new([one, two])),
    };
    match port(&data) {
        Some(port) if port > 0 => {
            Ok(Pair { port, data: (data.incoming, data.outgoing), error: error.outgoing })
        }
        _ => Err(Box::new([data, error])),
    }
}

/// One connection, from its start to its end.
async fn forward(pair: Pair, containers: &dyn Containers, uid: &str) {
    let Pair { port, data: (incoming, outgoing), error } = pair;
    let outcome = async { carry(containers.dial(uid, port).await?, incoming, &outgoing).await };
    match outcome.await {
        Ok(()) => {
            outgoing.end().await;
            error.end().await;
        }
        Err(refused) => {
            tracing::debug!(%refused, port, "a port could not be forwarded");
            let text = format!("error forwarding port {port} to pod {uid}, uid : {refused}");
            if error.send(text).await.is_ok() {
                outgoing.reset().await;
                error.end().await;
            }
        }
    }
}

/// Carries bytes both ways, until the pod's side has said all it has to say.
async fn carry(connection: Connection, mut incoming: Incoming, outgoing: &Outgoing) -> Result<(), Refused> {
    let (mut from, mut to) = tokio::io::split(connection);
    let there = async {
        while let Some(bytes) = incoming.next().await {
            if to.write_all(&bytes).await.is_err() {
                break;
            }
        }
        // The client has said all; the pod may still answer.
        let _ = to.shutdown().await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        // With the connection gone, nobody is left to tell.
        Ok(()) | Err(Gone) = outgoing.send_all(&mut from) => Ok(()),
        () = there => unreachable!("it never ends"),
    }
}
