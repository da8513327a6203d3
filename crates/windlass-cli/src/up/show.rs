//! What people see while a cluster comes up: on a terminal the step that is being taken, otherwise a line when it is done.

use std::future::Future;
use std::io::{self, IsTerminal as _, Write as _};
use std::pin::pin;
use std::time::{Duration, Instant};

/// The display.
pub struct Show {
    started: Instant,
    terminal: bool,
}

const TURN: Duration = Duration::from_millis(80);
const WHEEL: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇", "⠏", "⠹"];

impl Show {
    /// A display that counts time from now.
    pub fn new() -> Show {
        Show { started: Instant::now(), terminal: io::stdout().is_terminal() }
    }

    /// A line of text.
    pub fn line(&self, text: &str) {
        print(&format!("{}{text}\n", self.clear()));
    }

    /// Something is done.
    pub fn done(&self, text: &str) {
        let mark = if self.terminal { "\x1b[32m✓\x1b[0m " } else { "" };
        let time = self.started.elapsed().as_millis();
        print(&format!("{}{mark}{text} ({time} ms)\n", self.clear()));
    }

    /// Shows a step while it is being taken.
    pub async fn step<T>(&self, what: &str, step: impl Future<Output = T>) -> T {
        let mut step = pin!(step);
        if !self.terminal {
            return step.await;
        }
        let mut turns = WHEEL.iter().cycle();
        loop {
            tokio::select! {
                biased;
                done = &mut step => {
                    print(self.clear());
                    return done;
                }
                () = tokio::time::sleep(TURN) => {
                    let wheel = turns.next().unwrap_or(&"");
                    print(&format!("{}{wheel} {what} …", self.clear()));
                }
            }
        }
    }

    /// Takes away the step that is shown.
    fn clear(&self) -> &'static str {
        if self.terminal { "\r\x1b[2K" } else { "" }
    }
}

/// Nobody may be reading any more, which is no reason to end.
fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
