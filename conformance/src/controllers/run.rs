//! Runs scenarios side by side and says what differs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::diff::differences;
use super::normal::Picture;
use super::play::{Played, play};
use super::recorded;
use super::scenario::{self, Group, Scenario};
use super::side::{OnStrings, Side};

/// What is to be run.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The groups, all where it is empty.
    pub groups: Vec<String>,
    /// Only scenarios whose name contains this.
    pub only: String,
    /// `real` or `ours` alone, against what was recorded; both where it is missing.
    pub on: Option<String>,
    /// Whether the end states of the real side are written down.
    pub record: bool,
    /// Whether our nodes run the pods, on both sides, in place of the puppet.
    pub with_node: bool,
}

/// How many groups run at a time, each with its own servers, and how many scenarios of each: most of the time is waiting.
const GROUPS_AT_ONCE: usize = 4;
const SCENARIOS_AT_ONCE: usize = 16;
/// The same where pods run, which is not only waiting.
const GROUPS_WITH_NODE: usize = 2;
const SCENARIOS_WITH_NODE: usize = 8;
/// How many servers there are at a time of a group whose scenarios have one each.
const ALONE_AT_ONCE: usize = 2;

/// What came of scenarios, and how long each took.
type Outcomes = BTreeMap<String, (Result<Played>, Duration)>;

/// Runs what is chosen; prints what differs, and how many of each group do not. Whether none does.
///
/// # Errors
/// When a server does not start, or a file cannot be read or written.
pub async fn run(choice: &Choice, output: &Path) -> Result<bool> {
    let started = Instant::now();
    let mut groups = chosen(choice)?;
    // The long ones first, or the last of them is waited for alone.
    groups.sort_by_key(|group| (!group.alone, !group.long));
    let at_once = if choice.with_node { GROUPS_WITH_NODE } else { GROUPS_AT_ONCE };
    let slots = Arc::new(Semaphore::new(at_once));
    let mut tasks = JoinSet::new();
    for group in groups {
        let (slots, choice, output) = (slots.clone(), choice.clone(), output.join(&group.name));
        tasks.spawn(async move {
            let _slot = slots.acquire().await?;
            let result = run_group(&group, &choice, &output).await;
            anyhow::Ok((group.name.clone(), result))
        });
    }
    let mut lines = BTreeMap::new();
    let (mut good, mut equal_of_all) = (true, 0);
    while let Some(done) = tasks.join_next().await {
        let (name, result) = done??;
        let line = match result {
            Ok(Counts { equal, different, failed, missing, took, slowest }) => {
                good &= different + failed + missing == 0;
                equal_of_all += equal;
                let (slowest, longest) = slowest.unwrap_or_default();
                let missing = if missing == 0 { String::new() } else { format!(", {missing} too few") };
                format!(
                    "{:3} scenarios, {equal:3} equal {different:3} different {failed:3} failed{missing} {:5.0} s, {:.0} s of it {slowest}",
                    equal + different + failed,
                    took.as_secs_f64(),
                    longest.as_secs_f64()
                )
            }
            Err(error) => {
                good = false;
                format!("did not run: {error:#}")
            }
        };
        lines.insert(name, line);
    }
    for (name, line) in lines {
        println!("{name:18} {line}");
    }
    println!("{equal_of_all} scenarios are equal, in {:.0} s", started.elapsed().as_secs_f64());
    Ok(good)
}

fn chosen(choice: &Choice) -> Result<Vec<Group>> {
    let all = scenario::groups()?;
    if let Some(unknown) = choice.groups.iter().find(|name| all.iter().all(|group| group.name != **name)) {
        let names: Vec<&str> = all.iter().map(|group| group.name.as_str()).collect();
        bail!("there is no group {unknown:?}; there are: {}", names.join(", "));
    }
    let wanted = |group: &Group| choice.groups.is_empty() || choice.groups.contains(&group.name);
    Ok(all.into_iter().filter(wanted).collect())
}

struct Counts {
    equal: usize,
    different: usize,
    failed: usize,
    /// How many were to be played and were not.
    missing: usize,
    took: Duration,
    /// The scenario that took the longest.
    slowest: Option<(String, Duration)>,
}

