//! Our server in this process against the recorded answers of the real one.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_conformance::client::Endpoint;
use windlass_conformance::compare::{Comparison, Difference};
use windlass_conformance::explained;
use windlass_conformance::local::Local;
use windlass_conformance::plant::{FAULTS, Planted};
use windlass_conformance::recorded::{self, Recording};

/// Recordings with what differs and is not explained in `docs/api-differences.md`.
fn different(outcomes: Vec<(Recording, Comparison)>) -> BTreeMap<String, (Recording, Vec<Difference>)> {
    let entries = explained::read(include_str!("../../docs/api-differences.md")).unwrap();
    let mut out = BTreeMap::new();
    for (recording, mut comparison) in outcomes {
        let rule = &recording.sequence.rule;
        comparison.differences.retain(|difference| explained::explain(&entries, rule, difference).is_none());
        if !comparison.differences.is_empty() {
            out.insert(recorded::name(&recording), (recording, comparison.differences));
        }
    }
    out
}

/// What the real server answered once, we answer today, but for what is explained.
#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_real_server() {
    let recordings = recorded::all(&[""]).unwrap();
    assert!(recordings.len() > 400, "{} recordings", recordings.len());
    let outcomes = recorded::replay(recordings, |second| Arc::new(Local::at(second))).await.unwrap();
    let mut report = String::new();
    for (name, (recording, differences)) in different(outcomes) {
        report += &format!("\n{name}\n");
        for difference in differences {
            let step = &recording.sequence.steps[difference.step];
            report += &format!("  {} {}\n  {difference}\n", step.method, step.path);
        }
    }
    assert!(report.is_empty(), "{report}");
}

/// Each deliberate fault makes sequences differ that do not differ without it.
#[tokio::test(flavor = "multi_thread")]
async fn every_planted_fault_is_caught() {
    for (fault, rules) in FAULTS {
        let recordings = recorded::all(rules).unwrap();
        let sound = recorded::replay(recordings.clone(), |second| Arc::new(Local::at(second))).await.unwrap();
        let planted = recorded::replay(recordings, |second| {
            let server: Arc<dyn Endpoint> = Arc::new(Local::at(second));
            Arc::new(Planted { server, fault: *fault })
        });
        let planted = different(planted.await.unwrap());
        let sound = different(sound);
        assert!(planted.keys().any(|name| !sound.contains_key(name)), "{fault:?} is not noticed");
    }
}
