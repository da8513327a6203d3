//! PodSecurity: what pods of a namespace may be, by the labels of the namespace.

mod checks;

use serde_json::{Value, json};

use super::{Admission, Operation};
use crate::field::{Errors, Path};
use crate::kinds::tree::{at, flag, list, text, text_at};
use crate::status::{Result, Status};

use checks::{BASELINE, Fault, NEWEST, Pod, RESTRICTED};

/// How many pods are looked at when a namespace gets another level.
const LOOKED_AT: usize = 3000;

/// Resources with pods in them, and where.
const TEMPLATES: [(&str, &str, &[&str]); 8] = [
    ("", "replicationcontrollers", &["spec", "template"]),
    ("", "podtemplates", &["template"]),
    ("apps", "replicasets", &["spec", "template"]),
    ("apps", "deployments", &["spec", "template"]),
    ("apps", "statefulsets", &["spec", "template"]),
    ("apps", "daemonsets", &["spec", "template"]),
    ("batch", "jobs", &["spec", "template"]),
    ("batch", "cronjobs", &["spec", "jobTemplate", "spec", "template"]),
];

/// Subresources of pods that change nothing of what they may do.
const IGNORED: [&str; 8] = ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// A level, as it was in a version; the newest one without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standard {
    level: Level,
    minor: Option<u32>,
}

/// What holds in a namespace. What is only audited shows nowhere.
#[derive(Clone, Copy, Debug)]
struct Policy {
    enforce: Standard,
    audit: Standard,
    warn: Standard,
}

pub(super) fn validate(object: &Value, admission: &mut Admission<'_>) -> Result<()> {
    if admission.is_in("", "pods") {
        return validate_pod(object, admission);
    }
    if !admission.context.subresource.is_empty() {
        return Ok(());
    }
    if admission.is_in("", "namespaces") {
        return validate_namespace(object, admission);
    }
    let template = TEMPLATES.iter().find(|(group, resource, _)| admission.is_in(group, resource));
    let Some(template) = template.and_then(|(.., path)| at(object, path)) else { return Ok(()) };
    let Some(policy) = policy_here(admission) else { return Ok(()) };
    let pod = Pod { metadata: &template["metadata"], spec: &template["spec"] };
    warn(pod, policy.warn, admission);
    Ok(())
}

/// The policy of the namespace that something is written in.
fn policy_here(admission: &Admission<'_>) -> Option<Policy> {
    let namespace = admission.context.world.namespace(admission.namespace)?;
    let label = |key: &str| namespace.labels.iter().find(|(own, _)| *own == key).map(|(_, value)| *value);
    Some(Policy::read(label, &mut Errors::default()))
}

fn validate_pod(pod: &Value, admission: &mut Admission<'_>) -> Result<()> {
    let subresource = admission.context.subresource;
    if IGNORED.contains(&subresource) {
        return Ok(());
    }
    let Some(policy) = policy_here(admission) else {
        return Err(Status::internal(&format!("failed to lookup namespace {:?}", admission.namespace)));
    };
    let is_privileged = |standard: Standard| standard.level == Level::Privileged;
    if is_privileged(policy.enforce) && is_privileged(policy.audit) && is_privileged(policy.warn) {
        return Ok(());
    }
    if admission.old.is_some_and(|old| !is_significant(pod, old)) {
        return Ok(());
    }
    let looked_at = Pod { metadata: &pod["metadata"], spec: &pod["spec"] };
    let faults = policy.enforce.faults(looked_at);
    if !faults.is_empty() {
        let why = format!("violates PodSecurity \"{}\": {}", policy.enforce, in_full(&faults));
        return Err(Status::forbidden("", "pods", admission.name, &why));
    }
    warn(looked_at, policy.warn, admission);
    Ok(())
}

