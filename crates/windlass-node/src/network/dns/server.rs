//! Questions from sockets.

use std::io;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use windlass::Env;

use super::answer::{Directory, answer};
use super::wire::{Code, Query, Reply};

/// Where questions come in.
#[derive(Debug)]
pub struct Listening {
    /// In datagrams.
    pub datagrams: UdpSocket,
    /// In streams.
    pub streams: TcpListener,
}

/// How many streams there may be at once, and how long one may be idle: each limit keeps what a client costs bounded.
const STREAMS_MAX: usize = 64;
const IDLE: Duration = Duration::from_secs(10);

/// Answers until it is dropped.
///
/// # Guarantees
/// No question ends it. One that cannot be answered costs nobody else anything.
pub async fn serve(
    listening: Listening,
    directory: impl Directory + Clone + Send + Sync + 'static,
    env: Env,
) {
    let Listening { datagrams, streams } = listening;
    tokio::join!(of_datagrams(&datagrams, &directory, &env), of_streams(&streams, &directory, &env));
}

async fn of_datagrams(socket: &UdpSocket, directory: &impl Directory, env: &Env) {
    let mut buffer = [0; 4096];
    loop {
        let (length, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            // Mostly that an earlier answer did not arrive, which is nothing to us.
            Err(error) => {
                tracing::debug!(%error, "no datagram received");
                env.sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(query) = Query::read(&buffer[..length]) else { continue };
        let reply = query.reply(&reply(&query, directory), query.datagram());
        if let Err(error) = socket.send_to(&reply, from).await {
            tracing::debug!(%error, %from, "an answer was not sent");
        }
    }
}

/// After an error, so that one that stays does not keep us busy.
const PAUSE: Duration = Duration::from_millis(20);

async fn of_streams(
    listener: &TcpListener,
    directory: &(impl Directory + Clone + Send + Sync + 'static),
    env: &Env,
) {
    let mut running = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(ended) = running.next() => {
                let ended: Result<(), windlass::env::Died> = ended;
                if let Err(error) = ended {
                    tracing::error!(%error, "a DNS stream panicked");
                }
            }
            accepted = listener.accept(), if running.len() < STREAMS_MAX => match accepted {
                Ok((stream, _)) => running.push(env.spawn("dns stream", of_stream(stream, directory.clone(), env.clone()))),
                Err(error) => {
                    tracing::debug!(%error, "a DNS stream was not accepted");
                    env.sleep(PAUSE).await;
                }
            },
        }
    }
}

/// One question after the other, each with its length before it.
async fn of_stream(mut stream: TcpStream, directory: impl Directory, env: Env) {
    let mut buffer = Vec::new();
    loop {
        let asked = env.within(IDLE, read(&mut stream, &mut buffer)).await;
        let Some(Ok(())) = asked else { return };
        let Ok(query) = Query::read(&buffer) else { return };
        let reply = query.reply(&reply(&query, &directory), usize::from(u16::MAX));
        let mut bytes = (reply.len() as u16).to_be_bytes().to_vec();
        bytes.extend(reply);
        let Some(Ok(())) = env.within(IDLE, stream.write_all(&bytes)).await else { return };
    }
}

async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    let length = stream.read_u16().await?;
    buffer.resize(usize::from(length), 0);
    stream.read_exact(buffer).await?;
    Ok(())
}

fn reply(query: &Query, directory: &impl Directory) -> Reply {
    match query.refused() {
        Some(code) => Reply { code, answers: Vec::new(), authority: Vec::new(), additional: Vec::new() },
        None => {
            let reply = answer(&query.name, query.kind, directory);
            debug_assert!(reply.code != Code::Malformed);
            reply
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::Service;
    use k8s_openapi::api::discovery::v1::EndpointSlice;
    use serde_json::json;

    use super::super::super::services::tests::{service, slice};
    use super::super::wire::tests::question;
    use super::*;

    /// One headless Service with very many endpoints.
    #[derive(Clone)]
    struct Crowd;

    impl Directory for Crowd {
        fn service(&self, _: &str, _: &str) -> Option<Arc<Service>> {
            Some(Arc::new(service("crowd", json!({"clusterIP": "None", "ports": [{"port": 80}]}))))
        }

        fn slices(&self, _: &str, _: &str) -> Vec<Arc<EndpointSlice>> {
            let address = |number: u32| Ipv4Addr::from(0x0af4_0000 + number).to_string();
            let endpoints: Vec<_> = (0..200).map(|number| json!({"addresses": [address(number)]})).collect();
            vec![Arc::new(slice("crowd", json!([{"port": 80}]), json!(endpoints)))]
        }

        fn service_at(&self, _: Ipv4Addr) -> Option<Arc<Service>> {
            None
        }

        fn slices_at(&self, _: Ipv4Addr) -> Vec<Arc<EndpointSlice>> {
            Vec::new()
        }

        fn has_namespace(&self, _: &str) -> bool {
            true
        }
    }

    #[tokio::test]
    async fn what_is_too_long_for_a_datagram_comes_in_a_stream() {
        let listening = Listening {
            datagrams: UdpSocket::bind("127.0.0.1:0").await.unwrap(),
            streams: TcpListener::bind("127.0.0.1:0").await.unwrap(),
        };
        let (udp, tcp) = (listening.datagrams.local_addr().unwrap(), listening.streams.local_addr().unwrap());
        let env = Env::system();
        let server = env.spawn("dns", serve(listening, Crowd, env.clone()));
        let asked = question("crowd.default.svc.cluster.local", 1, None);

        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.send_to(b"no question", udp).await.unwrap();
        client.send_to(&asked, udp).await.unwrap();
        let mut answer = [0; 4096];
        let length = client.recv(&mut answer).await.unwrap();
        assert!(length <= 512 && answer[2] & 2 == 2, "it is cut, and says so");

        let mut stream = TcpStream::connect(tcp).await.unwrap();
        for _ in 0..2 {
            stream.write_u16(asked.len() as u16).await.unwrap();
            stream.write_all(&asked).await.unwrap();
            let mut answer = vec![0; usize::from(stream.read_u16().await.unwrap())];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer[6..8], 200u16.to_be_bytes());
        }
        drop(server);
    }
}
