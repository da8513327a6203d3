//! Which kinds the server serves.

use std::collections::BTreeSet;

use kube::Client;
use kube::core::ApiResource;
use serde_json::Value;
use windlass_core::Kind;

use super::look::{get, text};
use super::send::Failure;

/// All kinds that a server serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// One for each version of each resource.
    pub served: Vec<Served>,
    /// The group versions of which the server could not say what they serve: `metrics.k8s.io/v1beta1`.
    pub failing: Vec<String>,
}

/// A resource in one of its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The kind.
    pub kind: Kind,
    /// What can be done with its objects.
    pub verbs: BTreeSet<String>,
    /// Whether this is the version in which it is looked at: the first of the resource.
    pub preferred: bool,
}

impl Served {
    /// Whether all of this can be done with its objects.
    pub fn can(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.contains(*verb))
    }
}

impl Kinds {
    /// The kind that a reference names.
    pub fn find(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        let is_it = |served: &&Served| {
            served.kind.resource.api_version == api_version && served.kind.resource.kind == kind
        };
        self.served.iter().find(is_it).map(|served| &served.kind)
    }

    /// From the two documents of aggregated discovery.
    fn parse(documents: &[Value]) -> Kinds {
        let mut all = Kinds::default();
        for group in documents.iter().flat_map(|document| list(&document["items"])) {
            let name = text(&group["metadata"], "name");
            let mut seen = BTreeSet::new();
            for version in list(&group["versions"]) {
                all.version(name, version, &mut seen);
            }
        }
        all
    }

    fn version<'a>(&mut self, group: &str, version: &'a Value, seen: &mut BTreeSet<&'a str>) {
        let number = text(version, "version");
        let api_version = match group {
            "" => number.to_owned(),
            group => format!("{group}/{number}"),
        };
        if text(version, "freshness") == "Stale" {
            self.failing.push(api_version.clone());
        }
        for resource in list(&version["resources"]) {
            let plural = text(resource, "resource");
            self.served.push(Served {
                kind: Kind {
                    resource: ApiResource {
                        group: group.to_owned(),
                        version: number.to_owned(),
                        api_version: api_version.clone(),
                        kind: text(&resource["responseKind"], "kind").to_owned(),
                        plural: plural.to_owned(),
                    },
                    namespaced: text(resource, "scope") == "Namespaced",
                },
                verbs: list(&resource["verbs"]).filter_map(|verb| Some(verb.as_str()?.to_owned())).collect(),
                preferred: seen.insert(plural),
            });
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Asks the server.
pub(super) async fn kinds(client: &Client) -> Result<Kinds, Failure> {
    const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let mut documents = Vec::new();
    for path in ["/api", "/apis"] {
        let answer = client.request::<Value>(get(path, AGGREGATED)).await;
        let retry = |source| Failure::Retry { what: format!("cannot discover {path}"), source };
        documents.push(answer.map_err(retry)?);
    }
    Ok(Kinds::parse(&documents))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_version_that_has_a_resource_is_the_one_it_is_looked_at_in() {
        let resource = |plural: &str, kind: &str| {
            json!({"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind},
                "scope": "Namespaced", "verbs": ["delete", "list"]})
        };
        let kinds = Kinds::parse(&[json!({"items": [{
            "metadata": {"name": "example.com"},
            "versions": [
                {"version": "v2", "freshness": "Current", "resources": [resource("foos", "Foo")]},
                {"version": "v1", "freshness": "Stale",
                    "resources": [resource("foos", "Foo"), resource("bars", "Bar")]},
            ],
        }]})]);
        let preferred: Vec<String> = kinds
            .served
            .iter()
            .filter(|served| served.preferred)
            .map(|served| served.kind.path(Some("a"), None))
            .collect();
        assert_eq!(
            preferred,
            ["/apis/example.com/v2/namespaces/a/foos", "/apis/example.com/v1/namespaces/a/bars"]
        );
        assert_eq!(kinds.find("example.com/v1", "Foo").unwrap().resource.version, "v1");
        assert_eq!(kinds.find("example.com/v3", "Foo"), None);
        assert_eq!(kinds.failing, ["example.com/v1"]);
        assert!(kinds.served[0].can(&["list"]) && !kinds.served[0].can(&["list", "watch"]));
    }
}
