//! Start, verify, write, kill, again.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::client::{Address, Connection, Watch};
use crate::ledger::{Ledger, Objects, Seen, Write};
use crate::pods::Pods;
use crate::server::{Server, Target};

/// What is done.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is killed.
    pub target: Target,
    /// The `windlass` program.
    pub program: PathBuf,
    /// The data folder; it must not be there yet.
    pub data: PathBuf,
    /// How many times the server is killed.
    pub kills: u64,
    /// How many clients write at once.
    pub writers: u64,
    /// Decides what is written, and when the server is killed; not what the server makes of it.
    pub seed: u64,
    /// Told of the progress, about every ten seconds.
    pub progress: fn(&Summary),
}

/// What was done.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many times the server was killed.
    pub kills: u64,
    /// How many of these before it served.
    pub early: u64,
    /// How many writes were acknowledged: none of them was lost.
    pub writes: u64,
    /// How many writes were found done although their answer did not come.
    pub unanswered: u64,
    /// How many times the beginning of a write was put behind the log, as a loss of power would leave it; every one was
    /// cut, and the server said so.
    pub torn: u64,
    /// How many watches went on where they had been.
    pub resumed: u64,
    /// How many watches were told that their past is gone.
    pub expired: u64,
    /// How often the program of a pod was started, where there are pods.
    pub starts: usize,
    /// The last revision.
    pub revision: u64,
    /// How long it took.
    pub time: Duration,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills ({} before it served), {} acknowledged writes, {} done without an answer, {} torn tails cut and told of, \
             {} watches resumed, {} expired, {} starts of pods, revision {}, {:.0} s",
            self.kills,
            self.early,
            self.writes,
            self.unanswered,
            self.torn,
            self.resumed,
            self.expired,
            self.starts,
            self.revision,
            self.time.as_secs_f64()
        )
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// How many objects each writer has.
const KEYS: u64 = 12;
/// How much is in each: with it the log is rotated every few dozen kills.
const PADDING: usize = 4000;

/// Runs the campaign.
///
/// # Errors
/// Something was lost, went back, or did not work at all.
pub fn run(options: &Options) -> Result<Summary> {
    ensure!(!options.data.exists(), "{} is there already", options.data.display());
    let started = Instant::now();
    let mut told = started;
    let mut random = Random(options.seed);
    let mut ledger = Ledger::default();
    let mut watcher = Watcher::default();
    let mut summary = Summary::default();
    let mut torn = false;
    let pods = (options.target == Target::Cluster).then(|| Pods::new(&options.data)).transpose()?;
    while summary.kills < options.kills {
        let mut server = Server::start(options.target, &options.program, &options.data)?;
        if summary.kills > 0 && random.below(10) == 0 {
            // Recovery itself must survive being killed. It may have cut a torn tail by then, or not.
            thread::sleep(Duration::from_micros(random.below(40_000)));
            server.kill()?;
            pods.as_ref().map_or(Ok(()), Pods::gone)?;
            torn = false;
            summary.early += 1;
            summary.kills += 1;
            continue;
        }
        let address = server.ready(&options.data)?;
        ensure!(!torn || server.cut_a_tail(), "the server did not say that it cut the tail of a torn log");
        summary.torn += u64::from(torn);
        torn = false;
        verify(&address, &mut ledger, &mut watcher, &mut summary)
            .with_context(|| format!("after {} kills, seed {}", summary.kills, options.seed))?;
        if let Some(pods) = &pods {
            match summary.writes {
                0 => pods.create(&address)?,
                // Otherwise it is killed while pods are starting.
                _ if random.below(3) == 0 => pods.ready(&address)?,
                _ => {}
            }
        }
        (ledger, watcher) = write_until_killed(server, &address, ledger, watcher, options, &mut random)?;
        summary.kills += 1;
        pods.as_ref().map_or(Ok(()), Pods::gone)?;
        if options.target == Target::Server && random.below(10) == 0 {
            tear(&options.data, &mut random)?;
            torn = true;
        }
        (summary.writes, summary.unanswered, summary.time) =
            (ledger.writes, ledger.unanswered, started.elapsed());
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            (options.progress)(&summary);
        }
    }
    let mut server = Server::start(options.target, &options.program, &options.data)?;
    let address = server.ready(&options.data)?;
    verify(&address, &mut ledger, &mut watcher, &mut summary).context("after the last kill")?;
    match &pods {
        None => server.kill()?,
        Some(pods) => {
            pods.ready(&address)?;
            summary.starts = pods.starts();
            server.end()?;
            pods.nothing_left(&options.data)?;
        }
    }
    (summary.unanswered, summary.time) = (ledger.unanswered, started.elapsed());
    Ok(summary)
}

/// What a watch has told so far.
#[derive(Default)]
struct Watcher {
    objects: Objects,
    /// The last revision that it saw.
    revision: u64,
}

/// Compares a list with the ledger, and lets the watch catch up with it.
fn verify(
    address: &Address,
    ledger: &mut Ledger,
    watcher: &mut Watcher,
    summary: &mut Summary,
) -> Result<()> {
    let mut connection = address.connect()?;
    let (code, list) = connection.ask("GET", MAPS, "")?;
    ensure!(code == 200, "the list was answered with {code}: {list}");
    let revision = revision_of(&list)?;
    let mut found = Objects::new();
    for item in list["items"].as_array().context("a list without items")? {
        found.extend(seen(item)?);
    }
    ensure!(revision >= watcher.revision, "at revision {revision}, and a watch saw {}", watcher.revision);
    ensure!(revision >= summary.revision, "at revision {revision}, and a list was at {}", summary.revision);
    ledger.verify(&found, revision)?;
    if watcher.revision > 0 {
        match catch_up(connection, watcher, &found)? {
            true => summary.resumed += 1,
            false => summary.expired += 1,
        }
    }
    *watcher = Watcher { objects: found, revision };
    summary.revision = revision;
    Ok(())
}

