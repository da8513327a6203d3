//! Field sets as `fieldsV1` trees.

use serde_json::{Map, Value};

use super::element::PathElement;
use super::set::{Node, Set};

impl Set {
    /// Reads a `fieldsV1` tree.
    pub fn from_fields_v1(tree: &Value) -> Result<Set, String> {
        Ok(read(tree)?.1)
    }

    /// The `fieldsV1` tree, with its keys in the order in which kube-apiserver writes them for built-in kinds.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(self.write(false))
    }

    fn write(&self, member: bool) -> Map<String, Value> {
        let mut map = Map::with_capacity(self.nodes().len() + usize::from(member));
        if member && !self.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for node in self.nodes() {
            map.insert(node.element.to_text(), Value::Object(node.children.write(node.member)));
        }
        map
    }
}

/// Whether the tree's own place is a member, and what is below it.
fn read(tree: &Value) -> Result<(bool, Set), String> {
    let map = match tree {
        Value::Object(map) => map,
        Value::Null => return Ok((true, Set::default())),
        other => return Err(format!("expected an object of path elements, got {other}")),
    };
    let mut member = false;
    let mut nodes = Vec::with_capacity(map.len());
    for (key, below) in map {
        if key == "." {
            member = true;
            continue;
        }
        if let Some(element) = PathElement::parse(key)? {
            let (member, children) = read(below)?;
            nodes.push(Node { element, member, children });
        }
    }
    Ok((member || nodes.is_empty(), Set::from_nodes(nodes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(tree: Value) -> Set {
        Set::from_fields_v1(&tree).unwrap()
    }

    #[test]
    fn a_tree_is_written_in_upstream_order() {
        let tree =
            json!({"f:b": {"k:{\"n\":10}": {}, "k:{\"n\":9}": {".": {}, "f:n": {}}, ".": {}}, "f:a": {}});
        let text = serde_json::to_string(&set(tree).to_fields_v1()).unwrap();
        let expected = r#"{"f:a":{},"f:b":{".":{},"k:{\"n\":9}":{".":{},"f:n":{}},"k:{\"n\":10}":{}}}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn unknown_classes_are_ignored_and_faults_are_named() {
        assert_eq!(set(json!({"f:a": {"z:1": {}}})), set(json!({"f:a": {}})));
        assert!(Set::from_fields_v1(&json!({"f:a": 1})).is_err());
        assert!(Set::from_fields_v1(&json!({"a": {}})).is_err());
        assert!(Set::from_fields_v1(&json!([])).is_err());
    }

    #[test]
    fn membership_of_a_parent_is_its_own() {
        let whole = set(json!({"f:a": {".": {}, "f:b": {}}}));
        let child = set(json!({"f:a": {"f:b": {}}}));
        let parent = set(json!({"f:a": {}}));
        assert_eq!(whole.clone().difference(&child), parent);
        assert_eq!(whole.clone().difference(&parent), child);
        assert_eq!(whole.clone().recursive_difference(&parent), Set::default());
        assert_eq!(whole.clone().intersection(&child), child);
        assert_eq!(child.clone().union(parent.clone()), whole);
        assert!(child.is_subset(&whole) && parent.is_subset(&whole) && !whole.is_subset(&child));
        let path = [PathElement::Field("a".into()), PathElement::Field("b".into())];
        assert!(child.contains(&path) && !child.contains(&path[..1]));
        assert_eq!(whole.paths().len(), 2);
    }
}
