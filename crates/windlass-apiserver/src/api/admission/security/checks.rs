//! What pods may not have at the levels `baseline` and `restricted`, version by version.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::kinds::tree::{at, entries, flag, get, int, list, text, text_at};

/// A pod, or the template of one.
#[derive(Clone, Copy)]
pub(super) struct Pod<'a> {
    pub metadata: &'a Value,
    pub spec: &'a Value,
}

/// What is wrong with a pod: in a word, and in full.
pub(super) struct Fault {
    pub reason: &'static str,
    pub detail: String,
}

type Rule = fn(Pod<'_>) -> Option<Fault>;

/// A check that changes with time: from which minor version on which rule holds.
pub(super) struct Check {
    /// The rules, and the minor versions from which on they hold.
    pub rules: &'static [(u32, Rule)],
    /// From which minor version on a stricter check stands in for it at the level `restricted`.
    pub replaced: Option<u32>,
}

/// The newest version at which anything changed.
pub(super) const NEWEST: u32 = 35;

/// The checks of `baseline`, in the order in which they are told.
pub(super) static BASELINE: &[Check] = &[
    Check { rules: &[(0, armor)], replaced: None },
    Check { rules: &[(0, capabilities)], replaced: Some(22) },
    Check { rules: &[(0, host_namespaces)], replaced: None },
    Check { rules: &[(0, host_paths)], replaced: Some(0) },
    Check { rules: &[(0, host_ports)], replaced: None },
    Check { rules: &[(34, probed_hosts)], replaced: None },
    Check { rules: &[(0, privileged)], replaced: None },
    Check { rules: &[(0, proc_mount), (35, |pod| own_users(pod, proc_mount))], replaced: Some(35) },
    Check {
        rules: &[(0, |pod| selinux(pod, &TYPES[..4])), (31, |pod| selinux(pod, &TYPES))],
        replaced: None,
    },
    Check { rules: &[(0, seccomp_annotations), (19, seccomp)], replaced: Some(19) },
    Check {
        rules: &[
            (0, |pod| sysctls(pod, 5)),
            (27, |pod| sysctls(pod, 6)),
            (29, |pod| sysctls(pod, 10)),
            (32, |pod| sysctls(pod, 12)),
        ],
        replaced: None,
    },
    Check { rules: &[(0, host_process)], replaced: None },
];

/// The checks that `restricted` has besides.
pub(super) static RESTRICTED: &[Check] = &[
    Check { rules: &[(8, escalation), (25, |pod| of_linux(pod, escalation))], replaced: None },
    Check { rules: &[(22, few_capabilities), (25, |pod| of_linux(pod, few_capabilities))], replaced: None },
    Check { rules: &[(35, proc_mount)], replaced: None },
    Check { rules: &[(0, volumes)], replaced: None },
    Check { rules: &[(0, non_root), (35, |pod| own_users(pod, non_root))], replaced: None },
    Check { rules: &[(23, user), (35, |pod| own_users(pod, user))], replaced: None },
    Check { rules: &[(19, some_seccomp), (25, |pod| of_linux(pod, some_seccomp))], replaced: None },
];

const TYPES: [&str; 5] = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// Those that are safe, in the order in which they were found to be.
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Kinds of volumes that everybody may have.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// A pod with users of its own may have what others may not.
fn own_users(pod: Pod<'_>, rule: Rule) -> Option<Fault> {
    if at(pod.spec, &["hostUsers"]) == Some(&Value::Bool(false)) { None } else { rule(pod) }
}

/// Pods of Windows have nothing of the kind.
fn of_linux(pod: Pod<'_>, rule: Rule) -> Option<Fault> {
    if text_at(pod.spec, &["os", "name"]) == "windows" { None } else { rule(pod) }
}

impl<'a> Pod<'a> {
    fn containers(self) -> impl Iterator<Item = &'a Value> {
        let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
        lists.flat_map(move |field| list(self.spec, field))
    }

    /// The names of those containers of which something is true.
    fn those(self, mut is: impl FnMut(&'a Value) -> bool) -> Vec<&'a str> {
        self.containers().filter(|one| is(one)).map(|one| text(one, "name")).collect()
    }

    /// What is set for the pod as a whole and for its containers: who sets it wrong.
    fn setters(self, path: &[&str], mut is_wrong: impl FnMut(&'a Value) -> bool) -> Vec<String> {
        let mut of = |holder: &'a Value| {
            get(holder, "securityContext").and_then(|context| at(context, path)).is_some_and(&mut is_wrong)
        };
        let mut setters = Vec::new();
        if of(self.spec) {
            setters.push("pod".to_owned());
        }
        let names = self.those(of);
        if !names.is_empty() {
            setters.push(containers(&names));
        }
        setters
    }
}

fn containers(names: &[&str]) -> String {
    format!("{} {}", plural(names.len(), "container"), quoted(names))
}

fn plural(count: usize, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

fn quoted<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| format!("\"{}\"", item.as_ref())).collect::<Vec<_>>().join(", ")
}

fn fault(reason: &'static str, detail: String) -> Option<Fault> {
    Some(Fault { reason, detail })
}

fn armor(pod: Pod<'_>) -> Option<Fault> {
    const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
    let mut values = BTreeSet::new();
    let mut setters = pod.setters(&["appArmorProfile"], |profile| {
        let kind = text(profile, "type");
        let wrong = !matches!(kind, "RuntimeDefault" | "Localhost");
        if wrong {
            values.insert(kind.to_owned());
        }
        wrong
    });
    let annotations = entries(pod.metadata, "annotations");
    let annotations = annotations.filter_map(|(key, value)| Some((key, value.as_str()?)));
    let mut annotations: Vec<String> = annotations
        .filter(|(key, value)| {
            let right = matches!(*value, "" | "runtime/default") || value.starts_with("localhost/");
            key.starts_with(PREFIX) && !right
        })
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    annotations.sort();
    if !annotations.is_empty() {
        setters.push(plural(annotations.len(), "annotation"));
    }
    if setters.is_empty() {
        return None;
    }
    let values: Vec<String> = values.into_iter().chain(annotations).collect();
    let reason = if values.len() == 1 { "forbidden AppArmor profile" } else { "forbidden AppArmor profiles" };
    let who = setters.join(" and ");
    fault(reason, format!("{who} must not set AppArmor profile type to {}", quoted(&values)))
}

/// The containers that add capabilities which are not allowed, and those.
fn added<'a>(pod: Pod<'a>, allowed: &[&str]) -> Option<String> {
    let mut wrong = BTreeSet::new();
    let names = pod.those(|container| {
        let Some(all) = at(container, &["securityContext", "capabilities"]) else { return false };
        let all = list(all, "add").iter().filter_map(Value::as_str).filter(|one| !allowed.contains(one));
        let all: Vec<&'a str> = all.collect();
        wrong.extend(all.iter().copied());
        !all.is_empty()
    });
    (!names.is_empty()).then(|| {
        let who = containers(&names);
        format!("{who} must not include {} in securityContext.capabilities.add", quoted(wrong))
    })
}

