//! Whether the operator is ready, as `/readyz` says it.

use std::time::Duration;

use crate::cache::{Cache, InformerHealth, State};
use crate::env::Env;
use crate::health::Checks;

/// Whether the operator knows what is going on: every informer follows the server, and has heard of it lately.
pub(super) fn ready(cache: &Cache, env: &Env) -> Checks {
    let checks = Checks::new();
    let (cache, env) = (cache.clone(), env.clone());
    checks.add("informers", move || {
        let waiting = cache.waiting().into_iter().map(|kind| format!("{kind} is not listed yet"));
        let health = cache.health();
        let wrong: Vec<String> =
            waiting.chain(health.iter().filter_map(|health| wrong(health, &env))).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    });
    checks
}

/// The server sends something at least every minute, and ends a watch after some minutes: silence for this long means that
/// what is known may be old.
const SILENT_FOR: Duration = Duration::from_secs(600);

fn wrong(health: &InformerHealth, env: &Env) -> Option<String> {
    let what = &health.target;
    let silent = env.moment() - health.heard;
    match &health.state {
        State::Syncing => Some(format!("{what} is being listed")),
        State::Failing { error, since } => {
            Some(format!("{what} fails since {} s: {error}", (env.moment() - *since).as_secs()))
        }
        State::Absent if !health.optional => Some(format!("the server has no {what}")),
        State::Live if silent > SILENT_FOR => {
            Some(format!("nothing was heard of {what} for {} s", silent.as_secs()))
        }
        State::Absent | State::Live => None,
    }
}
