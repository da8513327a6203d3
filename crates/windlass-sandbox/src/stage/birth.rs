//! How the agent starts containers and further programs in them.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::error::Failure;
use crate::spec::{Exec, Size, Spec};
use crate::stage::INIT;
use crate::stage::cgroups::{Cgroups, Group};
use crate::stage::children::{Child, Children, Kind, Start};
use crate::stage::init::{Order, What, is_other};
use crate::stage::nets::Spaces;
use crate::wire::{self, Inbox};

/// What starting needs.
pub(super) struct Births {
    /// The agent's own pid namespace, to come back to.
    home: OwnedFd,
    state: PathBuf,
    rootless: bool,
    cgroups: Cgroups,
}

impl Births {
    pub(super) fn new(state: &Path, rootless: bool, cgroups: Cgroups) -> Result<Births, Failure> {
        let home =
            File::open("/proc/self/ns/pid").map_err(Failure::step("open the own pid namespace"))?.into();
        for place in ["root", "memory"] {
            std::fs::create_dir_all(state.join(place)).map_err(Failure::step("make a place for roots"))?;
        }
        Ok(Births { home, state: state.to_owned(), rootless, cgroups })
    }

    /// Starts the stage that becomes a container's first program, in a pid namespace of its own or in that of another
    /// container.
    #[expect(clippy::too_many_arguments, reason = "they are the parts of one request")]
    pub(super) fn container(
        &self,
        children: &mut Children,
        serial: u64,
        id: String,
        spec: Box<Spec>,
        terminal: Option<Size>,
        spaces: &Spaces,
        streams: Vec<OwnedFd>,
    ) -> Result<(), Failure> {
        if children.has(&id) {
            return Err(Failure::Exists { network: false, name: id });
        }
        let copy = |fd: &OwnedFd| fd.try_clone().map_err(Failure::step("copy a file"));
        let mut fds = vec![copy(&spaces.net)?, copy(&spaces.ipc)?, copy(&spaces.uts)?];
        fds.extend(streams);
        let user_namespace = self.rootless && is_other(&spec.user);
        let group =
            self.cgroups.add(serial, &spec.limits).map_err(Failure::step("set the container's limits"))?;
        let (pid, socket) = match &spec.processes_of {
            None => self.spawn(|| Ok(unshare(CloneFlags::CLONE_NEWPID)?))?,
            Some(other) => self.spawn_beside(&first_process(children, other)?.0, other)?,
        };
        // Before it is told what to become: all that it starts is then in the group.
        if let Some(group) = &group {
            group.join(pid).map_err(Failure::step("put the container under its limits"))?;
        }
        let what = What::Container { spec, state: self.state.clone() };
        let start = self.order(socket, what, terminal, fds)?;
        children.add(pid, Child { serial, kind: Kind::Container { id, start, user_namespace, group } });
        Ok(())
    }

    /// Starts the stage that becomes a further program, in the container's pid namespace.
    pub(super) fn exec(
        &self,
        children: &mut Children,
        serial: u64,
        container: &str,
        exec: Box<Exec>,
        terminal: Option<Size>,
        streams: Vec<OwnedFd>,
    ) -> Result<(), Failure> {
        let (first, user_namespace, group) = first_process(children, container)?;
        let (pid, socket) = self.spawn_beside(&first, container)?;
        if let Some(group) = group {
            group.join(pid).map_err(Failure::step("put a program under the container's limits"))?;
        }
        let mut fds = vec![first];
        fds.extend(streams);
        let start = self.order(socket, What::Exec { exec, user_namespace }, terminal, fds)?;
        children.add(pid, Child { serial, kind: Kind::Exec { start } });
        Ok(())
    }

    /// Starts a stage in the pid namespace of a container, by its first process.
    fn spawn_beside(&self, first: &OwnedFd, container: &str) -> Result<(i32, OwnedFd), Failure> {
        self.spawn(|| Ok(setns(first, CloneFlags::CLONE_NEWPID)?)).map_err(|failure| {
            // It has ended, and only its entry in the table of processes is left.
            let over = matches!(&failure, Failure::Step { errno, .. } if *errno == Errno::ESRCH as i32);
            if over { unknown(container) } else { failure }
        })
    }

    /// Starts a stage as a child whose pid namespace is the one that `enter` chooses.
    fn spawn(&self, enter: impl FnOnce() -> std::io::Result<()>) -> Result<(i32, OwnedFd), Failure> {
        let (ours, theirs) = UnixStream::pair().map_err(Failure::step("make a pair of sockets"))?;
        enter().map_err(Failure::step("choose a pid namespace"))?;
        let child = Command::new("/proc/self/exe")
            .arg0("windlass-init")
            .arg(INIT)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn()
            .map_err(Failure::step("start a stage"));
        setns(&self.home, CloneFlags::CLONE_NEWPID)
            .map_err(|e| Failure::step("come back to the own pid namespace")(e.into()))?;
        Ok((child?.id() as i32, ours.into()))
    }

    /// Tells the stage what to become.
    fn order(
        &self,
        socket: OwnedFd,
        what: What,
        terminal: Option<Size>,
        fds: Vec<OwnedFd>,
    ) -> Result<Start, Failure> {
        let order = Order { what, terminal, rootless: self.rootless };
        wire::send(&socket, &order, fds).map_err(Failure::step("tell a stage what to become"))?;
        Ok(Start::Pending { socket, inbox: Inbox::default(), terminal: None })
    }
}

/// The first process of a container that runs, whether it has a user namespace of its own, and its group.
fn first_process<'a>(
    children: &'a Children,
    container: &str,
) -> Result<(OwnedFd, bool, Option<&'a Group>), Failure> {
    let (pid, user_namespace, group) = children.running(container).ok_or_else(|| unknown(container))?;
    let first = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    Ok((first.ok_or_else(|| unknown(container))?, user_namespace, group))
}

fn unknown(container: &str) -> Failure {
    Failure::Unknown { network: false, name: container.to_owned() }
}