fn capabilities(pod: Pod<'_>) -> Option<Fault> {
    fault("non-default capabilities", added(pod, &CAPABILITIES)?)
}

fn few_capabilities(pod: Pod<'_>) -> Option<Fault> {
    let keeping = pod.those(|container| {
        let dropped = at(container, &["securityContext", "capabilities"]).map(|all| list(all, "drop"));
        !dropped.is_some_and(|all| all.iter().any(|one| one == "ALL"))
    });
    let keeping = (!keeping.is_empty())
        .then(|| format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeping)));
    let details: Vec<String> = keeping.into_iter().chain(added(pod, &["NET_BIND_SERVICE"])).collect();
    if details.is_empty() { None } else { fault("unrestricted capabilities", details.join("; ")) }
}

fn host_namespaces(pod: Pod<'_>) -> Option<Fault> {
    let all = ["hostNetwork", "hostPID", "hostIPC"].into_iter().filter(|field| flag(pod.spec, field));
    let all: Vec<String> = all.map(|field| format!("{field}=true")).collect();
    if all.is_empty() { None } else { fault("host namespaces", all.join(", ")) }
}

fn host_paths(pod: Pod<'_>) -> Option<Fault> {
    let all = list(pod.spec, "volumes").iter().filter(|volume| get(volume, "hostPath").is_some());
    let names: Vec<&str> = all.map(|volume| text(volume, "name")).collect();
    match names.as_slice() {
        [] => None,
        names => fault("hostPath volumes", format!("{} {}", plural(names.len(), "volume"), quoted(names))),
    }
}

