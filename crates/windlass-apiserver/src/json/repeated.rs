//! Objects with keys that stand twice: Go's decoder reads every occurrence, a map shows only the last.

use serde_json::{Map, Value};

/// An object in which keys stood twice: all its keys in the order of the document, and the values that were replaced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeated {
    /// The path of the object; empty at the root.
    pub object: String,
    keys: Vec<String>,
    replaced: Vec<(String, Value)>,
}

impl Repeated {
    /// How many values that were replaced are kept for one object.
    const REPLACED_MAX: usize = 100;

    /// For an object that has these entries, once each, and is about to get one of them again.
    pub(super) fn new(object: String, so_far: &Map<String, Value>) -> Repeated {
        Repeated { object, keys: so_far.keys().cloned().collect(), replaced: Vec::new() }
    }

    /// Puts an entry into the object, and remembers what it replaces.
    pub(super) fn insert(&mut self, map: &mut Map<String, Value>, key: String, value: Value) {
        match map.insert(key.clone(), value) {
            Some(_) if self.replaced.len() == Self::REPLACED_MAX => {}
            Some(old) => {
                self.keys.push(key.clone());
                self.replaced.push((key, old));
            }
            None => self.keys.push(key),
        }
    }

    /// Whether this is about the object at `path` of which the tree shows `map`. Where an object stands twice itself, the
    /// path alone does not tell.
    pub fn is_of(&self, path: &str, map: &Map<String, Value>) -> bool {
        self.object == path
            && self.keys.len() - self.replaced.len() == map.len()
            && self.keys.iter().all(|key| map.contains_key(key))
    }

    /// The entries of the object in the order of the document, given those that the tree shows of it.
    pub fn entries(&self, mut map: Map<String, Value>) -> Vec<(String, Value)> {
        let mut replaced = self.replaced.clone();
        let take = |key: &String| {
            let value = match replaced.iter().position(|(other, _)| other == key) {
                Some(index) => replaced.remove(index).1,
                None => map.remove(key)?,
            };
            Some((key.clone(), value))
        };
        self.keys.iter().filter_map(take).collect()
    }
}
