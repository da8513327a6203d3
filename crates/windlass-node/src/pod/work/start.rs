//! The start of a container, and what follows from it.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, select};
use k8s_openapi::api::core::v1::Pod;
use nix::sys::signal::Signal;
use tokio::sync::{broadcast, watch};
use windlass_sandbox::Spec;

use crate::image::{Image, Unresolved};
use crate::pod::ask::Asked;
use crate::pod::board::{Shown, Stdin};
use crate::pod::launch::{self, Place};
use crate::pod::life::{Exit, NotStarted, Pulled, Started};
use crate::pod::member::Member;
use crate::pod::node::{Node, bare, container_id};
use crate::pod::output::{self, LogFile, WAITING};
use crate::pod::runtime::{Io, RunError};
use crate::pod::security;

/// What a container that has ended may still have to say takes no longer than this.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A container that was started.
pub(super) struct Live {
    pub started: Started,
    pub asked: Asked,
    pub shown: Arc<Shown>,
    /// What asks it to end.
    pub stop_signal: Signal,
    /// Carries its output, and resolves to how it ended.
    pub follow: BoxFuture<'static, Exit>,
}

/// Starts a container.
pub(super) async fn start(
    node: Arc<Node>,
    pod: Arc<Pod>,
    member: Member,
    attempt: i32,
    place: Arc<Place>,
) -> Result<Live, NotStarted> {
    let container = &member.spec;
    let policy = container.image_pull_policy.as_deref().unwrap_or_default();
    let image = match node.images.resolve(member.image()) {
        Ok(image) => image,
        Err(Unresolved::Invalid(error)) => {
            let message = format!("Failed to apply default image tag \"{}\": {error}", member.image());
            return Err(NotStarted::ImageName(message));
        }
        Err(Unresolved::Missing { .. }) if policy == "Never" => return Err(NotStarted::ImageAbsent),
        Err(error) => return Err(NotStarted::Pull(error.to_string())),
    };
    let pulled = if policy == "Always" { Pulled::Fetched(0) } else { Pulled::Present };
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let spec = launch::spec(&pod, container, attempt, &image, &place, &*node.library)
        .and_then(|spec| Ok(Spec { processes_of: target(&node, &pod, uid, member.name())?, ..spec }))
        .map_err(|why| NotStarted::Config(why, pulled.clone()))?;
    let id = container_id(uid, member.name(), attempt);
    let started = |node: &Node, spec: &Spec| Started {
        id: id.clone(),
        image: shown_image(member.image(), &image),
        image_id: image.id.clone(),
        pulled: pulled.clone(),
        user: Some(security::told(&spec.user)),
        at: node.env.now(),
    };
    let log_path = place.log(member.name(), attempt);
    let files = make_files(&place, member.name(), attempt)
        .and_then(|()| LogFile::create(&log_path))
        .map_err(|error| NotStarted::Create(error.to_string(), pulled.clone()));
    let log = files?;
    let io = Io { stdin: container.stdin == Some(true), tty: container.tty == Some(true) };
    let program = match node.runtime.run(bare(&id), spec.clone(), io).await {
        Ok(program) => program,
        Err(RunError::Program(why)) => return Err(NotStarted::Run(why, started(&node, &spec))),
        Err(RunError::Place(why)) => return Err(NotStarted::Create(why, pulled)),
    };
    let started = started(&node, &spec);
    let spec = Arc::new(spec);
    let (ended, has_ended) = watch::channel(false);
    let (listeners, _) = broadcast::channel(WAITING);
    let shown = Arc::new(Shown {
        container: member.name().to_owned(),
        id: id.clone(),
        spec: spec.clone(),
        log: log_path.clone(),
        ended: has_ended,
        listeners: listeners.downgrade(),
        stdin: Mutex::new(program.stdin.map_or(Stdin::None, Stdin::Free)),
        stdin_once: container.stdin_once == Some(true),
        tty: io.tty,
        resize: program.resize,
        signal: program.signal,
    });
    let asked = Asked {
        env: node.env.clone(),
        runtime: node.runtime.clone(),
        id: bare(&id).to_owned(),
        net: place.net.clone(),
        ip: place.facts.pod_ips.first().cloned(),
        container: container.clone(),
        spec,
    };
    let message = place.run_folder(member.name(), attempt).join("termination-log");
    let falls_back = container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    let env = node.env.clone();
    let carry = output::carry(env.clone(), log, program.stdout, program.stderr, listeners);
    let exit = program.exit;
    let follow = async move {
        let carry = std::pin::pin!(carry);
        let (exit, left) = match select(exit, carry).await {
            Either::Left((exit, carry)) => (exit, Some(carry)),
            Either::Right(((), exit)) => (exit.await, None),
        };
        let at = env.now();
        if let Some(carry) = left {
            // Nothing of it is left that could write, so that this is soon over.
            let _ = env.within(LAST_WORDS, carry).await;
        }
        let message = output::message(&message, &log_path, falls_back && exit.code != 0);
        ended.send_replace(true);
        Exit { code: exit.code, oom: exit.oom, message, at }
    };
    let of_container = container.lifecycle.as_ref().and_then(|hooks| hooks.stop_signal.as_deref());
    let stop_signal = stop_signal(of_container, &image.stop_signal);
    Ok(Live { started, asked, shown, stop_signal, follow: Box::pin(follow) })
}

