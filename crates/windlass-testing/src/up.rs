//! A cluster of processes, as `windlass up` starts it, for the test of an operator that is to run as it is shipped.
//!
//! ```no_run
//! use windlass_testing::up::{Cluster, Folder, program};
//!
//! program("foobar-operator", "foobar-operator");
//! let folder = Folder::new("foobar");
//! let windlass = program("windlass-cli", "windlass");
//! let cluster = Cluster::up(&windlass, &["--operators", "foobar"], folder.path());
//! println!("{}", cluster.kubectl("get pods -A"));
//! ```

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A folder of a test, removed at its end.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Makes one of this process.
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("windlass-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is in the folder for what may be thrown away.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A cluster that has said that it is ready. It is ended with its test, even if that is killed.
#[derive(Debug)]
pub struct Cluster {
    child: Child,
    /// Open as long as this process is there: nothing is ever written. Who waits for a child closes what it holds itself.
    _alive: Option<ChildStdin>,
    folder: PathBuf,
    /// All that it said until it was ready.
    pub said: String,
    /// What it says after that.
    rest: Option<JoinHandle<String>>,
}

impl Cluster {
    /// Starts one by this `windlass`, with a folder `data` beside the test's other files.
    pub fn up(windlass: &Path, arguments: &[&str], folder: &Path) -> Cluster {
        let mut command = Command::new(windlass);
        command.args(["up", "--with-parent", "--port", "0", "--data-dir", "data"]);
        command.args(arguments).current_dir(folder);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("windlass runs");
        let alive = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut said = String::new();
        while !said.ends_with("Ctrl-C ends it.\n") {
            if lines.read_line(&mut said).expect("its output is text") == 0 {
                panic!("windlass ended: {:?}\n{said}", child.wait());
            }
        }
        // What it says from now on is read, so that it never waits for us.
        let rest = std::thread::spawn(move || {
            let mut rest = String::new();
            lines.read_to_string(&mut rest).expect("its output is text");
            rest
        });
        Cluster { child, _alive: alive, folder: folder.to_owned(), said, rest: Some(rest) }
    }

    /// Runs kubectl with the cluster's kubeconfig; it has to succeed.
    pub fn kubectl(&self, arguments: &str) -> String {
        let (done, said) = self.try_kubectl(arguments);
        assert!(done, "kubectl {arguments}: {said}");
        said
    }

    /// Runs kubectl; whether it succeeded, and all that it printed.
    pub fn try_kubectl(&self, arguments: &str) -> (bool, String) {
        let output = self.command(&format!("exec 2>&1\nkubectl {arguments}")).output().expect("bash runs");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Asks kubectl again and again until what it prints is so. If it never is: what it printed last, and how the
    /// pods are.
    pub fn until(&self, arguments: &str, within: Duration, is_so: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let (_, said) = self.try_kubectl(arguments);
            if is_so(&said) {
                return said;
            }
            let pods = || self.try_kubectl("get pods,events -A").1;
            assert!(start.elapsed() < within, "kubectl {arguments}, after {within:?}: {said}\n{}", pods());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A line of shell in which `kubectl` speaks to the cluster; its path is `$KUBECTL`, for those who start it.
    pub fn command(&self, script: &str) -> Command {
        let script = format!("kubectl() {{ \"$KUBECTL\" \"$@\"; }}\n{script}");
        let mut command = Command::new("bash");
        command
            .args(["-c", &script])
            .env("KUBECONFIG", self.folder.join("data/kubeconfig"))
            .env("KUBECTL", kubectl())
            .current_dir(&self.folder);
        command
    }

    /// Sends a signal by its name.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Sends a signal by its name, and waits for the end.
    pub fn end(mut self, signal: &str) -> ExitStatus {
        self.signal(signal);
        self.child.wait().expect("it is our child")
    }

    /// Sends a signal by its name, and waits for the end, which has to be a good one. What it said after it was ready.
    pub fn end_saying(mut self, signal: &str) -> String {
        let rest = self.rest.take().expect("nobody else has it");
        assert_eq!(self.end(signal).code(), Some(0));
        rest.join().expect("it is read to its end")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program of another package, built in the profile of this test. Cargo builds a package's programs for its own tests
/// alone; where all of the workspace was built for these tests, `WINDLASS_PROGRAMS_BUILT` says so and saves another build.
pub fn program(package: &str, name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a test knows its program");
    let folder = own.parent().and_then(Path::parent).expect("tests lie in target/<profile>/deps");
    if std::env::var_os("WINDLASS_PROGRAMS_BUILT").is_none() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "-p", package, "--target-dir"]);
        build.arg(folder.parent().expect("a profile lies in the target folder"));
        if folder.ends_with("release") {
            build.arg("--release");
        }
        assert!(build.status().expect("cargo runs").success(), "{package} does not build");
    }
    let program = folder.join(name);
    assert!(program.is_file(), "{} is missing", program.display());
    program
}

/// kubectl: where set-up puts it, else the one on the PATH.
pub fn kubectl() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = set("WINDLASS_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("windlass")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/windlass")));
    let brought = cache.map(|cache| cache.join("real/kube/kubectl")).filter(|path| path.is_file());
    brought.unwrap_or_else(|| "kubectl".into())
}
