//! Security contexts of pods and containers, and what an operating system does not know.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::{Scene, each_container};
use crate::field::{Errors, Path};
use crate::kinds::check::{by_rule, in_range, one_of};
use crate::kinds::tree::{flag, get, int, is_zero, list, text};
use crate::kinds::{inner, names, paths};

const ID_MAX: i64 = i32::MAX as i64;

fn ids(context: &Value, fields: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for field in fields {
        if let Some(id) = int(context, field) {
            in_range(id, 0, ID_MAX, &path.child(field), errors);
        }
    }
}

/// Checks the security context of a pod.
pub(super) fn pod(spec: &Value, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("securityContext");
    let nothing = json!({});
    let context = get(spec, "securityContext").unwrap_or(&nothing);
    ids(context, &["fsGroup", "runAsUser", "runAsGroup"], &path, errors);
    for (index, group) in list(context, "supplementalGroups").iter().filter_map(Value::as_i64).enumerate() {
        in_range(group, 0, ID_MAX, &path.child("supplementalGroups").index(index), errors);
    }
    if flag(spec, "hostPID") && flag(spec, "shareProcessNamespace") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&path.child("shareProcessNamespace"), &json!(true), detail);
    }
    sysctls(spec, context, &path.child("sysctls"), errors);
    one_of(context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], &path, errors);
    if let Some(profile) = get(context, "seccompProfile") {
        seccomp(profile, &path.child("seccompProfile"), errors);
    }
    foreign(context, &path, errors);
    one_of(context, "supplementalGroupsPolicy", &["Merge", "Strict"], &path, errors);
    one_of(context, "seLinuxChangePolicy", scene.label_policies, &path, errors);
}

/// What Windows and AppArmor are told.
fn foreign(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(options) = get(context, "windowsOptions") {
        windows_options(options, &path.child("windowsOptions"), errors);
    }
    if let Some(profile) = get(context, "appArmorProfile") {
        app_armor(profile, &path.child("appArmorProfile"), errors);
    }
}

/// Checks the security context of a container.
pub(super) fn container(context: &Value, host_users: bool, path: &Path<'_>, errors: &mut Errors) {
    ids(context, &["runAsUser", "runAsGroup"], path, errors);
    if let Some(mount) = get(context, "procMount") {
        one_of(context, "procMount", &["Default", "Unmasked"], path, errors);
        if host_users && mount == "Unmasked" {
            let detail = "`hostUsers` must be false to use `Unmasked`";
            errors.invalid(&path.child("procMount"), mount, detail);
        }
    }
    if let Some(profile) = get(context, "seccompProfile") {
        seccomp(profile, &path.child("seccompProfile"), errors);
    }
    if context.get("allowPrivilegeEscalation") == Some(&json!(false)) {
        let mut refuse = |what: &str| {
            let detail = format!("cannot set `allowPrivilegeEscalation` to false and {what}");
            errors.invalid(path, &inner::shown("io.k8s.api.core.v1.SecurityContext", context), &detail);
        };
        if flag(context, "privileged") {
            refuse("`privileged` to true");
        }
        for capability in list(&context["capabilities"], "add") {
            if capability == "CAP_SYS_ADMIN" {
                refuse("`capabilities.Add` CAP_SYS_ADMIN");
            }
        }
    }
    foreign(context, path, errors);
}

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

fn seccomp(profile: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(profile, "type");
    match kind {
        "" => errors.required(&path.child("type"), "type is required when seccompProfile is set"),
        _ => one_of(profile, "type", &PROFILES, path, errors),
    }
    let at = path.child("localhostProfile");
    match (kind, get(profile, "localhostProfile").and_then(Value::as_str)) {
        ("Localhost", None) => errors.required(&at, "must be set when seccomp type is Localhost"),
        ("Localhost", Some(file)) => paths::descending(file, &at, errors),
        (_, Some(_)) => {
            let shown = inner::shown("io.k8s.api.core.v1.SeccompProfile", profile);
            errors.invalid(&at, &shown, "can only be set when seccomp type is Localhost");
        }
        (_, None) => {}
    }
}

