//! The networks, each kept by an open file, with the hostname and IPC that its containers share.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sched::{CloneFlags, setns, unshare};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use crate::error::Failure;
use crate::spec::{Socket, Tool};

/// All networks of the sandbox.
pub(super) struct Nets {
    own: Spaces,
    known: BTreeMap<String, Spaces>,
    /// Names that the `ip` program can open.
    folder: PathBuf,
}

/// The namespaces that the containers of a pod share.
pub(super) struct Spaces {
    pub(super) net: OwnedFd,
    pub(super) ipc: OwnedFd,
    pub(super) uts: OwnedFd,
}

impl Spaces {
    fn current() -> io::Result<Spaces> {
        let open = |kind: &str| File::open(format!("/proc/self/ns/{kind}")).map(OwnedFd::from);
        Ok(Spaces { net: open("net")?, ipc: open("ipc")?, uts: open("uts")? })
    }

    pub(super) fn enter(&self) -> io::Result<()> {
        setns(&self.net, CloneFlags::CLONE_NEWNET)?;
        setns(&self.ipc, CloneFlags::CLONE_NEWIPC)?;
        Ok(setns(&self.uts, CloneFlags::CLONE_NEWUTS)?)
    }
}

impl Nets {
    /// Takes the namespaces of this process as the sandbox's own network.
    pub(super) fn new(folder: PathBuf) -> Result<Nets, Failure> {
        let own = Spaces::current().map_err(Failure::step("open the own namespaces"))?;
        prepare("windlass")?;
        std::fs::create_dir_all(&folder).map_err(Failure::step("make the folder of networks"))?;
        Ok(Nets { own, known: BTreeMap::new(), folder })
    }

    pub(super) fn add(&mut self, name: &str, hostname: &str) -> Result<(), Failure> {
        if name.is_empty() || self.known.contains_key(name) {
            return Err(Failure::Exists { network: true, name: name.to_owned() });
        }
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWUTS)
            .map_err(|e| Failure::step("make a network namespace")(e.into()))?;
        let made = prepare(hostname)
            .and_then(|()| Spaces::current().map_err(Failure::step("open a network namespace")));
        self.go_home()?;
        let spaces = made?;
        // `ip` opens it through the agent, which is process 1 of all that runs here.
        let link = format!("/proc/1/fd/{}", spaces.net.as_raw_fd());
        std::os::unix::fs::symlink(link, self.folder.join(name)).map_err(Failure::step("name a network"))?;
        self.known.insert(name.to_owned(), spaces);
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<(), Failure> {
        self.known.remove(name).ok_or_else(|| unknown(name))?;
        std::fs::remove_file(self.folder.join(name)).map_err(Failure::step("forget a network"))
    }

    pub(super) fn get(&self, name: &str) -> Result<&Spaces, Failure> {
        if name.is_empty() { Ok(&self.own) } else { self.known.get(name).ok_or_else(|| unknown(name)) }
    }

    /// Does something inside a network. This process has one thread, so nothing else is moved.
    fn inside<T>(&self, name: &str, act: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let spaces = self.get(name)?;
        setns(&spaces.net, CloneFlags::CLONE_NEWNET)
            .map_err(|e| Failure::step("enter a network")(e.into()))?;
        let result = act();
        self.go_home()?;
        result
    }

    fn go_home(&self) -> Result<(), Failure> {
        self.own.enter().map_err(Failure::step("come back from a network"))
    }

    pub(super) fn socket(&self, name: &str, socket: Socket) -> Result<OwnedFd, Failure> {
        self.inside(name, || {
            let made = match socket {
                Socket::Tcp => rustix::net::socket_with(
                    AddressFamily::INET,
                    SocketType::STREAM,
                    SocketFlags::CLOEXEC,
                    None,
                )
                .map_err(io::Error::from),
                Socket::TcpListen(address) => TcpListener::bind(address).map(OwnedFd::from),
                Socket::UdpBind(address) => UdpSocket::bind(address).map(OwnedFd::from),
            };
            let made = made.map_err(Failure::step(format!("make a socket for {socket:?}")))?;
            rustix::io::ioctl_fionbio(&made, true)
                .map_err(|e| Failure::step("make a socket that does not wait")(e.into()))?;
            Ok(made)
        })
    }

