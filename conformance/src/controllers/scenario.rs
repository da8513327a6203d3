//! Scenarios as data: what a user and a node do, step by step.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use windlass_apiserver::codec::{self, Format};

/// Controllers that are compared together: a folder of scenarios.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Group {
    /// Its folder.
    #[serde(skip)]
    pub name: String,
    /// What kube-controller-manager is started with as `--controllers`.
    pub kcm: Vec<String>,
    /// The same controllers of ours.
    pub ours: Vec<String>,
    /// Further flags of kube-controller-manager, mostly to shorten its periods.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Whether kube-scheduler runs too; ours is among `ours`.
    #[serde(default)]
    pub scheduler: bool,
    /// Whether every scenario has a server for itself, because controllers look at all nodes there are.
    #[serde(default)]
    pub alone: bool,
    /// Whether it takes minutes, most of which is waiting.
    #[serde(default)]
    pub long: bool,
    /// Further flags where the nodes are not ours, and so can be heard of more often.
    #[serde(default)]
    pub puppet_flags: Vec<String>,
    /// How many scenarios there are at least, with the puppet and with our node.
    pub least: usize,
}

/// A story with an end that is compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// The folder that it lies in.
    #[serde(skip)]
    pub group: String,
    /// The name of its file.
    #[serde(skip)]
    pub name: String,
    /// What it shows.
    pub about: String,
    /// How long, in seconds, a wait waits.
    #[serde(default = "patience")]
    pub patience: f64,
    /// How long, in seconds, nothing has to happen before the next step is taken.
    #[serde(default = "quiet")]
    pub quiet: f64,
    /// How long nothing has to happen at the end.
    #[serde(default = "settle")]
    pub settle: f64,
    /// Why it is not played with our node, where no process can be brought to do what the puppet does.
    pub only_with_the_puppet: Option<String>,
    /// What happens.
    pub steps: Vec<Step>,
}

fn patience() -> f64 {
    90.0
}

fn quiet() -> f64 {
    0.5
}

fn settle() -> f64 {
    2.5
}

/// One thing that happens. An object is named `kind/name`, its kind in small letters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub enum Step {
    /// Objects are applied as by `kubectl apply --server-side --force-conflicts`, or created where they have only a
    /// `generateName`.
    Apply(Vec<Value>),
    /// The same, and what the server says to each is compared: it may refuse.
    Try(Vec<Value>),
    /// Merge patches.
    Patch(BTreeMap<String, Value>),
    /// Strategic merge patches: lists are merged by their keys.
    Strategic(BTreeMap<String, Value>),
    /// Merge patches of the status.
    Status(BTreeMap<String, Value>),
    /// Strategic merge patches of the status.
    StrategicStatus(BTreeMap<String, Value>),
    /// Numbers of replicas, by the scale subresource.
    Scale(BTreeMap<String, u32>),
    /// An object is deleted.
    Delete(Delete),
    /// Something becomes of pods.
    Pods(Pods),
    /// Objects come to look like this: all that is named here is so, anything else may be. `null`: it is not there.
    /// Names may be `kind?label=value` too: then there is exactly one, or none for `null`.
    Wait(BTreeMap<String, Value>),
    /// There come to be so many objects, named `kind` or `kind?label=value`.
    Count(BTreeMap<String, usize>),
    /// The server is asked whom the token in this Secret speaks for; what it says is compared.
    Review(String),
    /// Seconds pass.
    Sleep(f64),
    /// What is there now is compared too, under this name.
    Snapshot(String),
}

/// A deletion.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Delete {
    /// Of what.
    pub what: String,
    /// `Foreground`, `Background` or `Orphan`.
    pub propagation: Option<String>,
    /// The grace period.
    pub grace: Option<u64>,
}

/// What becomes of some pods.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Pods {
    /// Those with this label, `name=value`; all of the namespace where it is empty.
    #[serde(default)]
    pub select: String,
    /// Only so many, the oldest first.
    pub take: Option<usize>,
    /// What becomes of them: what an image of the puppet kubelet can be named (`ready`, `running`, `succeed`,
    /// `fail:CODE`), or `unready`, `evict` (by its subresource), `delete`, `finish` (they are gone now).
    #[serde(rename = "do")]
    pub act: String,
}

impl Scenario {
    /// The namespace that it plays in. None is a part of another's name.
    pub fn namespace(&self) -> String {
        format!("s-{}-{}-z", self.group, self.name)
    }

    /// `group/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    /// How long a wait waits.
    pub fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.patience)
    }
}

/// The folder of all groups.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("controllers")
}

/// All groups, by name.
///
/// # Errors
/// When their file is missing or broken.
pub fn groups() -> Result<Vec<Group>> {
    let groups: BTreeMap<String, Group> = read(&folder().join("groups.yaml"))?;
    Ok(groups.into_iter().map(|(name, group)| Group { name, ..group }).collect())
}

/// The scenarios of a group, by name.
///
/// # Errors
/// When a file is broken.
pub fn of_group(group: &str) -> Result<Vec<Scenario>> {
    of_folder(&folder().join(group), group)
}

/// The scenarios of a folder, by name.
///
/// # Errors
/// When a file is broken.
pub fn of_folder(folder: &Path, group: &str) -> Result<Vec<Scenario>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    let mut scenarios = Vec::new();
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let scenario = Scenario { group: group.to_owned(), name, ..read(&path)? };
        if scenario.namespace().len() > 63 {
            bail!("{}: the name is too long for a namespace", path.display());
        }
        scenarios.push(scenario);
    }
    Ok(scenarios)
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read(path).with_context(|| path.display().to_string())?;
    let parsed = codec::parse(&text, Format::Yaml);
    let value = parsed.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?.value;
    serde_json::from_value(value).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_its_scenarios_and_every_folder_is_a_group() {
        let groups = groups().unwrap();
        for group in &groups {
            let count = of_group(&group.name).unwrap().len();
            assert!(count >= group.least, "{} has {count} scenarios, not {}", group.name, group.least);
            let on_strings = of_group(&group.name)
                .unwrap()
                .iter()
                .filter(|one| one.only_with_the_puppet.is_none())
                .count();
            assert!(
                on_strings >= group.least,
                "{} has {on_strings} for our node, not {}",
                group.name,
                group.least
            );
        }
        for entry in fs::read_dir(folder()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() && name != "recorded" {
                assert!(groups.iter().any(|group| group.name == name), "{name} is not in groups.yaml");
            }
        }
    }
}
