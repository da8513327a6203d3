//! Which objects an operator wants to have at hand.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use kube::Resource;
use serde_json::{Map, Value};
use windlass_core::Kind;
use windlass_core::select::{FieldSelector, LabelSelector};

use super::decode::Transform;
use super::index::Index;

/// The namespaces that an operator works in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// All of them.
    #[default]
    All,
    /// These.
    Only(BTreeSet<String>),
}

impl Namespaces {
    /// These namespaces.
    pub fn only<I>(names: I) -> Namespaces
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Namespaces::Only(names.into_iter().map(Into::into).collect())
    }
}

/// Where an informer looks. Objects that live in no namespace are looked for everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Where the operator works ([`Cache::set_namespaces`](super::Cache::set_namespaces)), also when that changes.
    #[default]
    Watched,
    /// In these namespaces, wherever the operator works.
    Fixed(Namespaces),
}

/// What is wanted of one kind. Typed, metadata-only or dynamic is said by `K`: `ConfigMap`,
/// `PartialObjectMeta<ConfigMap>`, `DynamicObject`.
pub struct Declared<K> {
    /// The kind.
    pub kind: Kind,
    /// Where its objects are looked for.
    pub scope: Scope,
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these fields. Which ones a selector may name depends on the kind.
    pub fields: FieldSelector,
    /// Changes every object before it is kept.
    pub transform: Option<Transform<K>>,
    /// Whether we make such objects: the set of fields that we applied is kept with each, and they are found by the
    /// controller that owns them.
    pub owned: bool,
    /// Whether the kind may be missing: its CRD may come and go.
    pub optional: bool,
    /// What else its objects are found by.
    pub indexes: Vec<Index<K>>,
}

impl<K: Resource> Declared<K> {
    /// All objects of the kind of a Rust type.
    pub fn typed() -> Declared<K>
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        Declared::of(Kind::of::<K>())
    }

    /// All objects of a kind.
    pub fn of(kind: Kind) -> Declared<K> {
        Declared {
            kind,
            scope: Scope::Watched,
            labels: LabelSelector::everything(),
            fields: FieldSelector::default(),
            transform: None,
            owned: false,
            optional: false,
            indexes: Vec::new(),
        }
    }

    /// Only those in some namespaces.
    #[must_use]
    pub fn scope(self, scope: Scope) -> Declared<K> {
        Declared { scope, ..self }
    }

    /// Only those with these labels.
    #[must_use]
    pub fn labels(self, labels: LabelSelector) -> Declared<K> {
        Declared { labels, ..self }
    }

    /// Only those with these fields.
    #[must_use]
    pub fn fields(self, fields: FieldSelector) -> Declared<K> {
        Declared { fields, ..self }
    }

    /// Changed before they are kept.
    #[must_use]
    pub fn transform(self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Declared<K> {
        Declared { transform: Some(Arc::new(transform)), ..self }
    }

    /// We make such objects.
    #[must_use]
    pub fn owned(self) -> Declared<K> {
        Declared { owned: true, ..self }
    }

    /// The kind may be missing.
    #[must_use]
    pub fn optional(self) -> Declared<K> {
        Declared { optional: true, ..self }
    }

    /// Found by an index.
    #[must_use]
    pub fn index(mut self, index: Index<K>) -> Declared<K> {
        self.indexes.push(index);
        self
    }
}

impl<K> fmt::Debug for Declared<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Declared")
            .field("kind", &self.kind)
            .field("scope", &self.scope)
            .field("labels", &self.labels)
            .field("fields", &self.fields)
            .field("owned", &self.owned)
            .field("optional", &self.optional)
            .field("indexes", &self.indexes)
            .finish_non_exhaustive()
    }
}

/// Which objects are selected, for the server and for ourselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Filter {
    pub(super) fn of<K>(declared: &Declared<K>) -> Filter {
        Filter { labels: declared.labels.clone(), fields: declared.fields.clone() }
    }

    pub(super) fn is_all(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// As the server reads it.
    pub(super) fn labels(&self) -> Option<String> {
        if self.labels.is_everything() {
            return None;
        }
        // What selects nothing has no text, and what has no text selects everything.
        let nothing = self.labels.requirements().is_empty();
        Some(if nothing {
            "windlass.dev/none,!windlass.dev/none".to_owned()
        } else {
            self.labels.to_string()
        })
    }

    /// As the server reads it.
    pub(super) fn fields(&self) -> Option<String> {
        (!self.fields.is_everything()).then(|| self.fields.to_string())
    }

    /// Whether the server would select this object.
    pub(super) fn matches(&self, object: &Value) -> bool {
        let none = Map::new();
        let labels = object["metadata"]["labels"].as_object().unwrap_or(&none);
        self.labels.matches(labels) && self.fields.matches(|path| field(object, path))
    }
}

/// For people.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = [self.labels(), self.fields()].into_iter().flatten().collect();
        f.write_str(&parts.join(","))
    }
}

/// The fields that the server selects by are texts, and a few switches.
fn field<'a>(object: &'a Value, path: &str) -> Option<&'a str> {
    match path.split('.').fold(object, |value, part| &value[part]) {
        Value::String(text) => Some(text),
        Value::Bool(on) => Some(if *on { "true" } else { "false" }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    #[test]
    fn a_filter_selects_what_the_server_selects() {
        let pod = json!({
            "metadata": {"name": "one", "labels": {"app": "web"}},
            "spec": {"nodeName": "a", "hostNetwork": true},
        });
        let check = |labels: &str, fields: &str| {
            let labels = LabelSelector::parse(labels).unwrap();
            let declared =
                Declared::<Pod>::typed().labels(labels).fields(FieldSelector::parse(fields).unwrap());
            Filter::of(&declared).matches(&pod)
        };
        assert!(check("", ""));
        assert!(check("app=web", "spec.nodeName=a,metadata.name==one"));
        assert!(!check("app in (db)", ""));
        assert!(!check("app", "spec.nodeName!=a"));
        assert!(check("", "spec.hostNetwork=true,status.phase=,status.phase!=Running"));
    }
}
