//! What one rule of a role allows, and when rules cover others.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer};

use super::attributes::{Asked, Attributes};
use crate::go::quoted;

/// A rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// What may be done.
    #[serde(deserialize_with = "list")]
    pub verbs: Vec<String>,
    /// In which API groups.
    #[serde(deserialize_with = "list")]
    pub api_groups: Vec<String>,
    /// With which resources, as `pods`, `pods/log`, `*/scale` or `*`.
    #[serde(deserialize_with = "list")]
    pub resources: Vec<String>,
    /// With which objects; all, if none are named.
    #[serde(deserialize_with = "list")]
    pub resource_names: Vec<String>,
    /// At which paths that are no resources; `*` at the end stands for anything.
    #[serde(rename = "nonResourceURLs", deserialize_with = "list")]
    pub non_resource_urls: Vec<String>,
}

/// Lists may be `null`.
fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Stands for all verbs, groups, resources or paths.
const ALL: &str = "*";

impl Rule {
    /// Everything with all resources.
    pub fn everything_with_resources() -> Rule {
        let all = || vec![ALL.to_owned()];
        Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() }
    }

    /// Everything at all paths.
    pub fn everything_at_paths() -> Rule {
        let all = || vec![ALL.to_owned()];
        Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() }
    }

    /// Whether it allows what is asked.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !has(&self.verbs, &attributes.verb) {
            return false;
        }
        match &attributes.asked {
            Asked::Resource { group, resource, subresource, name, .. } => {
                has(&self.api_groups, group)
                    && self.resources.iter().any(|own| is_resource(own, resource, subresource))
                    && (self.resource_names.is_empty() || self.resource_names.iter().any(|own| own == name))
            }
            Asked::Path(path) => self.non_resource_urls.iter().any(|own| is_path(own, path)),
        }
    }

    /// The same as rules of one verb, one group, one resource and at most one name each.
    pub fn broken_down(&self) -> Vec<Rule> {
        let one = |text: &String| vec![text.clone()];
        let mut all = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let rule = Rule {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Rule::default()
                    };
                    match self.resource_names.is_empty() {
                        true => all.push(rule),
                        false => all.extend(
                            self.resource_names
                                .iter()
                                .map(|name| Rule { resource_names: one(name), ..rule.clone() }),
                        ),
                    }
                }
            }
        }
        for path in &self.non_resource_urls {
            let paths = self.verbs.iter().map(|verb| Rule {
                verbs: one(verb),
                non_resource_urls: one(path),
                ..Rule::default()
            });
            all.extend(paths);
        }
        all
    }

    /// Whether everything that a [broken-down](Rule::broken_down) rule allows is allowed by this one.
    fn covers(&self, small: &Rule) -> bool {
        let all = |own: &[String], other: &[String]| {
            own.iter().any(|one| one == ALL) || other.iter().all(|one| own.contains(one))
        };
        let names = match small.resource_names.is_empty() {
            true => self.resource_names.is_empty(),
            false => {
                self.resource_names.is_empty()
                    || small.resource_names.iter().all(|name| self.resource_names.contains(name))
            }
        };
        all(&self.verbs, &small.verbs)
            && all(&self.api_groups, &small.api_groups)
            && small.resources.iter().all(|resource| self.covers_resource(resource))
            && names
            && small
                .non_resource_urls
                .iter()
                .all(|path| self.non_resource_urls.iter().any(|own| covers_path(own, path)))
    }

    fn covers_resource(&self, wanted: &str) -> bool {
        let of_any = wanted.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
        self.resources
            .iter()
            .any(|own| own == ALL || own == wanted || of_any.as_ref().is_some_and(|of_any| own == of_any))
    }

    /// The one group, resource and name that it is about, if it is about nothing else.
    fn simple(&self) -> Option<(&str, &str, Option<&str>)> {
        if self.resource_names.len() > 1 || !self.non_resource_urls.is_empty() {
            return None;
        }
        match (self.api_groups.as_slice(), self.resources.as_slice()) {
            ([group], [resource]) => Some((group, resource, self.resource_names.first().map(String::as_str))),
            _ => None,
        }
    }

    /// As a refusal tells it.
    fn compact(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let told = parts.into_iter().filter(|(_, list)| !list.is_empty());
        let told: Vec<String> = told.map(|(name, list)| format!("{name}:{}", quoted(list))).collect();
        format!("{{{}}}", told.join(", "))
    }
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|own| own == ALL || own == wanted)
}

fn is_resource(own: &str, resource: &str, subresource: &str) -> bool {
    if own == ALL {
        return true;
    }
    if subresource.is_empty() {
        return own == resource;
    }
    match own.split_at_checked(own.len().wrapping_sub(subresource.len() + 1)) {
        // What precedes the subresource and its slash.
        Some((before, after)) => {
            after.strip_prefix('/') == Some(subresource) && (before == resource || before == ALL)
        }
        None => false,
    }
}

fn is_path(own: &str, path: &str) -> bool {
    own == ALL || covers_path(own, path)
}

fn covers_path(own: &str, path: &str) -> bool {
    own == path || own.ends_with('*') && path.starts_with(own.trim_end_matches('*'))
}

/// What of `wanted` none of `held` covers, piece by piece.
pub fn uncovered(held: &[&Rule], wanted: &[Rule]) -> Vec<Rule> {
    let small = wanted.iter().flat_map(Rule::broken_down);
    small.filter(|small| !held.iter().any(|own| own.covers(small))).collect()
}

/// Rules as a refusal tells them: those of one resource as one, each on its line, in order.
pub fn told(rules: &[Rule]) -> String {
    let mut joined: Vec<Rule> = Vec::new();
    for rule in rules {
        let same = |other: &&mut Rule| other.simple().is_some() && other.simple() == rule.simple();
        match joined.iter_mut().find(same) {
            Some(other) => other.verbs.extend(rule.verbs.iter().cloned()),
            None => joined.push(rule.clone()),
        }
    }
    let lines: BTreeSet<String> = joined.iter().map(Rule::compact).collect();
    lines.into_iter().collect::<Vec<_>>().join("\n")
}
