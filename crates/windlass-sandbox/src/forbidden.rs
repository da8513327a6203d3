//! What forbids namespaces on this machine, and the command that allows them.

use std::io;

use crate::error::{Error, Failure};

/// What the machine says about namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Facts {
    /// Whether namespaces are made without a user namespace.
    admin: bool,
    /// `/proc/sys/kernel/unprivileged_userns_clone`: Debian's switch.
    userns_clone: Option<u64>,
    /// `/proc/sys/kernel/apparmor_restrict_unprivileged_userns`: Ubuntu's switch.
    apparmor_restricts: Option<u64>,
    /// `/proc/sys/user/max_user_namespaces`.
    user_namespaces_max: Option<u64>,
    /// Whether a filter on system calls is in place, as container runtimes have.
    seccomp: bool,
}

/// Says why the agent could not stand.
pub(crate) fn explain(failure: Failure) -> Error {
    match failure {
        Failure::Step { step, errno } => match why(&facts(), &step, errno) {
            Some(why) => Error::Forbidden { why, source: io::Error::from_raw_os_error(errno) },
            None => Failure::Step { step, errno }.into(),
        },
        other => other.into(),
    }
}

fn facts() -> Facts {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse().ok();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Facts {
        admin: rustix::thread::capabilities(None)
            .is_ok_and(|powers| powers.effective.contains(rustix::thread::CapabilitySet::SYS_ADMIN)),
        userns_clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
        apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        user_namespaces_max: number("/proc/sys/user/max_user_namespaces"),
        seccomp: status.lines().any(|line| line.starts_with("Seccomp:") && !line.ends_with('0')),
    }
}

/// The reason in words, for a refusal that is about permission.
fn why(facts: &Facts, step: &str, errno: i32) -> Option<String> {
    const EPERM: i32 = 1;
    const EACCES: i32 = 13;
    const ENOSPC: i32 = 28;
    const ENOSYS: i32 = 38;
    if ![EPERM, EACCES, ENOSPC, ENOSYS].contains(&errno) {
        return None;
    }
    if !facts.admin {
        if facts.userns_clone == Some(0) {
            return Some(
                "kernel.unprivileged_userns_clone is 0. Allow it with \
                 `sudo sysctl -w kernel.unprivileged_userns_clone=1`, or run as root"
                    .to_owned(),
            );
        }
        if facts.user_namespaces_max == Some(0) {
            return Some(
                "user.max_user_namespaces is 0. Allow it with \
                 `sudo sysctl -w user.max_user_namespaces=65536`, or run as root"
                    .to_owned(),
            );
        }
        if facts.apparmor_restricts == Some(1) {
            return Some(
                "AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1, as on \
                 Ubuntu 24.04). Allow it with `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, \
                 or run as root"
                    .to_owned(),
            );
        }
    }
    let within = if facts.seccomp { "a filter on system calls is in place" } else { "the kernel refused" };
    Some(format!(
        "{within} when it was to {step}. In a container, start that container with `--privileged` \
         (docker run, podman run), or with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined \
         --security-opt systempaths=unconfined` and as an ordinary user"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: &str = "make a user namespace";

    #[test]
    fn each_switch_is_named_with_the_command_that_turns_it() {
        for (facts, command) in [
            (
                Facts { userns_clone: Some(0), ..Facts::default() },
                "sysctl -w kernel.unprivileged_userns_clone=1",
            ),
            (
                Facts { apparmor_restricts: Some(1), userns_clone: Some(1), ..Facts::default() },
                "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
            ),
            (
                Facts { user_namespaces_max: Some(0), ..Facts::default() },
                "sysctl -w user.max_user_namespaces=65536",
            ),
            (Facts { seccomp: true, ..Facts::default() }, "--privileged"),
            (Facts { admin: true, userns_clone: Some(0), ..Facts::default() }, "--privileged"),
        ] {
            let said = why(&facts, STEP, 1).unwrap_or_default();
            assert!(said.contains(command), "{facts:?} gives {said}");
        }
    }

    #[test]
    fn what_is_not_about_permission_is_left_as_it_is() {
        assert_eq!(why(&Facts::default(), STEP, 2), None);
    }
}
