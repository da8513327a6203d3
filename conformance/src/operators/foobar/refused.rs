//! A watch that the server always refuses.

use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::Timestamp;

use super::{foobars, wait_all_done};
use crate::operators::calls::lines;
use crate::operators::process::Process;
use crate::operators::scene::{SOON, Scene};
use crate::operators::server::RESTRICTED;

const COUNT: usize = 20;
/// Its start takes a dozen lines. With one for each pass that fails there would be hundreds.
const LOG_MAX: usize = 40;
/// In this time every edit has to be looked at, whatever else fails.
const WINDOW: Duration = Duration::from_secs(2);

/// ConfigMaps cannot be listed nor watched: first by nobody in particular, then by the operator, then by nobody again.
pub fn check(scene: &Scene<'_>) -> Result<String> {
    scene.server.let_restricted_watch(false)?;
    let well = scene.operator(&scene.user("a")).start()?;
    scene.kubectl.apply(&foobars(&names(), "before"))?;
    wait_all_done(scene, COUNT, SOON)?;
    let (still, with) = (passes(&well, WINDOW)?, passes_of_edits(scene, &well, "well")?);
    ensure!(still == 0.0 && with >= COUNT as f64, "without a refusal: {still} passes, and {with} with edits");
    wait_all_done(scene, COUNT, SOON)?;
    drop(well);

    let since = Timestamp::now();
    let mut operator = scene.operator(RESTRICTED).spawn()?;
    let (status, readyz) = scene.until("/readyz tells that ConfigMaps are refused", SOON, || {
        ensure!(operator.ended()?.is_none(), "the operator ended{}", operator.log_tail());
        Ok(match operator.readyz() {
            Ok((status, text)) if text.contains("ConfigMap") && text.contains("forbidden") => {
                Ok((status, text))
            }
            Ok((status, text)) => Err(format!("{status} {text}{}", operator.log_tail())),
            Err(error) => Err(format!("{error:#}{}", operator.log_tail())),
        })
    })?;
    ensure!(status != 200, "/readyz says {status}: {readyz}");
    std::thread::sleep(scene.times.refusal.saturating_sub(WINDOW * 2));
    let (still, with) = (passes(&operator, WINDOW)?, passes_of_edits(scene, &operator, "refused")?);
    ensure!(
        with - still >= COUNT as f64,
        "{COUNT} edits gave {with} passes where there were {still} without an edit{}",
        operator.log_tail()
    );
    let failing = operator.metric("windlass_informer_state", &["ConfigMap", "failing"])?;
    ensure!(failing == 1.0, "the metric of the informer says {failing}");
    let log = operator.log();
    let lines_of_log = log.lines().count();
    ensure!(lines_of_log < LOG_MAX, "the log has {lines_of_log} lines{}", operator.log_tail());
    let told = log.lines().filter(|line| line.contains("watch fails") && line.contains("ConfigMap")).count();
    ensure!(told == 1, "the log tells of it {told} times{}", operator.log_tail());
    let calls = scene.calls(RESTRICTED, since)?;
    let refused: Vec<_> = calls.iter().filter(|call| call.code == 403).collect();
    let seconds = Timestamp::now().duration_since(since).as_secs_f64();
    ensure!((1..=12).contains(&refused.len()), "refused in {seconds:.0} s:{}", lines(refused));

    scene.server.let_restricted_watch(true)?;
    // The last pause of its backoff may be half a minute.
    operator.ready(SOON * 2)?;
    wait_all_done(scene, COUNT, SOON)?;
    Ok(format!(
        "{COUNT} edits: {with} passes in {WINDOW:?}, {still} without; refused {} times in {seconds:.0} s, told of once \
         in {lines_of_log} lines of log",
        refused.len()
    ))
}

fn names() -> Vec<String> {
    (0..COUNT).map(|number| format!("f{number}")).collect()
}

/// How many FooBars were looked at in a while, however that ended.
fn passes(operator: &Process, period: Duration) -> Result<f64> {
    let count = || operator.metric("controller_runtime_reconcile_total", &["foobar"]);
    let before = count()?;
    std::thread::sleep(period);
    Ok(count()? - before)
}

/// The same, when all of them are edited meanwhile.
fn passes_of_edits(scene: &Scene<'_>, operator: &Process, target: &str) -> Result<f64> {
    std::thread::scope(|scope| {
        let edits = scope.spawn(|| scene.kubectl.apply(&foobars(&names(), target)));
        let passes = passes(operator, WINDOW);
        edits.join().expect("no panic")?;
        passes
    })
}
