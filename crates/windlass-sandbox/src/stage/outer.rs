//! The stage that leaves the caller's namespaces and waits for the agent's end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid, setsid};
use rustix::thread::CapabilitySet;

use crate::error::Failure;
use crate::stage::AGENT;
use crate::stage::cgroups::Cgroups;
use crate::wire::{self, Word};

/// Leaves the namespaces, starts the agent as the first process of the new ones, and waits for it.
pub(super) fn run(state: &Path) -> ExitCode {
    // A Ctrl-C on the caller's terminal is for the caller, who ends the sandbox in order.
    let _ = setsid();
    super::take_name(c"windlass-outer");
    let socket = match io::stdin().as_fd().try_clone_to_owned() {
        Ok(socket) => socket,
        Err(_) => return ExitCode::FAILURE,
    };
    // Named after this process as the machine knows it, and found before `/proc` is another one.
    let name = std::process::id().to_string();
    let cgroups = Cgroups::find(&name);
    match leave().and_then(|()| start_agent(state, &name, &socket)) {
        Ok(mut agent) => {
            drop(socket);
            let ended = agent.wait();
            cgroups.remove();
            match ended {
                Ok(status) if status.success() => ExitCode::SUCCESS,
                _ => ExitCode::FAILURE,
            }
        }
        Err(failure) => {
            // When nobody hears it, nobody is left to tell.
            let _ = wire::send(&socket, &Word::Refused(failure), Vec::new());
            ExitCode::FAILURE
        }
    }
}

fn leave() -> Result<(), Failure> {
    let (uid, gid) = (getuid(), getgid());
    // Root of a container often lacks what namespaces need; then it is like any other user.
    let powers = rustix::thread::capabilities(None)
        .map_err(|e| Failure::step("read the own capabilities")(e.into()))?;
    if !powers.effective.contains(CapabilitySet::SYS_ADMIN) {
        unshare(CloneFlags::CLONE_NEWUSER).map_err(|e| Failure::step("make a user namespace")(e.into()))?;
        let write = |file: &str, text: String| {
            std::fs::write(format!("/proc/self/{file}"), text).map_err(Failure::step(format!("write {file}")))
        };
        // The kernel lets an ordinary user name groups only after giving up the right to change them.
        write("setgroups", "deny".to_owned())?;
        write("uid_map", format!("0 {uid} 1"))?;
        write("gid_map", format!("0 {gid} 1"))?;
    }
    unshare(
        CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWNET
            | CloneFlags::CLONE_NEWPID
            | CloneFlags::CLONE_NEWIPC
            | CloneFlags::CLONE_NEWUTS,
    )
    .map_err(|e| Failure::step("make namespaces")(e.into()))?;
    // Nothing that is mounted from here on is seen outside.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .map_err(|e| Failure::step("make mounts private")(e.into()))
}

fn start_agent(state: &Path, name: &str, socket: &OwnedFd) -> Result<std::process::Child, Failure> {
    let socket = socket.try_clone().map_err(Failure::step("copy a socket"))?;
    let agent = Command::new("/proc/self/exe")
        .arg0("windlass-agent")
        .args([AGENT.as_ref(), state.as_os_str(), name.as_ref()])
        .stdin(Stdio::from(socket))
        .spawn()
        .map_err(Failure::step("start the agent"))?;
    // The agent alone holds the socket now, so that the caller sees its end.
    let null = std::fs::File::open("/dev/null").map_err(Failure::step("open /dev/null"))?;
    rustix::stdio::dup2_stdin(null).map_err(|e| Failure::step("let go of the socket")(e.into()))?;
    Ok(agent)
}
