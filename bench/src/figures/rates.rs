//! Creates and reads per second.

use anyhow::Result;

use crate::load::{Load, Outcome, Until};
use crate::objects::{Kind, NAMESPACE};
use crate::server::Server;
use crate::{Numbers, Settings};

/// Creates ConfigMaps for a while, then reads them.
pub fn measure(server: &Server, settings: &Settings) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    server.create_namespace(NAMESPACE)?;
    let until = Until::Passed(settings.time);
    // Once for the caches of processor, kernel and runtime, and for what a server does only once.
    create(server, settings.connections, Until::Count(2000), "warm")?;
    let (created, cpu) = with_cpu(server, || create(server, settings.connections, until, "bench"))?;
    numbers.insert("create rate", created.rate());
    numbers.insert("create cpu", cpu / created.count as f64);
    numbers.insert("create p99", created.p99.as_secs_f64());
    let (read, cpu) = with_cpu(server, || read(server, settings.connections, until, "bench", created.count))?;
    numbers.insert("get rate", read.rate());
    numbers.insert("get cpu", cpu / read.count as f64);
    numbers.insert("get p99", read.p99.as_secs_f64());
    Ok(numbers)
}

/// Creates ConfigMaps.
pub fn create(server: &Server, connections: usize, until: Until, prefix: &str) -> Result<Outcome> {
    create_kind(server, Kind::ConfigMap, NAMESPACE, connections, until, prefix)
}

/// Creates objects of a kind.
pub fn create_kind(
    server: &Server,
    kind: Kind,
    namespace: &str,
    connections: usize,
    until: Until,
    prefix: &str,
) -> Result<Outcome> {
    let path = kind.collection(namespace);
    let marker = "name-goes-here";
    let template = kind.body(marker);
    let request = |n: usize, out: &mut Vec<u8>| {
        server.requests.post(&path, &template.replacen(marker, &kind.name(prefix, n), 1), out);
    };
    Load { connector: &server.connector, connections, until, expect: 201, request }.run()
}

/// Reads ConfigMaps, of which there are `count`, in an order that jumps about.
pub fn read(
    server: &Server,
    connections: usize,
    until: Until,
    prefix: &str,
    count: usize,
) -> Result<Outcome> {
    let path = Kind::ConfigMap.collection(NAMESPACE);
    let request = |n: usize, out: &mut Vec<u8>| {
        let name = Kind::ConfigMap.name(prefix, n.wrapping_mul(7919) % count);
        server.requests.get(&format!("{path}/{name}"), "application/json", out);
    };
    Load { connector: &server.connector, connections, until, expect: 200, request }.run()
}

/// Does something, and says how much processor time the server spent meanwhile.
pub fn with_cpu<T>(server: &Server, work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let before = server.cpu_seconds()?;
    let done = work()?;
    Ok((done, server.cpu_seconds()? - before))
}
