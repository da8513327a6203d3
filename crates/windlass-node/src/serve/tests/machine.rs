//! Containers that are nothing but programs of this machine: one pod, whose container is a running `cat`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use windlass::Env;

use crate::serve::{
    Access, Attach, Certificate, Connection, Containers, Endpoint, Exec, Log, Process, Refused,
};

pub const TOKEN: &str = "let me in";

/// The one pod, its log, and whether the log goes on.
pub struct Machine {
    pod: Arc<Pod>,
    pub log: PathBuf,
    pub ended: watch::Sender<bool>,
    _folder: tempfile::TempDir,
}

impl Machine {
    pub fn new() -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("0.log");
        let mut file = std::fs::File::create(&log).unwrap();
        file.write_all(b"2026-01-02T03:04:05Z stdout F one\n2026-01-02T03:04:06Z stderr F two\n").unwrap();
        let pod = serde_json::from_value(json!({
            "metadata": { "name": "p", "namespace": "ns", "uid": "u" },
            "spec": { "containers": [{ "name": "c" }, { "name": "slow" }] },
            "status": { "containerStatuses": [
                {
                    "name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                    "containerID": "test://now", "state": { "running": {} },
                },
                {
                    "name": "slow", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": { "waiting": { "reason": "ContainerCreating" } },
                },
            ] },
        }));
        Machine { pod: Arc::new(pod.unwrap()), log, ended: watch::Sender::new(false), _folder: folder }
    }

    fn start(command: &[String], stdin: bool) -> Result<Process, Refused> {
        let (program, arguments) = command.split_first().ok_or(Refused::Failed("no command".into()))?;
        let mut child = tokio::process::Command::new(program)
            .args(arguments)
            .stdin(if stdin { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Refused::Failed(format!("exec: {program:?}: {error}")))?;
        Ok(Process {
            stdin: child.stdin.take().map(|end| Box::new(end) as Box<dyn AsyncWrite + Send + Unpin>),
            stdout: child.stdout.take().map(|end| Box::new(end) as Box<dyn AsyncRead + Send + Unpin>),
            stderr: child.stderr.take().map(|end| Box::new(end) as Box<dyn AsyncRead + Send + Unpin>),
            resize: None,
            ends_with_input: false,
            exit: Box::pin(async move {
                let status = child.wait().await.map_err(|error| Refused::Failed(error.to_string()))?;
                Ok(status.code().unwrap_or(137))
            }),
        })
    }
}

impl Containers for Machine {
    fn pods(&self) -> Vec<Arc<Pod>> {
        vec![self.pod.clone()]
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        (namespace == "ns" && name == "p").then(|| self.pod.clone())
    }

    fn log(&self, uid: &str, container_id: &str) -> Option<Log> {
        let mut ended = self.ended.subscribe();
        let ended = Box::pin(async move { drop(ended.wait_for(|ended| *ended).await) });
        (uid == "u" && container_id == "test://now").then(|| Log { path: self.log.clone(), ended })
    }

    fn exec<'a>(&'a self, _: &'a str, _: &'a str, exec: Exec) -> BoxFuture<'a, Result<Process, Refused>> {
        Box::pin(async move { Machine::start(&exec.command, exec.stdin) })
    }

    fn attach<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        wants: Attach,
    ) -> BoxFuture<'a, Result<Process, Refused>> {
        Box::pin(async move { Machine::start(&["cat".to_owned()], wants.stdin) })
    }

    fn dial<'a>(&'a self, _: &'a str, port: u16) -> BoxFuture<'a, Result<Connection, Refused>> {
        Box::pin(async move {
            let stream = TcpStream::connect(("127.0.0.1", port)).await;
            let stream =
                stream.map_err(|error| Refused::Failed(format!("dial 127.0.0.1:{port}: {error}")))?;
            Ok(Box::new(stream) as Connection)
        })
    }
}

/// An endpoint for a machine: its address, and what serves it.
pub async fn serve(machine: Arc<Machine>) -> (SocketAddr, windlass::env::Task<()>) {
    let env = Env::system();
    let certificate = Certificate::self_signed("node-1", &[[127, 0, 0, 1].into()]).unwrap();
    let access = Access { tokens: vec![TOKEN.to_owned()], client_authority: None };
    let endpoint = Endpoint::new(env.clone(), machine, &certificate, &access).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = env.spawn("endpoint", async move { endpoint.serve(listener).await });
    (address, task)
}
