//! The caller's handle.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio as ChildStdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::Error;
use crate::forbidden;
use crate::link::{self, Line, Reply};
use crate::process::Process;
use crate::spec::{About, Exec, Size, Socket, Spec, Stdio, Tool};
use crate::wire::{Answer, Call, Inbox, Named, Outgoing, Request, Word};

/// How the sandbox is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program that is re-executed; its `main` begins with [`entry`](crate::entry).
    pub program: PathBuf,
    /// A folder that is this sandbox's alone. It stays empty: what the sandbox keeps there is seen
    /// from inside only, and is gone with it.
    pub state: PathBuf,
}

impl Options {
    /// Re-executes the running program.
    pub fn new(state: impl Into<PathBuf>) -> Options {
        // Not its path: the file may have been replaced since it was started.
        Options { program: PathBuf::from("/proc/self/exe"), state: state.into() }
    }
}

/// A place for containers that ends with the process that started it: when that process ends in
/// whatever way, every container, mount and network in here is gone.
///
/// Clones are handles to the same sandbox. It ends when the last is dropped, or by
/// [`stop`](Sandbox::stop).
#[derive(Debug, Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    about: About,
    nets: PathBuf,
    serial: AtomicU64,
    outgoing: mpsc::Sender<Outgoing>,
    line: Arc<Line>,
    /// The task that speaks with the sandbox's process, until `stop` awaits it.
    task: Mutex<Option<JoinHandle<()>>>,
}

/// Requests that wait for the socket. Callers wait when it is full, so its size bounds memory only.
const QUEUE: usize = 64;

impl Sandbox {
    /// Starts the sandbox's process and waits until it stands.
    ///
    /// # Errors
    /// [`Error::Forbidden`] where this machine does not allow namespaces, with the command that does.
    pub async fn start(options: Options) -> Result<Sandbox, Error> {
        let step = |step: &str| {
            let step = step.to_owned();
            move |source| Error::Step { step, source }
        };
        std::fs::create_dir_all(&options.state).map_err(step("make the sandbox's folder"))?;
        let state = options.state.canonicalize().map_err(step("find the sandbox's folder"))?;
        let (ours, theirs) =
            std::os::unix::net::UnixStream::pair().map_err(step("make a pair of sockets"))?;
        ours.set_nonblocking(true).map_err(step("make a socket that does not wait"))?;
        let socket = UnixStream::from_std(ours).map_err(step("watch a socket"))?;
        let mut child = Command::new(&options.program)
            .arg0("windlass-sandbox")
            .args([crate::stage::OUTER.as_ref(), state.as_os_str()])
            .stdin(ChildStdio::from(OwnedFd::from(theirs)))
            .stdout(ChildStdio::null())
            .spawn()
            .map_err(|source| Error::Spawn { program: options.program, source })?;
        let mut inbox = Inbox::default();
        let about = match link::first_word(&socket, &mut inbox).await {
            Ok(Some(Word::Ready(about))) => about,
            Ok(Some(Word::Refused(failure))) => {
                drop(socket);
                // It ends by itself after its word, and is not left as a zombie.
                let _ = child.wait().await;
                return Err(forbidden::explain(failure));
            }
            Ok(_) | Err(_) => {
                drop(socket);
                let _ = child.wait().await;
                return Err(Error::Gone);
            }
        };
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let line = Arc::new(Line::default());
        let task = tokio::spawn(link::run(socket, inbox, queue, line.clone(), child));
        let inner = Inner {
            about,
            nets: state.join("nets"),
            serial: AtomicU64::new(1),
            outgoing,
            line,
            task: Mutex::new(Some(task)),
        };
        Ok(Sandbox { inner: Arc::new(inner) })
    }

    /// What this machine allows.
    pub fn about(&self) -> &About {
        &self.inner.about
    }

