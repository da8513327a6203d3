//! Networks: links between them, sockets in them, programs that listen in them.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use windlass_sandbox::{Error, Sandbox, Socket, Spec, Tool};

use crate::world::{Test, World, block_on};

pub const TESTS: &[Test] = &[
    ("sockets_are_made_inside_networks", || block_on(sockets_are_made_inside_networks())),
    ("two_containers_listen_on_one_port", || block_on(two_containers_listen_on_one_port())),
    ("a_service_address_leads_to_a_container", || block_on(a_service_address_leads_to_a_container())),
    ("what_a_tool_refuses_is_told", || block_on(what_a_tool_refuses_is_told())),
];

/// A bridge in the sandbox's own network, and networks on it.
async fn bridge(sandbox: &Sandbox, names: &[&str]) {
    sandbox
        .net_script(
            "",
            Tool::Ip,
            "link add pods0 type bridge\naddr add 10.9.0.1/24 dev pods0\nlink set pods0 up\n",
        )
        .await
        .expect("a bridge");
    for (index, name) in names.iter().enumerate() {
        sandbox.add_net(name, &format!("host-{name}")).await.expect("a network");
        let path = sandbox.net_path(name);
        let link = format!(
            "link add v{index} type veth peer name eth0 netns {}\nlink set v{index} master pods0\nlink set v{index} up\n",
            path.display()
        );
        sandbox.net_script("", Tool::Ip, link).await.expect("a link");
        let address = format!(
            "addr add 10.9.0.{}/24 dev eth0\nlink set eth0 up\nroute add default via 10.9.0.1\n",
            index + 2
        );
        sandbox.net_script(name, Tool::Ip, address).await.expect("an address");
    }
}

async fn sockets_are_made_inside_networks() {
    let world = World::new("sockets").await;
    bridge(&world.sandbox, &["a", "b"]).await;
    assert!(matches!(world.sandbox.add_net("b", "again").await, Err(Error::Exists { .. })));
    let any = "0.0.0.0:80".parse().expect("an address");
    let listener = world.sandbox.socket("a", Socket::TcpListen(any)).await.expect("port 80 of one network");
    let _other = world.sandbox.socket("b", Socket::TcpListen(any)).await.expect("port 80 of another");
    let dial = world.sandbox.socket("b", Socket::Tcp).await.expect("a socket");
    let listener = TcpListener::from_std(listener.into()).expect("a listener");
    let to = "10.9.0.2:80".parse().expect("an address");
    let (out, came) = tokio::join!(TcpSocket::from_std_stream(dial.into()).connect(to), listener.accept());
    assert_eq!(out.expect("connected").local_addr().ok(), came.ok().map(|(_, from)| from));
    world.sandbox.remove_net("a").await.expect("a network to remove");
    assert!(matches!(world.sandbox.socket("a", Socket::Tcp).await, Err(Error::Unknown { .. })));
    world.end().await;
}

const SERVER: &str = r#"
import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", 80)); s.listen()
while True:
    c, _ = s.accept(); c.sendall((socket.gethostname() + "\n").encode()); c.close()
"#;

/// Asks a server for its name, until it listens.
async fn ask(sandbox: &Sandbox, net: &str, address: &str) -> String {
    for _ in 0..400 {
        let socket = sandbox.socket(net, Socket::Tcp).await.expect("a socket");
        let dial = TcpSocket::from_std_stream(socket.into()).connect(address.parse().expect("an address"));
        if let Ok(Ok(mut stream)) = tokio::time::timeout(Duration::from_secs(2), dial).await {
            let mut text = String::new();
            stream.shutdown().await.expect("an end to what we say");
            stream.read_to_string(&mut text).await.expect("an answer");
            return text.trim().to_owned();
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("nobody listens at {address}");
}

async fn two_containers_listen_on_one_port() {
    let world = World::new("ports").await;
    bridge(&world.sandbox, &["a", "b"]).await;
    for name in ["a", "b"] {
        let spec = Spec { net: name.to_owned(), ..world.spec(name, &["python3", "-c", SERVER]) };
        world.start(name, spec).await;
    }
    assert_eq!(ask(&world.sandbox, "b", "10.9.0.2:80").await, "host-a");
    assert_eq!(ask(&world.sandbox, "a", "10.9.0.3:80").await, "host-b");
    assert_eq!(ask(&world.sandbox, "", "10.9.0.3:80").await, "host-b");
    // From a container as well: it has an address of its own and reaches the other's.
    let client = "import socket; s = socket.create_connection(('10.9.0.3', 80)); print(s.recv(99).decode())";
    let spec = Spec { net: "a".to_owned(), ..world.spec("client", &["python3", "-c", client]) };
    let (exit, said) = world.run("client", spec).await.expect("a client");
    assert_eq!((exit.code, said.as_str()), (0, "host-b"));
    world.end().await;
}

async fn a_service_address_leads_to_a_container() {
    let world = World::new("service").await;
    bridge(&world.sandbox, &["a", "b"]).await;
    let spec = Spec { net: "b".to_owned(), ..world.spec("b", &["python3", "-c", SERVER]) };
    world.start("b", spec).await;
    let rules = "table ip nat {\n chain pre { type nat hook prerouting priority -100; \
                 ip daddr 10.0.0.7 tcp dport 8080 dnat to 10.9.0.3:80; }\n \
                 chain post { type nat hook postrouting priority 100; ip saddr 10.9.0.0/24 masquerade; }\n}\n";
    world.sandbox.net_script("", Tool::Nft, rules).await.expect("rules");
    world.sandbox.net_script("", Tool::Sysctl, "net.ipv4.ip_forward = 1\n").await.expect("a setting");
    assert_eq!(ask(&world.sandbox, "a", "10.0.0.7:8080").await, "host-b");
    world.end().await;
}

async fn what_a_tool_refuses_is_told() {
    let world = World::new("refusals").await;
    world.sandbox.add_net("a", "a").await.expect("a network");
    for (tool, script) in [
        (Tool::Ip, "link set nope up\n"),
        (Tool::Nft, "add rule ip nope nope accept\n"),
        (Tool::Sysctl, "net.ipv4.nope = 1\n"),
    ] {
        let refused = world.sandbox.net_script("a", tool, script).await;
        let Err(Error::Script { output, .. }) = &refused else { panic!("{refused:?}") };
        assert!(output.contains("nope"), "{output}");
    }
    assert!(matches!(world.sandbox.net_script("z", Tool::Ip, "").await, Err(Error::Unknown { .. })));
    world.end().await;
}
