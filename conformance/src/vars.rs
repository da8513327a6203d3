//! Values of earlier answers in later requests.

use std::collections::BTreeMap;

use serde_json::Value;

/// Names to values: `{ns}` and `{id}` from the start, the captures later.
#[derive(Clone, Debug, Default)]
pub struct Vars(BTreeMap<String, String>);

impl Vars {
    /// The variables that every sequence has.
    pub fn new(id: &str) -> Vars {
        Vars([("ns".to_owned(), id.to_owned()), ("id".to_owned(), id.to_owned())].into())
    }

    /// Sets one.
    pub fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.into(), value);
    }

    /// What was captured, without what was given.
    pub fn captured(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .filter(|(k, _)| !matches!(k.as_str(), "ns" | "id"))
            .map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// The text with each `{name}` of a known name replaced.
    pub fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            out.push_str(&rest[..open]);
            rest = &rest[open..];
            let known = rest.find('}').and_then(|close| Some((close, self.0.get(&rest[1..close])?)));
            match known {
                Some((close, value)) => {
                    out.push_str(value);
                    rest = &rest[close + 1..];
                }
                None => {
                    out.push('{');
                    rest = &rest[1..];
                }
            }
        }
        out.push_str(rest);
        out
    }

    /// The tree with its strings and keys replaced.
    pub fn tree(&self, tree: &Value) -> Value {
        match tree {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.tree(item)).collect(),
            Value::Object(map) => map.iter().map(|(k, v)| (self.text(k), self.tree(v))).collect(),
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_names_are_replaced() {
        let mut vars = Vars::new("c1");
        vars.set("rv", "7".into());
        assert_eq!(
            vars.text(r#"{"a":"{rv}","b":{"c":"{other}{ns}"}}"#),
            r#"{"a":"7","b":{"c":"{other}c1"}}"#
        );
    }
}