fn warn(pod: Pod<'_>, standard: Standard, admission: &mut Admission<'_>) {
    let faults = standard.faults(pod);
    if !faults.is_empty() {
        let warning = format!("would violate PodSecurity \"{standard}\": {}", in_full(&faults));
        admission.warnings.push(warning);
    }
}

/// Labels say what they can say; and whoever asks for more gets to know which pods do not comply.
fn validate_namespace(namespace: &Value, admission: &mut Admission<'_>) -> Result<()> {
    let of = |namespace: &Value| {
        let mut errors = Errors::default();
        let label = |key: &str| at(namespace, &["metadata", "labels", key]).and_then(Value::as_str);
        (Policy::read(label, &mut errors), errors)
    };
    let (policy, errors) = of(namespace);
    let before = admission.old.filter(|_| admission.operation == Operation::Update).map(of);
    let is_told = before.as_ref().is_some_and(|(_, old)| *old == errors);
    if !errors.is_empty() && !is_told {
        return Err(Status::invalid("", "Namespace", admission.name, errors));
    }
    let Some((old, _)) = before else { return Ok(()) };
    let (new, old) = (policy.enforce, old.enforce);
    let is_eased = new.minor == old.minor && new.level <= old.level;
    if new == old || new.level == Level::Privileged || is_eased {
        return Ok(());
    }
    let name = text_at(namespace, &["metadata", "name"]);
    admission.warnings.extend(those_that_violate(name, new, admission.context.world.list("", "Pod", name)));
    Ok(())
}

