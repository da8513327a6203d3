//! An operator at rest.

use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::Timestamp;

use super::{foobars, wait_all_done};
use crate::operators::calls::lines;
use crate::operators::scene::{SOON, Scene};

/// Nothing happens, so nothing is asked for; no-op patches count.
pub fn check(scene: &Scene<'_>) -> Result<String> {
    let user = scene.user("a");
    let _operator = scene.operator(&user).elected().start()?;
    let names: Vec<String> = (0..10).map(|number| format!("f{number}")).collect();
    scene.kubectl.apply(&foobars(&names, "x"))?;
    wait_all_done(scene, names.len(), SOON)?;
    scene.quiet(&user, Duration::from_secs(2))?;

    let since = Timestamp::now();
    std::thread::sleep(scene.times.rest);
    let calls = scene.calls(&user, since)?;
    let (renewals, writes): (Vec<_>, Vec<_>) =
        calls.iter().filter(|call| call.is_write()).partition(|call| call.is_lease());
    ensure!(writes.is_empty(), "at rest it asked for changes:{}", lines(writes));
    // That the lease is renewed shows that the calls are seen, and that the operator was awake.
    let expected = scene.times.rest.as_secs_f64() / scene.times.lease.retry.as_secs_f64();
    ensure!(
        (expected * 0.5..expected * 1.5 + 2.0).contains(&(renewals.len() as f64)),
        "{} renewals, not about {expected}:{}",
        renewals.len(),
        lines(renewals)
    );
    let reads = calls.iter().filter(|call| !call.is_write() && !call.is_lease()).count();
    Ok(format!(
        "in {:.0} s with {} FooBars: 0 writes, {} renewals, {reads} reads beside them",
        scene.times.rest.as_secs_f64(),
        names.len(),
        renewals.len()
    ))
}
