//! From nothing to ready, and what an idle server holds.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::{least, median};
use crate::Numbers;
use crate::server::{Programs, Which};

/// Starts a server; ours several times, for it takes milliseconds.
pub fn measure(programs: &Programs, which: Which) -> Result<Numbers> {
    let runs = match which {
        Which::Ours => 5,
        Which::Reference => 1,
    };
    let mut numbers = Numbers::new();
    let mut times = Vec::new();
    let mut idle = Vec::new();
    for _ in 0..runs {
        let server = programs.start_idle(which)?;
        times.push(server.ready.as_secs_f64());
        // What a start leaves to the background is part of being idle.
        thread::sleep(Duration::from_millis(if which == Which::Ours { 100 } else { 2000 }));
        idle.push(server.resident_bytes()? as f64);
    }
    numbers.insert("ready best", least(&times));
    numbers.insert("ready", median(times));
    numbers.insert("idle", median(idle));
    Ok(numbers)
}
