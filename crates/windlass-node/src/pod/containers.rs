//! The containers of a node, as its endpoint asks for them.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use tokio::io::AsyncWrite;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::io::StreamReader;
use windlass_sandbox::Exec as SandboxExec;

use super::board::{Shown, Stdin};
use super::node::{Node, bare, container_id};
use super::output::Heard;
use super::runtime::{Input, Io, Output, Program, Signaller};
use crate::logs::Stream;
use crate::serve::{Attach, Connection, Containers, Exec, Log, Process, Refused};

const SIGKILL: i32 = 9;

/// What the board shows.
pub(crate) struct OfBoard(pub Arc<Node>);

impl OfBoard {
    fn running(&self, uid: &str, container: &str) -> Result<Arc<Shown>, Refused> {
        let runs = self.0.board.running(Some(uid));
        let run = runs.into_iter().find(|run| run.container == container);
        run.ok_or_else(|| Refused::NotRunning(container.to_owned()))
    }
}

impl Containers for OfBoard {
    fn pods(&self) -> Vec<Arc<Pod>> {
        self.0.board.pods()
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        let is = |pod: &Arc<Pod>| {
            pod.metadata.namespace.as_deref() == Some(namespace) && pod.metadata.name.as_deref() == Some(name)
        };
        // One that is on its way out gives way to the one that came after it.
        let mut found: Vec<_> = self.0.board.pods().into_iter().filter(is).collect();
        found.sort_by_key(|pod| pod.metadata.deletion_timestamp.is_some());
        found.into_iter().next()
    }

    fn log(&self, uid: &str, container_id: &str) -> Option<Log> {
        if let Some(run) = self.0.board.find(uid, container_id) {
            let mut ended = run.ended.clone();
            let ended = async move {
                // Whoever would say it is gone, and the container with it.
                let _ = ended.wait_for(|ended| *ended).await;
            };
            return Some(Log { path: run.log.clone(), ended: Box::pin(ended) });
        }
        let path = self.old_log(uid, container_id)?;
        Some(Log { path, ended: Box::pin(std::future::ready(())) })
    }

    fn exec<'a>(
        &'a self,
        uid: &'a str,
        container: &'a str,
        exec: Exec,
    ) -> BoxFuture<'a, Result<Process, Refused>> {
        Box::pin(async move {
            let run = self.running(uid, container)?;
            let io = Io { stdin: exec.stdin, tty: exec.tty };
            let like = SandboxExec::like(&run.spec, exec.command);
            let started = self.0.runtime.exec(bare(&run.id), like, io).await;
            let program = started.map_err(|error| Refused::Failed(error.to_string()))?;
            Ok(process(&self.0, program))
        })
    }

    fn attach<'a>(
        &'a self,
        uid: &'a str,
        container: &'a str,
        wants: Attach,
    ) -> BoxFuture<'a, Result<Process, Refused>> {
        Box::pin(async move {
            let run = self.running(uid, container)?;
            let listeners = run.listeners.upgrade();
            let listeners = listeners.ok_or_else(|| Refused::NotRunning(container.to_owned()))?;
            let hears = |stream: Stream| heard(listeners.subscribe(), stream);
            let mut ended = run.ended.clone();
            let exit = async move {
                let _ = ended.wait_for(|ended| *ended).await;
                Ok(0)
            };
            Ok(Process {
                stdin: if wants.stdin { Borrowed::take(&run) } else { None },
                stdout: wants.stdout.then(|| hears(Stream::Stdout)),
                stderr: wants.stderr.then(|| hears(Stream::Stderr)),
                resize: run.resize.clone(),
                // As container runtimes do it: where the end of a client's input is not the end of the container's.
                ends_with_input: wants.stdin && (!run.stdin_once || run.tty),
                exit: Box::pin(exit),
            })
        })
    }

    fn dial<'a>(&'a self, uid: &'a str, port: u16) -> BoxFuture<'a, Result<Connection, Refused>> {
        Box::pin(async move {
            let (net, _) = self.0.board.place_of(uid).ok_or_else(|| Refused::NotRunning(uid.to_owned()))?;
            let to = SocketAddr::from(([127, 0, 0, 1], port));
            let dialled = self.0.runtime.dial(&net, to).await;
            dialled
                .map_err(|error| Refused::Failed(format!("failed to connect to localhost:{port}: {error}")))
        })
    }
}

