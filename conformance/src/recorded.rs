//! Answers of the real server as data: `recorded/*.jsonl`, one sequence with its transcript a line.
//!
//! They let `cargo test` compare without a real server. `make conformance ARGS=record` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::answer::Transcript;
use crate::client::Endpoint;
use crate::compare::{Comparison, compare};
use crate::sequence::Sequence;
use crate::{generate, hook, rules, run};

/// The version whose answers are recorded.
pub const REFERENCE: &str = "kube-apiserver v1.36.4";
/// The seed and the share of the generated sequences that are recorded.
const SAMPLE: (u64, usize) = (36, 6);
/// Longer lines are left out: documents of hundreds of kilobytes, and objects at the limit of size.
const LINE_MAX: usize = 48 << 10;

/// A sequence and what the real server answered.
#[derive(Clone, Serialize, Deserialize)]
pub struct Recording {
    /// Whose answers these are.
    pub reference: String,
    /// The id that it ran under.
    pub id: String,
    /// What was asked.
    pub sequence: Sequence,
    /// What was answered.
    pub transcript: Transcript,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded")
}

/// Records the sequences of the files and a sample of the generated ones, of rules that contain `only`, from a server that
/// is `up_since`; says how many and how large they are.
///
/// # Errors
/// When the server cannot be reached, or a file cannot be written.
pub async fn record(server: Arc<dyn Endpoint>, only: &str, up_since: Timestamp) -> Result<(usize, usize)> {
    let mut sequences = rules::hand_written()?;
    sequences.extend(generate::all(SAMPLE.0, SAMPLE.1));
    sequences.retain(|s| s.rule.contains(only));
    sequences.sort_by_key(Sequence::defines_kinds);
    // In the process everybody is the administrator.
    sequences.retain(|s| s.steps.iter().all(|step| !step.headers.contains_key("authorization")));
    // Nor is there anybody to be asked.
    sequences.retain(|s| !hook::is_asked(s));
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let (mut count, mut size) = (0, 0);
    for (index, sequence) in sequences.into_iter().enumerate() {
        let id = format!("c{index}");
        let mut transcript = run::run(&*server, &sequence, &id).await?;
        transcript.age = transcript.started - up_since.as_second();
        let rule = sequence.rule.clone();
        let line =
            serde_json::to_string(&Recording { reference: REFERENCE.into(), id, sequence, transcript })?;
        if line.len() <= LINE_MAX {
            count += 1;
            size += line.len() + 1;
            writeln!(files.entry(rule).or_default(), "{line}")?;
        }
    }
    fs::create_dir_all(folder())?;
    for (rule, lines) in files {
        fs::write(folder().join(format!("{rule}.jsonl")), lines)?;
    }
    Ok((count, size))
}

/// All recordings of rules that begin so.
///
/// # Errors
/// When a file is missing or broken.
pub fn all(prefixes: &[&str]) -> Result<Vec<Recording>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder()).context("recorded/")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".jsonl") && prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            files.push(path);
        }
    }
    files.sort();
    let mut out = Vec::new();
    for file in files {
        for line in fs::read_to_string(&file)?.lines() {
            out.push(serde_json::from_str(line).with_context(|| file.display().to_string())?);
        }
    }
    Ok(out)
}

/// How many recordings are played at once: some wait, but the steps of one are not to be seconds apart because of the others.
const AT_ONCE: usize = 16;

/// Plays recordings to a server of their own each, many at once, and compares. A server is told the second at which the
/// recording began: its clock starts there, at that moment.
///
/// # Errors
/// When a server cannot be asked.
pub async fn replay(
    recordings: Vec<Recording>,
    server: impl Fn(i64) -> Arc<dyn Endpoint> + Clone + Send + Sync + 'static,
) -> Result<Vec<(Recording, Comparison)>> {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for (index, recording) in recordings.into_iter().enumerate() {
        let (server, slots) = (server.clone(), slots.clone());
        tasks.spawn(async move {
            let _slot = slots.acquire().await?;
            let started = recording.transcript.started;
            let server = server(started);
            let ours = run::run(&*server, &recording.sequence, &recording.id).await?;
            let ours = Transcript { started, ..ours };
            let comparison = compare(&recording.transcript, &ours).about(&recording.sequence.rule);
            anyhow::Ok((index, recording, comparison))
        });
    }
    let mut out = Vec::new();
    while let Some(done) = tasks.join_next().await {
        out.push(done??);
    }
    out.sort_by_key(|(index, ..)| *index);
    Ok(out.into_iter().map(|(_, recording, comparison)| (recording, comparison)).collect())
}

/// The name of a recording.
pub fn name(recording: &Recording) -> String {
    format!("{}/{}", recording.sequence.rule, recording.sequence.name).replace('\n', " ")
}
