//! Many pods: what they cost in memory, and how long it takes to read them all.

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::median;
use super::rates::create_kind;
use crate::load::Until;
use crate::objects::{Kind, NAMESPACE};
use crate::server::Server;
use crate::{Numbers, Settings};

const JSON: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Creates the pods, then lists and watches them.
pub fn measure(server: &Server, settings: &Settings) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    server.create_namespace(NAMESPACE)?;
    let before = server.resident_bytes()?;
    let until = Until::Count(settings.pods);
    let created = create_kind(server, Kind::Pod, NAMESPACE, settings.connections, until, "pod")?;
    thread::sleep(Duration::from_secs(1));
    let grown = server.resident_bytes()?.saturating_sub(before);
    numbers.insert("pod create rate", created.rate());
    numbers.insert("pod memory", grown as f64 / settings.pods as f64);
    numbers.insert("pods", settings.pods as f64);

    let list = "/api/v1/pods";
    let least_size = settings.pods * 1000;
    let (time, size) = timed(server, list, JSON, least_size)?;
    numbers.insert("list", time);
    numbers.insert("pod size", size as f64 / settings.pods as f64);
    numbers.insert("list metadata", timed(server, list, METADATA, settings.pods * 100)?.0);
    numbers.insert("list nothing", timed(server, "/api/v1/pods?labelSelector=app%3Dnothing", JSON, 0)?.0);
    let watch_list = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                      &allowWatchBookmarks=true";
    numbers.insert("watch list", server.time_until(watch_list, "k8s.io/initial-events-end")?.as_secs_f64());
    Ok(numbers)
}

/// Reads an answer several times: the median of what it took, and its size.
fn timed(server: &Server, path: &str, accept: &str, least_size: usize) -> Result<(f64, usize)> {
    let mut times = Vec::new();
    let mut last = 0;
    for _ in 0..5 {
        let (took, size) = server.time(path, accept)?;
        ensure!(size >= least_size, "{path}: only {size} bytes");
        times.push(took.as_secs_f64());
        last = size;
    }
    Ok((median(times), last))
}