async fn run_group(group: &Group, choice: &Choice, output: &Path) -> Result<Counts> {
    let started = Instant::now();
    let mut scenarios = scenario::of_group(&group.name)?;
    if choice.with_node {
        scenarios.retain(|one| one.only_with_the_puppet.is_none());
    }
    let missing = group.least.saturating_sub(scenarios.len());
    scenarios.retain(|one| one.name.contains(&choice.only));
    // Pods are told where it is, from the root.
    let strings = choice.with_node.then(|| path::absolute(output.join("strings"))).transpose()?;
    if let Some(strings) = &strings {
        let _ = fs::remove_dir_all(strings);
    }
    let half = |real: bool| Half { group: group.clone(), real, strings: strings.clone() };
    let on = |side: &str| choice.on.as_deref().is_none_or(|on| on == side);
    let real = async {
        match on("real") {
            true => play_all(&half(true), &output.join("real"), &scenarios).await.map(Some),
            false => Ok(None),
        }
    };
    let ours = async {
        match on("ours") && !choice.record {
            true => play_all(&half(false), &output.join("ours"), &scenarios).await.map(Some),
            false => Ok(None),
        }
    };
    let (real, ours) = tokio::try_join!(real, ours)?;
    let all = real.iter().chain(&ours).flatten();
    let slowest = all.max_by_key(|(_, (_, took))| *took).map(|(name, (_, took))| (name.clone(), *took));
    let mut counts = Counts { equal: 0, different: 0, failed: 0, missing, took: started.elapsed(), slowest };
    let mut report = String::new();
    for scenario in &scenarios {
        let name = scenario.full_name();
        let of = |outcomes: &Option<Outcomes>| match outcomes {
            Some(outcomes) => match &outcomes[&name].0 {
                Ok(played) => Ok(Some(played.clone())),
                Err(error) => Err(format!("{error:#}")),
            },
            None => Ok(None),
        };
        match judge(scenario, of(&real), of(&ours), choice.record) {
            Ok(lines) if lines.is_empty() => counts.equal += 1,
            Ok(lines) => {
                counts.different += 1;
                writeln!(report, "## {name}: {}", scenario.about)?;
                lines.iter().try_for_each(|line| writeln!(report, "{line}"))?;
            }
            Err(error) => {
                counts.failed += 1;
                writeln!(report, "## {name} failed: {error:#}")?;
            }
        }
    }
    if !report.is_empty() {
        print!("{report}");
    }
    fs::create_dir_all(output)?;
    fs::write(output.join("differences.txt"), report)?;
    Ok(counts)
}

type Side2 = Result<Option<Played>, String>;

/// What is to be said against a scenario: the differences of ours from the real side, or of the one that ran from what
/// was recorded.
fn judge(scenario: &Scenario, real: Side2, ours: Side2, record: bool) -> Result<Vec<String>> {
    let side = |side: Side2, name: &str| side.map_err(|error| anyhow::anyhow!("on the {name} side: {error}"));
    let (real, ours) = (side(real, "real")?, side(ours, "our")?);
    if let Some(missed) = real.as_ref().and_then(|real| real.missed.first()) {
        bail!("the real side never had: {missed}");
    }
    if record {
        let real = real.context("only the real side is recorded")?;
        recorded::write(scenario, &real.pictures)?;
        return Ok(Vec::new());
    }
    let (reference, other) = match (real, ours) {
        (Some(real), Some(ours)) => (real.pictures, ours),
        (Some(one), None) | (None, Some(one)) => (recorded::read(scenario)?.pictures, one),
        (None, None) => bail!("neither side was run"),
    };
    Ok(against(&reference, &other))
}

/// What differs between pictures, a line each.
pub fn against(reference: &BTreeMap<String, Picture>, other: &Played) -> Vec<String> {
    let mut lines: Vec<String> = other.missed.iter().map(|missed| format!("! never had: {missed}")).collect();
    let none = Picture::new();
    let mut names: Vec<&String> = reference.keys().chain(other.pictures.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let here = other.pictures.get(name).unwrap_or(&none);
        let found = differences(reference.get(name).unwrap_or(&none), here);
        let prefix = if name == "end" { String::new() } else { format!("({name}) ") };
        lines.extend(found.into_iter().map(|line| format!("{prefix}{line}")));
    }
    lines
}

/// One of the two sides, before it is there.
#[derive(Clone)]
struct Half {
    group: Group,
    real: bool,
    /// The folder of the strings of pods, where our nodes run them.
    strings: Option<PathBuf>,
}

async fn play_all(half: &Half, folder: &Path, scenarios: &[Scenario]) -> Result<Outcomes> {
    if !half.group.alone {
        return play_on(half, folder, scenarios).await;
    }
    let slots = Arc::new(Semaphore::new(ALONE_AT_ONCE));
    let mut tasks = JoinSet::new();
    for scenario in scenarios {
        let (half, scenario, slots) = (half.clone(), scenario.clone(), slots.clone());
        let folder = folder.join(&scenario.name);
        tasks.spawn(async move {
            let _slot = slots.acquire().await?;
            play_on(&half, &folder, &[scenario]).await
        });
    }
    let mut outcomes = Outcomes::new();
    while let Some(done) = tasks.join_next().await {
        outcomes.extend(done??);
    }
    Ok(outcomes)
}

/// Plays scenarios on a server of their own, all together.
async fn play_on(half: &Half, folder: &Path, scenarios: &[Scenario]) -> Result<Outcomes> {
    let on = half.strings.as_deref().map(|folder| OnStrings { folder, scenarios });
    let side = Arc::new(match half.real {
        true => Side::real(&half.group, folder, on).await?,
        false => Side::ours(&half.group, folder, on).await?,
    });
    let at_once = if on.is_some() { SCENARIOS_WITH_NODE } else { SCENARIOS_AT_ONCE };
    let slots = Arc::new(Semaphore::new(at_once));
    let mut tasks = JoinSet::new();
    for scenario in scenarios {
        let (scenario, side, slots) = (scenario.clone(), side.clone(), slots.clone());
        tasks.spawn(async move {
            let _slot = slots.acquire().await;
            let started = Instant::now();
            let outcome = play(&side.stage, &scenario).await;
            (scenario.full_name(), (outcome, started.elapsed()))
        });
    }
    let mut outcomes = Outcomes::new();
    while let Some(done) = tasks.join_next().await {
        let (name, outcome) = done?;
        outcomes.insert(name, outcome);
    }
    if let Some(side) = Arc::into_inner(side) {
        side.stop().await;
    }
    Ok(outcomes)
}
