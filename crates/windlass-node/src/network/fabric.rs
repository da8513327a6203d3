//! The networks of a cluster, as they are made.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use windlass_sandbox::{Sandbox, Socket, Tool};

use super::addresses::{FABRIC, NODES_MAX, NodeAddresses};
use super::dns::Listening;
use super::leases::{self, Leases};
use super::script::{self, node_net, pod_net};

/// Why there is no network.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// More nodes than there are addresses for.
    #[error("{0} nodes are more than the {NODES_MAX} that there are addresses for")]
    TooMany(usize),
    /// The network that joins the nodes.
    #[error("the network of the cluster cannot be made")]
    Fabric(#[source] windlass_sandbox::Error),
    /// A node's network.
    #[error("the network of node {node} cannot be {what}")]
    Node {
        /// Which node.
        node: String,
        /// What was tried.
        what: &'static str,
        /// Why not.
        source: windlass_sandbox::Error,
    },
    /// There is no such node.
    #[error("there is no node {0}")]
    Unknown(String),
    /// A pod's network.
    #[error("the network of pod {uid} cannot be made")]
    Pod {
        /// Which pod.
        uid: String,
        /// Why not.
        source: windlass_sandbox::Error,
    },
    /// A pod's address.
    #[error("pod {uid} has no address")]
    Address {
        /// Which pod.
        uid: String,
        /// Why not.
        source: leases::Error,
    },
    /// A socket within the cluster.
    #[error("cannot listen at {at} in the cluster")]
    Listen {
        /// Where.
        at: SocketAddr,
        /// Why not.
        source: windlass_sandbox::Error,
    },
    /// A socket that this process cannot use.
    #[error("a socket of the cluster cannot be used")]
    Socket(#[source] io::Error),
}

/// The network of a cluster. Clones are the same network.
#[derive(Clone, Debug)]
pub struct Network {
    sandbox: Sandbox,
    nodes: Arc<BTreeMap<String, NodeAddresses>>,
}

impl Network {
    /// Makes the network that joins these nodes, and theirs.
    ///
    /// # Errors
    /// When a step fails. What was made goes with the sandbox.
    pub async fn start(sandbox: Sandbox, nodes: &[String]) -> Result<Network, Error> {
        let addresses: Option<Vec<_>> = (0..nodes.len()).map(NodeAddresses::of).collect();
        let addresses = addresses.ok_or(Error::TooMany(nodes.len()))?;
        sandbox.net_script("", Tool::Ip, script::fabric()).await.map_err(Error::Fabric)?;
        for (name, own) in nodes.iter().zip(&addresses) {
            let failed = |source| Error::Node { node: name.clone(), what: "made", source };
            let net = node_net(name);
            sandbox.add_net(&net, name).await.map_err(failed)?;
            let plug = script::plug(&sandbox.net_path(&net), *own);
            sandbox.net_script("", Tool::Ip, plug).await.map_err(failed)?;
            let node = script::node(*own, addresses.iter().copied());
            sandbox.net_script(&net, Tool::Ip, node).await.map_err(failed)?;
            sandbox.net_script(&net, Tool::Sysctl, "net.ipv4.ip_forward = 1\n").await.map_err(failed)?;
        }
        let nodes = nodes.iter().cloned().zip(addresses).collect();
        Ok(Network { sandbox, nodes: Arc::new(nodes) })
    }

    /// The addresses of a node.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn node(&self, name: &str) -> Result<NodeAddresses, Error> {
        self.nodes.get(name).copied().ok_or_else(|| Error::Unknown(name.to_owned()))
    }

    /// The nodes, by name.
    pub fn nodes(&self) -> &BTreeMap<String, NodeAddresses> {
        &self.nodes
    }

    /// Takes a node's link to the others away, or gives it back. Its pods run on, and reach each other.
    ///
    /// # Errors
    /// When there is no such node, or the kernel refuses.
    pub async fn cut_off(&self, name: &str, off: bool) -> Result<(), Error> {
        let script = script::cut(self.node(name)?, off);
        let what = if off { "cut off" } else { "healed" };
        let failed = |source| Error::Node { node: name.to_owned(), what, source };
        self.sandbox.net_script("", Tool::Ip, script).await.map_err(failed)
    }

    /// The networks of a node's pods. Their addresses are noted in a file, so that they outlive this process.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn pods(&self, name: &str, file: PathBuf) -> Result<PodNetwork, Error> {
        let node = self.node(name)?;
        let leases = Mutex::new(Leases::load(&file, node));
        let attached = Mutex::default();
        let inner = Pods { sandbox: self.sandbox.clone(), net: node_net(name), node, file, leases, attached };
        Ok(PodNetwork(Arc::new(inner)))
    }

    /// Listens where pods reach the API server: at the port that the endpoints of `kubernetes.default` name.
    ///
    /// # Errors
    /// When it cannot be listened there.
    pub async fn listen_api(&self, port: u16) -> Result<TcpListener, Error> {
        self.listen(SocketAddr::new(FABRIC.into(), port)).await
    }

    /// Listens where pods reach the DNS server.
    ///
    /// # Errors
    /// When it cannot be listened there.
    pub async fn listen_dns(&self) -> Result<Listening, Error> {
        let at = SocketAddr::new(FABRIC.into(), 53);
        let socket = self.sandbox.socket("", Socket::UdpBind(at)).await;
        let socket = socket.map_err(|source| Error::Listen { at, source })?;
        let datagrams = UdpSocket::from_std(socket.into()).map_err(Error::Socket)?;
        Ok(Listening { datagrams, streams: self.listen(at).await? })
    }

    async fn listen(&self, at: SocketAddr) -> Result<TcpListener, Error> {
        let socket = self.sandbox.socket("", Socket::TcpListen(at)).await;
        let socket = socket.map_err(|source| Error::Listen { at, source })?;
        TcpListener::from_std(socket.into()).map_err(Error::Socket)
    }

    /// Connects to a pod or a Service of the cluster.
    ///
    /// # Errors
    /// When nobody answers there, or the sandbox has ended.
    pub async fn dial(&self, to: SocketAddrV4) -> io::Result<TcpStream> {
        dial(&self.sandbox, "", to).await
    }

    /// Sends the rules of a network, all or none.
    pub(super) async fn rules(&self, net: &str, text: String) -> Result<(), windlass_sandbox::Error> {
        self.sandbox.net_script(net, Tool::Nft, text).await
    }

    /// A socket for datagrams to the cluster.
    pub(super) async fn datagrams(&self) -> io::Result<UdpSocket> {
        let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let socket = self.sandbox.socket("", Socket::UdpBind(any)).await.map_err(io::Error::other)?;
        UdpSocket::from_std(socket.into())
    }
}