fn host_ports(pod: Pod<'_>) -> Option<Fault> {
    let mut ports = BTreeSet::new();
    let names = pod.those(|container| {
        let all = list(container, "ports").iter().filter_map(|port| int(port, "hostPort"));
        let all: Vec<String> = all.filter(|port| *port != 0).map(|port| port.to_string()).collect();
        ports.extend(all.iter().cloned());
        !all.is_empty()
    });
    if names.is_empty() {
        return None;
    }
    let uses = if names.len() == 1 { "uses" } else { "use" };
    let numbers = ports.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let word = plural(ports.len(), "hostPort");
    fault("hostPort", format!("{} {uses} {word} {numbers}", containers(&names)))
}

fn probed_hosts(pod: Pod<'_>) -> Option<Fault> {
    const REASON: &str = "probe or lifecycle host";
    const HANDLERS: [&[&str]; 5] = [
        &["livenessProbe"],
        &["readinessProbe"],
        &["startupProbe"],
        &["lifecycle", "postStart"],
        &["lifecycle", "preStop"],
    ];
    let mut hosts = BTreeSet::new();
    let names = pod.those(|container| {
        let handlers = HANDLERS.iter().filter_map(|path| at(container, path));
        let all =
            handlers.flat_map(|handler| ["httpGet", "tcpSocket"].map(|way| text_at(handler, &[way, "host"])));
        let all: Vec<&str> = all.filter(|host| !host.is_empty()).collect();
        hosts.extend(all.iter().copied());
        !all.is_empty()
    });
    let names: Vec<&str> = names.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
    if names.is_empty() {
        return None;
    }
    let uses = if names.len() == 1 { "uses" } else { "use" };
    let word = plural(hosts.len(), REASON);
    fault(REASON, format!("{} {uses} {word} {}", containers(&names), quoted(hosts)))
}

fn privileged(pod: Pod<'_>) -> Option<Fault> {
    let names = pod.those(|container| flag(&container["securityContext"], "privileged"));
    if names.is_empty() {
        return None;
    }
    fault("privileged", format!("{} must not set securityContext.privileged=true", containers(&names)))
}

fn proc_mount(pod: Pod<'_>) -> Option<Fault> {
    let mut kinds = BTreeSet::new();
    let names = pod.those(|container| {
        let kind = at(container, &["securityContext", "procMount"]).and_then(Value::as_str);
        let wrong = kind.filter(|kind| *kind != "Default");
        kinds.extend(wrong);
        wrong.is_some()
    });
    if names.is_empty() {
        return None;
    }
    let who = containers(&names);
    fault("procMount", format!("{who} must not set securityContext.procMount to {}", quoted(kinds)))
}

fn selinux(pod: Pod<'_>, allowed: &[&str]) -> Option<Fault> {
    let (mut kinds, mut user, mut role) = (BTreeSet::new(), false, false);
    let setters = pod.setters(&["seLinuxOptions"], |options| {
        let kind = text(options, "type");
        let (has_user, has_role) = (!text(options, "user").is_empty(), !text(options, "role").is_empty());
        let wrong = !allowed.contains(&kind);
        if wrong {
            kinds.insert(kind.to_owned());
        }
        (user, role) = (user || has_user, role || has_role);
        wrong || has_user || has_role
    });
    if setters.is_empty() {
        return None;
    }
    let mut data = Vec::new();
    if !kinds.is_empty() {
        data.push(format!("{} {}", plural(kinds.len(), "type"), quoted(kinds)));
    }
    for (is_set, what) in [(user, "user"), (role, "role")] {
        if is_set {
            data.push(format!("{what} may not be set"));
        }
    }
    let (who, what) = (setters.join(" and "), data.join("; "));
    fault("seLinuxOptions", format!("{who} set forbidden securityContext.seLinuxOptions: {what}"))
}

fn seccomp_annotations(pod: Pod<'_>) -> Option<Fault> {
    const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
    const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
    let keys = pod.containers().map(|container| format!("{OF_CONTAINER}{}", text(container, "name")));
    let keys: BTreeSet<String> = keys.chain([OF_POD.to_owned()]).collect();
    let wrong = keys.into_iter().filter_map(|key| {
        let value = at(pod.metadata, &["annotations", &key]).and_then(Value::as_str)?;
        let right = matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
        (!right).then(|| format!("{key}={value:?}"))
    });
    let wrong: BTreeSet<String> = wrong.collect();
    if wrong.is_empty() {
        return None;
    }
    let all = wrong.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    fault("seccompProfile", format!("forbidden {} {all}", plural(wrong.len(), "annotation")))
}

