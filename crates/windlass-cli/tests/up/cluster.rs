//! `windlass up` as a test runs it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::support::windlass;

/// A cluster that has said that it is ready. It is ended with its test.
pub struct Cluster {
    child: Child,
    folder: PathBuf,
    /// All that it said until it was ready.
    pub said: String,
}

impl Cluster {
    /// Starts one with a folder `data` beside the test's other files.
    pub fn up(arguments: &[&str], folder: &Path) -> Cluster {
        let mut command = windlass(&["up", "--port", "0", "--data-dir", "data"], folder);
        let mut child = command.args(arguments).stdout(Stdio::piped()).spawn().expect("windlass runs");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut said = String::new();
        while !said.ends_with("Ctrl-C ends it.\n") {
            if lines.read_line(&mut said).expect("its output is text") == 0 {
                panic!("windlass ended: {:?}\n{said}", child.wait());
            }
        }
        // What it says from now on is read, so that it never waits for us.
        std::thread::spawn(move || lines.read_to_end(&mut Vec::new()));
        Cluster { child, folder: folder.to_owned(), said }
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

    /// Sends a signal by its name, and waits for the end.
    pub fn end(mut self, signal: &str) -> ExitStatus {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
        self.child.wait().expect("it is our child")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// kubectl, where set-up puts it.
pub fn kubectl() -> PathBuf {
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/setup");
    let path = Command::new(setup).args(["--path", "kubectl"]).output().expect("tools/setup runs");
    let path = PathBuf::from(String::from_utf8_lossy(&path.stdout).trim());
    assert!(path.exists(), "{} is missing: run `tools/setup kubectl`", path.display());
    path
}