impl OfBoard {
    /// The log of a run that this process did not see.
    fn old_log(&self, uid: &str, wanted: &str) -> Option<std::path::PathBuf> {
        let (_, folder) = self.0.board.place_of(uid)?;
        for container in std::fs::read_dir(folder.join("logs")).ok()?.flatten() {
            let name = container.file_name();
            for log in std::fs::read_dir(container.path()).ok()?.flatten() {
                let file = log.file_name();
                let attempt = file.to_str().and_then(|file| file.strip_suffix(".log")?.parse().ok());
                if attempt
                    .is_some_and(|attempt| container_id(uid, &name.to_string_lossy(), attempt) == wanted)
                {
                    return Some(log.path());
                }
            }
        }
        None
    }
}

/// A program that ends when nobody has it any more.
fn process(node: &Arc<Node>, program: Program) -> Process {
    let guard = Guard { node: node.clone(), signal: Some(program.signal.clone()) };
    let exit = program.exit;
    let exit = async move {
        let mut guard = guard;
        let exit = exit.await;
        guard.signal = None;
        Ok(exit.code)
    };
    Process {
        stdin: program.stdin,
        stdout: program.stdout,
        stderr: program.stderr,
        resize: program.resize,
        ends_with_input: false,
        exit: Box::pin(exit),
    }
}

/// Ends a program that nobody waits for.
struct Guard {
    node: Arc<Node>,
    signal: Option<Signaller>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(signal) = self.signal.take() {
            self.node.board.end(signal(SIGKILL));
        }
    }
}

/// What is heard of one stream, from here on. Whoever is too slow misses something.
fn heard(listener: Receiver<Heard>, wanted: Stream) -> Output {
    let pieces: BoxStream<'static, io::Result<Bytes>> =
        stream::unfold(listener, move |mut listener| async move {
            loop {
                match listener.recv().await {
                    Ok((stream, piece)) if stream == wanted => return Some((Ok(piece), listener)),
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            }
        })
        .boxed();
    Box::new(StreamReader::new(pieces))
}

/// The standard input of a container, for as long as somebody is attached. It goes back to the container, unless the
/// end of its input was said.
struct Borrowed {
    run: Arc<Shown>,
    input: Option<Input>,
}

impl Borrowed {
    fn take(run: &Arc<Shown>) -> Option<Input> {
        let mut stdin = run.stdin.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *stdin) {
            Stdin::Free(input) => {
                *stdin = Stdin::Taken;
                Some(Box::new(Borrowed { run: run.clone(), input: Some(input) }))
            }
            other => {
                *stdin = other;
                None
            }
        }
    }

    fn poll<T>(
        self: Pin<&mut Self>,
        poll: impl FnOnce(Pin<&mut (dyn AsyncWrite + Send + Unpin)>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &mut self.get_mut().input {
            Some(input) => poll(Pin::new(&mut **input)),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

impl AsyncWrite for Borrowed {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.poll(|input| input.poll_write(cx, data))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|input| input.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.run.stdin_once {
            return Poll::Ready(Ok(()));
        }
        match &mut this.input {
            Some(input) => match Pin::new(&mut **input).poll_shutdown(cx) {
                Poll::Ready(ended) => {
                    this.input = None;
                    Poll::Ready(ended)
                }
                Poll::Pending => Poll::Pending,
            },
            None => Poll::Ready(Ok(())),
        }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let mut stdin = self.run.stdin.lock().unwrap_or_else(PoisonError::into_inner);
        *stdin = match self.input.take() {
            Some(input) if !self.run.stdin_once => Stdin::Free(input),
            _ => Stdin::None,
        };
    }
}
