//! The phase of a pod.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus};

use crate::pod::life::{Life, terminated};
use crate::pod::member::{Member, Role};

/// The phase of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    pub fn parse(text: &str) -> Option<Phase> {
        let all = [Phase::Pending, Phase::Running, Phase::Succeeded, Phase::Failed];
        all.into_iter().find(|phase| phase.text() == text)
    }

    pub fn text(self) -> &'static str {
        match self {
            Phase::Pending => "Pending",
            Phase::Running => "Running",
            Phase::Succeeded => "Succeeded",
            Phase::Failed => "Failed",
        }
    }

    pub fn is_final(self) -> bool {
        matches!(self, Phase::Succeeded | Phase::Failed)
    }
}

/// What the containers of a pod amount to.
#[derive(Default)]
struct Count {
    pending_init: usize,
    pending_sidecars: usize,
    failed_init: usize,
    waiting: usize,
    running: usize,
    stopped: usize,
    stopped_for_good: usize,
    succeeded: usize,
}

/// The phase that the containers of a pod amount to.
pub(super) fn of(life: &Life, init: &[ContainerStatus], main: &[ContainerStatus]) -> Phase {
    let mut count = Count::default();
    for status in init.iter().chain(main) {
        let Some(member) = life.member(&status.name) else { continue };
        match member.role {
            Role::Init => count.init(life, member, status),
            Role::Sidecar => count.sidecar(status),
            Role::Main => count.main(life, member, status),
            Role::Ephemeral => {}
        }
    }
    let has_initialized = main.iter().any(|status| life.record_of(&status.name).exists());
    if count.failed_init > 0 {
        return Phase::Failed;
    }
    let pending = count.pending_init > 0 || (count.pending_sidecars > 0 && !has_initialized);
    if pending || count.waiting > 0 {
        return Phase::Pending;
    }
    if count.running > 0 {
        return Phase::Running;
    }
    if count.stopped == 0 {
        return Phase::Pending;
    }
    if !life.is_over() && count.stopped != count.stopped_for_good {
        return Phase::Running;
    }
    if count.stopped == count.succeeded { Phase::Succeeded } else { Phase::Failed }
}

impl Count {
    fn init(&mut self, life: &Life, member: &Member, status: &ContainerStatus) {
        let ended = terminated(status.state.as_ref());
        let before = terminated(status.last_state.as_ref());
        let code = match (ended, before) {
            (Some(ended), _) => Some(ended.exit_code),
            (None, Some(before)) if !running(status) => Some(before.exit_code),
            _ => None,
        };
        match code {
            None => self.pending_init += 1,
            Some(0) if ended.is_none() => self.pending_init += 1,
            Some(0) => {}
            Some(code) if !member.restarts_after(life.restart_policy(), code) => self.failed_init += 1,
            Some(_) => self.pending_init += 1,
        }
    }

    fn sidecar(&mut self, status: &ContainerStatus) {
        if running(status) {
            if status.started != Some(true) {
                self.pending_sidecars += 1;
            }
            self.running += 1;
        } else if terminated(status.state.as_ref()).is_none()
            && terminated(status.last_state.as_ref()).is_none()
        {
            self.pending_sidecars += 1;
            self.waiting += 1;
        }
    }

    fn main(&mut self, life: &Life, member: &Member, status: &ContainerStatus) {
        if running(status) {
            self.running += 1;
            return;
        }
        let ended = terminated(status.state.as_ref());
        let Some(last) = ended.or(terminated(status.last_state.as_ref())) else {
            self.waiting += 1;
            return;
        };
        self.stopped += 1;
        if !member.restarts_after(life.restart_policy(), last.exit_code) {
            self.stopped_for_good += 1;
        }
        if ended.is_some_and(|ended| ended.exit_code == 0) {
            self.succeeded += 1;
        }
    }
}

fn running(status: &ContainerStatus) -> bool {
    matches!(&status.state, Some(ContainerState { running: Some(_), .. }))
}
