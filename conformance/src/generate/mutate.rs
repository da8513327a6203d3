//! Changes to trees.

use serde_json::{Map, Value, json};

use crate::rng::Rng;

/// Puts a value at a pointer, making the objects on the way; `null` takes the field away.
pub fn set(tree: &mut Value, pointer: &str, value: Value) {
    let mut at = tree;
    let mut parts =
        pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).peekable();
    while let Some(part) = parts.next() {
        if at.is_array() {
            let Some(item) = part.parse::<usize>().ok().and_then(|index| at.get_mut(index)) else { return };
            at = item;
            continue;
        }
        if !at.is_object() {
            *at = json!({});
        }
        let map = at.as_object_mut().expect("just made");
        if parts.peek().is_none() && value.is_null() {
            map.remove(&part);
            return;
        }
        at = map.entry(part).or_insert(Value::Null);
    }
    *at = value;
}

/// A tree with only this value at this pointer: a merge patch, or a part to apply.
pub fn only(pointer: &str, value: &Value) -> Value {
    let mut out = value.clone();
    for part in pointer.split('/').skip(1).collect::<Vec<_>>().into_iter().rev() {
        let mut map = Map::new();
        map.insert(part.replace("~1", "/").replace("~0", "~"), out);
        out = Value::Object(map);
    }
    out
}

/// All pointers into a tree, without the root.
pub fn pointers(tree: &Value) -> Vec<String> {
    let mut out = Vec::new();
    walk(tree, &mut String::new(), &mut out);
    out
}

fn walk(tree: &Value, at: &mut String, out: &mut Vec<String>) {
    let mut visit = |key: &str, value: &Value| {
        let length = at.len();
        at.push('/');
        at.push_str(&key.replace('~', "~0").replace('/', "~1"));
        out.push(at.clone());
        walk(value, at, out);
        at.truncate(length);
    };
    match tree {
        Value::Object(map) => map.iter().for_each(|(key, value)| visit(key, value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(i, value)| visit(&i.to_string(), value)),
        _ => {}
    }
}

/// Does one random harm: takes a field away, makes it another type, or null, or empty.
pub fn harm(rng: &mut Rng, tree: &mut Value) {
    let all: Vec<String> = pointers(tree).into_iter().filter(|p| !p.starts_with("/metadata")).collect();
    if all.is_empty() {
        return;
    }
    let pointer = &all[rng.below(all.len())];
    let Some(at) = tree.pointer_mut(pointer) else { return };
    *at = match rng.below(8) {
        0 => json!(5),
        1 => json!("text"),
        2 => json!({}),
        3 => json!([]),
        4 => json!(true),
        5 => json!(1.5),
        6 => json!(""),
        _ => Value::Null,
    };
}

/// Adds a field that no kind has, somewhere.
pub fn unknown(rng: &mut Rng, tree: &mut Value) {
    let mut all: Vec<String> = pointers(tree);
    all.retain(|p| {
        tree.pointer(p).is_some_and(Value::is_object) && !p.ends_with("abels") && !p.contains("annotations")
    });
    all.push(String::new());
    let pointer = &all[rng.below(all.len())];
    if let Some(Value::Object(map)) = tree.pointer_mut(pointer) {
        let name = rng.pick(&["foo", "Kind", "bar-baz", "status2", "unknownField"]);
        map.insert(name.into(), json!(rng.pick(&["x", "y"])));
    }
}

/// The text of a tree in which a key stands twice.
pub fn duplicated(rng: &mut Rng, tree: &Value) -> String {
    let text = tree.to_string();
    // After an opening brace in front of a key.
    let places: Vec<usize> = text.match_indices("{\"").map(|(at, _)| at).collect();
    let at = places[rng.below(places.len())];
    let key: String = text[at + 2..].chars().take_while(|&c| c != '"').collect();
    let value = rng.pick(&["\"dup\"", "null", "{}", "5"]);
    format!("{}{{\"{key}\":{value},{}", &text[..at], &text[at + 1..])
}

/// Random metadata: labels, annotations, finalizers, owners.
pub fn metadata(rng: &mut Rng, tree: &mut Value) {
    for _ in 0..rng.below(3) {
        match rng.below(4) {
            0 => set(tree, "/metadata/labels", labels(rng)),
            1 => {
                set(tree, "/metadata/annotations", json!({"k": "v", "x.y/z": rng.pick(&["", "text", "{}"])}))
            }
            2 => set(tree, "/metadata/finalizers", json!([rng.pick(&["x/y", "a.b/c"])])),
            _ => {
                let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"});
                set(tree, "/metadata/ownerReferences", json!([owner]));
            }
        }
    }
}

/// Labels over few keys and values, so that selectors hit.
pub fn labels(rng: &mut Rng) -> Value {
    let mut map = Map::new();
    for key in ["app", "tier", "env"] {
        if rng.chance(50) {
            map.insert(key.into(), json!(rng.pick(&["a", "b", "c", ""])));
        }
    }
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_put_in_and_taken_away() {
        let mut tree = json!({"spec": {"list": [{"a": 1}]}});
        set(&mut tree, "/spec/list/0/b", json!(2));
        set(&mut tree, "/spec/x~1y/z", json!(3));
        set(&mut tree, "/spec/list/0/a", Value::Null);
        assert_eq!(tree, json!({"spec": {"list": [{"b": 2}], "x/y": {"z": 3}}}));
        assert_eq!(only("/spec/x~1y", &json!(1)), json!({"spec": {"x/y": 1}}));
    }

    #[test]
    fn a_key_stands_twice() {
        let text = duplicated(&mut Rng::new(1), &json!({"a": {"b": 1}}));
        assert!(text.matches("\"a\":").count() == 2 || text.matches("\"b\":").count() == 2, "{text}");
    }
}