/// The container whose processes this one is to see: that which an ephemeral container is for.
fn target(node: &Node, pod: &Pod, uid: &str, name: &str) -> Result<Option<String>, String> {
    let mut all = pod.spec.iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten());
    let target = all.find(|one| one.name == name).and_then(|one| one.target_container_name.as_deref());
    let Some(target) = target.filter(|target| !target.is_empty()) else { return Ok(None) };
    let running = node.board.running(Some(uid)).into_iter().find(|run| run.container == target);
    match running {
        Some(run) => Ok(Some(bare(&run.id).to_owned())),
        None => Err(format!("unable to find target container {target:?}")),
    }
}

/// The signal that asks a container to end: what it says, else what its image says, by name or number.
fn stop_signal(of_container: Option<&str>, of_image: &str) -> Signal {
    let parse = |text: &str| -> Option<Signal> {
        let by_number = || Signal::try_from(text.parse::<i32>().ok()?).ok();
        text.parse().ok().or_else(|| format!("SIG{text}").parse().ok()).or_else(by_number)
    };
    of_container.and_then(parse).or_else(|| parse(of_image)).unwrap_or(Signal::SIGTERM)
}

/// An image as statuses name it: by its full name, with what the pod asked for.
fn shown_image(asked: &str, image: &Image) -> String {
    if image.name.is_empty() { asked.to_owned() } else { image.name.clone() }
}

/// The files of a run, and no longer those of runs that nobody asks for.
fn make_files(place: &Place, container: &str, attempt: i32) -> std::io::Result<()> {
    let run = place.run_folder(container, attempt);
    fs::create_dir_all(&run)?;
    fs::write(run.join("termination-log"), "")?;
    open_to_all(&run.join("termination-log"))?;
    let number = |name: &std::ffi::OsStr| name.to_str()?.split('.').next()?.parse::<i32>().ok();
    for folder in [run.parent(), place.log(container, attempt).parent()].into_iter().flatten() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            if number(&entry.file_name()).is_some_and(|old| old < attempt - 1) {
                super::prepare::remove(&entry.path());
            }
        }
    }
    Ok(())
}

fn open_to_all(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_container_says_how_it_is_asked_to_end_else_its_image() {
        assert_eq!(stop_signal(None, ""), Signal::SIGTERM);
        assert_eq!(stop_signal(None, "SIGINT"), Signal::SIGINT);
        assert_eq!(stop_signal(Some("SIGUSR1"), "SIGINT"), Signal::SIGUSR1);
        assert_eq!(stop_signal(None, "QUIT"), Signal::SIGQUIT);
        assert_eq!(stop_signal(None, "3"), Signal::SIGQUIT);
        assert_eq!(stop_signal(None, "nonsense"), Signal::SIGTERM);
    }
}
