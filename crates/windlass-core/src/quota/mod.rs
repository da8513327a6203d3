//! What objects count for in a ResourceQuota: for admission, which charges, and for the controller, which counts.
//!
//! ```text
//! object ─► Evaluator (of its resource) ─► is_in_scope(quota)? ─► usage ─► added to what the quota has used
//! ```

mod claims;
mod devices;
mod pods;
mod scope;
mod services;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::amounts::Amounts;
use crate::quantity::Quantity;
use crate::tree::{at, list};

pub use claims::class as claim_class;
pub use devices::{Classes, may_be_devices};
pub use pods::ends_by_itself;

/// What is in no store, and what was never counted.
const IGNORED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("events.k8s.io", "events"),
];

/// What was counted before everything could be, under a name of its own.
const ALIASES: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

/// The resources of which more than their number is counted: group and plural.
pub const MEASURED: [(&str, &str); 4] =
    [("", "pods"), ("", "services"), ("", "persistentvolumeclaims"), ("resource.k8s.io", "resourceclaims")];

/// The resource whose objects are counted under a name of a quota: group and plural.
pub fn counted_as(name: &str) -> Option<(&str, &str)> {
    if ALIASES.contains(&name) {
        return Some(("", name));
    }
    let resource = name.strip_prefix("count/")?;
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    Some((group, plural))
}

/// Knows what objects of a resource count for.
#[derive(Clone, Debug)]
pub enum Evaluator {
    /// Pods: their number, and what they need.
    Pods,
    /// Services: their number, load balancers and ports of nodes.
    Services,
    /// Claims of volumes: their number and size, by class too.
    Claims,
    /// Claims of devices: their number, and devices by class.
    DeviceClaims(Classes),
    /// Their number, under these names.
    Number(Vec<String>),
}

/// What has to be known besides the object.
pub trait World {
    /// The time.
    fn now(&self) -> Timestamp;

    /// A pod of a namespace.
    fn pod(&self, namespace: &str, name: &str) -> Option<Value>;

    /// The claims of devices in a namespace.
    fn device_claims(&self, namespace: &str) -> Vec<Value>;
}

impl Evaluator {
    /// That of a resource, if there is one. The classes of devices are asked for where they matter.
    pub fn of(group: &str, resource: &str, classes: impl FnOnce() -> Classes) -> Option<Evaluator> {
        if IGNORED.contains(&(group, resource)) {
            return None;
        }
        Some(match (group, resource) {
            ("", "pods") => Evaluator::Pods,
            ("", "services") => Evaluator::Services,
            ("", "persistentvolumeclaims") => Evaluator::Claims,
            ("resource.k8s.io", "resourceclaims") => Evaluator::DeviceClaims(classes()),
            ("", alias) if ALIASES.contains(&alias) => {
                Evaluator::Number(vec![number_of("", alias), alias.to_owned()])
            }
            (group, resource) => Evaluator::Number(vec![number_of(group, resource)]),
        })
    }

    /// Whether a resource of a quota is counted here.
    pub fn counts(&self, name: &str) -> bool {
        match self {
            Evaluator::Pods => pods::counts(name),
            Evaluator::Services => services::counts(name),
            Evaluator::Claims => claims::counts(name),
            Evaluator::DeviceClaims(classes) => devices::counts(name, classes),
            Evaluator::Number(names) => names.iter().any(|known| known == name),
        }
    }

    /// Whether an object is one of those that a quota is about.
    pub fn is_in_scope(&self, quota: &Value, object: &Value) -> bool {
        let spec = &quota["spec"];
        let scopes = list(spec, "scopes").iter().filter_map(Value::as_str);
        let scopes = scopes.map(|scope| json!({"scopeName": scope, "operator": "Exists"}));
        let selected =
            at(spec, &["scopeSelector"]).map_or(&[][..], |selector| list(selector, "matchExpressions"));
        scopes.chain(selected.iter().cloned()).all(|scope| match self {
            Evaluator::Pods => scope::of_pod(&scope, object),
            Evaluator::Claims => scope::of_claim(&scope, object),
            _ => false,
        })
    }

    /// What an object does not say and has to, where a quota is about it.
    pub fn lacks(&self, restricted: &[&str], object: &Value) -> Option<String> {
        match self {
            Evaluator::Pods => pods::lacks(restricted, object),
            _ => None,
        }
    }

    /// What an object counts for.
    pub fn usage(&self, object: &Value, world: &dyn World) -> Amounts {
        match self {
            Evaluator::Pods => pods::usage(object, world.now()),
            Evaluator::Services => services::usage(object),
            Evaluator::Claims => claims::usage(object),
            Evaluator::DeviceClaims(classes) => devices::usage(object, classes, world),
            Evaluator::Number(names) => names.iter().map(|name| (name.clone(), one())).collect(),
        }
    }
}

fn one() -> Quantity {
    Quantity::from_i64(1)
}

fn number_of(group: &str, resource: &str) -> String {
    if group.is_empty() { format!("count/{resource}") } else { format!("count/{resource}.{group}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_is_counted() {
        assert_eq!(counted_as("secrets"), Some(("", "secrets")));
        assert_eq!(counted_as("count/pods"), Some(("", "pods")));
        assert_eq!(counted_as("count/deployments.apps"), Some(("apps", "deployments")));
        assert_eq!(counted_as("count/foos.stable.example.com"), Some(("stable.example.com", "foos")));
        assert_eq!(counted_as("requests.cpu"), None);
        let of = |group, resource| Evaluator::of(group, resource, Classes::default);
        assert!(of("", "secrets").unwrap().counts("secrets"));
        assert!(of("", "secrets").unwrap().counts("count/secrets"));
        assert!(of("apps", "deployments").unwrap().counts("count/deployments.apps"));
        assert!(of("", "events").is_none());
    }
}
