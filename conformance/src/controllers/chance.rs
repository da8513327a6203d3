//! What kube-controller-manager itself leaves to chance where pods really run, and so is not compared there. With the
//! puppet, which takes its time, it is.

use serde_json::Value;

use super::mirror::View;
use super::normal::{self, Picture};

/// A field that is as it happens.
struct Chance {
    kinds: &'static [&'static str],
    field: &'static [&'static str],
}

const LEFT: &[Chance] = &[
    // A new time is told where a pod's last turn is later than the one that was seen before. Times have whole seconds: a pod
    // that is bound, not ready and ready within one second leaves a time where a second begins in between, else none.
    Chance {
        kinds: &["Endpoints", "EndpointSlice"],
        field: &["metadata", "annotations", "endpoints.kubernetes.io/last-change-trigger-time"],
    },
    // Turns of a pod that follow each other at once are written one by one, or together.
    Chance { kinds: &["EndpointSlice"], field: &["metadata", "generation"] },
];

/// A picture of what is there of a namespace whose pods really run.
pub fn picture(view: &View, namespace: &str) -> Picture {
    let mut view = view.clone();
    for entry in &mut view {
        for chance in LEFT.iter().filter(|chance| chance.kinds.contains(&entry.kind.kind)) {
            forget(&mut entry.object, chance.field);
        }
    }
    normal::picture(&view, namespace)
}

/// Forgets a field, and an object below the root that it leaves empty.
fn forget(object: &mut Value, field: &[&str]) {
    let Some(map) = object.as_object_mut() else { return };
    match field {
        [last] => drop(map.shift_remove(*last)),
        [first, rest @ ..] => {
            let Some(below) = map.get_mut(*first) else { return };
            forget(below, rest);
            if rest.len() == 1 && below.as_object().is_some_and(serde_json::Map::is_empty) {
                map.shift_remove(*first);
            }
        }
        [] => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_named_is_left_out() {
        let mut object = json!({"metadata": {"generation": 2, "annotations": {"a": "1", "b": "2"}}});
        forget(&mut object, &["metadata", "annotations", "a"]);
        assert_eq!(object, json!({"metadata": {"generation": 2, "annotations": {"b": "2"}}}));
        forget(&mut object, &["metadata", "annotations", "b"]);
        assert_eq!(object, json!({"metadata": {"generation": 2}}));
        forget(&mut object, &["metadata", "annotations", "b"]);
        forget(&mut object, &["metadata", "generation"]);
        assert_eq!(object, json!({}));
    }
}
