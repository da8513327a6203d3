//! Reading objects with what Go's zero values would give where something is absent.

use jiff::Timestamp;
use serde_json::{Map, Value};
use windlass_core::select::LabelSelector;

use super::age;
use crate::json;

/// The object to print, and the time at which it is printed.
pub(super) struct Object<'a> {
    pub(super) value: &'a Value,
    pub(super) now: Timestamp,
}

impl<'a> Object<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.text(&["metadata", "name"])
    }

    /// A string; empty if it is absent.
    pub(super) fn text(&self, path: &[&str]) -> &'a str {
        text(self.value, path)
    }

    /// An integer; zero if it is absent.
    pub(super) fn int(&self, path: &[&str]) -> i64 {
        int(self.value, path)
    }

    pub(super) fn list(&self, path: &[&str]) -> &'a [Value] {
        list(self.value, path)
    }

    pub(super) fn map(&self, path: &[&str]) -> Option<&'a Map<String, Value>> {
        get(self.value, path).and_then(Value::as_object)
    }

    pub(super) fn get(&self, path: &[&str]) -> Option<&'a Value> {
        get(self.value, path)
    }

    /// A string that is optional in Go, or what stands for its absence.
    pub(super) fn text_or(&self, path: &[&str], absent: &'a str) -> &'a str {
        self.get(path).and_then(Value::as_str).unwrap_or(absent)
    }

    pub(super) fn bool_or(&self, path: &[&str], absent: bool) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or(absent)
    }

    /// How many elements a list or entries a map has.
    pub(super) fn count(&self, path: &[&str]) -> usize {
        match self.get(path) {
            Some(Value::Array(list)) => list.len(),
            Some(Value::Object(map)) => map.len(),
            _ => 0,
        }
    }

    pub(super) fn is_being_deleted(&self) -> bool {
        self.get(&["metadata", "deletionTimestamp"]).is_some()
    }

    pub(super) fn age(&self) -> String {
        self.since(self.value, &["metadata", "creationTimestamp"])
    }

    /// How long ago the time at a path is; `<unknown>` if there is none.
    pub(super) fn since(&self, value: &Value, path: &[&str]) -> String {
        match time(value, path) {
            Some(then) => age::between(then, self.now),
            None => "<unknown>".to_owned(),
        }
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&'a str> {
        self.get(&["metadata", "annotations", key]).and_then(Value::as_str)
    }

    /// The status of the first condition of a type.
    pub(super) fn condition(&self, kind: &str) -> Option<&'a str> {
        let mut conditions = self.list(&["status", "conditions"]).iter();
        conditions
            .find(|condition| text(condition, &["type"]) == kind)
            .map(|condition| text(condition, &["status"]))
    }

    /// A label selector as `metav1.FormatLabelSelector` prints it.
    pub(super) fn selector(&self, path: &[&str]) -> String {
        match LabelSelector::from_object(self.get(path)).map(|selector| selector.to_string()) {
            Ok(text) if text.is_empty() => "<none>".to_owned(),
            Ok(text) => text,
            Err(_) => "<error>".to_owned(),
        }
    }

    /// A map of labels as `labels.FormatLabels` prints it.
    pub(super) fn labels(&self, path: &[&str]) -> String {
        let labels = self.map(path).into_iter().flatten();
        let mut pairs =
            labels.map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect::<Vec<_>>();
        pairs.sort_unstable();
        if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
    }

    /// The names and the images of the containers of a pod's spec.
    pub(super) fn containers(&self, path: &[&str]) -> (String, String) {
        let containers = self.list(path);
        let join = |key: &str| containers.iter().map(|c| text(c, &[key])).collect::<Vec<_>>().join(",");
        (join("name"), join("image"))
    }

    /// A quantity in its canonical text; a zero one if it is absent.
    pub(super) fn quantity(&self, path: &[&str]) -> String {
        quantity(self.value, path).unwrap_or_else(|| "0".to_owned())
    }
}

/// The value at a path, where `null` is as good as nothing.
pub(super) fn get<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    json::at(value, path).filter(|value| !value.is_null())
}

pub(super) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    json::str_at(value, path)
}

pub(super) fn int(value: &Value, path: &[&str]) -> i64 {
    get(value, path).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    get(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn texts<'a>(value: &'a Value, path: &[&str]) -> Vec<&'a str> {
    list(value, path).iter().filter_map(Value::as_str).collect()
}

pub(super) fn time(value: &Value, path: &[&str]) -> Option<Timestamp> {
    text(value, path).parse().ok()
}

pub(super) fn quantity(value: &Value, path: &[&str]) -> Option<String> {
    get(value, path).map(|quantity| match quantity {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

/// The first `max` elements, and how many more there are; `<unset>` if there are none.
pub(super) fn list_with_more(elements: &[String], max: usize) -> String {
    let shown = elements[..elements.len().min(max)].join(",");
    match elements.len() {
        count if count > max => format!("{shown} + {} more...", count - max),
        _ if shown.is_empty() => "<unset>".to_owned(),
        _ => shown,
    }
}
