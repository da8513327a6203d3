//! Label and field selectors.

use std::collections::BTreeMap;

use serde_json::json;
use windlass_core::select::{FieldSelector, LabelSelector};

/// A selector that parses is matched against labels; what it says of exact keys agrees with what it matches.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let sets = [json!({}), json!({"a": "b"}), json!({"app": "web", "n": "5", "x.io/y": ""})];
    if let Ok(selector) = LabelSelector::parse(text) {
        for labels in &sets {
            let labels = labels.as_object().expect("objects");
            let matches = selector.matches(labels);
            assert!(matches || !selector.is_everything());
            for key in ["a", "app", "n", "x.io/y"] {
                let have = labels.get(key).and_then(|value| value.as_str());
                assert!(!matches || selector.exact(key).is_none_or(|value| have == Some(value)), "{text:?}");
            }
        }
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        let fields =
            BTreeMap::from([("metadata.name", "a"), ("spec.nodeName", ""), ("status.phase", "Running")]);
        let matches = selector.matches(|field| fields.get(field).copied());
        assert!(matches || !selector.is_everything());
        for (field, have) in &fields {
            assert!(!matches || selector.exact(field).is_none_or(|value| value == *have), "{text:?}");
        }
    }
}
