//! Plays manifests to a cluster and records, or compares with what is recorded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::picture::picture;
use crate::controllers::api::Api;
use crate::controllers::mirror::Mirror;
use crate::controllers::normal::Picture;
use crate::controllers::play::{Node, Played, Stage, play};
use crate::controllers::run::against;
use crate::controllers::scenario::{self, Scenario};
use crate::controllers::{recorded, side};

/// Whose statuses are recorded.
const REFERENCE: &str = "kubelet v1.34.4";

/// How many pods live at a time: most of their time is spent waiting.
const AT_ONCE: usize = 8;

/// What is to be run, and where.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The cluster, which has a node.
    pub kubeconfig: PathBuf,
    /// Only scenarios whose name contains this.
    pub only: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kubelet")
}

fn file(scenario: &Scenario) -> PathBuf {
    folder().join("recorded").join(format!("{}.json", scenario.name))
}

/// Writes down what a cluster with a real kubelet has.
///
/// # Errors
/// When the cluster cannot be asked, or a file cannot be written.
pub async fn record(choice: &Choice) -> Result<bool> {
    let mut good = true;
    for (scenario, played) in play_all(choice).await? {
        match played {
            Ok(played) if played.missed.is_empty() => {
                recorded::write_to(&file(&scenario), REFERENCE, &played.pictures)?;
                println!("recorded {}", scenario.name);
            }
            Ok(played) => {
                good = false;
                println!("{} never had: {}", scenario.name, played.missed.join("; "));
            }
            Err(error) => {
                good = false;
                println!("{} failed: {error:#}", scenario.name);
            }
        }
    }
    Ok(good)
}

/// Compares what a cluster has with what is recorded; whether nothing but words differs. What differs is printed and
/// written to `report`.
///
/// # Errors
/// When the cluster cannot be asked, or a file cannot be read or written.
pub async fn compare(choice: &Choice, report: &Path) -> Result<bool> {
    let (mut equal, mut different) = (0, 0);
    let mut text = String::new();
    for (scenario, played) in play_all(choice).await? {
        let (lines, words) = match (played, recorded::read_from(&file(&scenario))) {
            (Ok(played), Ok(recorded)) => judge(&recorded.pictures, &played),
            (Err(error), _) | (_, Err(error)) => (vec![format!("! {error:#}")], Vec::new()),
        };
        match lines.is_empty() {
            true => equal += 1,
            false => different += 1,
        }
        if !lines.is_empty() || !words.is_empty() {
            writeln!(text, "## {}: {}", scenario.name, scenario.about)?;
            lines.iter().try_for_each(|line| writeln!(text, "{line}"))?;
            words.iter().try_for_each(|line| writeln!(text, "  only words {line}"))?;
        }
    }
    writeln!(text, "pods beside {REFERENCE}: {equal} equal, {different} different")?;
    print!("{text}");
    if let Some(folder) = report.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(report, text).with_context(|| report.display().to_string())?;
    Ok(different == 0)
}

/// What differs, and what differs only in words.
fn judge(recorded: &BTreeMap<String, Picture>, played: &Played) -> (Vec<String>, Vec<String>) {
    let strict = |pictures: &BTreeMap<String, Picture>| -> BTreeMap<String, Picture> {
        let wordless = |picture: &Picture| -> Picture {
            picture.iter().map(|(name, value)| (name.clone(), without_words(value))).collect()
        };
        pictures.iter().map(|(name, picture)| (name.clone(), wordless(picture))).collect()
    };
    let bare = Played { pictures: strict(&played.pictures), missed: played.missed.clone() };
    let lines = against(&strict(recorded), &bare);
    let all = against(recorded, played);
    let words = all.into_iter().filter(|line| !lines.contains(line)).collect();
    (lines, words)
}

/// Without messages; of events only the reasons are left.
fn without_words(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(key, value)| *key != "message" || value.is_object())
                .map(|(key, value)| (key.clone(), without_words(value)))
                .collect(),
        ),
        Value::Array(_) => Value::String("told".to_owned()),
        other => other.clone(),
    }
}

/// Whether there is a scenario of such a name.
///
/// # Errors
/// When a file cannot be read.
pub fn has(only: &str) -> Result<bool> {
    Ok(!chosen(only)?.is_empty())
}

fn chosen(only: &str) -> Result<Vec<Scenario>> {
    let mut scenarios = scenario::of_folder(&folder(), "kubelet")?;
    scenarios.retain(|scenario| scenario.name.contains(only));
    Ok(scenarios)
}

async fn play_all(choice: &Choice) -> Result<Vec<(Scenario, Result<Played>)>> {
    let scenarios = chosen(&choice.only)?;
    if scenarios.is_empty() {
        bail!("there is no scenario {:?} in {}", choice.only, folder().display());
    }
    let api = Api::new(side::client(&choice.kubeconfig).await?);
    let mirror = Mirror::start(&api);
    let stage = Arc::new(Stage {
        api,
        mirror,
        now: Box::new(Timestamp::now),
        node: Node::Real,
        picture,
        _heartbeats: JoinSet::new(),
    });
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    for (index, scenario) in scenarios.into_iter().enumerate() {
        let (stage, slots) = (stage.clone(), slots.clone());
        tasks.spawn(async move {
            let _slot = slots.acquire().await;
            let played = play(&stage, &scenario).await;
            (index, scenario, played)
        });
    }
    let mut outcomes = Vec::new();
    while let Some(done) = tasks.join_next().await {
        outcomes.push(done?);
    }
    outcomes.sort_by_key(|(index, ..)| *index);
    Ok(outcomes.into_iter().map(|(_, scenario, played)| (scenario, played)).collect())
}