    /// Starts a tool in a network. What it says is in the file when it has ended.
    pub(super) fn start_tool(&self, name: &str, tool: Tool, text: &str) -> Result<(u32, File), Failure> {
        let program = find(tool).ok_or(Failure::Missing(tool))?;
        let memory = |what: &str| {
            memfd_create(what, MemfdFlags::CLOEXEC)
                .map(File::from)
                .map_err(|e| Failure::step("make a file in memory")(e.into()))
        };
        let mut script = memory("script")?;
        script
            .write_all(text.as_bytes())
            .and_then(|()| script.rewind())
            .map_err(Failure::step("keep a script"))?;
        let output = memory("output")?;
        let copy = || output.try_clone().map(Stdio::from).map_err(Failure::step("copy a file"));
        let mut command = Command::new(&program);
        command.args(match tool {
            Tool::Nft => ["-f", "-"],
            Tool::Ip | Tool::Sysctl => ["-batch", "-"],
        });
        command.stdin(script).stdout(copy()?).stderr(copy()?);
        let child = self.inside(name, || {
            command.spawn().map_err(Failure::step(format!("start {}", program.display())))
        })?;
        Ok((child.id(), output))
    }

    /// Writes settings of a network.
    pub(super) fn sysctl(&self, name: &str, text: &str) -> Result<(), Failure> {
        self.inside(name, || {
            for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
                let (key, value) = line.split_once('=').unwrap_or((line, ""));
                let key = key.trim();
                // An interface's name may have a dot; a key with slashes is a path already.
                let path = if key.contains('/') { key.to_owned() } else { key.replace('.', "/") };
                std::fs::write(Path::new("/proc/sys").join(path), value.trim()).map_err(|error| {
                    Failure::Script { tool: Tool::Sysctl, output: format!("{line}: {error}") }
                })?;
            }
            Ok(())
        })
    }
}

fn unknown(name: &str) -> Failure {
    Failure::Unknown { network: true, name: name.to_owned() }
}

/// Gives the namespaces that this process is in what every network has.
fn prepare(hostname: &str) -> Result<(), Failure> {
    nix::unistd::sethostname(hostname)
        .map_err(|e| Failure::step(format!("take the hostname {hostname}"))(e.into()))?;
    loopback_up().map_err(Failure::step("bring the loopback up"))?;
    // Container runtimes let any user bind any port of a pod, and images rely on it.
    std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
        .map_err(Failure::step("allow low ports to all users"))
}

/// Sets the first link, which is always the loopback, up: one netlink message, no program needed.
fn loopback_up() -> io::Result<()> {
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST_ACK: u16 = 1 | 4;
    const IFF_UP: u32 = 1;
    const LOOPBACK: u32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(NLM_F_REQUEST_ACK.to_ne_bytes());
    message.extend([0; 8]); // sequence and port
    message.extend([0; 4]); // family, padding, device type
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes()); // which flags change
    // No protocol means the first one, which is that of links and routes.
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 64];
    let (read, _) = rustix::net::recv(&socket, &mut answer, rustix::net::RecvFlags::empty())?;
    // An answer is a header of sixteen bytes and a negative error number, zero for success.
    match answer
        .get(16..20)
        .filter(|_| read >= 20)
        .and_then(|bytes| bytes.try_into().ok())
        .map(i32::from_ne_bytes)
    {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(-errno)),
        None => Err(io::Error::other("netlink gave no answer")),
    }
}

/// Finds a tool on the machine, or unpacked in the cache.
fn find(tool: Tool) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Ordinary users of Debian do not have the administrator's folders in their PATH.
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from));
    if let Some(tools) = cache().map(|cache| cache.join("tools")) {
        folders.extend(["usr/sbin", "sbin", "usr/bin", "bin"].map(|folder| tools.join(folder)));
    }
    folders
        .into_iter()
        .map(|folder| folder.join(tool.program()))
        .find(|program| nix::unistd::access(program, nix::unistd::AccessFlags::X_OK).is_ok())
}

/// Where `make setup` keeps what it brought.
fn cache() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("WINDLASS_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("windlass")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/windlass")))
}
