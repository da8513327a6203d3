//! The stages that become a container's program, or a further one in it.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use nix::sched::{CloneFlags, setns, unshare};
use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::spec::{Exec, Size, Spec, User};
use crate::stage::nets::Spaces;
use crate::stage::program::{Streams, become_program};
use crate::stage::{identity, root};
use crate::wire::{self, Birth, Inbox};

/// What the agent tells the stage to become.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) what: What,
    pub(super) terminal: Option<Size>,
    pub(super) rootless: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum What {
    /// The first program of a new container. Files: its network, IPC and hostname, then its streams.
    Container { spec: Box<Spec>, state: PathBuf },
    /// A further program. Files: the container's first process, then its streams.
    Exec { exec: Box<Exec>, user_namespace: bool },
}

/// Prepares, and becomes the program.
pub(super) fn run() -> ExitCode {
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned() else { return ExitCode::FAILURE };
    match become_ordered(&socket) {
        Ok(never) => match never {},
        Err(failure) => {
            // The agent is gone when nobody hears it, and this process with it.
            let _ = wire::send(&socket, &Birth::Failed(failure), Vec::new());
            ExitCode::from(127)
        }
    }
}

fn become_ordered(socket: &OwnedFd) -> Result<Infallible, Failure> {
    let missing =
        || Failure::Step { step: "read what to become".to_owned(), errno: nix::errno::Errno::EPIPE as i32 };
    let order = Inbox::default().wait::<Order>(socket).map_err(Failure::step("read what to become"))?;
    let (order, fds) = order.ok_or_else(missing)?;
    let mut fds = fds.into_iter();
    // A session of its own: signals of a terminal reach no other container.
    nix::unistd::setsid().map_err(|e| Failure::step("make a session")(e.into()))?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    match order.what {
        What::Container { spec, state } => {
            let mut space = || fds.next().ok_or_else(missing);
            let spaces = Spaces { net: space()?, ipc: space()?, uts: space()? };
            enter_container(&spec, &state, &spaces, order.rootless)?;
            let mapped = order.rootless;
            let streams = Streams::new(fds.collect(), order.terminal, &spec.user, mapped)?;
            if order.rootless && is_other(&spec.user) {
                identity::map(&spec.user)?;
            }
            identity::assume(&spec.user, &spec.capabilities, spec.no_new_privileges, mapped)?;
            finish(socket, streams, &spec.argv, &spec.env, &spec.cwd, &spec.user)
        }
        What::Exec { exec, user_namespace } => {
            let container = fds.next().ok_or_else(missing)?;
            join_container(&container, user_namespace)?;
            drop(container);
            let mapped = order.rootless;
            let streams = Streams::new(fds.collect(), order.terminal, &exec.user, mapped)?;
            identity::assume(&exec.user, &exec.capabilities, exec.no_new_privileges, mapped)?;
            finish(socket, streams, &exec.argv, &exec.env, &exec.cwd, &exec.user)
        }
    }
}

/// Whether a container of an ordinary user needs a user namespace to show it these ids.
pub(super) fn is_other(user: &User) -> bool {
    user.uid != 0 || user.gid != 0
}

fn enter_container(spec: &Spec, state: &Path, spaces: &Spaces, rootless: bool) -> Result<(), Failure> {
    spaces.enter().map_err(Failure::step("enter the network"))?;
    unshare(CloneFlags::CLONE_NEWNS).map_err(|e| Failure::step("make a mount namespace")(e.into()))?;
    root::enter(spec, state, rootless)
}

fn join_container(container: &OwnedFd, user_namespace: bool) -> Result<(), Failure> {
    let mut spaces = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    if user_namespace {
        spaces |= CloneFlags::CLONE_NEWUSER;
    }
    setns(container, spaces).map_err(|e| Failure::step("enter the container")(e.into()))
}

fn finish(
    socket: &OwnedFd,
    mut streams: Streams,
    argv: &[String],
    env: &[(String, String)],
    cwd: &Path,
    user: &User,
) -> Result<Infallible, Failure> {
    if let Some(terminal) = streams.terminal.take() {
        wire::send(socket, &Birth::Terminal, vec![terminal])
            .map_err(Failure::step("hand the terminal out"))?;
    }
    streams.install()?;
    Err(become_program(argv, env, cwd, user))
}