/// Goes on with a watch where it was, until it has seen all that a list shows; false if its past is gone.
fn catch_up(connection: Connection, watcher: &mut Watcher, found: &Objects) -> Result<bool> {
    let (code, mut watch) = connection.watch(&watch_path(watcher.revision))?;
    ensure!(code == 200, "a watch was answered with {code}");
    while watcher.objects != *found {
        let event = watch.event().with_context(|| {
            format!("a watch from {} saw {:?}, a list {found:?}", watcher.revision, watcher.objects)
        })?;
        let event = event.context("a watch ended before it had seen everything")?;
        if event["type"] == "ERROR" {
            ensure!(event["object"]["code"] == 410, "{event}");
            return Ok(false);
        }
        watcher.take(&event)?;
    }
    Ok(true)
}

impl Watcher {
    fn take(&mut self, event: &Value) -> Result<()> {
        let object = &event["object"];
        let revision = revision_of(object)?;
        ensure!(revision > self.revision, "{revision} came after {}", self.revision);
        self.revision = revision;
        let Some((key, seen)) = seen(object)? else { return Ok(()) };
        match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") => drop(self.objects.insert(key, seen)),
            Some("DELETED") => drop(self.objects.remove(&key)),
            _ => bail!("{event}"),
        }
        Ok(())
    }

    /// Reads events until the server is gone.
    fn follow(&mut self, watch: &mut Watch) -> Result<()> {
        while let Ok(Some(event)) = watch.event() {
            self.take(&event)?;
        }
        Ok(())
    }
}

fn write_until_killed(
    server: Server,
    address: &Address,
    ledger: Ledger,
    mut watcher: Watcher,
    options: &Options,
    random: &mut Random,
) -> Result<(Ledger, Watcher)> {
    let (code, mut watch) = address.connect()?.watch(&watch_path(watcher.revision))?;
    ensure!(code == 200, "a watch was answered with {code}");
    let ledger = Mutex::new(ledger);
    thread::scope(|scope| {
        let following = scope.spawn(|| watcher.follow(&mut watch));
        let writing: Vec<_> = (0..options.writers)
            .map(|writer| {
                let (ledger, mut random) = (&ledger, Random(random.next()));
                scope.spawn(move || write(address, ledger, writer, &mut random))
            })
            .collect();
        // Pods take longer to start than writes to be answered.
        let longest = if options.target == Target::Cluster { 3_000_000 } else { 150_000 };
        thread::sleep(Duration::from_micros(2_000 + random.below(longest)));
        server.kill()?;
        for thread in writing.into_iter().chain([following]) {
            thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        anyhow::Ok(())
    })?;
    Ok((ledger.into_inner().unwrap_or_else(PoisonError::into_inner), watcher))
}

/// Puts the beginning of a write behind the last log. A killed process does not leave one, since what it wrote is the
/// kernel's; a loss of power does.
fn tear(data: &Path, random: &mut Random) -> Result<()> {
    let entries = std::fs::read_dir(data)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let logs =
        entries.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "log"));
    let last = logs.max().context("a data folder without a log")?;
    // A frame starts with its length and its checksum; this one was to be longer than what is there of it.
    let mut frame = 100_000u32.to_le_bytes().to_vec();
    frame.resize(4 + random.below(50_000) as usize, 0xa5);
    let mut log = OpenOptions::new().append(true).open(&last)?;
    log.write_all(&frame).with_context(|| format!("cannot write {}", last.display()))
}

/// Writes to its own objects until the connection breaks.
fn write(address: &Address, ledger: &Mutex<Ledger>, writer: u64, random: &mut Random) -> Result<()> {
    let ledger = || ledger.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(mut connection) = address.connect() else { return Ok(()) };
    loop {
        let key = format!("w{writer}-{}", random.below(KEYS));
        let (exists, value) = (ledger().exists(&key), random.next());
        let object = json!({
            "metadata": {"name": key}, "data": {"value": value.to_string(), "padding": "x".repeat(PADDING)},
        });
        let (method, path, body, write) = match exists {
            false => ("POST", MAPS.to_owned(), object.to_string(), Write::Put(value)),
            true if random.below(6) == 0 => ("DELETE", format!("{MAPS}/{key}"), String::new(), Write::Delete),
            true => ("PUT", format!("{MAPS}/{key}"), object.to_string(), Write::Put(value)),
        };
        ledger().intend(&key, write);
        let Ok((code, answer)) = connection.ask(method, &path, &body) else { return Ok(()) };
        ensure!(code == 200 || code == 201, "{method} {path} was answered with {code}: {answer}");
        let revision = if write == Write::Delete { None } else { Some(revision_of(&answer)?) };
        ledger().acknowledge(&key, revision);
    }
}

fn watch_path(revision: u64) -> String {
    format!("{MAPS}?watch=1&resourceVersion={revision}")
}

fn revision_of(object: &Value) -> Result<u64> {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok()).with_context(|| format!("no revision: {object}"))
}

/// What an object of the campaign holds; nothing if it is somebody else's.
fn seen(object: &Value) -> Result<Option<(String, Seen)>> {
    let Some(value) = object["data"]["value"].as_str() else { return Ok(None) };
    let name = object["metadata"]["name"].as_str().context("an object without a name")?;
    let padded = object["data"]["padding"].as_str().is_some_and(|padding| padding.len() == PADDING);
    ensure!(padded, "{name} is not whole");
    Ok(Some((name.to_owned(), Seen { value: value.parse()?, revision: revision_of(object)? })))
}

/// A small generator of numbers: the same seed gives the same numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound
    }
}
