//! What the user sees while a cluster comes up.

use std::io::{self, Write as _};
use std::time::Instant;

/// Lines on standard output, one for each part that is there. Nobody may be reading any more, which is no reason to end.
pub struct Progress {
    started: Instant,
}

impl Progress {
    /// The first line.
    pub fn start(line: &str) -> Progress {
        let progress = Progress { started: Instant::now() };
        progress.line(line);
        progress
    }

    /// A part is there.
    pub fn done(&self, part: &str, what: &str) {
        let took = self.started.elapsed().as_millis();
        self.line(&format!("  {part:<12} {what} ({took} ms)"));
    }

    /// A line of its own.
    pub fn line(&self, line: &str) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
