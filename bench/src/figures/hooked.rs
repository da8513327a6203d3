//! Writes that a webhook is asked about, and which it allows at once.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::rates;
use crate::hook::{Hook, Manner};
use crate::load::Until;
use crate::objects::NAMESPACE;
use crate::server::Server;
use crate::{Numbers, Settings};

/// Creates ConfigMaps over all connections, then over one.
pub fn measure(server: &Server, settings: &Settings) -> Result<Numbers> {
    let mut numbers = Numbers::new();
    server.create_namespace(NAMESPACE)?;
    let hook = Hook::start(Manner::Allows)?;
    hook.configure(server, "app", "bench")?;
    // kube-apiserver hears of hooks by a watch.
    let deadline = Instant::now() + Duration::from_secs(10);
    for round in 0.. {
        if hook.asked() > 0 {
            break;
        }
        ensure!(Instant::now() < deadline, "nobody asks the webhook");
        rates::create(server, 1, Until::Count(10), &format!("begin-{round}"))?;
    }
    rates::create(server, settings.connections, Until::Count(1000), "warm")?;
    let (asked, opened) = (hook.asked(), hook.opened());
    let until = Until::Passed(settings.time);
    let (many, cpu) = rates::with_cpu(server, || rates::create(server, settings.connections, until, "many"))?;
    let alone = rates::create(server, 1, until, "alone")?;
    let written = many.count + alone.count;
    ensure!(hook.asked() - asked >= written, "the webhook was not asked about each of {written} writes");
    numbers.insert("hooked rate", many.rate());
    numbers.insert("hooked cpu", cpu / many.count as f64);
    numbers.insert("hooked p99", many.p99.as_secs_f64());
    numbers.insert("hooked alone", alone.took.as_secs_f64() / alone.count as f64);
    numbers.insert("hooked connections", (hook.opened() - opened) as f64);
    Ok(numbers)
}
