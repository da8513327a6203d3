//! Many watchers while objects are created: how many events arrive per second.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::TryStreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;

use super::rates::{create_kind, with_cpu};
use crate::client::Stream;
use crate::load::{Outcome, Until};
use crate::objects::Kind;
use crate::server::Server;
use crate::{Numbers, Settings};

/// How long the last events may be on their way.
const PATIENCE: Duration = Duration::from_secs(60);

/// Creates ConfigMaps, then pods, before the eyes of all watchers.
pub fn measure(server: &Server, settings: &Settings) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    let keys = [
        (
            Kind::ConfigMap,
            "watched-maps",
            ["delivery rate", "delivery cpu", "watched create rate", "restarts"],
        ),
        (
            Kind::Pod,
            "watched-pods",
            ["pod delivery rate", "pod delivery cpu", "watched pod create rate", "pod restarts"],
        ),
    ];
    for (kind, namespace, [rate, cpu, creates, restarts]) in keys {
        server.create_namespace(namespace)?;
        let (seen, spent) = with_cpu(server, || deliver(server, settings, kind, namespace))?;
        numbers.insert(rate, seen.events as f64 / seen.took.as_secs_f64());
        numbers.insert(cpu, spent / seen.events as f64);
        numbers.insert(creates, seen.created.rate());
        numbers.insert(restarts, seen.restarts as f64);
    }
    Ok(numbers)
}

struct Seen {
    events: u64,
    /// From the first create to the last event.
    took: Duration,
    created: Outcome,
    /// Watches that the server ended and that went on with another request.
    restarts: u64,
}

fn deliver(server: &Server, settings: &Settings, kind: Kind, namespace: &str) -> Result<Seen> {
    let threads = thread::available_parallelism()?.get().min(settings.watchers);
    let counts: Vec<AtomicU64> = (0..settings.watchers).map(|_| AtomicU64::new(0)).collect();
    let restarts = AtomicU64::new(0);
    let path = format!("{}?watch=1", kind.collection(namespace));
    let ready = Barrier::new(threads + 1);
    let (stop, stopped) = watch::channel(());
    thread::scope(|scope| {
        let watchers: Vec<_> = counts
            .chunks(settings.watchers.div_ceil(threads))
            .map(|counts| {
                let (path, restarts, ready, stopped) = (&path, &restarts, &ready, stopped.clone());
                scope.spawn(move || watch_all(server, path, counts, restarts, ready, stopped))
            })
            .collect();
        ready.wait();
        let started = Instant::now();
        let created =
            create_kind(server, kind, namespace, settings.connections, Until::Passed(settings.time), "seen");
        let seen = created.and_then(|created| {
            let expected = created.count as u64;
            while counts.iter().any(|count| count.load(Ordering::Relaxed) < expected) {
                ensure!(started.elapsed() < settings.time + PATIENCE, "not all events arrived");
                ensure!(watchers.iter().all(|watcher| !watcher.is_finished()), "a watcher ended early");
                thread::sleep(Duration::from_millis(1));
            }
            let took = started.elapsed();
            let events: u64 = counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
            ensure!(events == expected * settings.watchers as u64, "events arrived twice");
            Ok(Seen { events, took, created, restarts: restarts.load(Ordering::Relaxed) })
        });
        drop(stop);
        for watcher in watchers {
            watcher.join().expect("a watching thread panicked")?;
        }
        seen
    })
}

/// Watches once per counter, until told to stop.
fn watch_all(
    server: &Server,
    path: &str,
    counts: &[AtomicU64],
    restarts: &AtomicU64,
    ready: &Barrier,
    mut stopped: watch::Receiver<()>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let opened: Result<_> = runtime.block_on(async {
        let mut opened = Vec::new();
        for count in counts {
            let stream = open(server, path).await?;
            opened.push(Watcher { server, path, stream, count, restarts, tail: Vec::new() });
        }
        Ok(opened)
    });
    ready.wait();
    let watching: FuturesUnordered<_> = opened?.into_iter().map(Watcher::run).collect();
    runtime.block_on(async {
        tokio::select! {
            ended = watching.try_collect::<Vec<()>>() => ended.map(drop),
            // It is stopped by dropping the other end.
            _ = stopped.changed() => Ok(()),
        }
    })
}

async fn open(server: &Server, path: &str) -> Result<Stream> {
    let mut request = Vec::new();
    server.requests.get(path, "application/json", &mut request);
    server.connector.open().await?.stream(&request).await
}

/// How much of a stream is kept to find the last revision in: more than one event.
const TAIL: usize = 8 << 10;

/// One watcher, which counts events: each is one line.
struct Watcher<'a> {
    server: &'a Server,
    path: &'a str,
    stream: Stream,
    count: &'a AtomicU64,
    restarts: &'a AtomicU64,
    tail: Vec<u8>,
}

impl Watcher<'_> {
    /// kube-apiserver ends the watches of those who do not keep up: like any client, go on from the last revision.
    async fn run(mut self) -> Result<()> {
        loop {
            let (mut lines, tail) = (0, &mut self.tail);
            let going = self.stream.next(|piece| {
                lines += memchr::memchr_iter(b'\n', piece).count() as u64;
                tail.extend_from_slice(&piece[piece.len().saturating_sub(TAIL)..]);
            });
            let going = going.await?;
            self.count.fetch_add(lines, Ordering::Relaxed);
            if self.tail.len() > 2 * TAIL {
                self.tail.drain(..self.tail.len() - TAIL);
            }
            if !going {
                self.restarts.fetch_add(1, Ordering::Relaxed);
                let path = match last_revision(&self.tail) {
                    Some(revision) => format!("{}&resourceVersion={revision}", self.path),
                    None => self.path.to_owned(),
                };
                self.stream = open(self.server, &path).await?;
            }
        }
    }
}

/// The revision of the last event that is there in full.
fn last_revision(tail: &[u8]) -> Option<&str> {
    const KEY: &[u8] = b"\"resourceVersion\":\"";
    let whole = &tail[..memchr::memrchr(b'\n', tail)?];
    let at = memchr::memmem::rfind(whole, KEY)? + KEY.len();
    let end = at + memchr::memchr(b'"', &whole[at..])?;
    std::str::from_utf8(&whole[at..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::last_revision;

    #[test]
    fn a_watch_goes_on_after_its_last_whole_event() {
        let tail = br#"rsion":"3"}
{"resourceVersion":"17"}
{"resourceVersion":"18"#;
        assert_eq!(last_revision(tail), Some("17"));
        assert_eq!(last_revision(b"{}\n"), None);
    }
}
