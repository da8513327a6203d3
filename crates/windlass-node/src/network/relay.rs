//! Carries connections and datagrams between this machine and the cluster.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use windlass::Env;
use windlass::env::Task;

use super::fabric::Network;

/// How many connections one port carries at once: each is two sockets.
const STREAMS_MAX: usize = 512;
/// How many senders of datagrams are remembered, and for how long after their last one.
const SENDERS_MAX: usize = 256;
const IDLE: Duration = Duration::from_secs(60);
/// After an error, so that one that stays does not keep us busy.
const PAUSE: Duration = Duration::from_millis(50);

/// Carries every connection of a listener to an address of the cluster, until it is dropped.
pub(super) async fn streams(listener: TcpListener, network: Network, to: SocketAddrV4, env: Env) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(ended) = running.next() => {
                let ended: Result<(), windlass::env::Died> = ended;
                if let Err(error) = ended {
                    tracing::error!(%error, "a relay panicked");
                }
            }
            accepted = listener.accept(), if running.len() < STREAMS_MAX => match accepted {
                Ok((stream, _)) => running.push(env.spawn("relay stream", stream_to(stream, network.clone(), to))),
                Err(error) => {
                    tracing::debug!(%error, "a connection was not accepted");
                    env.sleep(PAUSE).await;
                }
            },
        }
    }
}

async fn stream_to(mut near: TcpStream, network: Network, to: SocketAddrV4) {
    let carried = async {
        near.set_nodelay(true)?;
        let mut far = network.dial(to).await?;
        tokio::io::copy_bidirectional(&mut near, &mut far).await
    };
    if let Err(error) = carried.await {
        // Whoever is at the other end sees the connection end.
        tracing::debug!(%error, %to, "a relayed connection ended");
    }
}

/// Carries every datagram of a socket to an address of the cluster and the answers back, until it is dropped.
pub(super) async fn datagrams(near: UdpSocket, network: Network, to: SocketAddrV4, env: Env) {
    let near = Arc::new(near);
    let mut senders: BTreeMap<SocketAddr, (Arc<UdpSocket>, Task<()>)> = BTreeMap::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (length, from) = match near.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                tracing::debug!(%error, "no datagram received");
                env.sleep(PAUSE).await;
                continue;
            }
        };
        senders.retain(|_, (_, task)| !task.is_finished());
        if !senders.contains_key(&from) {
            if senders.len() >= SENDERS_MAX {
                tracing::debug!(%from, "too many senders of datagrams");
                continue;
            }
            match connected(&network, to).await {
                Ok(far) => {
                    let answers = answers(far.clone(), near.clone(), from, env.clone());
                    senders.insert(from, (far, env.spawn("relay answers", answers)));
                }
                Err(error) => tracing::debug!(%error, %to, "no way for datagrams"),
            }
        }
        if let Some((far, _)) = senders.get(&from)
            && let Err(error) = far.send(&buffer[..length]).await
        {
            tracing::debug!(%error, %to, "a datagram was not sent");
        }
    }
}

async fn connected(network: &Network, to: SocketAddrV4) -> io::Result<Arc<UdpSocket>> {
    let far = network.datagrams().await?;
    far.connect(to).await?;
    Ok(Arc::new(far))
}

/// Carries answers to one sender, until there are none for a while.
async fn answers(far: Arc<UdpSocket>, near: Arc<UdpSocket>, to: SocketAddr, env: Env) {
    let mut buffer = vec![0; 1 << 16];
    while let Some(Ok(length)) = env.within(IDLE, far.recv(&mut buffer)).await {
        if let Err(error) = near.send_to(&buffer[..length], to).await {
            tracing::debug!(%error, %to, "an answer was not sent");
        }
    }
}
