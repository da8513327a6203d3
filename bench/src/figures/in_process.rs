//! The server inside of a test process: how long until it answers, and how long a fork takes.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use windlass_apiserver::api::User;
use windlass_apiserver::front::{ApiServer, Options};

use super::{least, median};
use crate::Numbers;

/// Processes that are started: the first server of each pays for what is prepared once in a process.
const PROCESSES: usize = 11;

/// Runs [`child`] several times.
pub fn measure(numbers: &mut Numbers) -> Result<()> {
    let mut columns = [const { Vec::new() }; 3];
    for _ in 0..PROCESSES {
        let output = Command::new(std::env::current_exe()?).arg("in-process").output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout)?;
        let mut words = text.split_ascii_whitespace();
        for column in &mut columns {
            let nanoseconds: f64 = words.next().context("three numbers")?.parse()?;
            column.push(nanoseconds / 1e9);
        }
    }
    let [first, following, fork] = columns;
    numbers.insert("in-process first best", least(&first));
    numbers.insert("in-process first", median(first));
    numbers.insert("in-process following best", least(&following));
    numbers.insert("in-process following", median(following));
    numbers.insert("fork", median(fork));
    Ok(())
}

/// Starts servers, and prints the time of the first, the median of those after it, and the median of a fork.
pub fn child() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (first, server) = start().await?;
        let mut following = Vec::new();
        for _ in 0..20 {
            following.push(start().await?.0.as_nanos() as f64);
        }
        let mut forks = Vec::new();
        for _ in 0..200 {
            let before = Instant::now();
            let fork = server.fork();
            let took = before.elapsed();
            ready(&fork).await?;
            forks.push(took.as_nanos() as f64);
        }
        println!("{} {} {}", first.as_nanos(), median(following), median(forks));
        Ok(())
    })
}

/// From nothing to an answer at `/readyz`.
async fn start() -> Result<(Duration, ApiServer)> {
    let before = Instant::now();
    let server = ApiServer::start(Options::default());
    ready(&server).await?;
    Ok((before.elapsed(), server))
}

async fn ready(server: &ApiServer) -> Result<()> {
    let status = ask(server, http::Request::get("/readyz").body(Bytes::new())?).await;
    ensure!(status == 200, "/readyz: {status}");
    Ok(())
}

/// Asks as the administrator, and throws the answer's body away.
pub async fn ask(server: &ApiServer, request: http::Request<Bytes>) -> u16 {
    server.call(request, User::admin()).await.status().as_u16()
}
