//! When `metadata.generation` grows.

use serde_json::Value;

use super::Context;
use super::equal::equal_at;
use super::tree::{get, int, remove, set, sub};

/// A kind's rule for `metadata.generation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Whether an object is born with generation 1; otherwise it keeps what the client sent.
    pub born: bool,
    /// JSON pointers of what a change makes the generation grow.
    pub grows_on: &'static [&'static str],
    /// Whether an empty list or map where there was none is a change, too: [`Hooks::notes`](super::Hooks::notes)
    /// says if the object has any.
    pub tells_empty: bool,
}

impl Generation {
    /// The kind has no generations.
    pub const NONE: Generation = Generation { born: false, grows_on: &[], tells_empty: false };
    /// Starts at 1 and grows with each change of the spec.
    pub const SPEC: Generation = Generation { born: true, grows_on: &["/spec"], tells_empty: false };

    /// Sets the generation of a new object.
    pub fn create(&self, object: &mut Value) {
        if self.born {
            set(sub(object, "metadata"), "generation", 1);
        }
    }

    /// Undoes what a client did to the generation: it is the server's alone.
    pub fn keep(&self, new: &mut Value, old: &Value) {
        let metadata = sub(new, "metadata");
        match old.pointer("/metadata/generation") {
            Some(generation) => set(metadata, "generation", generation.clone()),
            None => {
                remove(metadata, "generation");
            }
        }
    }

    /// Lets the generation grow if an update changed what it depends on.
    pub fn update(&self, new: &mut Value, old: &Value, context: &Context<'_>) {
        let changed = |path: &&str| !equal_at(context.types, context.root, path, new, old);
        if self.grows_on.iter().any(changed) || (self.tells_empty && context.noted.own) {
            let before = get(old, "metadata").and_then(|metadata| int(metadata, "generation"));
            set(sub(new, "metadata"), "generation", before.unwrap_or(0) + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Noted, Nothing};
    use super::*;
    use crate::schema;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn only_what_the_rule_names_makes_it_grow() {
        let types = schema::builtin();
        let root = types.id("io.k8s.api.networking.v1.NetworkPolicy").unwrap();
        let extra = BTreeMap::new();
        let context = |noted| Context {
            now: jiff::Timestamp::UNIX_EPOCH,
            subresource: "",
            group: "networking.k8s.io",
            version: "v1",
            kind: "NetworkPolicy",
            types,
            root,
            namespaced: true,
            resource: "networkpolicies",
            user: "",
            groups: &[],
            uid: "",
            extra: &extra,
            dry_run: false,
            noted: Noted { own: noted, ..Noted::default() },
            old: None,
            world: &Nothing,
        };
        let rule = Generation { tells_empty: true, ..Generation::SPEC };
        let old = json!({"metadata": {"generation": 3}, "spec": {"podSelector": {}}});
        let mut new = old.clone();
        new["metadata"] = json!({"generation": 9, "labels": {"x": "y"}});
        rule.keep(&mut new, &old);
        rule.update(&mut new, &old, &context(false));
        assert_eq!(new["metadata"]["generation"], 3);
        Generation::SPEC.update(&mut new, &old, &context(true));
        assert_eq!(new["metadata"]["generation"], 3);
        rule.update(&mut new, &old, &context(true));
        assert_eq!(new["metadata"]["generation"], 4);
        new["spec"]["policyTypes"] = json!(["Egress"]);
        Generation::SPEC.update(&mut new, &old, &context(false));
        assert_eq!(new["metadata"]["generation"], 4);
    }
}
