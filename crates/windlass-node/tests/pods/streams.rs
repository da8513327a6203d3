//! Streams into and out of containers.

use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use windlass_node::serve::{Attach, Exec};

use super::world::{Test, World};

pub const TESTS: &[Test] = &[
    ("exec_talks_to_a_program", |world| Box::pin(exec_talks_to_a_program(world))),
    ("attach_hears_a_container", |world| Box::pin(attach_hears_a_container(world))),
    ("a_port_of_a_pod_is_reached", |world| Box::pin(a_port_of_a_pod_is_reached(world))),
];

async fn exec_talks_to_a_program(world: Arc<World>) {
    let spec = json!({"containers": [{"name": "a", "image": "busybox", "command": ["sleep", "1000"],
        "env": [{"name": "GREETING", "value": "hello"}]}]});
    let pod = world.create("target", spec).await;
    world.until("target", "running", |line| line == "Running | a running ready").await;
    let uid = pod.metadata.uid.as_deref().unwrap();
    let exec = Exec {
        command: ["sh", "-c", "read name; echo $GREETING $name; echo oops >&2; exit 4"]
            .map(str::to_owned)
            .to_vec(),
        stdin: true,
        stdout: true,
        stderr: true,
        tty: false,
    };
    let mut process = world.containers.exec(uid, "a", exec).await.unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin.write_all(b"world\n").await.unwrap();
    drop(stdin);
    let (mut out, mut err) = (String::new(), String::new());
    process.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
    process.stderr.take().unwrap().read_to_string(&mut err).await.unwrap();
    assert_eq!((out.as_str(), err.as_str()), ("hello world\n", "oops\n"));
    assert_eq!(process.exit.await.unwrap(), 4);

    let exec = Exec { command: vec!["tty".to_owned()], stdin: true, stdout: true, stderr: false, tty: true };
    let mut process = world.containers.exec(uid, "a", exec).await.unwrap();
    let mut out = String::new();
    process.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
    assert!(out.starts_with("/dev/"), "{out}");
    assert_eq!(process.exit.await.unwrap(), 0);

    let exec = Exec { command: vec!["nosuchprogram".to_owned()], ..Exec::default() };
    let error = world.containers.exec(uid, "a", exec).await.unwrap_err().to_string();
    assert!(error.contains("executable file not found in $PATH"), "{error}");
    world.delete("target", 0).await;
}

async fn attach_hears_a_container(world: Arc<World>) {
    let script = "while read line; do echo heard $line; done; echo end";
    let container = json!({"name": "a", "image": "busybox", "command": ["sh", "-c", script], "stdin": true,
        "stdinOnce": true});
    let pod = world.create("attached", json!({"restartPolicy": "Never", "containers": [container]})).await;
    world.until("attached", "running", |line| line == "Running | a running ready").await;
    let uid = pod.metadata.uid.as_deref().unwrap();
    let wants = Attach { stdin: true, stdout: true, stderr: false };
    let mut process = world.containers.attach(uid, "a", wants).await.unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin.write_all(b"one\n").await.unwrap();
    stdin.shutdown().await.unwrap();
    drop(stdin);
    let mut out = String::new();
    process.stdout.take().unwrap().read_to_string(&mut out).await.unwrap();
    assert_eq!(out, "heard one\nend\n");
    world.until("attached", "done", |line| line == "Succeeded | a Completed(0)").await;
}

async fn a_port_of_a_pod_is_reached(world: Arc<World>) {
    let server = "import socket
s = socket.create_server(('127.0.0.1', 7000))
while True:
    c, _ = s.accept(); c.sendall(b'hello'); c.close()";
    let container = json!({"name": "a", "image": "debian", "command": ["python3", "-c", server]});
    let pod = world.create("listener", json!({"containers": [container]})).await;
    world.until("listener", "running", |line| line == "Running | a running ready").await;
    let uid = pod.metadata.uid.as_deref().unwrap();
    let mut heard = String::new();
    for _ in 0..100 {
        match world.containers.dial(uid, 7000).await {
            Ok(mut connection) => {
                connection.read_to_string(&mut heard).await.unwrap();
                break;
            }
            // It does not listen yet.
            Err(_) => world.env.sleep(std::time::Duration::from_millis(50)).await,
        }
    }
    assert_eq!(heard, "hello");
    let refused = world.containers.dial(uid, 7001).await.err().unwrap().to_string();
    assert!(refused.starts_with("failed to connect to localhost:7001: "), "{refused}");
    world.delete("listener", 0).await;
}
