//! What a caller says about a container, a program inside one, a network and a socket.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A container: what its program sees and may do.
///
/// `Spec::new` gives one that runs as root of the sandbox on the host's programs; the fields are set
/// from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// What `/` is made of.
    pub root: Root,
    /// Folders laid over the root, the first on top: an unpacked package with its `usr/` and `etc/`.
    /// They are only read.
    pub layers: Vec<PathBuf>,
    /// Where what the container writes to its root is kept. It is made when it is not there, and must
    /// belong to this container alone. Without one the writes are kept in memory.
    /// [`remove_tree`](crate::remove_tree) takes it away.
    pub scratch: Option<PathBuf>,
    /// Whether the root refuses writes. Mounts, `/dev` and `/proc` keep their own rules.
    pub read_only_root: bool,
    /// What is bound into the root, laid out in the order of their depth.
    pub mounts: Vec<Mount>,
    /// The network (with its hostname and its IPC) that the container is in, as named to
    /// [`Sandbox::add_net`](crate::Sandbox::add_net). Empty: the sandbox's own.
    pub net: String,
    /// The running container whose processes this one shares: it sees them, and ends with that one. Without one it has
    /// processes of its own.
    pub processes_of: Option<String>,
    /// The program and its arguments. A name without a slash is looked up in the `PATH` of `env`.
    pub argv: Vec<String>,
    /// The environment. Only `HOME` is added where it is missing, from the root's `/etc/passwd`.
    pub env: Vec<(String, String)>,
    /// The folder that the program starts in. It is made when it is not there.
    pub cwd: PathBuf,
    /// Who the program runs as.
    pub user: User,
    /// Which of root's powers the program has.
    pub capabilities: Capabilities,
    /// Whether programs with the set-user-id bit gain nothing.
    pub no_new_privileges: bool,
    /// How much of the machine it may use. Kept only where cgroups can be written, see
    /// [`About::limits`].
    pub limits: Limits,
}

impl Spec {
    /// A container that runs this program on the host's programs, with nothing else set.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> Spec {
        Spec {
            root: Root::Host,
            layers: Vec::new(),
            scratch: None,
            read_only_root: false,
            mounts: Vec::new(),
            net: String::new(),
            processes_of: None,
            argv: argv.into_iter().map(Into::into).collect(),
            env: vec![("PATH".to_owned(), DEFAULT_PATH.to_owned())],
            cwd: PathBuf::from("/"),
            user: User::default(),
            capabilities: Capabilities::default(),
            no_new_privileges: false,
            limits: Limits::default(),
        }
    }
}

/// Where programs are looked for when the environment has no `PATH`.
pub const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a container's `/` is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Root {
    /// The programs of this machine: its `/usr`, `/etc`, `/opt` and what belongs to them, with private
    /// `/tmp`, `/run`, `/var`, `/root` and `/home`. What is written there stays in the container.
    /// When an ordinary user started the sandbox, files and folders of the host's root can be added to
    /// only at their top (`/etc/new`), where a layer has them, or where a mount was made.
    Host,
    /// A folder that is a whole root, such as an unpacked image. It is only read.
    Folder(PathBuf),
}

/// A file or folder of this machine that a container sees at a place of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The file or folder of this machine.
    pub source: PathBuf,
    /// Where the container sees it; made when it is not there.
    pub target: PathBuf,
    /// Whether the container may only read it.
    pub read_only: bool,
}

impl Mount {
    /// A mount that may be written to.
    pub fn new(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Mount {
        Mount { source: source.into(), target: target.into(), read_only: false }
    }

    /// A mount that may only be read.
    pub fn read_only(source: impl Into<PathBuf>, target: impl Into<PathBuf>) -> Mount {
        Mount { read_only: true, ..Mount::new(source, target) }
    }
}

/// Who a program runs as.
///
/// As root of this machine these are real ids. As an ordinary user the program sees the ids asked for,
/// and files that it makes belong to the user who started the sandbox; groups are then left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The user id.
    pub uid: u32,
    /// The main group id.
    pub gid: u32,
    /// Further group ids.
    pub groups: Vec<u32>,
}

