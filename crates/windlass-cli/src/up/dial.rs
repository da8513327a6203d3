//! How the API server reaches nodes, and programs in the cluster.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::net::TcpStream;
use windlass_apiserver::api::Peer;
use windlass_apiserver::front::{Connection, Dialer, Dialing};
use windlass_node::network::Network;

/// Nodes are on this machine; pods and Services are in the cluster's network, once there is one.
#[derive(Clone, Default)]
pub struct Ways(Arc<Known>);

#[derive(Default)]
struct Known {
    network: OnceLock<Network>,
    /// The ports of nodes that are cut off.
    closed: Mutex<BTreeSet<u16>>,
}

impl Ways {
    /// There is a network.
    pub fn open(&self, network: Network) {
        // There is one network for as long as this process lives.
        let _ = self.0.network.set(network);
    }

    /// A node at this port is reached, or is not.
    pub fn set(&self, port: u16, open: bool) {
        let mut closed = self.0.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if open {
            closed.remove(&port)
        } else {
            closed.insert(port)
        };
    }

    fn is_closed(&self, port: u16) -> bool {
        self.0.closed.lock().unwrap_or_else(PoisonError::into_inner).contains(&port)
    }
}

impl Dialer for Ways {
    fn dial<'a>(&'a self, peer: Peer, host: &'a str, port: u16) -> Dialing<'a> {
        Box::pin(async move {
            let stream = match peer {
                Peer::Node if self.is_closed(port) => return Err(io::ErrorKind::HostUnreachable.into()),
                Peer::Node => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?,
                Peer::Program => {
                    let network =
                        self.0.network.get().ok_or_else(|| io::Error::other("the cluster has no nodes"))?;
                    let address = host.parse().map_err(io::Error::other)?;
                    network.dial(SocketAddrV4::new(address, port)).await?
                }
            };
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}
