//! Programs in the sandbox, and pods in its networks.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream as StdTcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpSocket;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use windlass_sandbox::{Error, Exec, Process, Sandbox, Size as TerminalSize, Socket, Spec, Stdio, resize};

use super::runtime::{Input, Io, Network, Output, PodNet, Program, RunError, Runtime};
use crate::network::{PodNetwork, resolv_conf};
use crate::serve::{Connection, Size};

/// A terminal before anybody has said how large it is.
const SIZE: TerminalSize = TerminalSize { rows: 24, columns: 80 };
/// The last size counts; the others may wait for a moment.
const SIZES: usize = 8;

impl Runtime for Sandbox {
    fn run<'a>(&'a self, id: &'a str, spec: Spec, io: Io) -> BoxFuture<'a, Result<Program, RunError>> {
        Box::pin(async move {
            let (stdio, ends) = streams(io).map_err(place)?;
            let process = Sandbox::run(self, id, spec, stdio).await.map_err(refused)?;
            program(process, ends).map_err(place)
        })
    }

    fn exec<'a>(&'a self, id: &'a str, exec: Exec, io: Io) -> BoxFuture<'a, Result<Program, RunError>> {
        Box::pin(async move {
            let (stdio, ends) = streams(io).map_err(place)?;
            let process = Sandbox::exec(self, id, exec, stdio).await.map_err(refused)?;
            program(process, ends).map_err(place)
        })
    }

    fn dial<'a>(&'a self, net: &'a str, to: SocketAddr) -> BoxFuture<'a, io::Result<Connection>> {
        Box::pin(async move {
            let socket = self.socket(net, Socket::Tcp).await.map_err(io::Error::other)?;
            let socket = TcpSocket::from_std_stream(StdTcpStream::from(socket));
            let connected = socket.connect(to).await?;
            Ok(Box::new(connected) as Connection)
        })
    }

    fn mount_memory<'a>(&'a self, path: &'a Path, bytes: Option<u64>) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.mount_tmpfs(path, bytes).await.map_err(|error| chain(&error)) })
    }

    fn unmount_memory<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = self.unmount(path).await {
                tracing::warn!(path = %path.display(), error = %chain(&error), "memory of a volume stays");
            }
        })
    }
}

impl Network for PodNetwork {
    fn attach<'a>(&'a self, pod: &'a Pod, hostname: &'a str) -> BoxFuture<'a, Result<PodNet, String>> {
        Box::pin(async move {
            let net = if on_host(pod) {
                self.of_node()
            } else {
                let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                PodNetwork::attach(self, uid, hostname).await.map_err(|error| chain(&error))?
            };
            Ok(PodNet { name: net.name, ips: vec![net.address.to_string()] })
        })
    }

    fn detach<'a>(&'a self, uid: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Err(error) = PodNetwork::detach(self, uid).await {
                tracing::warn!(uid, error = %chain(&error), "network of a pod stays");
            }
        })
    }

    fn keep_only(&self, uids: &BTreeSet<String>) {
        if let Err(error) = PodNetwork::keep_only(self, uids) {
            tracing::warn!(error = %chain(&error), "addresses of pods that are gone stay taken");
        }
    }

    fn resolv_conf(&self, pod: &Pod) -> String {
        let spec = pod.spec.as_ref();
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let policy = spec.and_then(|spec| spec.dns_policy.as_deref());
        let config = spec.and_then(|spec| spec.dns_config.as_ref());
        // A machine without one resolves nothing, and nor does a pod that wants the same.
        let machine = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        resolv_conf(namespace, policy, on_host(pod), config, &machine)
    }
}

fn on_host(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.host_network == Some(true))
}

/// Our ends of a program's streams.
enum Ends {
    Pipes { stdin: Option<io::PipeWriter>, stdout: io::PipeReader, stderr: io::PipeReader },
    Terminal,
}