/// Which of root's powers a program has: those that container runtimes leave by default, more, or fewer.
///
/// Names are those of `capabilities(7)` with or without `CAP_`; `ALL` means all of them. `drop` is
/// applied first, as Kubernetes does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Powers it has beyond the default ones.
    pub add: Vec<String>,
    /// Powers it does not have.
    pub drop: Vec<String>,
}

/// How much of the machine a container may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory; a program that needs more is killed.
    pub memory: Option<u64>,
    /// Thousandths of a core; a program that needs more waits.
    pub cpu_millis: Option<u64>,
    /// Weight against others when the machine is busy, in thousandths of a core asked for.
    pub cpu_request_millis: Option<u64>,
    /// Processes and threads at once.
    pub pids: Option<u64>,
}

impl Limits {
    /// Whether there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        *self == Limits::default()
    }
}

/// A further program in a container that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The environment.
    pub env: Vec<(String, String)>,
    /// The folder that it starts in.
    pub cwd: PathBuf,
    /// Who it runs as. As an ordinary user of this machine it is always who the container runs as.
    pub user: User,
    /// Which of root's powers it has.
    pub capabilities: Capabilities,
    /// Whether programs with the set-user-id bit gain nothing.
    pub no_new_privileges: bool,
}

impl Exec {
    /// A program that runs as the container's own does, with this command.
    pub fn like(spec: &Spec, argv: impl IntoIterator<Item = impl Into<String>>) -> Exec {
        Exec {
            argv: argv.into_iter().map(Into::into).collect(),
            env: spec.env.clone(),
            cwd: spec.cwd.clone(),
            user: spec.user.clone(),
            capabilities: spec.capabilities.clone(),
            no_new_privileges: spec.no_new_privileges,
        }
    }
}

/// Where a program reads and writes.
#[derive(Debug)]
pub enum Stdio {
    /// Standard input, output and error.
    Fds([OwnedFd; 3]),
    /// A terminal of the container's own; [`Process::terminal`](crate::Process::terminal) is its other
    /// end.
    Terminal(Size),
}

impl Stdio {
    /// Nothing to read, and what is written is thrown away.
    pub fn null() -> std::io::Result<Stdio> {
        let open = || std::fs::File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
        Ok(Stdio::Fds([open()?, open()?, open()?]))
    }
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// What it said, or 128 and the signal that ended it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether its container had more memory than it may.
    pub oom: bool,
}

/// A program that changes a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tool {
    /// `ip -batch -`: links, addresses, routes; one command a line, without the word `ip`.
    Ip,
    /// `nft -f -`: tables of rules, all or none.
    Nft,
    /// Settings below `/proc/sys`, one `net.ipv4.ip_forward = 1` a line. No program is needed.
    Sysctl,
}

impl Tool {
    /// The program's name.
    pub fn program(self) -> &'static str {
        match self {
            Tool::Ip => "ip",
            Tool::Nft => "nft",
            Tool::Sysctl => "sysctl",
        }
    }

    /// The Debian package that has it.
    pub fn package(self) -> &'static str {
        match self {
            Tool::Ip => "iproute2",
            Tool::Nft => "nftables",
            Tool::Sysctl => "procps",
        }
    }
}

/// A socket to be made inside a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Socket {
    /// An IPv4 TCP socket that is not connected yet: give it to
    /// `tokio::net::TcpSocket::from_std_stream` and connect.
    Tcp,
    /// A TCP socket that listens on this address.
    TcpListen(SocketAddr),
    /// A UDP socket bound to this address.
    UdpBind(SocketAddr),
}

/// What this machine allows the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Whether an ordinary user started it: all files belong to that user, and a program that changes
    /// its user id is refused.
    pub rootless: bool,
    /// Whether [`Limits`] are kept.
    pub limits: bool,
}