pub(super) fn app_armor(profile: &Value, path: &Path<'_>, errors: &mut Errors) {
    const NEEDED: &str = "must be set when AppArmor type is Localhost";
    let at = path.child("localhostProfile");
    let file = get(profile, "localhostProfile").and_then(Value::as_str);
    match (text(profile, "type"), file) {
        ("Localhost", None) => errors.required(&at, NEEDED),
        ("Localhost", Some(file)) => {
            if file.trim() != file {
                errors.invalid(&at, &json!(file), "must not be padded with whitespace");
            } else if file.is_empty() {
                errors.required(&at, NEEDED);
            }
            if file.len() > 4095 {
                errors.too_long(&at, 4095);
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(file)) => {
            errors.invalid(&at, &json!(file), "can only be set when AppArmor type is Localhost");
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => errors.required(&path.child("type"), "type is required when appArmorProfile is set"),
        _ => errors.not_supported(&path.child("type"), &profile["type"], &PROFILES),
    }
}

/// Names of kernel parameters that a network or a set of message queues has of its own.
const NETWORK: [&str; 1] = ["net."];
const QUEUES: [&str; 4] = ["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."];

fn sysctls(spec: &Value, context: &Value, path: &Path<'_>, errors: &mut Errors) {
    const FORM: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
    static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(FORM).expect("a pattern of ours"));
    let all = list(context, "sysctls");
    for (index, sysctl) in all.iter().enumerate() {
        let at = path.index(index);
        let (name, at) = (text(sysctl, "name"), at.child("name"));
        if name.is_empty() {
            errors.required(&at, "");
        } else if name.len() > 253 || !NAME.is_match(name) {
            let detail = format!("must have at most 253 characters and match regex {FORM}");
            errors.invalid(&at, &json!(name), &detail);
        } else if all[..index].iter().any(|other| text(other, "name") == name) {
            errors.duplicate(&at, &json!(name));
        }
        let plain = plain_sysctl(name);
        let of = |heads: &[&str]| heads.iter().any(|head| plain.starts_with(head));
        if flag(spec, "hostNetwork") && of(&NETWORK) {
            errors.invalid(&at, &json!(name), "may not be specified when 'hostNetwork' is true");
        } else if flag(spec, "hostIPC") && of(&QUEUES) {
            errors.invalid(&at, &json!(name), "may not be specified when 'hostIPC' is true");
        }
    }
}

/// The name with dots where the first separator is a slash.
fn plain_sysctl(name: &str) -> String {
    let slashes = name.find(['.', '/']).is_some_and(|at| name[at..].starts_with('/'));
    let swap = |c| match c {
        '/' if slashes => '.',
        '.' if slashes => '/',
        c => c,
    };
    name.chars().map(swap).collect()
}

fn windows_options(options: &Value, path: &Path<'_>, errors: &mut Errors) {
    let of = |field: &str| get(options, field).and_then(Value::as_str);
    if let Some(name) = of("gmsaCredentialSpecName") {
        by_rule(name, names::dns_subdomain, &path.child("gmsaCredentialSpecName"), errors);
    }
    if let Some(spec) = of("gmsaCredentialSpec") {
        let detail = match spec.len() {
            0 => "gmsaCredentialSpec cannot be an empty string",
            length if length > 64 * 1024 => "gmsaCredentialSpec size must be under 64 KiB",
            _ => "",
        };
        if !detail.is_empty() {
            errors.invalid(&path.child("gmsaCredentialSpec"), &json!(spec), detail);
        }
    }
    if let Some(name) = of("runAsUserName") {
        for fault in user_name(name) {
            errors.invalid(&path.child("runAsUserName"), &json!(name), fault);
        }
    }
}

/// What is wrong with the name of a Windows user.
fn user_name(name: &str) -> Vec<&'static str> {
    static NET_BIOS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r#"^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$"#).expect("a pattern of ours")
    });
    static DNS: LazyLock<Regex> = LazyLock::new(|| {
        let label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
        Regex::new(&format!(r"^{label}(?:\.{label})*$")).expect("a pattern of ours")
    });
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string"];
    }
    if name.contains(|c: char| c.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters"];
    }
    let parts = name.split('\\').collect::<Vec<_>>();
    let (domain, user) = match parts[..] {
        [user] => (None, user),
        [domain, user] => (Some(domain), user),
        _ => return vec!["runAsUserName cannot contain more than one backslash"],
    };
    let only = |text: &str, allowed: &[char]| !text.is_empty() && text.chars().all(|c| allowed.contains(&c));
    let faults = [
        (
            domain.is_some_and(|domain| domain.len() >= 256),
            "runAsUserName's Domain length must be under 256 characters",
        ),
        (
            domain.is_some_and(|domain| !NET_BIOS.is_match(domain) && !DNS.is_match(domain)),
            "runAsUserName's Domain doesn't match the NetBios nor the DNS format",
        ),
        (user.is_empty(), "runAsUserName's User cannot be empty"),
        (user.len() > 104, "runAsUserName's User length must not be longer than 104 characters"),
        (only(user, &['.', ' ']), "runAsUserName's User cannot contain only periods or spaces"),
        (
            user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']),
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]",
        ),
    ];
    faults.into_iter().filter(|(broken, _)| *broken).map(|(_, fault)| fault).collect()
}

