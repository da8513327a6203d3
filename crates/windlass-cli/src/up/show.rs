//! What people see while a cluster comes up: on a terminal the steps that are being taken, otherwise a line when one is done.

use std::future::Future;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The display.
pub struct Show {
    started: Instant,
    terminal: bool,
    steps: MultiProgress,
}

const TURN: Duration = Duration::from_millis(80);

impl Show {
    /// A display that counts time from now.
    pub fn new() -> Show {
        let steps = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        Show { started: Instant::now(), terminal: io::stdout().is_terminal(), steps }
    }

    /// A line of text, above the steps that are being taken.
    pub fn line(&self, text: &str) {
        // Nobody may be reading any more, which is no reason to end.
        let _ = self.steps.suspend(|| {
            let mut out = io::stdout().lock();
            writeln!(out, "{text}").and_then(|()| out.flush())
        });
    }

    /// Something is done.
    pub fn done(&self, text: &str) {
        let mark = if self.terminal { "\x1b[32m✓\x1b[0m " } else { "" };
        self.line(&format!("{mark}{text} ({} ms)", self.started.elapsed().as_millis()));
    }

    /// Begins a step, which is shown until it is dropped.
    pub fn begin(&self, what: &str) -> Step {
        let bar = self.steps.add(ProgressBar::new_spinner());
        bar.set_style(ProgressStyle::with_template("{spinner} {wide_msg}").expect("this is a template"));
        bar.set_message(format!("{what} …"));
        if self.terminal {
            bar.enable_steady_tick(TURN);
        }
        Step(bar)
    }

    /// Shows a step while it is being taken.
    pub async fn step<T>(&self, what: &str, step: impl Future<Output = T>) -> T {
        let _shown = self.begin(what);
        step.await
    }
}

/// A step that is being taken.
pub struct Step(ProgressBar);

impl Step {
    /// Says something else of it.
    pub fn say(&self, text: String) {
        self.0.set_message(text);
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
