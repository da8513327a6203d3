//! How the API server reaches nodes, and programs in the cluster.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;
use windlass_apiserver::api::Peer;
use windlass_apiserver::front::{Connection, Dialer, Dialing};
use windlass_node::network::Network;

/// Nodes are on this machine; pods and Services are in the cluster's network, once there is one.
#[derive(Clone, Default)]
pub struct Ways(Arc<OnceLock<Network>>);

impl Ways {
    /// There is a network.
    pub fn open(&self, network: Network) {
        // There is one network for as long as this process lives.
        let _ = self.0.set(network);
    }
}

impl Dialer for Ways {
    fn dial<'a>(&'a self, peer: Peer, host: &'a str, port: u16) -> Dialing<'a> {
        Box::pin(async move {
            let stream = match peer {
                Peer::Node => TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?,
                Peer::Program => {
                    let network = self.0.get().ok_or_else(|| io::Error::other("the cluster has no nodes"))?;
                    let address = host.parse().map_err(io::Error::other)?;
                    network.dial(SocketAddrV4::new(address, port)).await?
                }
            };
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}