/// Processes of the host run in all containers of a pod or in none, and on the network of the host.
pub(super) fn host_process(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let of = |holder: &Value| holder.pointer("/securityContext/windowsOptions/hostProcess")?.as_bool();
    let whole = of(spec);
    let (mut count, mut hosts) = (0, 0);
    each_container(spec, path, |container, at| {
        count += 1;
        let own = of(container);
        if let (Some(whole), Some(own)) = (whole, own)
            && whole != own
        {
            let context = at.child("securityContext");
            let options = context.child("windowsOptions");
            let detail =
                format!("pod hostProcess value must be identical if both are specified, was {whole}");
            errors.invalid(&options.child("hostProcess"), &json!(own), &detail);
        }
        hosts += usize::from(own.or(whole) == Some(true));
    });
    if hosts == 0 {
        return;
    }
    if hosts != count {
        let detail =
            "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.invalid(path, &json!(""), detail);
    }
    if !flag(spec, "hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.invalid(&path.child("hostNetwork"), &json!(false), detail);
    }
}

/// With user namespaces of its own, a pod shares nothing of the host's that belongs to users.
pub(super) fn host_users(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    const WHEN: &str = "when `hostUsers` is false";
    if spec.get("hostUsers") != Some(&json!(false)) {
        return;
    }
    if flag(spec, "hostNetwork") {
        errors.forbidden(&path.child("hostNetwork"), WHEN);
    }
    for (field, shown) in [("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if flag(spec, field) {
            errors.forbidden(&path.child(shown), WHEN);
        }
    }
    each_container(spec, path, |container, at| {
        if !list(container, "volumeDevices").is_empty() {
            errors.forbidden(&at.child("volumeDevices"), WHEN);
        }
    });
}

/// What a pod says of its operating system, and what that does not know.
pub(super) fn operating_system(spec: &Value, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    let Some(os) = get(spec, "os") else { return };
    match text(os, "name") {
        "" => errors.required(&path.child("os").child("name"), ""),
        "linux" => linux(spec, path, errors),
        "windows" => windows(spec, scene, path, errors),
        _ => errors.not_supported(&path.child("os"), &os["name"], &["linux", "windows"]),
    }
}

fn linux(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut check = |holder: &Value, path: &Path<'_>| {
        if get(&holder["securityContext"], "windowsOptions").is_some() {
            let at = path.child("securityContext");
            errors.forbidden(&at.child("windowsOptions"), "windows options cannot be set for a linux pod");
        }
    };
    check(spec, path);
    each_container(spec, path, |container, at| check(container, at));
}

const NOT_HERE: &str = "cannot be set for a windows pod";

/// Whether the spec of a pod has groups that are there, but empty.
pub(crate) fn has_empty_groups(spec: &Value) -> bool {
    let groups = spec.pointer("/securityContext/supplementalGroups").and_then(Value::as_array);
    groups.is_some_and(Vec::is_empty)
}

fn windows(spec: &Value, scene: &Scene<'_>, path: &Path<'_>, errors: &mut Errors) {
    const POD: [&str; 11] = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "fsGroup",
        "fsGroupChangePolicy",
        "sysctls",
        "runAsUser",
        "runAsGroup",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "seLinuxChangePolicy",
    ];
    const CONTAINER: [&str; 10] = [
        "appArmorProfile",
        "seLinuxOptions",
        "seccompProfile",
        "capabilities",
        "readOnlyRootFilesystem",
        "privileged",
        "allowPrivilegeEscalation",
        "procMount",
        "runAsUser",
        "runAsGroup",
    ];
    for field in ["hostUsers", "shareProcessNamespace"] {
        if get(spec, field).is_some() {
            errors.forbidden(&path.child(field), NOT_HERE);
        }
    }
    for field in ["hostPID", "hostIPC"] {
        if flag(spec, field) {
            errors.forbidden(&path.child(field), NOT_HERE);
        }
    }
    let at = path.child("securityContext");
    for field in POD {
        let context = &spec["securityContext"];
        let present = match field {
            "sysctls" => !is_zero(context.get(field)),
            "supplementalGroups" if scene.empty_groups => true,
            _ => get(context, field).is_some(),
        };
        if present {
            errors.forbidden(&at.child(field), NOT_HERE);
        }
    }
    each_container(spec, path, |container, at| {
        let at = at.child("securityContext");
        for field in CONTAINER {
            if get(&container["securityContext"], field).is_some() {
                errors.forbidden(&at.child(field), NOT_HERE);
            }
        }
    });
}
