//! The containers of a pod, each with the part that it plays.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule, EphemeralContainer, Pod};

/// The part that a container plays in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Runs to its end before the next one starts.
    Init,
    /// An init container with `restartPolicy: Always`: runs beside the main containers, from before them until after.
    Sidecar,
    /// One of `spec.containers`.
    Main,
    /// Added to a pod that runs, for a look inside.
    Ephemeral,
}

/// What becomes of a container that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    /// It is started again.
    Always,
    /// It is started again unless it ended well.
    OnFailure,
    /// It stays as it is.
    Never,
}

impl RestartPolicy {
    /// The policy of a pod.
    pub fn of(pod: &Pod) -> RestartPolicy {
        let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
        RestartPolicy::parse(policy.unwrap_or("Always"))
    }

    fn parse(text: &str) -> RestartPolicy {
        match text {
            "Never" => RestartPolicy::Never,
            "OnFailure" => RestartPolicy::OnFailure,
            _ => RestartPolicy::Always,
        }
    }
}

/// One container of a pod.
#[derive(Clone, Debug)]
pub struct Member {
    /// The part that it plays.
    pub role: Role,
    /// What it should be.
    pub spec: Arc<Container>,
}

impl Member {
    /// The containers of a pod: init containers in their order, then main ones, then ephemeral ones.
    pub fn all(pod: &Pod) -> Vec<Member> {
        let Some(spec) = &pod.spec else { return Vec::new() };
        let init = spec.init_containers.iter().flatten().map(|container| {
            let sidecar = container.restart_policy.as_deref() == Some("Always");
            (if sidecar { Role::Sidecar } else { Role::Init }, container.clone())
        });
        let main = spec.containers.iter().map(|container| (Role::Main, container.clone()));
        let ephemeral = spec.ephemeral_containers.iter().flatten();
        let ephemeral = ephemeral.map(|container| (Role::Ephemeral, plain(container)));
        let all = init.chain(main).chain(ephemeral);
        all.map(|(role, spec)| Member { role, spec: Arc::new(spec) }).collect()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Its image, as the pod says it.
    pub fn image(&self) -> &str {
        self.spec.image.as_deref().unwrap_or_default()
    }

    /// Whether it is started again after it ended with this code.
    pub fn restarts_after(&self, pod: RestartPolicy, code: i32) -> bool {
        match self.role {
            Role::Ephemeral => return false,
            Role::Sidecar => return true,
            Role::Init | Role::Main => {}
        }
        if self.spec.restart_policy_rules.iter().flatten().any(|rule| restarts(rule, code)) {
            return true;
        }
        match self.policy(pod) {
            RestartPolicy::Always => self.role == Role::Main || code != 0,
            RestartPolicy::OnFailure => code != 0,
            RestartPolicy::Never => false,
        }
    }

    /// Whether it is started again when a probe had it killed, whatever code it then ends with.
    pub fn restarts_when_killed(&self, pod: RestartPolicy) -> bool {
        self.role == Role::Sidecar || self.policy(pod) != RestartPolicy::Never
    }

    fn policy(&self, pod: RestartPolicy) -> RestartPolicy {
        self.spec.restart_policy.as_deref().map_or(pod, RestartPolicy::parse)
    }
}

fn restarts(rule: &ContainerRestartRule, code: i32) -> bool {
    let Some(codes) = &rule.exit_codes else { return false };
    let named = codes.values.iter().flatten().any(|&value| value == code);
    rule.action == "Restart" && if codes.operator == "NotIn" { !named } else { named }
}

/// An ephemeral container has the fields of a container.
fn plain(container: &EphemeralContainer) -> Container {
    let of = container.clone();
    Container {
        args: of.args,
        command: of.command,
        env: of.env,
        env_from: of.env_from,
        image: of.image,
        image_pull_policy: of.image_pull_policy,
        name: of.name,
        resources: of.resources,
        security_context: of.security_context,
        stdin: of.stdin,
        stdin_once: of.stdin_once,
        termination_message_path: of.termination_message_path,
        termination_message_policy: of.termination_message_policy,
        tty: of.tty,
        volume_mounts: of.volume_mounts,
        working_dir: of.working_dir,
        ..Container::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn member(role: Role, container: serde_json::Value) -> Member {
        Member { role, spec: Arc::new(serde_json::from_value(container).unwrap()) }
    }

    #[test]
    fn policies_say_who_is_started_again() {
        use RestartPolicy::{Always, Never, OnFailure};
        let main = member(Role::Main, json!({"name": "a"}));
        assert!(main.restarts_after(Always, 0) && main.restarts_after(OnFailure, 1));
        assert!(!main.restarts_after(OnFailure, 0) && !main.restarts_after(Never, 1));
        let init = member(Role::Init, json!({"name": "a"}));
        assert!(!init.restarts_after(Always, 0) && init.restarts_after(Always, 1));
        assert!(!init.restarts_after(Never, 1));
        let sidecar = member(Role::Sidecar, json!({"name": "a", "restartPolicy": "Always"}));
        assert!(sidecar.restarts_after(Never, 0));
        let debug = member(Role::Ephemeral, json!({"name": "a"}));
        assert!(!debug.restarts_after(Always, 1));
    }

    #[test]
    fn a_container_may_have_a_policy_and_rules_of_its_own() {
        use RestartPolicy::{Always, Never};
        let never = member(Role::Main, json!({"name": "a", "restartPolicy": "Never"}));
        assert!(!never.restarts_after(Always, 1) && !never.restarts_when_killed(Always));
        let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
        let main =
            member(Role::Main, json!({"name": "a", "restartPolicy": "Never", "restartPolicyRules": rules}));
        assert!(main.restarts_after(Never, 42) && !main.restarts_after(Never, 43));
    }

    #[test]
    fn members_come_in_the_order_of_their_start() {
        let pod = serde_json::from_value(json!({"spec": {
            "containers": [{"name": "main"}],
            "initContainers": [{"name": "first"}, {"name": "proxy", "restartPolicy": "Always"}],
            "ephemeralContainers": [{"name": "debug", "image": "busybox"}],
        }}));
        let all = Member::all(&pod.unwrap());
        let all: Vec<_> = all.iter().map(|member| (member.name(), member.role)).collect();
        let expected = [
            ("first", Role::Init),
            ("proxy", Role::Sidecar),
            ("main", Role::Main),
            ("debug", Role::Ephemeral),
        ];
        assert_eq!(all, expected);
    }
}