    /// Ends every container and the sandbox, and waits until nothing is left.
    pub async fn stop(&self) {
        self.inner.line.hang_up();
        let task = self.inner.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::error!(error = %error, "the task of the sandbox ended badly");
        }
        self.ended().await;
    }

    /// Waits until the sandbox has ended, by [`stop`](Sandbox::stop) or because its process died.
    pub async fn ended(&self) {
        self.inner.line.ended().await;
    }

    /// Makes a network with nothing but its loopback, and the hostname and IPC that its containers share.
    /// Any port may be bound in it by any user.
    pub async fn add_net(&self, name: &str, hostname: &str) -> Result<(), Error> {
        self.done(Call::AddNet { name: name.to_owned(), hostname: hostname.to_owned() }).await
    }

    /// Lets a network go. It ends when the containers and sockets in it do; links to others with it.
    pub async fn remove_net(&self, name: &str) -> Result<(), Error> {
        self.done(Call::RemoveNet { name: name.to_owned() }).await
    }

    /// What a script for [`Tool::Ip`] says to name a network: `link set eth0 netns <this>`.
    pub fn net_path(&self, name: &str) -> PathBuf {
        self.inner.nets.join(name)
    }

    /// Runs a script in a network; an empty name is the sandbox's own, which reaches nothing outside.
    pub async fn net_script(&self, net: &str, tool: Tool, text: impl Into<String>) -> Result<(), Error> {
        self.done(Call::NetScript { net: net.to_owned(), tool, text: text.into() }).await
    }

    /// Makes a socket inside a network. It does not wait, as tokio wants it.
    pub async fn socket(&self, net: &str, socket: Socket) -> Result<OwnedFd, Error> {
        let reply = self.ask(Call::Socket { net: net.to_owned(), socket }, Vec::new()).await?;
        reply.fds.into_iter().next().ok_or(Error::Gone)
    }

    /// Starts a container. The id is the caller's, and free again when the container has ended.
    ///
    /// A call that is dropped before it is answered may have started it: `signal` reaches it.
    ///
    /// # Errors
    /// [`Error::Program`] when the program cannot be run: there is no container then.
    pub async fn run(&self, id: &str, spec: Spec, stdio: Stdio) -> Result<Process, Error> {
        let (terminal, fds) = split(stdio);
        self.begin(Call::Run { id: id.to_owned(), spec: Box::new(spec), terminal }, fds).await
    }

    /// Starts a further program in a container. It ends with the container at the latest.
    pub async fn exec(&self, container: &str, exec: Exec, stdio: Stdio) -> Result<Process, Error> {
        let (terminal, fds) = split(stdio);
        self.begin(Call::Exec { container: container.to_owned(), exec: Box::new(exec), terminal }, fds).await
    }

    /// Sends a signal to a container's first program. As in any container, one that it has no handler
    /// for is ignored, except `SIGKILL`, which ends all of the container.
    pub async fn signal(&self, container: &str, signal: i32) -> Result<(), Error> {
        self.done(Call::Signal { process: Named::Container(container.to_owned()), signal }).await
    }

    /// Mounts memory at a folder of this machine; containers that have the folder mounted see it,
    /// other processes of the machine do not.
    pub async fn mount_tmpfs(&self, path: &Path, bytes: Option<u64>) -> Result<(), Error> {
        self.done(Call::MountTmpfs { path: path.to_owned(), bytes: bytes.unwrap_or(0) }).await
    }

    /// Takes such a mount away. Containers that see it keep it until they end.
    pub async fn unmount(&self, path: &Path) -> Result<(), Error> {
        self.done(Call::Unmount { path: path.to_owned() }).await
    }

    async fn begin(&self, call: Call, fds: Vec<OwnedFd>) -> Result<Process, Error> {
        let serial = self.serial();
        let exit = self.inner.line.expect_exit(serial);
        let reply = match self.ask_as(serial, call, fds).await {
            Ok(reply) => reply,
            Err(error) => {
                self.inner.line.forget_exit(serial);
                return Err(error);
            }
        };
        match reply.answer {
            Answer::Started { pid } => {
                Ok(Process::new(self.clone(), serial, pid, reply.fds.into_iter().next(), exit))
            }
            Answer::Done => Err(Error::Gone),
        }
    }

    pub(crate) async fn signal_serial(&self, serial: u64, signal: i32) -> Result<(), Error> {
        self.done(Call::Signal { process: Named::Serial(serial), signal }).await
    }

    async fn done(&self, call: Call) -> Result<(), Error> {
        self.ask(call, Vec::new()).await.map(|_| ())
    }

    async fn ask(&self, call: Call, fds: Vec<OwnedFd>) -> Result<Reply, Error> {
        self.ask_as(self.serial(), call, fds).await
    }

    async fn ask_as(&self, serial: u64, call: Call, fds: Vec<OwnedFd>) -> Result<Reply, Error> {
        let request = Outgoing::new(&Request { serial, call }, fds).map_err(Error::Request)?;
        let reply = self.inner.line.expect_reply(serial);
        self.inner.outgoing.send(request).await.map_err(|_| Error::Gone)?;
        Ok(reply.await.map_err(|_| Error::Gone)??)
    }

    fn serial(&self) -> u64 {
        self.inner.serial.fetch_add(1, Ordering::Relaxed)
    }
}

fn split(stdio: Stdio) -> (Option<Size>, Vec<OwnedFd>) {
    match stdio {
        Stdio::Fds(fds) => (None, fds.into()),
        Stdio::Terminal(size) => (Some(size), Vec::new()),
    }
}