/// Connects from within a network.
///
/// # Errors
/// When nobody answers there, or the sandbox has ended.
pub async fn dial(sandbox: &Sandbox, net: &str, to: SocketAddrV4) -> io::Result<TcpStream> {
    let socket = sandbox.socket(net, Socket::Tcp).await.map_err(io::Error::other)?;
    let stream = TcpSocket::from_std_stream(socket.into()).connect(to.into()).await?;
    // Requests and answers are small, and waited for.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The networks of a node's pods. Clones are the same.
#[derive(Clone, Debug)]
pub struct PodNetwork(Arc<Pods>);

#[derive(Debug)]
struct Pods {
    sandbox: Sandbox,
    net: String,
    node: NodeAddresses,
    file: PathBuf,
    leases: Mutex<Leases>,
    attached: Mutex<BTreeMap<String, PodNet>>,
}

/// The network of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodNet {
    /// What the sandbox knows it by.
    pub name: String,
    /// The pod's address.
    pub address: Ipv4Addr,
}

impl PodNetwork {
    /// The node's own network, for pods that want that.
    pub fn of_node(&self) -> PodNet {
        PodNet { name: self.0.net.clone(), address: self.0.node.own() }
    }

    /// Gives a pod its network. One that has one keeps it.
    ///
    /// # Errors
    /// When there is no address left, or the network cannot be made; nothing of it is left then.
    pub async fn attach(&self, uid: &str, hostname: &str) -> Result<PodNet, Error> {
        if let Some(net) = lock(&self.0.attached).get(uid) {
            return Ok(net.clone());
        }
        let address = self.change(|leases| leases.take(self.0.node, uid));
        let address = address.map_err(|source| Error::Address { uid: uid.to_owned(), source })?;
        let net = PodNet { name: pod_net(uid), address };
        if let Err(source) = self.make(&net, hostname).await {
            self.unmake(&net).await;
            return Err(Error::Pod { uid: uid.to_owned(), source });
        }
        lock(&self.0.attached).insert(uid.to_owned(), net.clone());
        Ok(net)
    }

    /// Takes a pod's network away. Its address becomes free.
    ///
    /// # Errors
    /// When that cannot be noted.
    pub async fn detach(&self, uid: &str) -> Result<(), Error> {
        let attached = lock(&self.0.attached).remove(uid);
        if let Some(net) = attached {
            self.unmake(&net).await;
        }
        let released = self.change(|leases| {
            leases.release(uid);
            Ok(())
        });
        released.map_err(|source| Error::Address { uid: uid.to_owned(), source })
    }

    /// Frees the addresses of pods that went while nobody looked: of all but these.
    ///
    /// # Errors
    /// When that cannot be noted.
    pub fn keep_only(&self, uids: &BTreeSet<String>) -> Result<(), leases::Error> {
        self.change(|leases| {
            leases.retain(uids);
            Ok(())
        })
    }

    async fn make(&self, net: &PodNet, hostname: &str) -> Result<(), windlass_sandbox::Error> {
        let Pods { sandbox, node, net: of_node, .. } = &*self.0;
        sandbox.add_net(&net.name, hostname).await?;
        let attach = script::attach(&sandbox.net_path(&net.name), net.address);
        sandbox.net_script(of_node, Tool::Ip, attach).await?;
        sandbox.net_script(&net.name, Tool::Ip, script::pod(*node, net.address)).await
    }

    /// The link goes first: its name is wanted again before the kernel has taken the network apart.
    async fn unmake(&self, net: &PodNet) {
        let Pods { sandbox, net: of_node, .. } = &*self.0;
        let link = sandbox.net_script(of_node, Tool::Ip, script::detach(net.address)).await;
        let removed = sandbox.remove_net(&net.name).await;
        for error in [link, removed].into_iter().filter_map(Result::err) {
            tracing::debug!(net = net.name, error = %error, "a pod's network was not there to be removed");
        }
    }

    /// Changes who has which address, and notes it.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Leases) -> Result<T, leases::Error>,
    ) -> Result<T, leases::Error> {
        let mut leases = lock(&self.0.leases);
        let mut changed = leases.clone();
        let done = change(&mut changed)?;
        if changed != *leases {
            changed.store(&self.0.file)?;
            *leases = changed;
        }
        Ok(done)
    }

    /// The file that the addresses are noted in.
    pub fn file(&self) -> &Path {
        &self.0.file
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
