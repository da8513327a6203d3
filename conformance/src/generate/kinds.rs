//! The objects that generators start from: `kinds.yaml`.

use std::sync::OnceLock;

use serde_json::{Value, json};
use windlass_apiserver::codec::{self, Format};

use super::mutate;
use crate::rng::Rng;

/// A built-in kind.
pub struct Kind {
    /// The path of its collection.
    pub path: String,
    /// Whether it is cluster-wide, so that names must be unique in a run.
    pub cluster: bool,
    /// Whether an instance takes something that there is little of: service addresses.
    pub expensive: bool,
    /// The OpenAPI name.
    pub type_name: String,
    /// A valid object without metadata.
    pub object: Value,
    /// Pointers and the values that may stand there.
    pub vary: Vec<(String, Vec<Value>)>,
}

impl Kind {
    /// A name that is free: the same letter is the same name within a sequence.
    pub fn name(&self, letter: &str) -> String {
        if self.cluster { format!("{{id}}-{letter}") } else { letter.to_owned() }
    }

    /// The path of an object.
    pub fn item(&self, letter: &str) -> String {
        format!("{}/{}", self.path, self.name(letter))
    }

    /// The valid object under a name.
    pub fn plain(&self, letter: &str) -> Value {
        let mut object = self.object.clone();
        let map = object.as_object_mut().expect("an object");
        map.insert("metadata".into(), json!({"name": self.name(letter)}));
        object
    }

    /// The object with some values put in.
    pub fn varied(&self, rng: &mut Rng, letter: &str, count: usize) -> Value {
        let mut object = self.plain(letter);
        for _ in 0..count {
            let (pointer, value) = self.change(rng);
            mutate::set(&mut object, pointer, value.clone());
        }
        object
    }

    /// A pointer and a value for it.
    pub fn change(&self, rng: &mut Rng) -> (&str, &Value) {
        let (pointer, values) = &self.vary[rng.below(self.vary.len())];
        (pointer, &values[rng.below(values.len())])
    }
}

/// All of them.
pub fn all() -> &'static [Kind] {
    static KINDS: OnceLock<Vec<Kind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let parsed =
            codec::parse(include_bytes!("../../kinds.yaml"), Format::Yaml).expect("kinds.yaml is YAML");
        parsed.value.as_array().expect("a list").iter().map(read).collect()
    })
}

fn read(row: &Value) -> Kind {
    let vary = row["vary"].as_object().expect("`vary` is an object");
    Kind {
        path: row["path"].as_str().expect("a path").into(),
        cluster: row["cluster"] == true,
        expensive: row["expensive"] == true,
        type_name: row["type"].as_str().expect("a type").into(),
        object: row["object"].clone(),
        vary: vary.iter().map(|(k, v)| (k.clone(), v.as_array().expect("a list").clone())).collect(),
    }
}

/// One of them; rarely an expensive one.
pub fn any(rng: &mut Rng) -> &'static Kind {
    loop {
        let kind = &all()[rng.below(all().len())];
        if !kind.expensive || rng.chance(25) {
            return kind;
        }
    }
}

/// One whose path begins so.
pub fn of(rng: &mut Rng, prefixes: &[&str]) -> &'static Kind {
    let some: Vec<&Kind> =
        all().iter().filter(|kind| prefixes.iter().any(|p| kind.path.starts_with(p))).collect();
    some[rng.below(some.len())]
}

/// The one with this plural.
pub fn named(plural: &str) -> &'static Kind {
    all().iter().find(|kind| kind.path.ends_with(&format!("/{plural}"))).expect("a kind of kinds.yaml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_in_the_type_table_and_can_be_sent_as_protobuf() {
        for kind in all() {
            crate::proto::encode(&kind.type_name, &kind.plain("a"))
                .unwrap_or_else(|e| panic!("{}: {e:#}", kind.path));
        }
    }
}
