//! What a run found, for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::answer::{Answer, Body};
use crate::compare::Difference;
use crate::explained::{self, Entry};
use crate::rules;
use crate::sequence::{Payload, Step};
use crate::suite::Outcome;

/// The counts of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Sequences.
    pub run: usize,
    /// Of these, made from the seed.
    pub generated: usize,
    /// Sequences with a difference that nothing explains.
    pub different: usize,
    /// Rules with fewer sequences than every rule has.
    pub thin: Vec<String>,
}

impl Summary {
    /// Whether the run shows what it has to show.
    pub fn good(&self) -> bool {
        self.different == 0 && self.thin.is_empty() && self.generated * 2 >= self.run
    }
}

/// Counts per rule: run, generated, equal, explained, different.
type Counts = [usize; 5];

/// Prints the table and writes one file per sequence that differs into `folder`.
///
/// # Errors
/// When a file cannot be written.
pub fn report(outcomes: &[Outcome], entries: &[Entry], folder: &Path, messages: bool) -> Result<Summary> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    let mut table: BTreeMap<String, Counts> =
        rules::all().into_keys().map(|rule| (rule, Counts::default())).collect();
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut wording = String::new();
    for outcome in outcomes {
        let sequence = &outcome.sequence;
        let counts = table.entry(sequence.rule.clone()).or_default();
        let all = &outcome.comparison.differences;
        let unexplained: Vec<&Difference> =
            all.iter().filter(|d| explained::explain(entries, &sequence.rule, d).is_none()).collect();
        counts[0] += 1;
        counts[1] += usize::from(sequence.generated);
        counts[2] += usize::from(all.is_empty());
        counts[3] += usize::from(!all.is_empty() && unexplained.is_empty());
        counts[4] += usize::from(!unexplained.is_empty());
        for difference in &outcome.comparison.wording {
            let _ = writeln!(wording, "{}/{} {difference}", sequence.rule, sequence.name);
        }
        let Some(first) = unexplained.first() else { continue };
        let name = format!("{}/{}", sequence.rule, sequence.name);
        groups.entry(group(outcome, first)).or_default().push(name);
        let file = format!("{}-{}.txt", sequence.rule, sequence.name.replace(['/', ' '], "_"));
        fs::write(folder.join(file.chars().take(120).collect::<String>()), story(outcome, &unexplained))?;
    }
    let mut summary = Summary::default();
    println!(
        "{:<26} {:>5} {:>9} {:>6} {:>9} {:>9}",
        "rule", "run", "generated", "equal", "explained", "different"
    );
    for (rule, [run, generated, equal, explained, different]) in table {
        if run > 0 {
            println!("{rule:<26} {run:>5} {generated:>9} {equal:>6} {explained:>9} {different:>9}");
        }
        summary.run += run;
        summary.generated += generated;
        summary.different += different;
        if run < rules::LEAST {
            summary.thin.push(rule);
        }
    }
    println!("{:<26} {:>5} {:>9} {:>26}", "all", summary.run, summary.generated, summary.different);
    fs::write(folder.join("wording.txt"), &wording)?;
    fs::write(folder.join("groups.md"), grouped(&groups))?;
    if messages {
        print!("{wording}");
    }
    Ok(summary)
}

/// What the cause of a difference looks like: differences of one group most often have one cause.
fn group(outcome: &Outcome, difference: &Difference) -> String {
    let step = &outcome.sequence.steps[difference.step];
    let mut place = String::new();
    for part in difference.place.split('/') {
        let number = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        place += if number { "N" } else { part };
        place.push('/');
    }
    place.pop();
    let cut = |text: &str| text.chars().take(100).collect::<String>();
    format!(
        "{} `{place}`: reference `{}`, ours `{}`",
        step.method,
        cut(&difference.reference),
        cut(&difference.ours)
    )
}

fn grouped(groups: &BTreeMap<String, Vec<String>>) -> String {
    let mut sorted: Vec<_> = groups.iter().collect();
    sorted.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let mut out = String::new();
    for (group, names) in sorted {
        let some: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
        let _ = writeln!(out, "- {} × {group}\n  ({})", names.len(), some.join("; "));
    }
    out
}

/// One sequence with its differences, as a file.
fn story(outcome: &Outcome, differences: &[&Difference]) -> String {
    let mut out = format!("{}/{}\n", outcome.sequence.rule, outcome.sequence.name);
    for (index, step) in outcome.sequence.steps.iter().enumerate() {
        let _ = writeln!(out, "\n[{index}] {}", request(step));
        let here: Vec<_> = differences.iter().filter(|d| d.step == index).collect();
        for difference in &here {
            let _ = writeln!(out, "DIFFERENT {difference}");
        }
        let answers = (&outcome.reference.answers[index], &outcome.ours.answers[index]);
        match answers {
            (Some(reference), Some(ours)) if !here.is_empty() => {
                let _ = writeln!(out, "reference answered {}", answer(reference));
                let _ = writeln!(out, "we answered        {}", answer(ours));
            }
            (Some(reference), _) => {
                let _ = writeln!(out, "both answered {}", reference.status);
            }
            _ => {}
        }
    }
    out
}

fn request(step: &Step) -> String {
    let mut out = format!("{} {}{}", step.method, step.path, step.watch);
    if let Some(how) = &step.collect {
        let _ = write!(out, " {how:?}");
    }
    for (name, value) in &step.headers {
        let _ = write!(out, "\n    {name}: {value}");
    }
    match &step.body {
        Payload::None => {}
        Payload::Json(tree) => drop(write!(out, "\n    {tree}")),
        other => drop(write!(out, "\n    {other:?}")),
    }
    out
}

fn answer(answer: &Answer) -> String {
    let mut out = format!("{} {}", answer.status, answer.error);
    for (name, value) in &answer.headers {
        let _ = write!(out, "\n    {name}: {value}");
    }
    match &answer.body {
        Body::None => {}
        Body::Tree(tree) => drop(write!(out, "\n    {tree}")),
        Body::Text(text) => drop(write!(out, "\n    {text}")),
        Body::Events(events, ended) => {
            for event in events {
                let _ = write!(out, "\n    {event}");
            }
            let _ = write!(out, "\n    ended: {ended}");
        }
    }
    out
}
