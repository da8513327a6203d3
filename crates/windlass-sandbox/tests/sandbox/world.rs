//! What the tests share: a sandbox in a folder of its own, and a look at the machine's processes.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use windlass_sandbox::{Error, Exec, Exit, Options, Process, Sandbox, Spec, Stdio};

/// A test's name and what it does.
pub type Test = (&'static str, fn());

/// Set for the process that is to be killed, to the folder of its sandbox.
pub const VICTIM: &str = "WINDLASS_TEST_VICTIM";

/// Set for the process that may not make namespaces, to the folder of its sandbox.
pub const FORBIDDEN: &str = "WINDLASS_TEST_FORBIDDEN";

pub fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("Uid:\t0\t"))
}

/// Runs a test on a runtime of its own.
pub fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

/// A folder that is gone after the test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("windlass-sandbox-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        windlass_sandbox::remove_tree(&self.0).expect("the folder can be removed");
    }
}

/// A sandbox and its folder.
pub struct World {
    pub folder: Folder,
    pub sandbox: Sandbox,
}

impl World {
    pub async fn new(name: &str) -> World {
        let folder = Folder::new(name);
        let sandbox =
            Sandbox::start(Options::new(folder.path().join("state"))).await.expect("the sandbox stands");
        World { folder, sandbox }
    }

    /// A container that has a writable layer on disk.
    pub fn spec(&self, id: &str, argv: &[&str]) -> Spec {
        Spec { scratch: Some(self.folder.path().join("scratch").join(id)), ..Spec::new(argv.iter().copied()) }
    }

    /// Runs a container to its end, and gives what it wrote.
    pub async fn run(&self, id: &str, spec: Spec) -> Result<(Exit, String), Error> {
        let (stdio, output) = pipes();
        let process = self.sandbox.run(id, spec, stdio).await?;
        Ok(finish(process, output).await)
    }

    /// Runs a shell script in a new container of the host's programs.
    pub async fn script(&self, id: &str, script: &str) -> (Exit, String) {
        self.run(id, self.spec(id, &["sh", "-c", script])).await.expect("the container starts")
    }

    /// Runs a further program to its end, and gives what it wrote.
    pub async fn exec(&self, id: &str, exec: Exec) -> Result<(Exit, String), Error> {
        let (stdio, output) = pipes();
        let process = self.sandbox.exec(id, exec, stdio).await?;
        Ok(finish(process, output).await)
    }

    /// Starts a container that writes nowhere.
    pub async fn start(&self, id: &str, spec: Spec) -> Process {
        self.sandbox.run(id, spec, Stdio::null().expect("/dev/null")).await.expect("the container starts")
    }

    /// Ends it; nothing of it is left.
    pub async fn end(self) {
        self.sandbox.stop().await;
        let state = self.folder.path().join("state");
        assert_eq!(fs::read_dir(&state).expect("the folder is there").count(), 0, "its folder stays empty");
        assert_eq!(mounts_in(self.folder.path()), Vec::<String>::new());
        assert_eq!(processes_of(self.folder.path()), Vec::<String>::new());
    }
}

/// Pipes for a program's streams, and our end of what it writes.
pub fn pipes() -> (Stdio, std::io::PipeReader) {
    let (read, write) = std::io::pipe().expect("a pipe");
    let null = fs::File::open("/dev/null").expect("/dev/null");
    let error = OwnedFd::from(write.try_clone().expect("a copy"));
    (Stdio::Fds([null.into(), write.into(), error]), read)
}

async fn finish(process: Process, mut output: std::io::PipeReader) -> (Exit, String) {
    let read = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).expect("text");
        text
    });
    let exit = process.exited().await;
    (exit, read.await.expect("the reader ends").trim_end().to_owned())
}

/// The mounts of this machine, as this process sees them, that have to do with a folder.
pub fn mounts_in(folder: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("the mount table");
    let folder = folder.display().to_string();
    table.lines().filter(|line| line.contains(&folder)).map(str::to_owned).collect()
}

/// The processes of this machine that were started for a folder's sandbox: stages have it as an
/// argument, containers have it in their environment.
pub fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let path = entry.path();
        let read = |name: &str| {
            String::from_utf8_lossy(&fs::read(path.join(name)).unwrap_or_default()).replace('\0', " ")
        };
        let (command, mounts) = (read("cmdline"), read("mountinfo"));
        let own = entry.file_name().to_string_lossy() == std::process::id().to_string();
        if !own && !command.is_empty() && (command.contains(&folder) || mounts.contains(&folder)) {
            found.push(format!("{} {command}", entry.file_name().to_string_lossy()));
        }
    }
    found
}

/// Waits until something holds, for a while that no working machine needs.
pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a sandbox with two containers and waits to be killed.
pub fn be_victim() -> ExitCode {
    block_on(async {
        let folder = PathBuf::from(std::env::var_os(VICTIM).expect("a folder"));
        let sandbox = Sandbox::start(Options::new(folder.join("state"))).await.expect("the sandbox stands");
        for id in ["one", "two"] {
            sandbox.add_net(id, id).await.expect("a network");
            let spec = Spec {
                scratch: Some(folder.join(id)),
                net: id.to_owned(),
                ..Spec::new(["sh", "-c", "sleep 1000 & sleep 1001"])
            };
            sandbox.run(id, spec, Stdio::null().expect("/dev/null")).await.expect("a container");
        }
        println!("ready");
        std::future::pending::<()>().await;
    });
    ExitCode::SUCCESS
}

/// Says why a sandbox cannot be started.
pub fn be_forbidden() -> ExitCode {
    block_on(async {
        let folder = PathBuf::from(std::env::var_os(FORBIDDEN).expect("a folder"));
        match Sandbox::start(Options::new(folder.join("state"))).await {
            Ok(_) => println!("it stands"),
            Err(error) => println!("{error}"),
        }
    });
    ExitCode::SUCCESS
}
