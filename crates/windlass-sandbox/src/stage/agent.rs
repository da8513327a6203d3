//! The first process inside: it does what the caller asks and reports what ends.
//!
//! One thread, one loop over the caller's socket, the births of containers and the deaths of children.

use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getuid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::Failure;
use crate::spec::{About, Tool};
use crate::stage::birth::Births;
use crate::stage::cgroups::Cgroups;
use crate::stage::children::{Child, Children, Kind};
use crate::stage::nets::Nets;
use crate::wire::{self, Answer, Call, Inbox, Named, Request, Word};

/// Serves the caller until the socket closes, then ends everything.
pub(super) fn run(state: &Path, name: &str) -> ExitCode {
    super::take_name(c"windlass-agent");
    // The outer stage is the one that knows how this ends; without it nobody does.
    let _ = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    let socket = match io::stdin().as_fd().try_clone_to_owned() {
        Ok(socket) => socket,
        Err(_) => return ExitCode::FAILURE,
    };
    let mut agent = match Agent::new(state, name, socket) {
        Ok(agent) => agent,
        Err((socket, failure)) => {
            let _ = wire::send(&socket, &Word::Refused(failure), Vec::new());
            return ExitCode::FAILURE;
        }
    };
    let served = agent.serve();
    end_everything();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the sandbox ended: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Agent {
    socket: OwnedFd,
    inbox: Inbox,
    signals: SignalFd,
    nets: Nets,
    children: Children,
    births: Births,
}

impl Agent {
    fn new(state: &Path, name: &str, socket: OwnedFd) -> Result<Agent, (OwnedFd, Failure)> {
        match stand(state, name) {
            Ok((signals, nets, births, about)) => {
                if wire::send(&socket, &Word::Ready(about), Vec::new()).is_err() {
                    // The caller is gone already; the loop sees it at once.
                }
                let children = Children::default();
                Ok(Agent { socket, inbox: Inbox::default(), signals, nets, children, births })
            }
            Err(failure) => Err((socket, failure)),
        }
    }

    fn serve(&mut self) -> io::Result<()> {
        loop {
            let (asked, died, born) = self.wait()?;
            for serial in born {
                if let Some((serial, result, fds)) = self.children.birth(serial)? {
                    self.reply(serial, result, fds)?;
                }
            }
            if died {
                while let Ok(Some(_)) = self.signals.read_signal() {}
                self.reap()?;
            }
            if asked {
                if self.inbox.receive(&self.socket)? == Some(0) {
                    return Ok(());
                }
                while let Some((request, fds)) = self.inbox.next::<Request>()? {
                    let serial = request.serial;
                    match self.handle(request, fds) {
                        Ok(Some((answer, fds))) => self.reply(serial, Ok(answer), fds)?,
                        // The answer comes when a child is born or has ended.
                        Ok(None) => {}
                        Err(failure) => self.reply(serial, Err(failure), Vec::new())?,
                    }
                }
            }
        }
    }

    /// Waits for a request, a death, or births (by the name of the request that started them).
    fn wait(&self) -> io::Result<(bool, bool, Vec<u64>)> {
        let births: Vec<(u64, &OwnedFd)> = self.children.births().collect();
        let mut fds = Vec::with_capacity(2 + births.len());
        fds.push(PollFd::new(&self.socket, PollFlags::IN));
        fds.push(PollFd::new(&self.signals, PollFlags::IN));
        fds.extend(births.iter().map(|(_, socket)| PollFd::new(*socket, PollFlags::IN)));
        loop {
            match poll(&mut fds, None) {
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let born =
            births.iter().zip(&ready[2..]).filter(|(_, ready)| **ready).map(|((serial, _), _)| *serial);
        Ok((ready[0], ready[1], born.collect()))
    }

    fn handle(
        &mut self,
        request: Request,
        fds: Vec<OwnedFd>,
    ) -> Result<Option<(Answer, Vec<OwnedFd>)>, Failure> {
        let done = Some((Answer::Done, Vec::new()));
        match request.call {
            Call::AddNet { name, hostname } => self.nets.add(&name, &hostname).map(|()| done),
            Call::RemoveNet { name } => self.nets.remove(&name).map(|()| done),
            Call::NetScript { net, tool: Tool::Sysctl, text } => self.nets.sysctl(&net, &text).map(|()| done),
            Call::NetScript { net, tool, text } => {
                let (pid, output) = self.nets.start_tool(&net, tool, &text)?;
                self.children
                    .add(pid as i32, Child { serial: request.serial, kind: Kind::Tool { tool, output } });
                Ok(None)
            }
            Call::Socket { net, socket } => Ok(Some((Answer::Done, vec![self.nets.socket(&net, socket)?]))),
            Call::Run { id, spec, terminal } => {
                let spaces = self.nets.get(&spec.net)?;
                self.births.container(&mut self.children, request.serial, id, spec, terminal, spaces, fds)?;
                Ok(None)
            }
            Call::Exec { container, exec, terminal } => {
                self.births.exec(&mut self.children, request.serial, &container, exec, terminal, fds)?;
                Ok(None)
            }
            Call::Signal { process, signal } => self.signal(&process, signal).map(|()| done),
            Call::MountTmpfs { path, bytes } => mount_tmpfs(&path, bytes).map(|()| done),
            Call::Unmount { path } => umount2(&path, MntFlags::MNT_DETACH)
                .map(|()| done)
                .map_err(|e| Failure::step(format!("unmount {}", path.display()))(e.into())),
        }
    }

    fn signal(&self, process: &Named, signal: i32) -> Result<(), Failure> {
        let pid = self.children.pid(process).ok_or_else(|| Failure::Unknown {
            network: false,
            name: match process {
                Named::Container(id) => id.clone(),
                Named::Serial(serial) => serial.to_string(),
            },
        })?;
        // Only this process reaps, so the number is still theirs.
        Signal::try_from(signal)
            .and_then(|signal| kill(Pid::from_raw(pid), signal))
            .map_err(|e| Failure::step(format!("send signal {signal}"))(e.into()))
    }

    fn reap(&mut self) -> io::Result<()> {
        loop {
            let (pid, code, signal) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, code, None),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, 128 + signal as i32, Some(signal as i32)),
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(()),
                Ok(_) | Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
            // A container that was born and ended between two turns is still reported in that order.
            if let Some((serial, result, fds)) = self.children.birth_of(pid.as_raw())? {
                self.reply(serial, result, fds)?;
            }
            let Some(child) = self.children.remove(pid.as_raw()) else { continue };
            match child.kind {
                Kind::Tool { tool, mut output } => {
                    let result = if code == 0 { Ok(Answer::Done) } else { Err(complaint(tool, &mut output)) };
                    self.reply(child.serial, result, Vec::new())?;
                }
                Kind::Container { .. } | Kind::Exec { .. } => {
                    let serial = child.serial;
                    if let Some(exit) = child.end(code, signal) {
                        self.say(&Word::Exited { serial, exit }, Vec::new())?;
                    }
                }
            }
        }
    }

    fn reply(&self, serial: u64, result: Result<Answer, Failure>, fds: Vec<OwnedFd>) -> io::Result<()> {
        self.say(&Word::Reply { serial, result }, fds)
    }

    fn say(&self, word: &Word, fds: Vec<OwnedFd>) -> io::Result<()> {
        match wire::send(&self.socket, word, fds) {
            // The caller is gone; the end of the socket is seen in the loop.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }
}

fn stand(state: &Path, name: &str) -> Result<(SignalFd, Nets, Births, About), Failure> {
    let step = |step: &'static str| move |error: Errno| Failure::step(step)(error.into());
    raise_open_files().map_err(Failure::step("allow more open files"))?;
    let mut deaths = SigSet::empty();
    deaths.add(Signal::SIGCHLD);
    deaths.thread_block().map_err(step("block SIGCHLD"))?;
    let signals = SignalFd::with_flags(&deaths, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .map_err(step("watch for the end of children"))?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("proc"), "/proc", Some("proc"), flags | MsFlags::MS_NOEXEC, None::<&str>)
        .map_err(step("mount /proc"))?;
    mount(Some("tmpfs"), state, Some("tmpfs"), flags, Some("mode=755"))
        .map_err(step("mount the sandbox's folder"))?;
    let nets = Nets::new(state.join("nets"))?;
    let cgroups = Cgroups::find(name);
    let limits = cgroups.open();
    let about = About { rootless: !is_root_of_machine(), limits };
    let births = Births::new(state, about.rootless, if limits { cgroups } else { Cgroups::Absent })?;
    Ok((signals, nets, births, about))
}

/// Each network is three open files, and the usual limit is a thousand. Containers get the higher one
/// as well, as they do from container runtimes.
fn raise_open_files() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?)
}

/// Whether ids in here are those of the machine: the map of ids is then the whole range.
fn is_root_of_machine() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    getuid().is_root() && map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn mount_tmpfs(path: &PathBuf, bytes: u64) -> Result<(), Failure> {
    let mut data = "mode=777".to_owned();
    if bytes > 0 {
        data.push_str(&format!(",size={bytes}"));
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(data.as_str()))
        .map_err(|e| Failure::step(format!("mount memory at {}", path.display()))(e.into()))
}

/// What a tool said when it failed, the first few lines of it.
fn complaint(tool: Tool, output: &mut std::fs::File) -> Failure {
    let mut said = String::new();
    if output.rewind().and_then(|()| output.take(4096).read_to_string(&mut said)).is_err() {
        said = "it said nothing that can be read".to_owned();
    }
    Failure::Script { tool, output: said.trim().to_owned() }
}

/// Kills all that is left, and waits for it, so that the files they had are free when this ends.
fn end_everything() {
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    while !matches!(waitpid(None, None), Err(Errno::ECHILD)) {}
}
