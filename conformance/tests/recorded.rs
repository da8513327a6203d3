//! Our server in this process against the recorded answers of the real one.

use std::collections::BTreeSet;
use std::sync::Arc;

use windlass_conformance::client::Endpoint;
use windlass_conformance::compare::Comparison;
use windlass_conformance::local::Local;
use windlass_conformance::plant::{FAULTS, Planted};
use windlass_conformance::recorded::{self, Recording};

fn different(outcomes: &[(Recording, Comparison)]) -> BTreeSet<String> {
    outcomes.iter().filter(|(_, c)| !c.differences.is_empty()).map(|(r, _)| recorded::name(r)).collect()
}

/// What the real server answered once, we answer today.
#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_of_the_real_server() {
    let recordings = recorded::all(&[""]).unwrap();
    assert!(recordings.len() > 400, "{} recordings", recordings.len());
    let outcomes = recorded::replay(recordings, || Arc::new(Local::new())).await.unwrap();
    let known: BTreeSet<String> = recorded::known().unwrap().into_iter().collect();
    let different = different(&outcomes);
    let stale: Vec<_> = known.difference(&different).collect();
    assert!(stale.is_empty(), "equal by now, take it out of recorded/known.txt: {stale:?}");
    let mut report = String::new();
    for (recording, comparison) in &outcomes {
        if !comparison.differences.is_empty() && !known.contains(&recorded::name(recording)) {
            report += &format!("\n{}\n", recorded::name(recording));
            for difference in &comparison.differences {
                let step = &recording.sequence.steps[difference.step];
                report += &format!("  {} {}\n  {difference}\n", step.method, step.path);
            }
        }
    }
    assert!(report.is_empty(), "{report}");
}

/// Each deliberate fault makes sequences differ that do not differ without it.
#[tokio::test(flavor = "multi_thread")]
async fn every_planted_fault_is_caught() {
    for (fault, rules) in FAULTS {
        let recordings = recorded::all(rules).unwrap();
        let sound = recorded::replay(recordings.clone(), || Arc::new(Local::new())).await.unwrap();
        let planted = recorded::replay(recordings, || {
            let server: Arc<dyn Endpoint> = Arc::new(Local::new());
            Arc::new(Planted { server, fault: *fault })
        });
        let planted = different(&planted.await.unwrap());
        let sound = different(&sound);
        assert!(planted.difference(&sound).next().is_some(), "{fault:?} is not noticed");
    }
}
