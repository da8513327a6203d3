//! What kube-controller-manager itself leaves to chance where pods really run, and so is not compared there. With the
//! puppet, which takes its time, it is.

use serde_json::Value;

use super::mirror::View;
use super::normal::{self, Picture};

/// An annotation that is there or not, as it happens.
struct Chance {
    kinds: &'static [&'static str],
    annotation: &'static str,
}

/// A new time is told where a pod's last turn is later than the one that was seen before. Times have whole seconds: a pod
/// that is bound, not ready and ready within one second leaves a time where a second begins in between, else none.
const LEFT: &[Chance] = &[Chance {
    kinds: &["Endpoints", "EndpointSlice"],
    annotation: "endpoints.kubernetes.io/last-change-trigger-time",
}];

/// A picture of what is there of a namespace whose pods really run.
pub fn picture(view: &View, namespace: &str) -> Picture {
    let mut view = view.clone();
    for entry in &mut view {
        let left = LEFT.iter().filter(|chance| chance.kinds.contains(&entry.kind.kind));
        let annotations: Vec<&str> = left.map(|chance| chance.annotation).collect();
        forget(&mut entry.object, &annotations);
    }
    normal::picture(&view, namespace)
}

fn forget(object: &mut Value, annotations: &[&str]) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(map) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    map.retain(|name, _| !annotations.contains(&name.as_str()));
    if map.is_empty() {
        metadata.shift_remove("annotations");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_named_is_left_out() {
        let mut object = json!({"metadata": {"annotations": {"a": "1", "b": "2"}}});
        forget(&mut object, &["a"]);
        assert_eq!(object, json!({"metadata": {"annotations": {"b": "2"}}}));
        forget(&mut object, &["b"]);
        assert_eq!(object, json!({"metadata": {}}));
        forget(&mut object, &["b"]);
        assert_eq!(object, json!({"metadata": {}}));
    }
}
