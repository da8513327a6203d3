//! Namespaces: one that is deleted is emptied first.
//!
//! ```text
//! Terminating ─► which kinds are there? ─► list each on the server ─► delete what is not ending ─► list again ─► finalize
//! ```
//!
//! kube-controller-manager waits five seconds before it begins, for the sake of several API servers that hear of the
//! deletion at different times. Here it begins at once.

mod conditions;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, NamespaceStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use windlass_core::{Kind, ObjectKey};

use self::conditions::Findings;
use super::pods;
use crate::engine::{
    Controller, Delete, Kinds, Listed, LookUp, Propagation, Served, Turn, View, Wiring, Write,
};

/// Empties namespaces that are deleted.
pub(super) struct Namespaces;

/// After how long it is looked again at what waits for finalizers or for its grace period.
const WAITING: Duration = Duration::from_secs(1);

impl Controller for Namespaces {
    fn name(&self) -> &'static str {
        "namespace-controller"
    }

    fn declare(&self, wiring: &mut Wiring) {
        wiring.keys::<Namespace>();
        // The rest goes when pods are gone.
        wiring.maps::<Pod>(|pod, view| {
            let key = ObjectKey::cluster(pod.metadata.namespace.as_deref().unwrap_or_default());
            let ends = view.get::<Namespace>(&key).is_some_and(|namespace| ends(&namespace));
            Some(key).filter(|_| ends).into_iter().collect()
        });
    }

    fn step(&self, key: &ObjectKey, view: &View<'_>, now: Timestamp) -> Turn {
        let Some(namespace) = view.get::<Namespace>(key) else { return Turn::nothing() };
        let spec = namespace.spec.as_ref();
        let held = spec.and_then(|spec| spec.finalizers.as_deref()).unwrap_or_default();
        if !ends(&namespace) || held.is_empty() {
            return Turn::nothing();
        }
        let Some(kinds) = view.kinds() else { return ask([LookUp::Kinds]) };
        let name = key.name();
        let content = match content(kinds, name, view) {
            Ok(content) => content,
            Err(look_ups) => return ask(look_ups),
        };
        let mut turn = Turn::default();
        let mut findings = Findings::default();
        findings.undiscovered(&kinds.failing);
        let (pods, others): (Vec<_>, Vec<_>) = content.into_iter().partition(|content| content.is_pods());
        for content in &pods {
            content.empty(&mut turn, name, &mut findings, view);
        }
        let with_pods = pods.iter().any(|content| !content.objects.is_empty());
        if with_pods {
            findings.overdue_pods(&namespace, &pods[0].objects, longest_grace(view, name), now);
        } else {
            for content in &others {
                content.empty(&mut turn, name, &mut findings, view);
                findings.remaining(&content.served.kind, &content.objects);
            }
        }
        findings.refused(view.refused());
        let deletes = !turn.is_empty();
        let empty = !with_pods && others.iter().all(|content| content.objects.is_empty());
        let status = findings.status(namespace.status.as_ref(), now);
        if namespace.status.as_ref() != Some(&status) && !deletes {
            turn.status(&Namespace { status: Some(status), ..Namespace::clone(&namespace) });
        }
        if deletes {
            // What is gone at once is not worth a word: the next look tells what is left.
            turn.wake_at(now);
        } else if empty && findings.is_certain() {
            finalize(&mut turn, &namespace);
        } else {
            turn.wake_at(now + WAITING);
        }
        turn
    }
}

fn ends(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_some()
}

fn ask(look_ups: impl IntoIterator<Item = LookUp>) -> Turn {
    Turn { look_ups: look_ups.into_iter().collect(), ..Turn::default() }
}

/// What a namespace holds of one kind.
struct Content<'a> {
    served: &'a Served,
    objects: Vec<&'a ObjectMeta>,
    failed: Option<&'a str>,
}

/// What a namespace holds of all kinds, as the server has it; what has to be asked, where that is not known.
fn content<'a>(kinds: &'a Kinds, namespace: &str, view: &View<'a>) -> Result<Vec<Content<'a>>, Vec<LookUp>> {
    let deletable = |served: &&Served| served.kind.namespaced && served.preferred && served.can(&["delete"]);
    let mut content = Vec::new();
    let mut questions = Vec::new();
    for served in kinds.served.iter().filter(deletable).filter(|served| served.can(&["list"])) {
        let (objects, failed) = match view.listed(&served.kind, Some(namespace)) {
            None => {
                let (kind, namespace) = (served.kind.clone(), Some(namespace.to_owned()));
                questions.push(LookUp::Objects { kind, namespace });
                continue;
            }
            Some(Listed::Objects(objects)) => (objects.iter().collect(), None),
            Some(Listed::Unserved) => (Vec::new(), None),
            Some(Listed::Failed(error)) => (Vec::new(), Some(error.as_str())),
        };
        content.push(Content { served, objects, failed });
    }
    if questions.is_empty() { Ok(content) } else { Err(questions) }
}

impl Content<'_> {
    fn is_pods(&self) -> bool {
        self.served.kind == Kind::of::<Pod>()
    }

    /// Deletes what nobody has deleted, unless that was refused just now.
    fn empty(&self, turn: &mut Turn, namespace: &str, findings: &mut Findings, view: &View<'_>) {
        if let Some(error) = self.failed {
            findings.failed(error);
        }
        let kind = &self.served.kind;
        if view.refused().iter().any(|refusal| refusal.kind == kind.resource.kind) {
            return;
        }
        let mut left = self.objects.iter().filter(|meta| meta.deletion_timestamp.is_none()).peekable();
        if left.peek().is_some() && self.served.can(&["deletecollection"]) {
            turn.writes.push(Write::DeleteAll { kind: kind.clone(), namespace: namespace.to_owned() });
            return;
        }
        turn.writes.extend(left.map(|meta| {
            Write::Delete(Delete {
                kind: kind.clone(),
                key: ObjectKey::of(meta),
                uid: meta.uid.clone(),
                version: None,
                propagation: Some(Propagation::Background),
                grace: None,
            })
        }));
    }
}

/// How long pods may take that have not ended.
fn longest_grace(view: &View<'_>, namespace: &str) -> Duration {
    let all = view.list::<Pod>(Some(namespace));
    let running = all.iter().filter(|pod| !matches!(pods::phase(pod), "Succeeded" | "Failed"));
    let grace = running.filter_map(|pod| pod.spec.as_ref()?.termination_grace_period_seconds).max();
    Duration::from_secs(grace.unwrap_or_default().try_into().unwrap_or_default())
}

/// The namespace is empty: it no longer waits for us.
fn finalize(turn: &mut Turn, namespace: &Namespace) {
    let mut object = Namespace { status: None::<NamespaceStatus>, ..namespace.clone() };
    if turn.writes.iter().any(|write| matches!(write, Write::Replace { .. })) {
        // The status was just written, and with it the version.
        object.metadata.resource_version = None;
    }
    if let Some(finalizers) = object.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
        finalizers.retain(|finalizer| finalizer != "kubernetes");
    }
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": object.metadata, "spec": object.spec,
    });
    turn.writes.push(Write::Replace { kind: Kind::of::<Namespace>(), subresource: "finalize", object });
}

/// How many objects hold each finalizer.
fn by_finalizer<'a>(objects: impl IntoIterator<Item = &'a &'a ObjectMeta>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for finalizer in objects.into_iter().flat_map(|meta| meta.finalizers.iter().flatten()) {
        *counts.entry(finalizer.as_str()).or_default() += 1;
    }
    counts
}
