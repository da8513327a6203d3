//! What is kept of many trials.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::rounds::Rounds;
use crate::trial::{Outcome, Trial};

/// Everything that came of it.
#[derive(Debug)]
pub struct Tally {
    options: Rounds,
    outcomes: BTreeMap<Trial, Vec<Outcome>>,
    failures: Vec<String>,
}

impl Tally {
    pub(crate) fn new(options: &Rounds) -> Tally {
        Tally { options: options.clone(), outcomes: BTreeMap::new(), failures: Vec::new() }
    }

    pub(crate) fn add(&mut self, outcome: Outcome) {
        self.outcomes.entry(outcome.trial.clone()).or_default().push(outcome);
    }

    pub(crate) fn fail(&mut self, failure: String) {
        self.failures.push(failure);
    }

    /// What did not heal, or was lost.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    /// How many trials went well.
    pub fn count(&self) -> usize {
        self.outcomes.values().map(Vec::len).sum()
    }

    /// The report, as Markdown. `about` says where and when it was.
    pub fn markdown(&self, about: &str) -> String {
        let verdicts = || self.outcomes.values().flatten().filter_map(|outcome| outcome.verdict.as_ref());
        let acknowledged: u64 = verdicts().map(|verdict| verdict.acknowledged).sum();
        let seconds: f64 = verdicts().map(|verdict| verdict.seconds).sum();
        let mut text = format!(
            "# etcd clusters, broken under load\n\n{about}\n\nSeed {}, {} rounds, {} at a time. {acknowledged} acknowledged writes \
             in {:.0} minutes of load were looked for: **{}**.\n\n",
            self.options.seed,
            self.options.rounds,
            self.options.lanes,
            seconds / 60.0,
            if self.failures.is_empty() { "lost: 0, reordered: 0" } else { "something failed, see below" },
        );
        text.push_str(
            "| What happened | Times | Healthy again after, median | At most | By another member | Longest pause of writes |\n\
             |---|---|---|---|---|---|\n",
        );
        for (trial, outcomes) in &self.outcomes {
            let mut times: Vec<Duration> = outcomes.iter().map(|outcome| outcome.took).collect();
            times.sort_unstable();
            let at = |index: usize| times.get(index).map_or(0.0, Duration::as_secs_f64);
            let last = times.len().saturating_sub(1);
            let median = f64::midpoint(at(last / 2), at(times.len() / 2));
            let replaced = outcomes.iter().filter(|outcome| outcome.replaced).count();
            let pauses = outcomes.iter().filter_map(|outcome| outcome.verdict.as_ref());
            let pause = pauses.map(|verdict| verdict.longest_pause_seconds).reduce(f64::max);
            let pause = pause.map_or_else(|| "–".to_owned(), |pause| format!("{pause:.1} s"));
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "| {trial} | {} | {median:.1} s | {:.1} s | {replaced} | {pause} |",
                times.len(),
                at(last)
            );
        }
        if !self.failures.is_empty() {
            text.push_str("\n## What failed\n\n");
            self.failures.iter().for_each(|failure| text.push_str(&format!("- {failure}\n")));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;

    #[test]
    fn a_report_has_a_line_for_everything_that_was_tried() {
        let options = Rounds { rounds: 3, lanes: 1, seed: 7, faults: vec![Fault::PodDeleted], sizes: false };
        let mut tally = Tally::new(&options);
        for seconds in [5, 1, 2] {
            let took = Duration::from_secs(seconds);
            tally.add(Outcome {
                trial: Trial::Fault(Fault::PodDeleted),
                took,
                replaced: seconds > 4,
                verdict: None,
            });
        }
        assert_eq!(tally.count(), 3);
        let text = tally.markdown("Here.");
        assert!(text.contains("| pod deleted | 3 | 2.0 s | 5.0 s | 1 | – |"), "{text}");
        assert!(text.contains("lost: 0"), "{text}");
        tally.fail("round 2: lost".to_owned());
        let text = tally.markdown("Here.");
        assert!(!text.contains("lost: 0") && text.contains("- round 2: lost"), "{text}");
    }
}
