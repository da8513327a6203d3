//! The cluster's network on the kernel that is here: two nodes, pods that are sockets of this process, an API server.
//!
//! This program is re-executed as the sandbox, so it has a `main` of its own.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Service};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use windlass::Env;
use windlass::cache::Cache;
use windlass::env::Task;
use windlass::events::Recorder;
use windlass::metrics::Metrics;
use windlass_node::network::{Host, Network, PodNet, PodNetwork, dial, dns, run_rules};
use windlass_sandbox::{Options, Sandbox, Socket};
use windlass_testing::TestCluster;

fn main() -> ExitCode {
    if let Some(code) = windlass_sandbox::entry() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(all());
    ExitCode::SUCCESS
}

/// Objects of a cluster: a Service with two pods, one without any, one of datagrams, and the DNS server's own.
const OBJECTS: &str = "
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, clusterIP: 10.0.0.20, ports: [{name: http, port: 80, nodePort: NODE_PORT}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-x, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.244.0.2], nodeName: one}, {addresses: [10.244.1.2], nodeName: two}]
---
apiVersion: v1
kind: Service
metadata: {name: nobody}
spec: {clusterIP: 10.0.0.21, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: echo}
spec: {type: NodePort, clusterIP: 10.0.0.23, ports: [{port: 7, protocol: UDP, nodePort: ECHO_PORT}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: echo-x, labels: {kubernetes.io/service-name: echo}}
addressType: IPv4
ports: [{port: 7, protocol: UDP}]
endpoints: [{addresses: [10.244.1.2], nodeName: two}]
---
apiVersion: v1
kind: Service
metadata: {name: balanced}
spec: {type: LoadBalancer, clusterIP: 10.0.0.22, ports: [{port: TAKEN, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {clusterIP: 10.0.0.10, ports: [{name: dns, port: 53, protocol: UDP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
ports: [{name: dns, port: 53, protocol: UDP}]
endpoints: [{addresses: [10.243.0.1]}]
";

/// What runs for the tests, and ends with them.
struct World {
    sandbox: Sandbox,
    network: Network,
    pods: [PodNetwork; 2],
    cluster: TestCluster,
    env: Env,
    node_port: u16,
    echo_port: u16,
    folder: PathBuf,
    _running: Vec<Task<()>>,
    _taken: TcpListener,
}

async fn all() {
    let world = world().await;
    let one = world.pods[0].attach("uid-one", "one").await.unwrap();
    let two = world.pods[1].attach("uid-two", "two").await.unwrap();
    let three = world.pods[0].attach("uid-three", "three").await.unwrap();
    assert_eq!([one.address, two.address], [[10, 244, 0, 2].into(), Ipv4Addr::from([10, 244, 1, 2])]);
    assert_eq!(world.pods[0].attach("uid-one", "one").await.unwrap(), one, "a pod has one network");
    let _servers = [world.greet(&one, "one").await, world.greet(&two, "two").await];

    pods_reach_each_other(&world, &one, &two, &three).await;
    a_service_reaches_all_of_its_pods(&world, &one, &three).await;
    names_resolve(&world, &three).await;
    this_machine_reaches_services(&world, &two).await;
    a_node_is_cut_off_and_heals(&world, &two, &three).await;
    a_pod_leaves_nothing(&world, &three).await;

    world.sandbox.stop().await;
    std::fs::remove_dir_all(&world.folder).unwrap();
}

async fn world() -> World {
    let folder = std::env::temp_dir().join(format!("windlass-network-{}", std::process::id()));
    let sandbox = Sandbox::start(Options::new(folder.join("sandbox"))).await.expect("the sandbox stands");
    let network = Network::start(sandbox.clone(), &["one".to_owned(), "two".to_owned()]).await.unwrap();
    let pods = ["one", "two"].map(|node| network.pods(node, folder.join(format!("{node}.json"))).unwrap());

    let cluster = TestCluster::new().await;
    let (cache, env) = (Cache::new("test"), Env::system());
    let known = dns::Cached::declare(&cache);
    let (recorder, events) = Recorder::start(
        cluster.client(),
        &env,
        &Metrics::new(),
        "windlass-node",
        "test",
        tokio_util::sync::CancellationToken::new(),
    );
    let host = Host {
        network: network.clone(),
        known: known.clone(),
        client: cluster.client(),
        recorder,
        env: env.clone(),
    };
    let listening = network.listen_dns().await.unwrap();
    let running = vec![
        events,
        cache.start(cluster.client(), &env, Arc::new(())),
        env.spawn("rules", run_rules(network.clone(), known.clone(), env.clone())),
        env.spawn("dns", dns::serve(listening, known, env.clone())),
        env.spawn("host", host.run()),
    ];
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let [node_port, echo_port] = [free_node_port(30_100), free_node_port(31_100)];
    let objects = OBJECTS
        .replace("NODE_PORT", &node_port.to_string())
        .replace("ECHO_PORT", &echo_port.to_string())
        .replace("TAKEN", &taken.local_addr().unwrap().port().to_string());
    cluster.apply_yaml(&objects).await.unwrap();
    World {
        sandbox,
        network,
        pods,
        cluster,
        env,
        node_port,
        echo_port,
        folder,
        _running: running,
        _taken: taken,
    }
}

/// A port of the range of node ports that nobody on this machine has.
fn free_node_port(from: u16) -> u16 {
    (from..32_767)
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a node port is free")
}

impl World {
    /// Answers every connection to port 8080 of a pod with its name and where the connection came from, and every datagram to
    /// port 7 with itself.
    async fn greet(&self, pod: &PodNet, name: &'static str) -> Task<()> {
        let at = |port| SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
        let socket = self.sandbox.socket(&pod.name, Socket::TcpListen(at(8080))).await.unwrap();
        let listener = TcpListener::from_std(socket.into()).unwrap();
        let socket = self.sandbox.socket(&pod.name, Socket::UdpBind(at(7))).await.unwrap();
        let echo = UdpSocket::from_std(socket.into()).unwrap();
        self.env.spawn("pod", async move {
            let mut buffer = [0; 512];
            loop {
                tokio::select! {
                    accepted = listener.accept() => {
                        let (mut stream, from) = accepted.unwrap();
                        // Whoever asked may have gone.
                        let _ = stream.write_all(format!("{name} to {}", from.ip()).as_bytes()).await;
                    }
                    received = echo.recv_from(&mut buffer) => {
                        let (length, from) = received.unwrap();
                        let _ = echo.send_to(&buffer[..length], from).await;
                    }
                }
            }
        })
    }

    async fn ask(&self, from: &PodNet, ip: impl Into<Ipv4Addr>, port: u16) -> io::Result<String> {
        let to = SocketAddrV4::new(ip.into(), port);
        self.env
            .within(PATIENCE, async { read(dial(&self.sandbox, &from.name, to).await?).await })
            .await
            .unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Tries until something is so.
    async fn until<T>(&self, what: &str, mut attempt: impl AsyncFnMut() -> Result<T, String>) -> T {
        let mut last = String::new();
        for _ in 0..200 {
            match attempt().await {
                Ok(done) => return done,
                Err(error) => last = error,
            }
            self.env.sleep(Duration::from_millis(20)).await;
        }
        panic!("{what}: {last}\n{}", self.cluster.dump());
    }
}

const PATIENCE: Duration = Duration::from_millis(1500);

async fn read(mut stream: TcpStream) -> io::Result<String> {
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

async fn pods_reach_each_other(world: &World, one: &PodNet, two: &PodNet, three: &PodNet) {
    assert_eq!(world.ask(three, one.address, 8080).await.unwrap(), "one to 10.244.0.3");
    assert_eq!(world.ask(three, two.address, 8080).await.unwrap(), "two to 10.244.0.3");
    assert_eq!(world.ask(three, one.address, 81).await.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    let out = world.ask(three, [192, 0, 2, 1], 80).await.unwrap_err();
    assert_eq!(out.kind(), io::ErrorKind::NetworkUnreachable, "pods have no way out: {out}");
}

async fn a_service_reaches_all_of_its_pods(world: &World, one: &PodNet, three: &PodNet) {
    world
        .until("the rules are there", async || {
            world.ask(three, [10, 0, 0, 20], 80).await.map_err(|error| error.to_string())
        })
        .await;
    let mut said = std::collections::BTreeSet::new();
    for _ in 0..40 {
        said.insert(world.ask(three, [10, 0, 0, 20], 80).await.unwrap());
    }
    assert_eq!(said.into_iter().collect::<Vec<_>>(), ["one to 10.244.0.3", "two to 10.244.0.3"]);
    let mut own = std::collections::BTreeSet::new();
    for _ in 0..40 {
        own.insert(world.ask(one, [10, 0, 0, 20], 80).await.unwrap());
    }
    assert_eq!(
        own.into_iter().collect::<Vec<_>>(),
        ["one to 10.244.0.1", "two to 10.244.0.2"],
        "a pod reaches itself through its Service"
    );
    for (ip, port) in [([10, 0, 0, 21], 80), ([10, 0, 0, 20], 81), ([10, 0, 0, 99], 80)] {
        let refused = world.ask(three, ip, port).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused, "{ip:?}:{port}");
    }
    let mut by_node = std::collections::BTreeSet::new();
    world
        .until("a node answers at its node port, with all pods", async || {
            let said = world.ask(three, [10, 243, 0, 11], world.node_port).await;
            by_node.insert(said.map_err(|error| error.to_string())?);
            if by_node.len() < 2 { Err(format!("{by_node:?}")) } else { Ok(()) }
        })
        .await;
    assert_eq!(by_node.into_iter().collect::<Vec<_>>(), ["one to 10.243.0.11", "two to 10.243.0.11"]);
}

async fn names_resolve(world: &World, from: &PodNet) {
    let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let socket = world.sandbox.socket(&from.name, Socket::UdpBind(any)).await.unwrap();
    let socket = UdpSocket::from_std(socket.into()).unwrap();
    let question =
        b"\x12\x34\x01\x00\x00\x01\0\0\0\0\0\0\x03web\x07default\x03svc\x07cluster\x05local\0\0\x01\0\x01";
    let mut answer = [0; 512];
    let (length, by) = world
        .until("the DNS server answers", async || {
            let answered = async {
                socket.send_to(question, "10.0.0.10:53").await.unwrap();
                socket.recv_from(&mut answer).await.unwrap()
            };
            world.env.within(PATIENCE / 5, answered).await.ok_or_else(|| "no answer".to_owned())
        })
        .await;
    assert_eq!(by.ip(), IpAddr::from([10, 0, 0, 10]), "by the address that was asked");
    assert_eq!(answer[length - 4..length], [10, 0, 0, 20]);
}

async fn this_machine_reaches_services(world: &World, two: &PodNet) {
    let port = world.node_port;
    let said = world
        .until("the node port is open", async || {
            let stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| error.to_string())?;
            read(stream).await.map_err(|error| error.to_string()).and_then(|said| match said.as_str() {
                "" => Err("nothing".to_owned()),
                _ => Ok(said),
            })
        })
        .await;
    assert!(said.ends_with("10.243.0.1"), "{said}");
    assert_eq!(
        read(world.network.dial(SocketAddrV4::new(two.address, 8080)).await.unwrap()).await.unwrap(),
        "two to 10.243.0.1"
    );

    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(("127.0.0.1", world.echo_port)).await.unwrap();
    let mut echo = [0; 5];
    world
        .until("datagrams come back", async || {
            let echoed = async {
                socket.send(b"hello").await.map_err(|error| error.to_string())?;
                socket.recv(&mut echo).await.map_err(|error| error.to_string())
            };
            world.env.within(PATIENCE / 5, echoed).await.unwrap_or_else(|| Err("no answer".to_owned()))
        })
        .await;
    assert_eq!(&echo, b"hello");

    let at = |service: &Service| {
        let ingress = service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?;
        ingress.first()?.ip.clone()
    };
    let balanced = |service: &Service| at(service).as_deref() == Some("127.0.0.1");
    world.cluster.wait_for("default", "balanced", "a load balancer has an address", balanced).await.unwrap();
    world
        .until("people hear of a port that is taken", async || {
            let events: Vec<Event> = world.cluster.world().list(Some("default"));
            let told = events.iter().any(|event| {
                event.reason.as_deref() == Some("PortNotOpened")
                    && event
                        .message
                        .as_deref()
                        .is_some_and(|text| text.contains("it is reached at 127.0.0.1:3"))
            });
            told.then_some(()).ok_or_else(|| format!("{events:?}"))
        })
        .await;
}

async fn a_node_is_cut_off_and_heals(world: &World, two: &PodNet, three: &PodNet) {
    world.network.cut_off("two", true).await.unwrap();
    let cut = world.ask(three, two.address, 8080).await;
    assert!(cut.is_err(), "{cut:?}");
    world.network.cut_off("two", false).await.unwrap();
    world
        .until("the node is back", async || {
            world.ask(three, two.address, 8080).await.map_err(|error| error.to_string())
        })
        .await;
}

async fn a_pod_leaves_nothing(world: &World, three: &PodNet) {
    let pods = &world.pods[0];
    pods.detach("uid-three").await.unwrap();
    pods.detach("uid-three").await.unwrap();
    let next = pods.attach("uid-four", "four").await.unwrap();
    assert_ne!(next.address, three.address, "an address rests before it is given again");
    pods.detach("uid-four").await.unwrap();
    let again = world.network.pods("one", pods.file().to_owned()).unwrap();
    let kept = again.attach("uid-five", "five").await.unwrap();
    assert_ne!(kept.address, Ipv4Addr::from([10, 244, 0, 2]), "uid-one is still known");
}
