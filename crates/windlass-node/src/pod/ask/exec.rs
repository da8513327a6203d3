//! Asking by a program in the container.

use std::time::Duration;

use futures_util::future::join;
use tokio::io::AsyncReadExt as _;
use windlass_sandbox::Exec;

use super::Asked;
use crate::pod::expand::expand;
use crate::pod::probe::Finding;
use crate::pod::runtime::{Io, Output, RunError};

/// So much of what the program says is kept.
const OUTPUT_MAX: u64 = 10 << 10;
const SIGKILL: i32 = 9;

pub(super) async fn probe(asked: &Asked, command: &[String], limit: Duration) -> Finding {
    match run(asked, command, limit).await {
        Ok((0, _)) => Finding::Success,
        Ok((_, output)) => Finding::Failure(output),
        Err(Failed::Late) => Finding::Failure(late(command, limit)),
        Err(Failed::NotRun(error)) => Finding::Errored(error.to_string()),
    }
}

pub(super) async fn hook(asked: &Asked, command: &[String], limit: Duration) -> Result<(), String> {
    let exits =
        |code: i32, output: String| format!("command '{}' exited with {code}: {output}", command.join(" "));
    match run(asked, command, limit).await {
        Ok((0, _)) => Ok(()),
        Ok((code, output)) => Err(exits(code, output)),
        Err(Failed::Late) => Err(late(command, limit)),
        Err(Failed::NotRun(error)) => Err(error.to_string()),
    }
}

enum Failed {
    Late,
    NotRun(RunError),
}

fn late(command: &[String], limit: Duration) -> String {
    format!("command timed out: \"{}\" timed out after {}s", command.join(" "), limit.as_secs())
}

/// Runs a program, and gives back its exit code and what it said.
async fn run(asked: &Asked, command: &[String], limit: Duration) -> Result<(i32, String), Failed> {
    // Only what the container's own variables say plainly is replaced in it, as with kubelet.
    let plain = |name: &str| {
        let mut variables = asked.container.env.iter().flatten();
        variables.find(|variable| variable.name == name).and_then(|variable| variable.value.clone())
    };
    let argv = command.iter().map(|text| expand(text, plain));
    let exec = Exec::like(&asked.spec, argv);
    let mut program = asked.runtime.exec(&asked.id, exec, Io::default()).await.map_err(Failed::NotRun)?;
    let (stdout, stderr) = (program.stdout.take(), program.stderr.take());
    let signal = program.signal.clone();
    let outcome = async {
        let ((mut stdout, stderr), exit) = join(join(read(stdout), read(stderr)), program.exit).await;
        stdout.extend_from_slice(&stderr);
        (exit.code, stdout)
    };
    match asked.env.within(limit, outcome).await {
        Some((code, output)) => Ok((code, String::from_utf8_lossy(&output).into_owned())),
        None => {
            signal(SIGKILL).await;
            Err(Failed::Late)
        }
    }
}

async fn read(from: Option<Output>) -> Vec<u8> {
    let Some(from) = from else { return Vec::new() };
    let mut kept = Vec::new();
    let mut limited = from.take(OUTPUT_MAX);
    // What could be read is all that there is to say.
    let _ = limited.read_to_end(&mut kept).await;
    // A program that says more must not wait for somebody who reads it.
    let _ = tokio::io::copy(&mut limited.into_inner(), &mut tokio::io::sink()).await;
    kept
}
