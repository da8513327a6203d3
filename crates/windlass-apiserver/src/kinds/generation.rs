//! When `metadata.generation` grows.

use serde_json::Value;

use super::tree::{get, int, remove, same, set, sub};

/// A kind's rule for `metadata.generation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Whether an object is born with generation 1; otherwise it keeps what the client sent.
    pub born: bool,
    /// JSON pointers of what a change makes the generation grow.
    pub grows_on: &'static [&'static str],
}

impl Generation {
    /// The kind has no generations.
    pub const NONE: Generation = Generation { born: false, grows_on: &[] };
    /// Starts at 1 and grows with each change of the spec.
    pub const SPEC: Generation = Generation { born: true, grows_on: &["/spec"] };

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
    pub fn update(&self, new: &mut Value, old: &Value) {
        if self.grows_on.iter().any(|path| !same(new.pointer(path), old.pointer(path))) {
            let before = get(old, "metadata").and_then(|metadata| int(metadata, "generation"));
            set(sub(new, "metadata"), "generation", before.unwrap_or(0) + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_the_rule_names_makes_it_grow() {
        let old = json!({"metadata": {"generation": 3}, "spec": {"a": 1}});
        let mut new = json!({"metadata": {"generation": 9, "labels": {"x": "y"}}, "spec": {"a": 1}});
        Generation::SPEC.keep(&mut new, &old);
        Generation::SPEC.update(&mut new, &old);
        assert_eq!(new["metadata"]["generation"], 3);
        new["spec"]["a"] = json!(2);
        Generation::SPEC.update(&mut new, &old);
        assert_eq!(new["metadata"]["generation"], 4);
    }
}