/// Which pods of a namespace do not comply, each fault with one of them.
fn those_that_violate(namespace: &str, standard: Standard, pods: Vec<Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    let pods = one_of_each_first(pods);
    if pods.len() > LOOKED_AT {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {LOOKED_AT} of {} existing pods",
            pods.len()
        ));
    }
    let mut found: Vec<(String, &str, usize)> = Vec::new();
    for pod in pods.iter().take(LOOKED_AT) {
        let faults = standard.faults(Pod { metadata: &pod["metadata"], spec: &pod["spec"] });
        if faults.is_empty() {
            continue;
        }
        let reasons = faults.iter().map(|fault| fault.reason).collect::<Vec<_>>().join(", ");
        let name = text_at(pod, &["metadata", "name"]);
        match found.iter_mut().find(|(known, ..)| *known == reasons) {
            Some((_, first, count)) => (*first, *count) = (name.min(*first), *count + 1),
            None => found.push((reasons, name, 1)),
        }
    }
    if !found.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{standard}\""
        ));
    }
    let told = found.into_iter().map(|(reasons, name, count)| match count {
        1 => format!("{name}: {reasons}"),
        2 => format!("{name} (and 1 other pod): {reasons}"),
        _ => format!("{name} (and {} other pods): {reasons}", count - 1),
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    warnings.extend(told);
    warnings
}

/// Of pods of one controller the first comes before all others.
fn one_of_each_first(pods: Vec<Value>) -> Vec<Value> {
    let mut seen = std::collections::BTreeSet::new();
    let (mut first, others): (Vec<Value>, Vec<Value>) = pods.into_iter().partition(|pod| {
        let owners = at(pod, &["metadata"]).map_or(&[][..], |metadata| list(metadata, "ownerReferences"));
        let controller = owners.iter().find(|owner| flag(owner, "controller"));
        controller.is_none_or(|controller| seen.insert(text(controller, "uid").to_owned()))
    });
    first.extend(others);
    first
}

/// Whether an update changes what a pod may do: which images it runs.
fn is_significant(pod: &Value, old: &Value) -> bool {
    let (new, old) = (&pod["spec"], &old["spec"]);
    let images = |spec: &Value, field: &str| -> Vec<String> {
        list(spec, field).iter().map(|container| text(container, "image").to_owned()).collect()
    };
    let differs = |field: &str| images(new, field) != images(old, field);
    let debugged = list(new, "ephemeralContainers").iter().any(|container| {
        let same = |other: &&Value| text(other, "name") == text(container, "name");
        let before = list(old, "ephemeralContainers").iter().find(same);
        before.is_none_or(|before| text(before, "image") != text(container, "image"))
    });
    differs("containers") || differs("initContainers") || debugged
}

fn in_full(faults: &[Fault]) -> String {
    let told = faults.iter().map(|Fault { reason, detail }| match detail.as_str() {
        "" => (*reason).to_owned(),
        detail => format!("{reason} ({detail})"),
    });
    told.collect::<Vec<_>>().join(", ")
}

impl Standard {
    const NOTHING: Standard = Standard { level: Level::Privileged, minor: None };

    fn faults(self, pod: Pod<'_>) -> Vec<Fault> {
        if self.level == Level::Privileged {
            return Vec::new();
        }
        let minor = self.minor.unwrap_or(NEWEST).min(NEWEST);
        let is_restricted = self.level == Level::Restricted;
        let baseline = BASELINE
            .iter()
            .filter(|check| !is_restricted || check.replaced.is_none_or(|since| minor < since));
        let more = RESTRICTED.iter().filter(|_| is_restricted);
        let rules = baseline
            .chain(more)
            .filter_map(|check| check.rules.iter().rev().find(|(since, _)| *since <= minor));
        rules.filter_map(|(_, rule)| rule(pod)).collect()
    }
}

impl std::fmt::Display for Standard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.minor {
            None => write!(f, "{level}:latest"),
            Some(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

impl Policy {
    /// What labels say. What cannot be read is as strict as can be where it is enforced, and nothing otherwise.
    fn read<'a>(label: impl Fn(&str) -> Option<&'a str>, errors: &mut Errors) -> Policy {
        let mut mode = |name: &str, otherwise: Level| {
            let (level_key, version_key) = (key(name), key(&format!("{name}-version")));
            let (given, version) = (label(&level_key), label(&version_key));
            let level = given.map(read_level);
            let mut standard = Standard::NOTHING;
            if let (Some(given), Some(level)) = (given, level) {
                standard.level = level.unwrap_or(otherwise);
                if level.is_none() {
                    invalid(errors, &level_key, given, "must be one of privileged, baseline, restricted");
                }
            }
            if let Some(version) = version {
                match read_version(version) {
                    Some(minor) => standard.minor = minor,
                    None => invalid(errors, &version_key, version, "must be \"latest\" or \"v1.x\""),
                }
            }
            (standard, level.is_some_and(|level| level.is_some()), given.is_some(), version.is_some())
        };
        let (enforce, is_said, ..) = mode("enforce", Level::Restricted);
        let (audit, ..) = mode("audit", Level::Privileged);
        let (mut warn, _, has_level, has_version) = mode("warn", Level::Privileged);
        // Who is refused something is also warned of it, before.
        if !has_level && is_said && enforce.level > warn.level {
            warn.level = enforce.level;
            if !has_version {
                warn.minor = enforce.minor;
            }
        }
        Policy { enforce, audit, warn }
    }
}

fn key(name: &str) -> String {
    format!("pod-security.kubernetes.io/{name}")
}

fn invalid(errors: &mut Errors, key: &str, value: &str, detail: &str) {
    let path = Path::Root.child("metadata");
    errors.invalid(&path.child("labels").key(key), &json!(value), detail);
}

fn read_level(text: &str) -> Option<Level> {
    match text {
        "privileged" => Some(Level::Privileged),
        "baseline" => Some(Level::Baseline),
        "restricted" => Some(Level::Restricted),
        _ => None,
    }
}

/// `latest`, which is no number, or `v1.x`.
fn read_version(text: &str) -> Option<Option<u32>> {
    if text == "latest" {
        return Some(None);
    }
    let minor = text.strip_prefix("v1.")?;
    let plain = minor.bytes().all(|byte| byte.is_ascii_digit()) && (minor == "0" || !minor.starts_with('0'));
    minor.parse().ok().filter(|_| plain).map(Some)
}