fn streams(io: Io) -> io::Result<(Stdio, Ends)> {
    if io.tty {
        return Ok((Stdio::Terminal(SIZE), Ends::Terminal));
    }
    let (input, stdin) = if io.stdin {
        let (reader, writer) = io::pipe()?;
        (OwnedFd::from(reader), Some(writer))
    } else {
        (OwnedFd::from(File::open("/dev/null")?), None)
    };
    let (stdout, output) = io::pipe()?;
    let (stderr, errors) = io::pipe()?;
    let theirs = Stdio::Fds([input, output.into(), errors.into()]);
    Ok((theirs, Ends::Pipes { stdin, stdout, stderr }))
}

fn program(mut process: Process, ends: Ends) -> io::Result<Program> {
    let exit = Box::pin(process.watch());
    let (mut stdin, mut stdout, mut stderr): (Option<Input>, Option<Output>, Option<Output>) =
        (None, None, None);
    let mut sizes = None;
    match ends {
        Ends::Pipes { stdin: input, stdout: output, stderr: errors } => {
            if let Some(input) = input {
                stdin = Some(Box::new(pipe::Sender::from_owned_fd(input.into())?));
            }
            stdout = Some(Box::new(pipe::Receiver::from_owned_fd(output.into())?));
            stderr = Some(Box::new(pipe::Receiver::from_owned_fd(errors.into())?));
        }
        Ends::Terminal => {
            if let Some(terminal) = process.terminal() {
                let (sender, receiver) = mpsc::channel(SIZES);
                let terminal = Terminal::new(terminal)?;
                stdin = Some(Box::new(terminal.another()?));
                stdout = Some(Box::new(Sized { terminal, sizes: receiver }));
                sizes = Some(sender);
            }
        }
    }
    let process = Arc::new(process);
    let signal = Arc::new(move |number: i32| -> BoxFuture<'static, ()> {
        let process = process.clone();
        Box::pin(async move {
            if let Err(error) = process.signal(number).await {
                tracing::warn!(number, error = %chain(&error), "signal was not sent");
            }
        })
    });
    Ok(Program { stdin, stdout, stderr, resize: sizes, exit, signal })
}

/// Our end of a terminal.
struct Terminal(AsyncFd<File>);

impl Terminal {
    fn new(fd: OwnedFd) -> io::Result<Terminal> {
        let flags = nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_GETFL)?;
        let flags = nix::fcntl::OFlag::from_bits_truncate(flags) | nix::fcntl::OFlag::O_NONBLOCK;
        nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_SETFL(flags))?;
        Terminal::watch(File::from(fd))
    }

    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types that may change their descriptor: a File does not"
    )]
    fn watch(file: File) -> io::Result<Terminal> {
        Ok(Terminal(AsyncFd::new(file)?))
    }

    fn another(&self) -> io::Result<Terminal> {
        Terminal::watch(self.0.get_ref().try_clone()?)
    }
}

impl AsyncRead for Terminal {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            let room = buffer.initialize_unfilled();
            match ready.try_io(|file| file.get_ref().read(room)) {
                Ok(Ok(length)) => {
                    buffer.advance(length);
                    return Poll::Ready(Ok(()));
                }
                // Nobody has the other end any more.
                Ok(Err(error)) if error.raw_os_error() == Some(nix::errno::Errno::EIO as i32) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_not_ready) => {}
            }
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.0.poll_write_ready(cx))?;
            if let Ok(written) = ready.try_io(|file| file.get_ref().write(data)) {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The output of a terminal, which takes on the sizes that it is told while it is read.
struct Sized {
    terminal: Terminal,
    sizes: mpsc::Receiver<Size>,
}

impl AsyncRead for Sized {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while let Poll::Ready(Some(size)) = self.sizes.poll_recv(cx) {
            let size = TerminalSize { rows: size.height, columns: size.width };
            if let Err(error) = resize(self.terminal.0.get_ref(), size) {
                tracing::debug!(%error, "terminal keeps its size");
            }
        }
        Pin::new(&mut self.terminal).poll_read(cx, buffer)
    }
}

fn refused(error: Error) -> RunError {
    match error {
        Error::Program(why) => RunError::Program(why),
        other => RunError::Place(chain(&other)),
    }
}

fn place(error: io::Error) -> RunError {
    RunError::Place(error.to_string())
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
