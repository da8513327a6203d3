//! One leads, the other stands by.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;

use super::{foobar, foobars, text, wait_all_done};
use crate::operators::calls::{Call, lines};
use crate::operators::process::Process;
use crate::operators::scene::{SOON, Scene};

/// What a change of leaders may take beyond the time of the lease.
const SLACK: Duration = Duration::from_secs(2);

/// The leader is killed while there is work.
pub fn killed(scene: &Scene<'_>) -> Result<String> {
    let started = Timestamp::now();
    let (mut a, b) = replicas(scene)?;
    let took = while_busy(scene, || {
        std::thread::sleep(Duration::from_secs(2));
        let at = Timestamp::now();
        a.signal("KILL")?;
        let took = takes_over(scene, &b, at)?;
        std::thread::sleep(Duration::from_secs(1));
        Ok(took)
    })?;
    ensure!(took <= scene.times.lease.duration + SLACK, "the standby's first write came after {took:?}");
    wait_all_done(scene, BUSY, SOON)?;
    let (by_a, by_b) = one_after_the_other(scene, started)?;
    Ok(format!(
        "lease {:?}: the standby's first write after {:.2} s; {} writes by the one, then {} by the other",
        scene.times.lease.duration,
        took.as_secs_f64(),
        by_a.len(),
        by_b.len()
    ))
}

/// The leader is stopped until another leads, and goes on while there is work.
pub fn stopped(scene: &Scene<'_>) -> Result<String> {
    let started = Timestamp::now();
    let (mut a, b) = replicas(scene)?;
    scene.kubectl.apply(&foobars(&names(), "before"))?;
    wait_all_done(scene, BUSY, SOON)?;
    // Nothing is half on its way when it falls asleep: no fence could call that back.
    scene.quiet(&scene.user("a"), Duration::from_millis(500))?;
    let at = Timestamp::now();
    a.signal("STOP")?;
    let said = a.log().len();
    let (took, woken, ended, status) = while_busy(scene, || {
        let took = takes_over(scene, &b, at)?;
        std::thread::sleep(Duration::from_secs(1));
        let woken = Timestamp::now();
        a.signal("CONT")?;
        let begun = Instant::now();
        let status = a.wait(scene.times.lease.deadline)?;
        let ended = begun.elapsed();
        std::thread::sleep(Duration::from_secs(1));
        Ok((took, woken, ended, status))
    })?;
    let writes = scene.calls(&scene.user("a"), woken)?;
    let writes: Vec<&Call> = writes.iter().filter(|call| call.is_write()).collect();
    ensure!(writes.is_empty(), "woken, the old leader asked for changes:{}", lines(writes));
    ensure!(status.code().is_some_and(|code| code != 0), "the old leader ended with {status}");
    let last_words = a.log().split_off(said);
    ensure!(last_words.contains("lease"), "the old leader does not say why it ended: {last_words}");
    ensure!(took <= scene.times.lease.duration + SLACK, "the standby's first write came after {took:?}");
    wait_all_done(scene, BUSY, SOON)?;
    let (by_a, by_b) = one_after_the_other(scene, started)?;
    Ok(format!(
        "the standby's first write after {:.2} s; woken, the old leader wrote nothing and ended with {} after {:.2} s; \
         {} writes, then {}",
        took.as_secs_f64(),
        status.code().unwrap_or_default(),
        ended.as_secs_f64(),
        by_a.len(),
        by_b.len()
    ))
}