fn is_seccomp(profile: &Value) -> bool {
    matches!(text(profile, "type"), "RuntimeDefault" | "Localhost")
}

fn seccomp(pod: Pod<'_>) -> Option<Fault> {
    let mut values = BTreeSet::new();
    let setters = pod.setters(&["seccompProfile"], |profile| {
        let wrong = !is_seccomp(profile);
        if wrong {
            values.insert(text(profile, "type").to_owned());
        }
        wrong
    });
    if setters.is_empty() {
        return None;
    }
    let (who, what) = (setters.join(" and "), quoted(values));
    fault("seccompProfile", format!("{who} must not set securityContext.seccompProfile.type to {what}"))
}

fn some_seccomp(pod: Pod<'_>) -> Option<Fault> {
    if let Some(fault) = seccomp(pod) {
        return Some(fault);
    }
    let of = |holder| at(holder, &["securityContext", "seccompProfile"]);
    if of(pod.spec).is_some_and(is_seccomp) {
        return None;
    }
    let names = pod.those(|container| of(container).is_none());
    if names.is_empty() {
        return None;
    }
    let who = containers(&names);
    let what = "must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"";
    fault("seccompProfile", format!("pod or {who} {what}"))
}

fn sysctls(pod: Pod<'_>, known: usize) -> Option<Fault> {
    let context = get(pod.spec, "securityContext")?;
    let all = list(context, "sysctls").iter().map(|sysctl| text(sysctl, "name"));
    let wrong: Vec<&str> = all.filter(|name| !SYSCTLS[..known].contains(name)).collect();
    if wrong.is_empty() { None } else { fault("forbidden sysctls", wrong.join(", ")) }
}

fn host_process(pod: Pod<'_>) -> Option<Fault> {
    let setters = pod.setters(&["windowsOptions"], |options| flag(options, "hostProcess"));
    if setters.is_empty() {
        return None;
    }
    let who = setters.join(" and ");
    fault("hostProcess", format!("{who} must not set securityContext.windowsOptions.hostProcess=true"))
}

fn escalation(pod: Pod<'_>) -> Option<Fault> {
    let names = pod.those(|container| {
        at(container, &["securityContext", "allowPrivilegeEscalation"]) != Some(&Value::Bool(false))
    });
    if names.is_empty() {
        return None;
    }
    let who = containers(&names);
    let detail = format!("{who} must set securityContext.allowPrivilegeEscalation=false");
    fault("allowPrivilegeEscalation != false", detail)
}

fn volumes(pod: Pod<'_>) -> Option<Fault> {
    let mut kinds = BTreeSet::new();
    let mut names = Vec::new();
    for volume in list(pod.spec, "volumes") {
        let has = |kind: &&String| *kind != "name" && get(volume, kind).is_some();
        let mut kind = volume.as_object().into_iter().flat_map(|fields| fields.keys()).filter(has);
        let kind = kind.next().map_or("unknown", String::as_str);
        if !VOLUMES.contains(&kind) {
            kinds.insert(kind);
            names.push(text(volume, "name"));
        }
    }
    if names.is_empty() {
        return None;
    }
    let uses = if names.len() == 1 { "uses" } else { "use" };
    let (who, what) = (plural(names.len(), "volume"), plural(kinds.len(), "restricted volume type"));
    let detail = format!("{who} {} {uses} {what} {}", quoted(&names), quoted(kinds));
    fault("restricted volume types", detail)
}

fn non_root(pod: Pod<'_>) -> Option<Fault> {
    const REASON: &str = "runAsNonRoot != true";
    let setters = pod.setters(&["runAsNonRoot"], |value| *value == Value::Bool(false));
    if !setters.is_empty() {
        let who = setters.join(" and ");
        return fault(REASON, format!("{who} must not set securityContext.runAsNonRoot=false"));
    }
    let of = |holder| at(holder, &["securityContext", "runAsNonRoot"]);
    if of(pod.spec).is_some() {
        return None;
    }
    let names = pod.those(|container| of(container).is_none());
    if names.is_empty() {
        return None;
    }
    fault(REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&names)))
}

fn user(pod: Pod<'_>) -> Option<Fault> {
    let setters = pod.setters(&["runAsUser"], |value| value.as_i64() == Some(0));
    if setters.is_empty() {
        return None;
    }
    fault("runAsUser=0", format!("{} must not set runAsUser=0", setters.join(" and ")))
}
