//! A request costs the same however many objects there are.

use std::time::Instant;

use anyhow::{Result, ensure};
use bytes::Bytes;
use windlass_apiserver::front::{ApiServer, Options};

use super::in_process::ask;
use super::median;
use super::rates::{create, read, with_cpu};
use crate::load::Until;
use crate::objects::{Kind, NAMESPACE};
use crate::server::{Programs, Which};
use crate::{Numbers, Settings};

/// The small size.
const FEW: usize = 1000;

/// Requests that one measurement over TLS takes: enough for the kernel's clock of hundredths.
const REQUESTS: usize = 4000;

/// Measures at both sizes, in-process and over TLS.
pub fn measure(programs: &Programs, settings: &Settings, numbers: &mut Numbers) -> Result<()> {
    let sizes = [
        (FEW, ["few create", "few get", "few get any", "few tls create", "few tls get"]),
        (settings.objects, ["many create", "many get", "many get any", "many tls create", "many tls get"]),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = ApiServer::start(Options::default());
    let remote = programs.start(Which::Ours)?;
    remote.create_namespace(NAMESPACE)?;
    let (mut local_size, mut remote_size) = (0, 0);
    for (size, [create_key, get_key, get_any_key, tls_create_key, tls_get_key]) in sizes {
        runtime.block_on(fill(&local, local_size..size))?;
        local_size = size;
        numbers.insert(create_key, runtime.block_on(create_cost(&local))?);
        numbers.insert(get_key, runtime.block_on(get_cost(&local, FEW))?);
        numbers.insert(get_any_key, runtime.block_on(get_cost(&local, size))?);

        let more = Until::Count(size - remote_size);
        create(&remote, settings.connections, more, &format!("to{size}"))?;
        let reads = Until::Count(REQUESTS * 4);
        let (_, cpu) = with_cpu(&remote, || {
            read(&remote, settings.connections, reads, &format!("to{size}"), size - remote_size)
        })?;
        numbers.insert(tls_get_key, cpu / (REQUESTS * 4) as f64);
        let creates = Until::Count(REQUESTS);
        let (_, cpu) =
            with_cpu(&remote, || create(&remote, settings.connections, creates, &format!("at{size}")))?;
        numbers.insert(tls_create_key, cpu / REQUESTS as f64);
        remote_size = size + REQUESTS;
    }
    Ok(())
}

async fn fill(server: &ApiServer, range: std::ops::Range<usize>) -> Result<()> {
    for n in range {
        let status = ask(server, post("flat", n)?).await;
        ensure!(status == 201, "create {n}: {status}");
    }
    Ok(())
}

/// Rounds of which the median counts, and requests in each.
const ROUNDS: usize = 25;
const ROUND: usize = 200;

/// Seconds per create. Each round works on a fork, so that the size stays what it is.
async fn create_cost(server: &ApiServer) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let fork = server.fork();
        let requests = (0..ROUND).map(|n| post("new", n)).collect::<Result<Vec<_>>>()?;
        let before = Instant::now();
        for request in requests {
            ensure!(ask(&fork, request).await == 201, "a create was refused");
        }
        times.push(before.elapsed().as_secs_f64() / ROUND as f64);
    }
    Ok(median(times))
}

/// Seconds per read of the first `among` objects, in an order that jumps about.
async fn get_cost(server: &ApiServer, among: usize) -> Result<f64> {
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let numbers = (0..ROUND).map(|n| (round * ROUND + n).wrapping_mul(7919) % among);
        let requests = numbers.map(get).collect::<Result<Vec<_>>>()?;
        let before = Instant::now();
        for request in requests {
            ensure!(ask(server, request).await == 200, "a read was refused");
        }
        times.push(before.elapsed().as_secs_f64() / ROUND as f64);
    }
    Ok(median(times))
}

fn post(prefix: &str, n: usize) -> Result<http::Request<Bytes>> {
    let kind = Kind::ConfigMap;
    let request = http::Request::post(kind.collection("default")).header("content-type", "application/json");
    Ok(request.body(Bytes::from(kind.body(&kind.name(prefix, n))))?)
}

fn get(n: usize) -> Result<http::Request<Bytes>> {
    let kind = Kind::ConfigMap;
    let path = format!("{}/{}", kind.collection("default"), kind.name("flat", n));
    Ok(http::Request::get(path).body(Bytes::new())?)
}
