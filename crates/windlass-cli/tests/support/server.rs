//! `windlass apiserver` as a test runs it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::support::windlass;

/// A server that has announced itself. It is ended with its test.
pub struct Server {
    child: Child,
    /// All that it announced.
    pub announced: String,
}

impl Server {
    pub fn start(arguments: &[&str], folder: &Path) -> Server {
        let port: &[&str] = if arguments.contains(&"--port") { &[] } else { &["--port", "0"] };
        let mut command = windlass(&["apiserver"], folder);
        let mut child =
            command.args(port).args(arguments).stdout(Stdio::piped()).spawn().expect("windlass runs");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut announced = String::new();
        while !announced.ends_with("Ctrl-C ends it.\n") {
            if lines.read_line(&mut announced).expect("its output is text") == 0 {
                panic!("windlass ended: {:?}\n{announced}", child.wait());
            }
        }
        Server { child, announced }
    }

    /// Sends a signal by its name, and waits for the end.
    pub fn end(mut self, signal: &str) -> ExitStatus {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
        self.child.wait().expect("it is our child")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
