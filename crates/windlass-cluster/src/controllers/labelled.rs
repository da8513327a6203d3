//! Pods by their labels, and those who select pods by theirs: who belongs to whom costs what it concerns.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use windlass::Object;
use windlass::cache::Index;

use crate::engine::{View, Wiring};

/// The index of pods by each of their labels.
const BY_LABEL: &str = "label";
/// The index of objects by the one label by which their pods are looked for.
const BY_SELECTED: &str = "selected label";

type Labels = BTreeMap<String, String>;

/// Pods are found by their labels.
pub(crate) fn index_pods(wiring: &mut Wiring) {
    wiring.index::<Pod>(Index::new(BY_LABEL, |pod: &Pod| {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let labels = pod.metadata.labels.iter().flatten();
        labels.map(|(key, value)| under(&namespace, key, value)).collect()
    }));
}

/// Objects with a selector of labels are found by pods.
pub(crate) fn index_selectors<K: Object>(
    wiring: &mut Wiring,
    selector: impl Fn(&K) -> Option<Labels> + Send + Sync + 'static,
) {
    wiring.index::<K>(Index::new(BY_SELECTED, move |object: &K| {
        let namespace = object.meta().namespace.clone().unwrap_or_default();
        let labels = selector(object).unwrap_or_default();
        labels.first_key_value().map(|(key, value)| under(&namespace, key, value)).into_iter().collect()
    }));
}

/// The pods of a namespace that have all of these labels, in the order of their keys.
pub(crate) fn pods(view: &View<'_>, namespace: &str, labels: &Labels) -> Vec<Arc<Pod>> {
    let Some((key, value)) = labels.first_key_value() else { return Vec::new() };
    let mut pods = view.by_index::<Pod>(BY_LABEL, &under(namespace, key, value));
    pods.retain(|pod| has(pod, labels));
    pods
}

/// The objects that select a pod.
pub(crate) fn selecting<K: Object>(
    view: &View<'_>,
    pod: &Pod,
    selector: impl Fn(&K) -> Option<Labels>,
) -> Vec<Arc<K>> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let labels = pod.metadata.labels.iter().flatten();
    let near = labels.flat_map(|(key, value)| view.by_index::<K>(BY_SELECTED, &under(namespace, key, value)));
    near.filter(|object| selector(object).is_some_and(|labels| has(pod, &labels))).collect()
}

fn has(pod: &Pod, labels: &Labels) -> bool {
    let own = pod.metadata.labels.as_ref();
    labels.iter().all(|(key, value)| own.is_some_and(|own| own.get(key) == Some(value)))
}

fn under(namespace: &str, key: &str, value: &str) -> String {
    format!("{namespace}/{key}={value}")
}
