//! Finds a container's program and becomes it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::SigSet;
use nix::unistd::{AccessFlags, eaccess};
use rustix::pty::OpenptFlags;

use crate::error::Failure;
use crate::process::resize;
use crate::spec::{DEFAULT_PATH, Size, User};

/// Where a program reads and writes: what it was given, or a new terminal whose other end comes back.
pub(super) struct Streams {
    ours: [OwnedFd; 3],
    pub(super) terminal: Option<OwnedFd>,
}

impl Streams {
    /// Takes the files given, or opens a terminal of the container that this process is in.
    pub(super) fn new(
        fds: Vec<OwnedFd>,
        terminal: Option<Size>,
        user: &User,
        mapped: bool,
    ) -> Result<Streams, Failure> {
        let owner = (!mapped).then_some(user);
        match terminal {
            Some(size) => open_terminal(size, owner).map_err(Failure::step("open a terminal")),
            None => {
                let ours: [OwnedFd; 3] = fds.try_into().map_err(|_| Failure::Step {
                    step: "take standard input, output and error".to_owned(),
                    errno: nix::errno::Errno::EBADF as i32,
                })?;
                for fd in &ours {
                    give_pipe(fd, owner);
                }
                Ok(Streams { ours, terminal: None })
            }
        }
    }

    /// Makes them this process's own.
    pub(super) fn install(self) -> Result<(), Failure> {
        let step = |error: rustix::io::Errno| {
            Failure::step("connect standard input, output and error")(error.into())
        };
        let [stdin, stdout, stderr] = self.ours;
        rustix::stdio::dup2_stdin(stdin).map_err(step)?;
        rustix::stdio::dup2_stdout(stdout).map_err(step)?;
        rustix::stdio::dup2_stderr(stderr).map_err(step)
    }
}

/// Opens a terminal and makes it the one that this session is controlled by.
fn open_terminal(size: Size, owner: Option<&User>) -> io::Result<Streams> {
    let master = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    rustix::pty::unlockpt(&master)?;
    let slave = rustix::pty::ioctl_tiocgptpeer(
        &master,
        OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
    )?;
    resize(&master, size)?;
    rustix::process::ioctl_tiocsctty(&slave)?;
    if let Some(user) = owner {
        nix::unistd::fchown(&slave, Some(user.uid.into()), None)?;
    }
    let ours = [slave.try_clone()?, slave.try_clone()?, slave];
    Ok(Streams { ours, terminal: Some(master) })
}

/// Lets another user open a pipe by its name: programs write their logs to `/dev/stdout`.
fn give_pipe(fd: &OwnedFd, owner: Option<&User>) {
    let pipe =
        rustix::fs::fstat(fd).is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_fifo());
    if let Some(user) = owner.filter(|user| pipe && user.uid != 0) {
        // A pipe that stays ours can still be written to through the number it has.
        let _ = nix::unistd::fchown(fd, Some(user.uid.into()), None);
    }
}

/// Becomes the program. It comes back only with the reason why not.
pub(super) fn become_program(argv: &[String], env: &[(String, String)], cwd: &Path, user: &User) -> Failure {
    if let Err(error) = std::env::set_current_dir(cwd) {
        return Failure::step(format!("enter the working folder {}", cwd.display()))(error);
    }
    let Some(name) = argv.first().filter(|name| !name.is_empty()) else {
        return Failure::Program("no command specified".to_owned());
    };
    let path = env.iter().rev().find(|(key, _)| key == "PATH").map_or(DEFAULT_PATH, |(_, value)| value);
    let program = match find(name, path) {
        Ok(program) => program,
        Err(text) => return Failure::Program(text),
    };
    // We read of the end of children in our own way. A shell that inherits that would wait for ever for its own.
    if let Err(error) = SigSet::empty().thread_set_mask() {
        return Failure::step("let all signals through")(error.into());
    }
    let mut command = Command::new(program);
    command.arg0(name).args(&argv[1..]).env_clear();
    if !env.iter().any(|(key, _)| key == "HOME") {
        command.env("HOME", home(user.uid));
    }
    command.envs(env.iter().map(|(key, value)| (key, value)));
    let error = command.exec();
    Failure::Program(format!("exec {name}: {}", text_of(&error)))
}

/// Finds a program by name, with the words of container runtimes when it is not there.
fn find(name: &str, path: &str) -> Result<PathBuf, String> {
    if name.contains('/') {
        return match check(Path::new(name)) {
            Ok(()) => Ok(PathBuf::from(name)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(format!("exec: {name:?}: stat {name}: no such file or directory"))
            }
            Err(error) => Err(format!("exec: {name:?}: {}", text_of(&error))),
        };
    }
    std::env::split_paths(path)
        .map(|folder| folder.join(name))
        .find(|candidate| check(candidate).is_ok())
        .ok_or_else(|| format!("exec: {name:?}: executable file not found in $PATH"))
}

fn check(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::Error::from_raw_os_error(nix::errno::Errno::EISDIR as i32));
    }
    Ok(eaccess(path, AccessFlags::X_OK)?)
}

/// The kernel's words for an error, in small letters and without its number.
fn text_of(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_lowercase(),
        None => error.to_string(),
    }
}

/// A user's home as the container's own list of users has it.
fn home(uid: u32) -> String {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2)?.parse() == Ok(uid)).then(|| fields.get(5).map(|home| (*home).to_owned()))?
    });
    found.unwrap_or_else(|| "/".to_owned())
}