/// The leader is told to stop.
pub fn ended(scene: &Scene<'_>) -> Result<String> {
    let started = Timestamp::now();
    let (mut a, b) = replicas(scene)?;
    let (took, end) = while_busy(scene, || {
        std::thread::sleep(Duration::from_secs(1));
        let at = Timestamp::now();
        a.signal("TERM")?;
        let begun = Instant::now();
        let status = a.wait(SOON)?;
        ensure!(status.success(), "told to stop, it ended with {status}{}", a.log_tail());
        let end = begun.elapsed();
        let lease = scene.kubectl.get("lease", "foobar-operator")?.context("no lease")?;
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        let took = takes_over(scene, &b, at)?;
        let lease = scene.kubectl.get("lease", "foobar-operator")?.context("no lease")?;
        let new = text(&lease, "/spec/holderIdentity")?;
        ensure!(holder.is_empty() || holder == new, "the lease was not released: {holder}");
        Ok((took, end))
    })?;
    // The standby looks every retry period, which client-go lengthens by up to 1.2 of it at random.
    let at_once = scene.times.lease.retry.mul_f64(2.2) + Duration::from_secs(1);
    ensure!(took - end.min(took) <= at_once, "the standby's first write came {took:?} after the signal");
    wait_all_done(scene, BUSY, SOON)?;
    one_after_the_other(scene, started)?;
    Ok(format!(
        "ended with 0 after {:.2} s, the standby's first write {:.2} s after the signal",
        end.as_secs_f64(),
        took.as_secs_f64()
    ))
}

/// How many FooBars are edited all the time.
const BUSY: usize = 5;

fn names() -> Vec<String> {
    (0..BUSY).map(|number| format!("busy-{number}")).collect()
}

/// Two replicas; the first leads.
fn replicas(scene: &Scene<'_>) -> Result<(Process, Process)> {
    let a = scene.operator(&scene.user("a")).elected().start()?;
    scene.until("the first replica leads", SOON, || Ok(leads(&a)))?;
    let b = scene.operator(&scene.user("b")).elected().start()?;
    ensure!(leads(&b).is_err(), "both lead");
    Ok((a, b))
}

fn leads(operator: &Process) -> Result<(), String> {
    match operator.metric("leader_election_master_status", &[]) {
        Ok(1.0) => Ok(()),
        Ok(value) => Err(value.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Edits FooBars over and over while something is done: whoever may write has something to write.
fn while_busy<T>(scene: &Scene<'_>, act: impl FnOnce() -> Result<T>) -> Result<T> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let editing = scope.spawn(|| {
            let mut round = 0;
            while !done.load(Ordering::Relaxed) {
                scene.kubectl.apply(&foobars(&names(), &format!("round-{round}")))?;
                round += 1;
            }
            anyhow::Ok(())
        });
        let acted = act();
        done.store(true, Ordering::Relaxed);
        // Where there was nothing to do, that nobody did it is no wonder.
        editing.join().expect("no panic").context("the FooBars could not be edited")?;
        acted
    })
}

/// Waits for the first write of the standby; how long after a time it came.
fn takes_over(scene: &Scene<'_>, standby: &Process, at: Timestamp) -> Result<Duration> {
    let patience = scene.times.lease.duration + SOON;
    let first = scene.until("the standby works", patience, || {
        let calls = scene.calls(&scene.user("b"), at)?;
        let first = calls.into_iter().find(Call::is_work).map(|call| call.time);
        Ok(first.ok_or_else(|| standby.log_tail()))
    })?;
    let name = "after";
    scene.kubectl.apply(&foobar(name, "x", None).to_string())?;
    leads(standby).map_err(|seen| anyhow::anyhow!("it works and does not lead: {seen}"))?;
    Ok(first.duration_since(at).try_into().unwrap_or_default())
}

/// The writes of both, of which the second has written nothing before the last of the first.
fn one_after_the_other(scene: &Scene<'_>, since: Timestamp) -> Result<(Vec<Call>, Vec<Call>)> {
    let work = |letter| -> Result<Vec<Call>> {
        let mut calls = scene.calls(&scene.user(letter), since)?;
        calls.retain(Call::is_work);
        Ok(calls)
    };
    let (a, b) = (work("a")?, work("b")?);
    let (last, first) =
        (a.last().context("the first never wrote")?, b.first().context("the second never wrote")?);
    ensure!(last.time < first.time, "both write:{}", lines([last, first]));
    Ok((a, b))
}
