//! The sandbox against the kernel it stands on.
//!
//! This program is re-executed for the stages, so it has a `main` of its own instead of the usual one.

use std::process::ExitCode;

use windlass_sandbox::{Error, Options, Sandbox, Socket, Tool};

fn main() -> ExitCode {
    if let Some(code) = windlass_sandbox::entry() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(networks());
    ExitCode::SUCCESS
}

async fn networks() {
    let folder = std::env::temp_dir().join(format!("windlass-sandbox-{}", std::process::id()));
    let sandbox = Sandbox::start(Options::new(&folder)).await.expect("the sandbox stands");
    sandbox.add_net("a", "host-a").await.expect("a network");
    sandbox.add_net("b", "host-b").await.expect("a network");
    assert!(matches!(sandbox.add_net("b", "again").await, Err(Error::Exists { .. })));
    let link = format!("link add eth0 type veth peer name eth0 netns {}\n", sandbox.net_path("b").display());
    let address = |n| format!("addr add 10.0.0.{n}/24 dev eth0\nlink set eth0 up\n");
    sandbox.net_script("a", Tool::Ip, link + &address(1)).await.expect("a link");
    sandbox.net_script("b", Tool::Ip, address(2)).await.expect("an address");
    let refused = sandbox.net_script("b", Tool::Ip, "addr add 10.0.0.2/24 dev nope\n").await;
    assert!(matches!(&refused, Err(Error::Script { output, .. }) if output.contains("nope")), "{refused:?}");

    let any = "0.0.0.0:80".parse().expect("an address");
    let listener = sandbox.socket("a", Socket::TcpListen(any)).await.expect("port 80 of one network");
    let _other = sandbox.socket("b", Socket::TcpListen(any)).await.expect("port 80 of another");
    let dial = sandbox.socket("b", Socket::Tcp).await.expect("a socket");
    let dial = tokio::net::TcpSocket::from_std_stream(dial.into());
    let listener = tokio::net::TcpListener::from_std(listener.into()).expect("a listener");
    let (out, came) =
        tokio::join!(dial.connect("10.0.0.1:80".parse().expect("an address")), listener.accept());
    assert_eq!(out.expect("connected").local_addr().ok(), came.ok().map(|(_, from)| from));

    sandbox.stop().await;
    std::fs::remove_dir(folder).expect("the folder is empty");
}
